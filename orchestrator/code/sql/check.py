"""Judges SQL files: by rules that hold in every dialect, by SQLite's own parser, and by sqlglot for the others."""

import logging
import re
import sqlite3
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import cache
from itertools import islice, pairwise
from typing import NamedTuple

from orchestrator.code.sql.tokens import (
    COLUMN_WORDS,
    NAME_KINDS,
    TYPES,
    Statement,
    Token,
    is_reserved,
    quoted_as,
    statements,
    table_items,
    words,
)
from orchestrator.core.finding import Finding, Where, major, minor

# ---- SQLite's own parser: asked in memory, nothing is run, and no table is needed

_NEAR = re.compile(r'^near "(?P<word>.*)": syntax error$', re.DOTALL)
_CUT = "incomplete input"
_SURE = re.compile(
    r"^(?:duplicate column name|table .* has more than one primary key|default value of column .* is not constant"
    r"|all VALUES must have the same number of terms|unrecognized token|unknown column .* in foreign key definition"
    r"|number of columns in foreign key|PRIMARY KEY missing on table|missing datatype for|unknown datatype for"
    r"|foreign key on .* should reference only one column|SELECTs to the left and right of)",
    re.IGNORECASE,
)
"""Errors of a statement alone, whatever tables there are."""
_NEWER = (
    ((3, 35), re.compile(r"\bRETURNING\b|\bMATERIALIZED\b|\bDROP\s+COLUMN\b", re.I)),
    ((3, 37), re.compile(r"\bSTRICT\b", re.I)),
    ((3, 38), re.compile(r"->")),
    ((3, 39), re.compile(r"\b(?:RIGHT|FULL)\b|\bDISTINCT\s+FROM\b", re.I)),
    ((3, 44), re.compile(r"\b(?!OVER\b)[A-Z_]\w*\s*\((?!\s*(?:SELECT|PARTITION)\b)[^()]*\bORDER\s+BY\b", re.I)),
    ((3, 46), re.compile(r"\d_\d")),
    ((3, 53), re.compile(r"\bALTER\s+TABLE\b.*\b(?:CONSTRAINT|ALTER|SET|CHECK)\b", re.I | re.S)),
)
"""Since when SQLite knows what: an older one here says nothing about it."""
_BY_BUILD = re.compile(r"^\s*(?:UPDATE|DELETE)\b.*\b(?:ORDER|LIMIT)\b", re.I | re.S)
"""Depends on how SQLite was built."""
_COLUMN = "a column that no statement names"
_DENIED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_PRAGMA, sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH})


class Said(NamedTuple):
    """The parser's word: `why` is empty when it takes the statement."""

    why: str = ""
    at: Token | None = None
    """Where it stopped, when it says."""
    cut: bool = False
    """Whether the statement only lacks its end."""


