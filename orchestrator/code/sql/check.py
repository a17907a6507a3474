"""Is this SQL? By rules that hold in every dialect it may be, by SQLite's own parser, and by sqlglot for the others.

Judged are SQL files, and strings of code about the database that are handed to it as they stand.
"""

import ast
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from posixpath import basename, splitext
from typing import NamedTuple

from orchestrator.code.grammar import Node, below, node_text
from orchestrator.code.javascript import tree as javascript_tree
from orchestrator.code.python import source
from orchestrator.code.sql.rules import Problem, Said, SqliteGrammar, problems, table_problems
from orchestrator.code.sql.tables import quiet_sqlglot
from orchestrator.code.sql.tokens import Statement, statements, words
from orchestrator.core.finding import Finding, Where, major, minor


def parse_error(text: str, dialects: Iterable[str]) -> int | None:
    """Where (offset) the first of `dialects` stops, when none of them reads `text`; None when one does. Never raises.

    sqlglot takes much that no database takes, and does not know all that they take: a refusal is a doubt, no proof.
    """
    # Imported here: only what meets SQL pays for it.
    import sqlglot
    from sqlglot.errors import ParseError, SqlglotError

    quiet_sqlglot()
    found: int | None = None
    for dialect in dialects:
        try:
            sqlglot.parse_one(text, dialect=dialect)
        except ParseError as error:
            place = error.errors[0] if error.errors else {}
            found = _offset(text, place.get("line"), place.get("col")) if found is None else found
        except SqlglotError:
            found = 0 if found is None else found
        except (RecursionError, ValueError, TypeError, AttributeError, IndexError, KeyError):
            return None  # its own fault, not the text's
        else:
            return None
    return found


def _offset(text: str, line: object, column: object) -> int:
    if not isinstance(line, int) or not isinstance(column, int):
        return 0
    before = text.split("\n")[: line - 1]
    return max(0, sum(len(one) + 1 for one in before) + column - 1)


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
_IMPORTED = re.compile(
    r"""(?:\bfrom|\brequire\s*\(|\bimport(?:\s*\()?)\s*["']?(?:(?:node|bun):)?(?P<name>@?[\w./-]+)["']?"""
)
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


class Project(NamedTuple):
    """What tells the dialect besides the file itself."""

    packages: frozenset[str] = frozenset()
    """Normalised names from the manifests and the plan."""
    stack: tuple[str, ...] = ()
    """What was recorded on the tech stack."""


def dialects_of(path: str, text: str, project: Project) -> tuple[str, ...]:
    """The dialects that may be meant: SQL that one of them takes is right.

    The path goes before what the file imports, and both before the project's packages and stack, of which all named
    ones count; where nothing tells, the usual ones and those whose words the text uses. `other` among them means that
    words of an unknown dialect may be right.
    """
    for found in (_named(path.replace("_", " ")), _imported(text) if not path.lower().endswith(".sql") else ()):
        if found:
            return found
    packages = [_DRIVER_OF[name] for name in sorted(project.packages) if name in _DRIVER_OF]
    told = dict.fromkeys((*packages, *(name for line in project.stack for name in _named(line))))
    return tuple(told) or _by_words(text)


def _named(text: str) -> tuple[str, ...]:
    return tuple(name for name, words in _NAMES.items() if re.search(rf"(?<![a-z])(?:{words})(?![a-z])", text, re.I))


def _imported(text: str) -> tuple[str, ...]:
    names = (match["name"].lower() for match in _IMPORTED.finditer(text))
    return tuple(dict.fromkeys(_DRIVER_OF[name] for name in names if name in _DRIVER_OF))


def _by_words(text: str) -> tuple[str, ...]:
    """Those whose own words the text uses, with every one that is known: words alone are no proof."""
    head = text[:_LOOK]
    spoken = [name for name, words in _SPOKEN.items() if words.search(head)]
    return tuple(dict.fromkeys((*spoken, *_USUAL)))


