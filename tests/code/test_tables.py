"""Tables from SQL and from models."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.code.python.surface import read_models
from orchestrator.code.sql.tables import read_tables
from orchestrator.core.contract import Table


def shown(tables: tuple[Table, ...]) -> dict[str, list[str]]:
    return {table.name: list(table.columns) for table in tables}


def test_what_stands_after_all_migrations() -> None:
    first = """
        -- a comment; with a semicolon
        CREATE TABLE users (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL DEFAULT ';', gone INT);
        CREATE TABLE IF NOT EXISTS users (other INT);
        CREATE TABLE old (a INT); CREATE TABLE older (a INT);
        CREATE TEMPORARY TABLE scratch (a INT);
        CREATE FUNCTION f() RETURNS int AS $$ CREATE TABLE inside (a INT); $$;
        INSERT INTO users VALUES (1, 'CREATE TABLE quoted (a INT);');
    """
    second = """
        ALTER TABLE users ADD COLUMN age INT NOT NULL;
        ALTER TABLE users DROP COLUMN gone;
        ALTER TABLE users RENAME COLUMN name TO title;
        DROP TABLE IF EXISTS old, nowhere;
        ALTER TABLE older RENAME TO newer;
        -- +goose Down
        DROP TABLE users;
    """
    tables = read_tables([("1.sql", first), ("2.sql", second), ("2.down.sql", "DROP TABLE users;")])
    assert shown(tables) == {
        "users": ["id INTEGER PRIMARY KEY AUTOINCREMENT", "title TEXT NOT NULL DEFAULT ';'", "age INT NOT NULL"],
        "newer": ["a INT"],
    }
    assert {table.file for table in tables} == {"1.sql"}


def test_each_dialect_is_told_in_its_own_words() -> None:
    text = """
        CREATE TABLE `t` (`id` int(11) unsigned NOT NULL AUTO_INCREMENT, PRIMARY KEY (`id`)) ENGINE=InnoDB;
        CREATE TABLE p (id SERIAL PRIMARY KEY, -- key, of course
 at TIMESTAMPTZ, owner INT REFERENCES t (id));
        CREATE TABLE loose (a, b);
        CREATE TABLE nonsense (a INT
    """
    assert shown(read_tables([("schema.sql", text)])) == {
        "t": ["`id` int(11) unsigned NOT NULL AUTO_INCREMENT", "PRIMARY KEY (`id`)"],
        "p": ["id SERIAL PRIMARY KEY", "at TIMESTAMPTZ", "owner INT REFERENCES t (id)"],
        "loose": ["a", "b"],
    }


@pytest.mark.timeout(20)
@pytest.mark.parametrize("text", ["'" * 300_001, "/*" * 150_000, "$a$b" * 90_000, "create table x (" * 20_000])
def test_hostile_sql_costs_little(text: str) -> None:
    assert read_tables([("a.sql", text)]) == ()


@given(st.text(alphabet="CREATE TABLEx(),;'\"-/*$`[]\n 1", max_size=80).map(lambda text: f"CREATE TABLE t {text}"))
def test_no_sql_raises(text: str) -> None:
    read_tables([("a.sql", text)])


SQLALCHEMY = """
class Base(DeclarativeBase): ...
class Stamped:
    created: Mapped[datetime] = mapped_column(DateTime, nullable=False)
class User(Stamped, Base):
    __tablename__ = "users"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str | None]
    legacy = Column(String(40), unique=True)
    posts: Mapped[list["Post"]] = relationship(back_populates="author")
tags = Table("tags", metadata, Column("id", Integer, primary_key=True), Column("name", Text))
class UserRole(db.Model):
    user = db.Column(db.Integer, db.ForeignKey("users.id"))
class Hero(SQLModel, table=True):
    id: int | None = Field(default=None, primary_key=True)
    name: str
class HeroIn(SQLModel):
    name: str
"""
DJANGO = """
class Stamped(models.Model):
    at = models.DateTimeField(auto_now=True)
    class Meta:
        abstract = True
class Book(Stamped):
    title = models.CharField(max_length=100)
    author = models.ForeignKey("Author", on_delete=models.CASCADE)
    readers = models.ManyToManyField("Reader")
class Loan(models.Model):
    book = models.ForeignKey(Book, on_delete=models.PROTECT)
    class Meta:
        db_table = "loans"
"""


def test_sqlalchemy_and_its_kin() -> None:
    assert shown(read_models(SQLALCHEMY, "models.py")) == {
        "users": [
            "created datetime DateTime, nullable=False",
            "id int primary_key=True",
            "name str | None",
            "legacy String(40), unique=True",
        ],
        "user_role": ["user db.Integer, db.ForeignKey('users.id')"],
        "hero": ["id int | None default=None, primary_key=True", "name str"],
        "tags": ["id Integer, primary_key=True", "name Text"],
    }


def test_django() -> None:
    assert shown(read_models(DJANGO, "models.py")) == {
        "Book": [
            "at models.DateTimeField auto_now=True",
            "title models.CharField max_length=100",
            "author models.ForeignKey 'Author', on_delete=models.CASCADE",
        ],
        "loans": ["book models.ForeignKey Book, on_delete=models.PROTECT"],
    }


@pytest.mark.parametrize("text", ["class A(models.Model", "class A(B): x = 1", "class Model: Column = 1", ""])
def test_no_models(text: str) -> None:
    assert read_models(text, "a.py") == ()
