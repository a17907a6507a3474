"""SQL: what is right passes in every dialect, what is wrong is named at its line; SQLite itself is the judge."""

import random
import re
import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.code.sql import check
from orchestrator.code.sql.check import Project, check_sql, dialects_of
from orchestrator.code.sql.tokens import Statement, statements
from orchestrator.core.finding import Finding
from tests.code.sql_samples import MYSQL, POSTGRES, SQLITE, TSQL

PACKAGE_OF = {"sqlite": "better-sqlite3", "postgres": "pg", "mysql": "mysql2", "tsql": "mssql"}
RIGHT = {"sqlite": SQLITE, "postgres": POSTGRES, "mysql": MYSQL, "tsql": TSQL}
TABLE = "CREATE TABLE t (\n  id INTEGER PRIMARY KEY,\n  {}\n);"


def judged(sql: str, dialect: str = "") -> list[Finding]:
    packages = frozenset({PACKAGE_OF[dialect]}) if dialect else frozenset[str]()
    return check_sql(sql, "a.sql", project=Project(packages=packages))


def said(sql: str, dialect: str = "") -> list[tuple[str, int | None, str]]:
    return [(str(f.severity), f.where.line, f.message.removeprefix("SQL: ")) for f in judged(sql, dialect)]


@pytest.mark.parametrize("dialect", RIGHT)
@pytest.mark.parametrize("told", [True, False], ids=["dialect told", "dialect unknown"])
def test_what_is_right_passes(dialect: str, told: bool) -> None:
    assert said(RIGHT[dialect], dialect if told else "") == []


@pytest.mark.parametrize(
    ("column", "dialect", "line", "message"),
    [
        ("order INTEGER", "", 3, "`order` is a reserved word"),
        ("group TEXT NOT NULL", "mysql", 3, "`group` is a reserved word"),
        ("user TEXT", "postgres", 3, "`user` is a reserved word"),
        ("index INTEGER", "sqlite", 3, "`index` is a reserved word"),
        ("default TEXT", "postgres", 3, "`default` is a reserved word"),
        ("check BOOLEAN", "", 3, "`check` is a reserved word"),
        ("references TEXT", "mysql", 3, "`references` is a reserved word"),
        ("name TEXT NOT NULL\n  email TEXT", "postgres", 4, "a comma is missing between `name TEXT` and `email`"),
        ("name TEXT\n  email TEXT", "sqlite", 4, "a comma is missing between `name TEXT` and `email`"),
        ("a INT DEFAULT 0\n  b INT", "", 4, "a comma is missing between `a INT` and `b`"),
        ("a INT REFERENCES u(id)\n  FOREIGN KEY (a) REFERENCES u(id)", "", 4, "a comma is missing between `a INT`"),
        ("a INT\n  PRIMARY KEY (id, a)", "postgres", 4, "a comma is missing between `a INT` and `PRIMARY …`"),
        ("a INT,", "", 3, "a comma stands before `)`"),
        ("a INT DEFAULT (1", "mysql", 1, "`(` is never closed"),
        ("a TEXT DEFAULT 'x", "", 3, "is a text or name whose closing quote is missing"),
    ],
)
def test_what_models_do_wrong_in_tables(column: str, dialect: str, line: int, message: str) -> None:
    found = said(TABLE.format(column), dialect)
    assert [(severity, at) for severity, at, text in found if message in text] == [("major", line)], found


@pytest.mark.parametrize(
    ("sql", "dialect", "message"),
    [
        ("SELECT a, b, FROM t;", "", "a comma stands before `FROM`"),
        ("SELECT a FROM t WHERE", "postgres", "ends with `WHERE`"),
        ("SELECT a FROM t WHERE a = (1 + 2;", "", "`(` is never closed"),
        ("SELECT a FROM t)", "mysql", "`)` closes no bracket"),
        ("SELECT a FORM t WHERE a = 1;", "sqlite", 'near "t": syntax error'),
        ("CREATE TRIGGER x AFTER INSERT ON t BEGIN UPDATE t SET a = 1 WHER b; END;", "sqlite", 'near "WHER"'),
        ("CREATE TABLE t (a INT, a TEXT);", "sqlite", "duplicate column name: a"),
    ],
)
def test_what_models_do_wrong_elsewhere(sql: str, dialect: str, message: str) -> None:
    found = said(sql, dialect)
    assert [severity for severity, _, text in found if message in text] == ["major"], found