MAX_CHARS = 200_000
"""Of one text that are looked at; the statement that stands across this end is not judged."""
MAX_TOKENS = 3_000
"""Of one statement that a parser gets: of a longer INSERT its first rows, of any other nothing."""
MAX_PARSED = 40_000
"""Characters of one text that sqlglot gets."""
MAX_FINDINGS = 20
_CORNERS = words(
    """EXCLUDE INHERIT INHERITS OVERRIDING NULLS TABLESPACE PARTITION PARTITIONED MATCH LIKE INCLUDING OF STORAGE
    COMPRESSION VALID VALIDATE REPLICA IDENTITY OWNER ENABLE DISABLE ATTACH DETACH CLUSTER TRIGGER RULE POLICY
    SEQUENCE STATISTICS XMLTABLE JSON_TABLE TABLESAMPLE ORDINALITY GROUPING SEARCH CYCLE CURRENT DUPLICATE ALGORITHM
    LOCK FORCE IGNORE STRAIGHT_JOIN HIGH_PRIORITY LOW_PRIORITY DELAYED SPATIAL FULLTEXT VISIBLE INVISIBLE OUTFILE
    PROCEDURE USING BINARY PERSISTENT SYSTEM PERIOD VERSIONING ONLY OPERATOR SIMILAR OVERLAPS SKIP NOWAIT SHARE
    DEFERRABLE INITIALLY"""
)
"""Words of corners of the grammars that sqlglot does not know in all their forms."""
_CORE = frozenset({"SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "DROP", "VALUES"})
_FIX = "Write the statement in the grammar of the project's database."


def check_sql(text: str, path: str, *, code: str = "content.syntax", project: Project | None = None) -> list[Finding]:
    """Findings of `code` on the statements of a SQL text, in order, at most MAX_FINDINGS. Never raises.

    Major is what no database that may be meant would take; minor what it takes and hardly means, and all that is said
    of SQL into which a program puts something. What a parser here does not know is never refused for that alone.
    """
    found = [*_all(text, dialects_of(path, text, project or Project()))]
    starts = [0, *(index + 1 for index, sign in enumerate(text) if sign == "\n")]
    return [_told(problem, starts, path, code) for problem in found[:MAX_FINDINGS]]


def check_sql_strings(
    text: str, path: str, *, code: str, project: Project | None = None, before: str = ""
) -> list[Finding]:
    """The same of the strings that a code file about the database hands to it; what `before` held is not judged.

    A string that a program puts together, or that goes elsewhere, is not looked at.
    """
    pieces = sql_strings(text, path) if holds_sql(path) else []
    old = {piece.text for piece in sql_strings(before, path)} if pieces and before else frozenset[str]()
    dialects = dialects_of(path, text, project or Project()) if pieces else ()
    found = [
        _finding(problem, Where(file=path, line=piece.line_of(problem.at.start)), code)
        for piece in pieces
        if piece.text not in old
        for problem in _all(piece.text, dialects)
    ]
    return found[:MAX_FINDINGS]


def _told(problem: Problem, starts: Sequence[int], path: str, code: str) -> Finding:
    line = bisect_right(starts, problem.at.start)
    return _finding(problem, Where(file=path, line=line, column=problem.at.start - starts[line - 1] + 1), code)


def _finding(problem: Problem, place: Where, code: str) -> Finding:
    make = major if problem.major else minor
    return make(code, f"SQL: {problem.message}", where=place, fix=problem.fix)


def _all(text: str, dialects: Sequence[str]) -> Iterator[Problem]:
    read = _read(text[:MAX_CHARS], dialects)
    if len(text) > MAX_CHARS:
        read = read[:-1]
    grammar = SqliteGrammar() if "sqlite" in dialects and OTHER not in dialects else None
    try:
        judge = _Judge(text, dialects, grammar)
        for statement in read:
            yield from judge.says(statement)
    finally:
        if grammar is not None:
            grammar.close()


def _read(text: str, dialects: Sequence[str]) -> list[Statement]:
    """In MySQL's way where that is meant, in the other where that alone makes sense of the quotes."""
    mysql = dialects[:1] == ("mysql",)
    read = list(statements(text, escapes=mysql))
    if _is_torn(read) and ("\\" in text or "#" in text) and tuple(dialects) != ("mysql",):
        other = list(statements(text, escapes=not mysql))
        return read if _is_torn(other) else other
    return read


def _is_torn(read: Sequence[Statement]) -> bool:
    return bool(read) and any(token.open for token in read[-1].tokens)


class _Judge:
    """Says what is wrong with the statements of one text, one after the other."""

    def __init__(self, text: str, dialects: Sequence[str], grammar: SqliteGrammar | None) -> None:
        self._text, self._dialects, self._grammar = text, tuple(dialects), grammar
        self._left = MAX_PARSED

    def says(self, statement: Statement) -> list[Problem]:
        found = _once([*problems(statement, self._dialects), *table_problems(statement, self._dialects)])
        if OTHER in self._dialects:
            return [problem for problem in found if problem.cut and not statement.has_holes]
        if statement.has_holes:
            return [problem._replace(major=False) for problem in found if not problem.cut]
        short = _shortened(statement)
        said = self._grammar.says(self._text, short) if self._grammar is not None and short is not None else None
        if said is not None and not said.why:
            return [problem for problem in found if problem.certain or not problem.major]
        if short is None or any(problem.major for problem in found):
            return found
        if self._dialects == ("sqlite",):
            return [*found, _refused(short, said)] if said is not None else found
        return [*found, *self._doubted(short)]

    def _doubted(self, statement: Statement) -> Iterator[Problem]:
        """What no other dialect's parser takes either."""
        tokens = statement.tokens
        text = self._text[tokens[0].start : tokens[-1].end]
        if statement.body or not _is_core(statement) or len(text) > self._left:
            return
        self._left -= len(text)
        where = parse_error(text, [name for name in self._dialects if name != "sqlite"])
        if where is not None:
            at = next((token for token in reversed(tokens) if token.start - tokens[0].start <= where), tokens[0])
            yield Problem(at, f"no parser here understands it at `{at.text[:40]}`", _FIX, major=False)


def _refused(statement: Statement, said: Said) -> Problem:
    """SQLite's own words, for what no rule explains."""
    at = said.at or (statement.tokens[-1] if said.cut else statement.tokens[0])
    if said.cut:
        return Problem(at, f"the statement ends with `{at.text[:40]}`: the rest is missing", _FIX, cut=True)
    return Problem(at, f"SQLite refuses it: {said.why[:200]}", _FIX)


def _is_core(statement: Statement) -> bool:
    """Whether it is of a kind that sqlglot knows well, in all its forms."""
    first, *others = statement.words
    if any(token.key in _CORNERS for token in statement.tokens if token.kind == "word"):
        return False
    return first in _CORE and (first not in {"CREATE", "ALTER", "DROP"} or others[:1] == ["TABLE"])


def _shortened(statement: Statement) -> Statement | None:
    """The statement, the first rows of a long INSERT, or None for what is too long to be parsed."""
    tokens = statement.tokens
    if len(tokens) <= MAX_TOKENS:
        return statement
    if tokens[0].key not in {"INSERT", "REPLACE"}:
        return None
    ends = (at for at in range(MAX_TOKENS, 1, -1) if [t.key for t in tokens[at - 1 : at + 2]] == [")", ",", "("])
    last = next(ends, None)
    return statement._replace(tokens=tokens[:last]) if last is not None else None


def _once(found: Sequence[Problem]) -> list[Problem]:
    """One problem per place, in the order of the text."""
    return list({problem.at.start: problem for problem in sorted(found, key=lambda one: one.at.start)}.values())


_PLACES = words(
    """db dbs database databases schema schemas model models entity entities migration migrations migrate sql sqlite
    sqlite3 postgres pg mysql query queries repository repositories repo dao store stores storage seed seeds seeder
    seeders persistence tables datastore"""
)
"""Words of a file's or its folders' names that say: here is the database's code."""
_WORD = re.compile(r"[A-Z]?[a-z]+\d?|[A-Z]+(?![a-z])")
_PYTHON = (".py", ".pyi")
_OBJECT = (
    r"(?:TABLE|(?:UNIQUE\s+)?INDEX|(?:MATERIALIZED\s+)?VIEW|TRIGGER|VIRTUAL\s+TABLE|SCHEMA|TYPE|EXTENSION|FUNCTION"
)
_OBJECT += r"|SEQUENCE)"
_FORMS = (
    rf"CREATE\s+(?:OR\s+REPLACE\s+)?(?:TEMP(?:ORARY)?\s+|UNLOGGED\s+)?{_OBJECT}\s+[\w\"`\[]",
    rf"DROP\s+{_OBJECT}\s+(?:IF\s+EXISTS\s+)?[\w\"`\[.]+\s*(?:;|$|,|CASCADE|ON\b)",
    r"ALTER\s+TABLE\s+(?:IF\s+EXISTS\s+|ONLY\s+)*\S+\s+(?:ADD|DROP|RENAME|ALTER|MODIFY|CHANGE|OWNER|ENABLE|SET)\b",
    r"(?:INSERT\s+(?:OR\s+\w+\s+|IGNORE\s+)?|REPLACE\s+)INTO\s+[\w\"`\[.]+\"?\s*(?:\(|VALUES\b|SELECT\b|DEFAULT\b|AS\b)",
    r"UPDATE\s+(?:OR\s+\w+\s+|ONLY\s+)?[\w\"`\[\].]+(?:\s+(?:AS\s+)?\w+)?\s+SET\s+[\w\"`\[\].]+\s*=",
    r"DELETE\s+FROM\s+[\w\"`\[\].]+\s*(?:;|$|WHERE\b|USING\b|AS\b|RETURNING\b|\w+\s+WHERE\b)",
    r"SELECT\b.+?\bFROM\s+[\w\"`\[({]",
    r"WITH\s+(?:RECURSIVE\s+)?[\w\"]+\s*(?:\([^()]*\)\s*)?AS\s+(?:NOT\s+|MATERIALIZED\s+)*\(",
    r"PRAGMA\s+\w+(?:\.\w+)?\s*(?:;|$|=|\()",
)
_SQL = re.compile(
    rf"(?:\s|--[^\n]*\n|/\*.*?\*/|\()*+(?:EXPLAIN\s+)?(?P<form>{'|'.join(_FORMS)})", re.IGNORECASE | re.DOTALL
)
_HINT = re.compile(r"\b(?:CREATE|DROP|ALTER|INSERT|REPLACE|UPDATE|DELETE|SELECT|WITH|PRAGMA)\s", re.IGNORECASE)
_SIGNS = re.compile(r"[=*?();_\"`%$\d]|\bwhere\b|,|::|:\w", re.IGNORECASE)
"""What a sentence that only begins like a statement has none of."""
_HEAD = 400
"""Characters of a string that are looked at to tell whether it is SQL."""
_EXECUTES = words(
    """execute executemany executescript exec_driver_sql exec query prepare raw text fetch fetchrow fetchval run all get
    each sql"""
)
"""Calls that hand SQL to a database."""
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class Piece(NamedTuple):
    """A string of SQL that is handed to a database as it stands."""

    text: str
    line: int
    """Where it begins, 1-based."""
    last: int
    """Where it ends."""

    def line_of(self, offset: int) -> int:
        """The line of a place in it."""
        return min(self.last, self.line + self.text.count("\n", 0, offset))


def holds_sql(path: str) -> bool:
    """Whether the name tells of schema, models, migrations or a database, and the file is Python or JavaScript."""
    if splitext(path)[1].lower() not in (*_PYTHON, *javascript_tree.SUFFIXES):
        return False
    folders = path.split("/")[:-1]
    words = {word.lower() for part in (*folders, basename(path).split(".")[0], *basename(path).split(".")[1:-1])
             for word in _WORD.findall(part)}  # fmt: skip
    return not _PLACES.isdisjoint(words)


def sql_strings(text: str, path: str) -> list[Piece]:
    """The SQL statements among the strings that a file hands to a database, in order; [] when it does not parse.

    Never raises. A string is SQL when it has the form of a statement: "Select a file from the list" is none.
    """
    if not _HINT.search(text):
        return []
    if path.lower().endswith(_PYTHON):
        tree = source.parse_python(text)
        found = list(_python(tree)) if tree is not None else []
    else:
        found = list(_javascript(javascript_tree.root(text, path)))
    return sorted((piece for piece in found if is_sql(piece.text)), key=lambda piece: piece.line)


def is_sql(text: str) -> bool:
    """Whether a string is a statement by its form and signs."""
    match = _SQL.match(text[:_HEAD])
    if match is None:
        return False
    return bool(_SIGNS.search(text[:_HEAD])) or (match["form"][:4].isupper() and not text[:_HEAD].isupper())


def _python(tree: ast.Module) -> Iterator[Piece]:
    """`execute("…")`, and `execute(SCHEMA)` with a constant of the file: a query in a variable may still grow."""
    constants = {
        node.targets[0].id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper()
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (getattr(node.func, "attr", "") or getattr(node.func, "id", "")) in _EXECUTES:
            for given in node.args:
                value = constants.get(given.id) if isinstance(given, ast.Name) else given
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield Piece(value.value, value.lineno, value.end_lineno or value.lineno)


def _javascript(tree: Node) -> Iterator[Piece]:
    """`db.exec(`…`)` and its like, without what a program puts in."""
    for node in below(tree):
        if node.type == "call_expression":
            name = node_text(node.child_by_field_name("function")).rpartition(".")[2]
            for given in javascript_tree.arguments(node) if name in _EXECUTES else ():
                if literal := javascript_tree.literal(given):
                    text = _ESCAPE.sub(_unescaped, literal)
                    yield Piece(text, given.start_point.row + 1, given.end_point.row + 1)


def _unescaped(match: re.Match[str]) -> str:
    return {"n": "\n", "t": "\t", "r": " ", "\n": "\n"}.get(match[1], match[1])