class SqliteGrammar:
    """One connection to an empty database in memory. Statements are prepared to be explained, never carried out.

    A query is refused by the authorizer once it is parsed, so that none is planned: planning can take forever.
    """

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        self._connection.set_authorizer(_authorized)
        self._made: set[str] = set()

    def close(self) -> None:
        """Frees the memory."""
        self._connection.close()

    def check(self, text: str, statement: Statement) -> Said | None:
        """Returns what SQLite says of a statement of `text`; None when another version or build may know better."""
        tokens = statement.tokens
        explained = 0 if tokens[0].key != "EXPLAIN" else 3 if statement.words[1:3] == ("QUERY", "PLAN") else 1
        if len(tokens) <= explained:
            return Said()
        start = tokens[explained].start
        self._table_for(tokens)
        whole = text[start : tokens[-1].end]
        why = self._refusal(whole)
        unsure = bool(_BY_BUILD.match(whole)) or any(
            sqlite3.sqlite_version_info < since and words.search(whole) for since, words in _NEWER
        )
        if not why:
            return Said()
        near = _NEAR.match(why)
        if near is None:
            sure = why == _CUT or _SURE.match(why)
            return (None if unsure else Said(why, None, why == _CUT)) if sure else Said()
        return None if unsure else Said(why, self._place(text, start, tokens, near["word"]))

    def _place(self, text: str, start: int, tokens: Sequence[Token], word: str) -> Token | None:
        """The token it stumbled over: the first of those with this text up to which it already stumbles."""
        candidates = [token for token in tokens if token.text == word]
        low, high = 0, len(candidates) - 1
        while low < high:
            middle = (low + high) // 2
            found = _NEAR.match(self._refusal(text[start : candidates[middle].end]))
            low, high = (low, middle) if found else (middle + 1, high)
        return candidates[low] if candidates else None

    def _table_for(self, tokens: Sequence[Token]) -> None:
        """A table of the name that ALTER TABLE or CREATE TRIGGER works on: without it neither is parsed whole."""
        keys = [token.key for token in tokens[:40]]
        if keys[:2] == ["ALTER", "TABLE"]:
            at = 2
        elif "TRIGGER" in keys[:3] and "ON" in keys:
            at = keys.index("ON") + 1
        else:
            return
        name = tokens[at].text.strip('"`[]') if at < len(tokens) else ""
        if name and name.lower() not in self._made and re.fullmatch(r"[\w$ ]+", name):
            self._made.add(name.lower())
            kind = "VIEW" if "INSTEAD" in keys else "TABLE"
            body = "AS SELECT 1" if kind == "VIEW" else f'("{_COLUMN}")'
            self._run(f'CREATE {kind} IF NOT EXISTS "{name}" {body}')

    def _refusal(self, sql: str) -> str:
        return self._run(f"EXPLAIN {sql}")

    def _run(self, sql: str) -> str:
        try:
            self._connection.execute(sql)
        except sqlite3.ProgrammingError:
            return ""  # it asks for values, so it was understood
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
            return str(error) or "?"
        return ""


def _authorized(action: int, *_of: object) -> int:
    return sqlite3.SQLITE_DENY if action in _DENIED else sqlite3.SQLITE_OK


# ---- judging a text