def test_the_quotes_of_the_fix_are_the_database_s() -> None:
    fixes = [judged(TABLE.format("order INT"), dialect)[0].fix for dialect in ("sqlite", "postgres", "mysql")]
    assert [fix.split()[1] for fix in fixes] == ['"order"', '"order"', "`order`"]


def test_the_dialect_is_the_path_s_the_file_s_or_the_project_s() -> None:
    project = Project(packages=frozenset({"pg", "left-pad"}), stack=("Database: SQLite",))
    assert dialects_of("db/mysql/001.sql", "", project) == ("mysql",)
    assert dialects_of("schema.sql", "", project) == ("postgres", "sqlite")
    assert dialects_of("schema.sql", "", Project(stack=("Oracle 19c",))) == ("other",)
    assert judged("CREATE TABLE t (user TEXT);") == []
    assert said(TABLE.format("a INT,"), "tsql") == []


def refusal(sql: str) -> str:
    """What SQLite says of a statement's grammar, with the table in place that it works on; "" when it takes it."""
    with closing(sqlite3.connect(":memory:")) as connection:
        if sql.upper().startswith("ALTER") or " TRIGGER " in sql[:40].upper():
            connection.execute("CREATE TABLE users (id)")
            connection.execute("CREATE VIEW active AS SELECT 1")
        try:
            connection.execute(sql if sql.upper().startswith("EXPLAIN") else f"EXPLAIN {sql}")
        except sqlite3.Error as error:
            return str(error) if re.search(r"syntax error|incomplete input|unrecognized token", str(error)) else ""
    return ""


def source(statement: Statement) -> str:
    return SQLITE[statement.tokens[0].start : statement.tokens[-1].end]


def slips(text: str, chance: random.Random) -> str:
    """The statement with one slip of the kinds models make."""
    tokens = [token for statement in statements(text) for token in statement.tokens]
    token = chance.choice(tokens)
    kind = chance.choice(("drop", "double", "cut", "comma", "reserved", "quote"))
    if kind == "drop":
        return f"{text[: token.start]} {text[token.end :]}"
    if kind == "double":
        return f"{text[: token.start]}{token.text} {text[token.start :]}"
    if kind == "cut":
        return text[: token.end]
    if kind == "comma":
        return f"{text[: token.start]}, {text[token.start :]}"
    if kind == "quote" and token.kind == "string":
        return text[: token.end - 1] + text[token.end :]
    words = ("order", "group", "index", "default", "check", "user", "key")
    return f"{text[: token.start]}{chance.choice(words)}{text[token.end :]}" if token.kind == "word" else text


LOST = re.compile(
    r"a comma is missing|duplicate column|default value|primary key|VALUES must|values are given|datatype for"
    r"|column .* in foreign key"
)
"""What SQLite takes as grammar, or finds out only later, and is wrong all the same."""


def test_sqlite_itself_says_the_same_of_thousands_of_slips() -> None:
    chance = random.Random(7)
    right = [source(statement) for statement in statements(SQLITE)]
    assert len(right) >= 60
    taken = refused = found = 0
    for _ in range(2000):
        text = slips(chance.choice(right), chance)
        if len(list(statements(text))) != 1:
            continue
        majors = [finding for finding in judged(text, "sqlite") if finding.severity.blocks]
        if refusal(text):
            refused, found = refused + 1, found + bool(majors)
        else:
            taken += 1
            assert [f.message for f in majors if not LOST.search(f.message)] == [], text
    assert (taken > 250, refused > 750) == (True, True)
    assert found >= 0.95 * refused


@given(st.text(alphabet="CREATE TABLE t(a,'\";`[]$-/*\n\\?:%{}()=.xINSERT", max_size=120))
def test_nothing_makes_it_raise(text: str) -> None:
    for dialect in ("", "sqlite", "postgres", "mysql"):
        judged(text, dialect)


def test_a_dump_is_judged_as_far_as_it_is_looked_at() -> None:
    dump = "INSERT INTO t (a, b) VALUES " + ",\n".join(f"({n}, 'it''s {n}')" for n in range(20_000)) + ";\n"
    assert len(dump) > check.MAX_CHARS
    assert judged(dump, "sqlite") == []
    assert said("CREATE TABLE t (order INT);\n" + dump, "sqlite")[0][1] == 1


async def test_it_may_be_asked_on_an_event_loop() -> None:
    assert said("CREATE TABLE t (id INTEGER PRIMARY KEY name TEXT);", "sqlite")
    assert said("SELECT a FORM t WHERE a = 1 b;", "postgres") == [
        ("minor", 1, "no parser here understands the statement")
    ]
