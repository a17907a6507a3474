"""SQL: what is right passes in every dialect, what is wrong is named at its line; SQLite itself is the judge."""

import random
import re
import sqlite3
import time
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
def test_what_is_right_passes(dialect: str) -> None:
    assert said(RIGHT[dialect], dialect) == []
    assert [severity for severity, _, _ in said(RIGHT[dialect]) if severity != "minor"] == []


@pytest.mark.parametrize(
    ("sql", "dialect", "severity", "message"),
    [
        (TABLE.format("a INT DEFAULT (1"), "mysql", "major", "`(` is never closed"),
        (TABLE.format("a INT DEFAULT (1"), "tsql", "major", "`(` is never closed"),
        (TABLE.format("a TEXT DEFAULT 'x"), "", "major", "is a text or name whose closing quote is missing"),
        (TABLE.format("order INTEGER"), "sqlite", "major", 'near "order": syntax error'),
        (TABLE.format("a INT,"), "sqlite", "major", 'near ")": syntax error'),
        (TABLE.format("a TEXT NOT NULL\n  b TEXT"), "postgres", "minor", "no parser here understands"),
        ("SELECT a FROM t WHERE", "postgres", "minor", "no parser here understands"),
        ("SELECT a FROM t WHERE", "sqlite", "major", "ends with `WHERE`"),
        ("SELECT a FORM t WHERE a = 1;", "sqlite", "major", 'near "t": syntax error'),
        ("CREATE TRIGGER x AFTER INSERT ON t BEGIN UPDATE t SET a = 1 WHER b; END;", "sqlite", "major", 'near "WHER"'),
        ("CREATE TABLE t (a INT, a TEXT);", "sqlite", "major", "duplicate column name: a"),
    ],
)
def test_what_models_do_wrong(sql: str, dialect: str, severity: str, message: str) -> None:
    found = said(sql, dialect)
    assert [told for told, _, text in found if message in text] == [severity], found


def test_the_dialect_is_the_path_s_or_the_project_s() -> None:
    project = Project(packages=frozenset({"pg", "left-pad"}), stack=("Database: SQLite",))
    assert dialects_of("db/mysql/001.sql", project) == ("mysql",)
    assert dialects_of("schema.sql", project) == ("postgres", "sqlite")
    assert dialects_of("schema.sql", Project(stack=("Oracle 19c",))) == ("other",)
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
    r"duplicate column|default value|primary key|VALUES must|values are given|datatype for|column .* in foreign key"
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


@pytest.mark.parametrize(
    "text",
    ["(" * 100_000, "'" * 100_001, "SELECT " + "(SELECT " * 3000, "/*" * 50_000, "{{" * 50_000, "$a$" + "$b" * 50_000,
     "SELECT 1" + " + 1" * 50_000, "CREATE TABLE t (" + "a INT," * 20_000 + "b INT)", ";" * 100_000, "\x00", "\ud800",
     "INSERT INTO t (a) VALUES " + "(1)," * 50_000 + "(2);",
     "WITH a AS (SELECT 1), " + ", ".join(f"a{n} AS (SELECT * FROM a, a)" for n in range(200)) + " SELECT 1",
     "\n" * 200_000, "DELIMITER //\n" * 10_000],
    ids=range(15),
)  # fmt: skip
def test_hostile_text_costs_no_more_than_its_length(text: str) -> None:
    before = time.process_time()
    judged(text)
    assert time.process_time() - before < 20  # quadratic ones would take minutes


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