OTHER = "other"
"""A dialect whose words are not known here: little is refused in its name."""
_NAMES = {
    "sqlite": r"sqlite3?|libsql|turso",
    "postgres": r"postgres(?:ql)?|pg|pgsql|psql|cockroach(?:db)?|timescale(?:db)?|supabase|neon",
    "mysql": r"mysql8?|mariadb",
    OTHER: r"mssql|sql[ _-]?server|t-?sql|azure sql"
    r"|oracle|plsql|db2|duckdb|snowflake|bigquery|clickhouse|redshift|hive|spark|presto|trino|cassandra|firebird"
    r"|teradata|vertica|hsqldb|h2|derby|informix|sybase|databricks|exasol|cql",
}
_PACKAGES = {
    "sqlite": """better-sqlite3 sqlite3 sqlite sql.js aiosqlite pysqlite3 pysqlite3-binary libsql libsql-client
    @libsql/client expo-sqlite @sqlite.org/sqlite-wasm node-sqlite3-wasm sqlite-utils""",
    "postgres": """pg postgres pg-promise pg-native slonik asyncpg psycopg psycopg2 psycopg2-binary pg8000
    aiopg psycopg-binary @neondatabase/serverless @vercel/postgres @supabase/supabase-js pg-pool pglite
    @electric-sql/pglite""",
    "mysql": """mysql mysql2 pymysql mysqlclient aiomysql asyncmy mysql-connector-python mariadb promise-mysql
    @planetscale/database""",
    OTHER: """mssql tedious pymssql msnodesqlv8
    oracledb cx-oracle duckdb @duckdb/node-api snowflake-connector-python snowflake-sdk clickhouse-driver
    clickhouse-connect @clickhouse/client google-cloud-bigquery @google-cloud/bigquery cassandra-driver pyodbc odbc
    redshift-connector trino pyspark""",
}
_USUAL = ("sqlite", "postgres", "mysql")
_DRIVER_OF = {package: name for name, packages in _PACKAGES.items() for package in packages.split()}
# Words that one dialect alone has.
_SPOKEN = {
    "mysql": re.compile(
        r"`\w+`|\bAUTO_INCREMENT\b|\bENGINE\s*=|\bUNSIGNED\b|^[ \t]*DELIMITER\b|\bMODIFY\s+COLUMN\b"
        r"|\bCHARACTER SET\b|/\*!\d",
        re.I | re.M,
    ),
    OTHER: re.compile(
        r"\[\w+\]\s*[.(\[\w,]|\bIDENTITY\s*\(|\bNVARCHAR\b|^[ \t]*GO[ \t]*$|\bOBJECT_ID\s*\("
        r"|\bVARCHAR2\b|\bNUMBER\s*\(|^/[ \t]*$|\bENGINE\s*=\s*MergeTree|\bPARTITIONED BY\b"
        r"|\bSTRUCT<|\bQUALIFY\b"
        r"|\bCREATE GENERATOR\b|\bFROM\s+DUAL\b|\bSYSIBM\b|\bSET TERM\b|\bLISTAGG\b|\bSORTKEY\b|\bDISTKEY\b",
        re.I | re.M,
    ),
}
_LOOK = 60_000
"""Characters of a text that are searched for the dialect's own words."""
MAX_CHARS = 200_000
"""Of one text that are looked at; the statement that stands across this end is not judged."""
MAX_TOKENS = 3_000
"""Of one statement that a parser gets: a longer one is data, and is judged by the rules alone."""
MAX_PARSED = 40_000
"""Characters of one text that sqlglot gets: it is slow."""
MAX_FINDINGS = 20
_FIX = "Write the statement in the grammar of the project's database."
# What sqlglot does not know in all its forms: a statement with such a word is not given to it.
_CORNERS = words(
    """EXCLUDE INHERIT INHERITS OVERRIDING NULLS TABLESPACE PARTITION PARTITIONED MATCH LIKE INCLUDING OF STORAGE
    COMPRESSION VALID VALIDATE REPLICA IDENTITY OWNER ENABLE DISABLE ATTACH DETACH CLUSTER TRIGGER RULE POLICY
    SEQUENCE STATISTICS XMLTABLE JSON_TABLE TABLESAMPLE ORDINALITY GROUPING SEARCH CYCLE CURRENT DUPLICATE ALGORITHM
    LOCK FORCE IGNORE STRAIGHT_JOIN HIGH_PRIORITY LOW_PRIORITY DELAYED SPATIAL FULLTEXT VISIBLE INVISIBLE OUTFILE
    PROCEDURE USING BINARY PERSISTENT SYSTEM PERIOD VERSIONING ONLY OPERATOR SIMILAR OVERLAPS SKIP NOWAIT SHARE
    DEFERRABLE INITIALLY"""
)
_CORE = frozenset({"SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "DROP", "VALUES"})


class Project(NamedTuple):
    """What tells the dialect besides the file itself."""

    packages: frozenset[str] = frozenset()
    """Normalised names from the manifests and the plan."""
    stack: tuple[str, ...] = ()
    """What was recorded on the tech stack."""


class Problem(NamedTuple):
    """One thing that is wrong with a statement."""

    at: Token
    message: str
    fix: str
    major: bool = True
    certain: bool = False
    """Whether it stays wrong although SQLite takes it: it does not mean what was meant."""
    cut: bool = False
    """Whether only the end is missing: wrong in a dialect that is not known, too."""
    anywhere: bool = False
    """Whether no dialect takes it, known or not."""


def check_sql(text: str, path: str, *, code: str = "content.syntax", project: Project | None = None) -> list[Finding]:
    """Returns findings of `code` on the statements of a SQL text, in order, at most MAX_FINDINGS. Never raises.

    Major is what no database that may be meant would take; minor is what no parser here understands. A statement into
    which a program puts something is not judged.
    """
    starts = [0, *(index + 1 for index, sign in enumerate(text) if sign == "\n")]
    found = []
    for problem in [*_problems(text, dialects_of(path, text, project or Project()))][:MAX_FINDINGS]:
        line = bisect_right(starts, problem.at.start)
        place = Where(file=path, line=line, column=problem.at.start - starts[line - 1] + 1)
        make = major if problem.major else minor
        found.append(make(code, f"SQL: {problem.message}", where=place, fix=problem.fix))
    return found


_TABLE_STRING = re.compile(
    r"""(?P<prefix>\b[rRbBuUfF]{1,2})?(?P<quote>\"{3}|\'{3}|["'`])\s*"""
    r"""(?P<sql>CREATE\s+(?:OR\s+REPLACE\s+|TEMP\s+|TEMPORARY\s+|UNLOGGED\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?"""
    r"""[\w.\[\]"`]{1,80}\s*\((?:(?!(?P=quote))[^\\]){1,8000})(?P=quote)""",
    re.IGNORECASE,
)
"""A string of Python or JavaScript that creates a table, without escapes in it; `Create a table …` is prose."""


def check_tables(text: str, path: str, *, code: str = "content.syntax") -> list[Finding]:
    """Returns what the rules say of CREATE TABLE in a program's strings; what something is put into is not judged."""
    found: list[Finding] = []
    for string in islice(_TABLE_STRING.finditer(text), MAX_FINDINGS):
        sql, quote = string["sql"], string["quote"]
        if "f" in (string["prefix"] or "").lower() or "${" in sql or ("\n" in sql and quote in {'"', "'"}):
            continue
        for statement in statements(sql, escapes=False):
            for problem in () if statement.has_holes else _by_rules(statement, _USUAL):
                place = Where(file=path, line=text.count("\n", 0, string.start("sql") + problem.at.start) + 1)
                found.append(major(code, f"SQL: {problem.message}", where=place, fix=problem.fix))
    return found


def dialects_of(path: str, text: str, project: Project) -> tuple[str, ...]:
    """Returns the dialects that may be meant: SQL that one of them takes is right.

    The path goes before the project's packages and stack, of which all that are named count. Where nothing tells, the
    usual ones may be meant, and those whose own words the text uses: words alone are no proof.
    """
    if named := _named(path.replace("_", " ")):
        return named
    packages = [_DRIVER_OF[name] for name in sorted(project.packages) if name in _DRIVER_OF]
    told = dict.fromkeys((*packages, *(name for line in project.stack for name in _named(line))))
    spoken = (name for name, pattern in _SPOKEN.items() if pattern.search(text[:_LOOK]))
    return tuple(told) or tuple(dict.fromkeys((*spoken, *_USUAL)))


def _named(text: str) -> tuple[str, ...]:
    return tuple(name for name, words in _NAMES.items() if re.search(rf"(?<![a-z])(?:{words})(?![a-z])", text, re.I))


def _problems(text: str, dialects: Sequence[str]) -> Iterator[Problem]:
    read = _read(text[:MAX_CHARS], dialects)
    if len(text) > MAX_CHARS:
        read = read[:-1]
    left = MAX_PARSED
    with ExitStack() as stack:
        known = OTHER not in dialects
        sqlite = stack.enter_context(closing(SqliteGrammar())) if known and "sqlite" in dialects else None
        for statement in (one for one in read if not one.has_holes):
            found = _by_rules(statement, dialects)
            if not known:
                yield from (problem for problem in found if problem.cut or problem.anywhere)
                continue
            short = len(statement.tokens) <= MAX_TOKENS
            said = sqlite.check(text, statement) if sqlite is not None and short else None
            if said is not None and not said.why:
                yield from (problem for problem in found if problem.certain)
            elif found or not short:
                yield from found
            elif tuple(dialects) == ("sqlite",):
                yield from [_refused(statement, said)] if said is not None else []
            elif _is_core(statement) and (size := statement.tokens[-1].end - statement.tokens[0].start) <= left:
                left -= size
                others = [name for name in dialects if name != "sqlite"]
                if not _is_parsed(text[statement.tokens[0].start : statement.tokens[-1].end], others):
                    yield Problem(statement.tokens[0], "no parser here understands the statement", _FIX, major=False)


def _refused(statement: Statement, said: Said) -> Problem:
    """Returns SQLite's own words, for what no rule explains."""
    last = statement.tokens[-1]
    if said.cut:
        return Problem(last, f"the statement ends with `{last.text[:40]}`: the rest is missing", _FIX, cut=True)
    return Problem(said.at or statement.tokens[0], f"SQLite refuses it: {said.why[:200]}", _FIX)


def _read(text: str, dialects: Sequence[str]) -> list[Statement]:
    """Reads in MySQL's way where that is meant, in the other where that alone makes sense of the quotes."""
    mysql = dialects[:1] == ("mysql",)
    read = list(statements(text, escapes=mysql))
    if _is_torn(read) and ("\\" in text or "#" in text) and tuple(dialects) != ("mysql",):
        other = list(statements(text, escapes=not mysql))
        return read if _is_torn(other) else other
    return read


def _is_torn(read: Sequence[Statement]) -> bool:
    return bool(read) and any(token.open for token in read[-1].tokens)


def _is_core(statement: Statement) -> bool:
    """Returns whether it is of a kind that sqlglot knows well, in all its forms."""
    first, *others = statement.words
    if statement.body or any(token.key in _CORNERS for token in statement.tokens if token.kind == "word"):
        return False
    return first in _CORE and (first not in {"CREATE", "ALTER", "DROP"} or others[:1] == ["TABLE"])


@cache
def _quiet_sqlglot() -> None:
    """Keeps what sqlglot cannot read out of the log: the result says it."""
    logger = logging.getLogger("sqlglot")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False


def _is_parsed(text: str, dialects: Iterable[str]) -> bool:
    """Whether sqlglot reads `text` in one of `dialects`. It takes much that no database takes, and lacks some."""
    # Imported here: only what meets SQL pays for it.
    import sqlglot
    from sqlglot.errors import SqlglotError

    _quiet_sqlglot()
    for dialect in dialects:
        try:
            sqlglot.parse_one(text, dialect=dialect)
        except SqlglotError:  # this dialect refuses it; another may accept it
            continue
        except (RecursionError, ValueError, TypeError, AttributeError, IndexError, KeyError):
            return True  # its own fault, not the text's
        return True
    return False


# ---- rules: what sqlglot forgives, and what SQLite takes and the author cannot have meant

# `*` and `/` may end a statement (`SELECT *`, SQL*Plus), these cannot.
_CANNOT_END = words(
    """, = < > + || ( . <= >= <> != WHERE AND OR INTO BY HAVING JOIN LIKE BETWEEN CREATE INSERT ALTER DROP WITH NOT
    REFERENCES UNION EXCEPT INTERSECT WHEN THEN ELSE FROM SET"""
)
_NO_COMMA_BEFORE = frozenset({"FROM", "WHERE", ")", ",", "HAVING"})
_CONSTRAINTS = words(
    """CONSTRAINT PRIMARY FOREIGN UNIQUE CHECK EXCLUDE LIKE INDEX KEY FULLTEXT SPATIAL PERIOD PARTITION INHERITS
    PROJECTION WATERMARK"""
)
_ENDS_A_COLUMN = words(
    """) NULL KEY UNIQUE AUTOINCREMENT AUTO_INCREMENT TRUE FALSE CURRENT_TIMESTAMP CURRENT_DATE CURRENT_TIME CASCADE
    RESTRICT ACTION STORED VIRTUAL DEFERRED IMMEDIATE ] UNSIGNED ZEROFILL"""
)


def _by_rules(statement: Statement, dialects: Sequence[str]) -> list[Problem]:
    """Returns one problem per place, in the order of the text; the body of a trigger or function is not looked at."""
    if statement.body:
        return []
    found = [*_brackets(statement.tokens), *_commas(statement.tokens), *_cut_short(statement.tokens)]
    for item in table_items(statement.tokens):
        found += [*_reserved(item, dialects), *_missing_comma(item), *_open_check(item)]
    if statement.words[:2] == ("ALTER", "TABLE"):
        found += _open_check(statement.tokens)
    return list({problem.at.start: problem for problem in sorted(found, key=lambda one: one.at.start)}.values())


def _brackets(tokens: Sequence[Token]) -> Iterator[Problem]:
    waiting: list[Token] = []
    for token in tokens:
        if token.open:
            message = f"{token.text[:30]!r} is a text or name whose closing quote is missing"
            yield Problem(token, message, "Close the quote; write a quote inside a text twice.", cut=True)
        elif token.key == "(":
            waiting.append(token)
        elif token.key == ")" and not waiting:
            yield Problem(token, "`)` closes no bracket", "Take it out, or open the bracket that it closes.")
            return
        elif token.key == ")":
            waiting.pop()
    if waiting:
        message = "`(` is never closed"
        yield Problem(waiting[-1], message, "Write the whole statement, each `(` with its `)`.", cut=True)


def _commas(tokens: Sequence[Token]) -> Iterator[Problem]:
    for one, behind in pairwise(tokens):
        if one.key == "," and behind.key in _NO_COMMA_BEFORE:
            yield Problem(one, f"a comma stands before `{behind.text}`", "Take the comma out.")


def _cut_short(tokens: Sequence[Token]) -> Iterator[Problem]:
    last, before = tokens[-1], tokens[-2].key if len(tokens) > 1 else ""
    # `LIKE t.*`, `AS from`, `"x".set`: what stands behind AS or a point is a name, whatever the word
    if len(tokens) > 1 and last.key in _CANNOT_END and before not in {"AS", "."} and not last.open:
        message = f"the statement ends with `{last.text}`: the rest is missing"
        yield Problem(last, message, "Write the statement to its end.", cut=True)


def _reserved(item: Sequence[Token], dialects: Sequence[str]) -> Iterator[Problem]:
    """Yields problems of column names that are reserved words."""
    first, keys = item[0], [token.key for token in item[1:4]]
    if first.kind != "word" or len(item) < 2 or item[1].kind not in NAME_KINDS:
        return
    if first.key in _CONSTRAINTS:
        # `index INTEGER NOT NULL` is a column; `INDEX date (a)` and `LIKE text INCLUDING ALL` are none.
        sized = len(item) > 3 and item[3].kind == "number" and keys[0] not in {"DATE", "YEAR", "TIME"}
        listed = keys[1:2] in (["("], ["USING"], ["INCLUDING"], ["EXCLUDING"])
        if keys[0] not in TYPES or (listed and not (keys[1] == "(" and sized)):
            return
    everywhere = is_reserved(first.key, _USUAL)
    if everywhere or is_reserved(first.key, dialects):
        message = f"`{first.text}` is a reserved word of SQL and cannot be a column's name without quotes"
        fix = f"Write {quoted_as(first.text, dialects)} wherever the column is named, or name it otherwise."
        yield Problem(first, message, fix, anywhere=everywhere)


_NO_CHECK_BEHIND = words(". AS DROP COLUMN WITH ALTER NO RENAME TO BY MODIFY")


def _open_check(item: Sequence[Token]) -> Iterator[Problem]:
    """Yields a CHECK whose condition has no brackets: no database takes it."""
    keys = ["", *(token.key for token in item), ""]
    for before, token, behind in zip(keys, item, keys[2:], strict=False):
        opens = behind in {"(", "NOT", "CONSTRAINT", ")", ""} or (not before and behind in TYPES)
        if token.kind == "word" and token.key == "CHECK" and before not in _NO_CHECK_BEHIND and not opens:
            yield Problem(token, "the condition of CHECK has no brackets", "Write `CHECK (…)`.", anywhere=True)


def _missing_comma(item: Sequence[Token]) -> Iterator[Problem]:
    depth = 0
    for index, token in enumerate(item):
        depth += {"(": 1, ")": -1}.get(token.key, 0)
        if depth or index == 0 or token.key == ")":
            continue
        constraint = _begins_constraint(item, index)
        if constraint or _begins_column(item, index):
            first, second = " ".join(token.text for token in item[:2])[:40], f"{token.text}{' …' * constraint}"
            message = f"a comma is missing between `{first}` and `{second}`"
            # SQLite reads `a TEXT b TEXT` as one column of a long type: it takes it, and the second column is lost.
            # Commas before constraints of the table may be left out in SQLite: there it has the last word.
            yield Problem(token, message, f"Put a comma before `{second}`.", certain=not constraint)
            return


def _begins_constraint(item: Sequence[Token], index: int) -> bool:
    keys = [token.key for token in item[index : index + 3]]
    opens = keys[:2] == ["UNIQUE", "("] or keys in (["FOREIGN", "KEY", "("], ["PRIMARY", "KEY", "("])
    return opens and not (index <= 2 and item[0].key == "CONSTRAINT")


def _begins_column(item: Sequence[Token], index: int) -> bool:
    """Returns whether a name before a type stands behind something with which a column's definition may end."""
    token, before = item[index], item[index - 1]
    if index < 2 or index + 1 >= len(item) or item[index + 1].kind != "word" or item[index + 1].key not in TYPES:
        return False
    if token.kind not in NAME_KINDS or (token.kind == "word" and token.key in COLUMN_WORDS | TYPES):
        return False
    if item[index - 2].key in {"REFERENCES", "COLLATE"}:
        return before.kind in NAME_KINDS or before.kind in {"string", "number", "dollar"}
    return (
        before.kind in {"string", "number", "dollar"}
        or before.key in _ENDS_A_COLUMN
        or (before.kind == "word" and before.key in TYPES)
    )
