"""SQL cut into tokens and statements, whatever its dialect: as much as the rules on SQL need, in linear time.

Words of SQL: which a dialect keeps for itself, which name types, which stand in a column's definition.

SQL that stands in the strings of Python and JavaScript code: which strings are SQL, and where they stand.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from posixpath import basename, splitext
from typing import NamedTuple

from orchestrator.code.grammar import Node
from orchestrator.code.javascript import tree as javascript_tree
from orchestrator.code.python import source

HOLE = "\x1a"
"""Stands in SQL for what a program puts in there."""
_HOLES = (
    rf"{HOLE}|\{{\{{[^{{}}]{{0,200}}\}}\}}|\{{%[^%]{{0,200}}%\}}|[$#]\{{[^{{}}]{{0,200}}\}}"
    r"|\$\(\w{1,60}\)|\{\w{1,60}\}|@\w{1,60}@|\?\?"
)
_FORM = r"""
    (?P<space>\s++|--[^\n]*+|/\*.*?(?:\*/|\Z){comment})
  | (?P<hole>{holes})
  | (?P<string>[eE]'(?:[^'\\]|\\.|'')*+(?:'|\Z)|(?:[nNxXbB]|[uU]&)?'{single}(?:'|\Z))
  | (?P<quoted>(?:[uU]&)?"{double}(?:"|\Z)|`[^`]*+(?:`|\Z)|\[[A-Za-z_][\w\ $#.-]*+\])
  | (?P<dollar>\$(?P<tag>(?:[A-Za-z_]\w*+)?)\$.*?(?:\$(?P=tag)\$|\Z))
  | (?P<param>%\(\w{{1,80}}\)s|%s\b|\?\d*+|\$\d++|(?<![:\w])[:@$]@?[A-Za-z_]\w*+)
  | (?P<number>\d[\w.]*+|\.\d\w*+)
  | (?P<word>[^\W\d][\w$]*+)
  | (?P<mark>::|:=|->>|->|\|\||<>|!=|<=|>=|.)
"""


def _compiled(single: str, double: str, comment: str = "") -> re.Pattern[str]:
    form = _FORM.format(holes=_HOLES, single=single, double=double, comment=comment)
    return re.compile(form, re.VERBOSE | re.DOTALL)


_PLAIN = _compiled(r"(?:[^']|'')*+", r'(?:[^"]|"")*+')
_ESCAPED = _compiled(r"(?:[^'\\]|\\.|'')*+", r'(?:[^"\\]|\\.|"")*+', r"|\#(?!\{)[^\n]*+")
_CLIENT_LINE = re.compile(
    r"[ \t]*(?:\\[a-zA-Z!?.]|\.[a-z]+\b|#(?![>-])|(?:GO|/)[ \t]*(?:\d+[ \t]*)?$)[^\n]*", re.M | re.I
)
"""A line for psql, the sqlite3 shell or sqlcmd, or MySQL's other comment."""
_DELIMITER = re.compile(r"[ \t]*DELIMITER[ \t]+(?P<sign>\S{1,10})[ \t]*$", re.M | re.I)
_BODIES = frozenset({"TRIGGER", "PROCEDURE", "FUNCTION", "EVENT", "PACKAGE", "TYPE", "PROC", "RULE"})
_PLAIN_BEGIN = frozenset(
    {";", "", "TRANSACTION", "TRAN", "WORK", "DEFERRED", "IMMEDIATE", "EXCLUSIVE", "ISOLATION", "READ", "CONCURRENT"}
)
_BLOCK_WORDS = frozenset({"DECLARE", "IF", "WHILE", "LOOP", "FOR", "DO"})
_ENDS_NO_BLOCK = frozenset({"IF", "LOOP", "WHILE", "REPEAT", "FOR"})


class Token(NamedTuple):
    """One word, sign or literal; comments and blanks are none."""

    kind: str
    """string, quoted, dollar, param, number, word, hole, mark."""
    text: str
    start: int
    key: str
    """The text in upper case for a word, as it is otherwise."""

    @property
    def end(self) -> int:
        """Where the token ends."""
        return self.start + len(self.text)

    @property
    def open(self) -> bool:
        """Whether it is a literal that the text's end cuts off."""
        quote = self.text.lstrip("eEnNxXbBuU&")[:1] if self.kind in {"string", "quoted"} else ""
        closing = "]" if quote == "[" else quote
        return bool(quote) and (len(self.text) < 2 or not self.text.endswith(closing) or self.text == quote)


class Statement(NamedTuple):
    """One statement without its `;`."""

    tokens: tuple[Token, ...]
    ended: bool
    """Whether a `;` stands behind it."""
    body: bool
    """Whether it holds a program (a trigger, function or block), which has a language of its own."""

    @property
    def words(self) -> tuple[str, ...]:
        """The keys of its first tokens."""
        return tuple(token.key for token in self.tokens[:8])

    @property
    def has_holes(self) -> bool:
        """Whether a program puts something in."""
        return any(token.kind == "hole" for token in self.tokens)


def statements(text: str, *, escapes: bool = False) -> Iterator[Statement]:
    """The statements of a text, in order; lines that are for a client program are none. Never raises.

    A trigger's or procedure's `;` inside BEGIN … END ends nothing; what stands between MySQL's `DELIMITER` lines, the
    data behind `COPY … FROM stdin` and client commands are left out. `escapes`: whether a backslash escapes a quote and
    `#` begins a comment, as in MySQL.
    """
    reader = _Reader(text, _ESCAPED if escapes else _PLAIN)
    yield from reader.read()


class _Reader:
    """One pass over a text."""

    def __init__(self, text: str, form: re.Pattern[str]) -> None:
        self.text, self.form, self.at = text, form, 0
        self.tokens: list[Token] = []
        self.depth = 0
        self.body = False

    def read(self) -> Iterator[Statement]:
        while self.at < len(self.text):
            if (self.at == 0 or self.text[self.at - 1] == "\n") and self._skipped():
                if self.tokens and not self.body:
                    yield self._taken(ended=True)
                continue
            token = self._next()
            if token is None:
                continue
            if token.key == ";" and not self._inside():
                copied = "COPY" in self._first(1) and any(one.key == "STDIN" for one in self.tokens[-6:])
                if self.tokens:
                    yield self._taken(ended=True)
                if copied:
                    end = re.compile(r"^\\\.[ \t]*$", re.M).search(self.text, self.at)
                    self.at = end.end() if end else len(self.text)
                continue
            self.tokens.append(token)
            self._weigh(token)
        if self.tokens:
            yield self._taken(ended=False)

    def _next(self) -> Token | None:
        match = self.form.match(self.text, self.at)
        if match is None:
            self.at += 1
            return None
        kind, found, start = str(match.lastgroup), match[0], self.at
        self.at = match.end()
        if kind == "space" and "\n" in found and found[0] not in "-/":
            self.at = start + found.rindex("\n") + 1  # so that each line's begin is looked at
        if kind == "tag":
            kind = "dollar"
        return None if kind == "space" else Token(kind, found, start, found.upper() if kind == "word" else found)

    def _skipped(self) -> bool:
        """Whether a line for a client begins here, which is then behind us; one inside brackets is none."""
        delimiter = _DELIMITER.match(self.text, self.at)
        if delimiter and not self.tokens:
            again = re.compile(r"^[ \t]*DELIMITER[ \t]+;[ \t]*$", re.M | re.I).search(self.text, delimiter.end())
            self.at = (again.end() if again else len(self.text)) if delimiter["sign"] != ";" else delimiter.end()
            return True
        line = _CLIENT_LINE.match(self.text, self.at)
        if line is None or (self.tokens and line[0].lstrip()[:1] in ("\\", ".")):
            return False
        if line[0].lstrip()[:1] == "#" and self.tokens:
            self.at = line.end()
            return False
        self.at = line.end() + 1
        if line[0].strip()[:1] in "gG/":
            self.body, self.depth = False, 0
        return True

    def _first(self, count: int) -> list[str]:
        return [token.key for token in self.tokens[:count]]

    def _inside(self) -> bool:
        return self.body and self.depth > 0

    def _weigh(self, token: Token) -> None:
        """Notes whether this is a program, and how deep in its blocks."""
        count = len(self.tokens)
        if token.kind != "word":
            return
        if not self.body:
            first = self.tokens[0].key
            made = first in {"CREATE", "ALTER", "REPLACE"} and count <= 12 and token.key in _BODIES
            made = made and not any(one.key in {"TABLE", "(", "INDEX", "VIEW"} for one in self.tokens)
            block = count == 1 and token.key in _BLOCK_WORDS
            self.body = made or block or (count == 2 and first == "BEGIN" and token.key not in _PLAIN_BEGIN)
            if self.body and first == "BEGIN":
                self.depth = 1
            if not self.body:
                return
        before = self.tokens[-2].key if count > 1 else ""
        if (
            (before == "END" and token.key in _ENDS_NO_BLOCK)
            or token.key == "BEGIN"
            or (token.key == "CASE" and before != "END")
        ):
            self.depth += 1
        elif token.key == "END":
            self.depth -= 1

    def _taken(self, *, ended: bool) -> Statement:
        found = Statement(tuple(self.tokens), ended, self.body)
        self.tokens, self.body, self.depth = [], False, 0
        return found


def words(text: str) -> frozenset[str]:
    """The words of a text as a set."""
    return frozenset(text.split())


_ALWAYS = words(
    """ALL AND AS CASE CHECK COLLATE CREATE DEFAULT DISTINCT ELSE EXISTS FOREIGN FROM GROUP HAVING IN INTO IS JOIN NOT
    NULL ON OR ORDER PRIMARY REFERENCES SELECT TABLE THEN TO UNION UNIQUE WHEN WHERE"""
)
"""Reserved in every dialect that is known here (one that lacks EXISTS takes it out below)."""
_OWN = {
    "sqlite": """ADD ALTER AUTOINCREMENT BETWEEN COMMIT DEFERRABLE DELETE DROP ESCAPE EXCEPT INDEX INSERT INTERSECT
    ISNULL LIMIT NOTHING NOTNULL RETURNING SET TRANSACTION UPDATE USING VALUES""",
    "postgres": """ANALYSE ANALYZE ANY ARRAY ASC ASYMMETRIC AUTHORIZATION BINARY BOTH CAST COLLATION COLUMN
    CONCURRENTLY CONSTRAINT CROSS CURRENT_CATALOG CURRENT_DATE CURRENT_ROLE CURRENT_SCHEMA CURRENT_TIME
    CURRENT_TIMESTAMP CURRENT_USER DEFERRABLE DESC DO END EXCEPT FALSE FETCH FOR FREEZE FULL GRANT ILIKE
    INITIALLY INNER INTERSECT ISNULL LATERAL LEADING LEFT LIMIT LOCALTIME LOCALTIMESTAMP NATURAL NOTNULL
    OFFSET ONLY OUTER OVERLAPS PLACING RETURNING RIGHT SESSION_USER SIMILAR SOME SYMMETRIC TABLESAMPLE
    TRAILING TRUE USER USING VARIADIC VERBOSE WINDOW WITH""",
    "mysql": """ACCESSIBLE ADD ALTER ANALYZE ASC BEFORE BETWEEN BIGINT BINARY BLOB BOTH BY CALL CASCADE CHANGE CHAR
    CHARACTER COLUMN CONDITION CONSTRAINT CONTINUE CONVERT CROSS CURRENT_DATE CURRENT_TIME
    CURRENT_TIMESTAMP CURRENT_USER CURSOR DATABASE DATABASES DEC DECIMAL DECLARE DELAYED DELETE DESC
    DESCRIBE DETERMINISTIC DIV DOUBLE DROP EACH ELSEIF ENCLOSED ESCAPED EXIT EXPLAIN FALSE FETCH FLOAT
    FOR FORCE FULLTEXT GRANT IF IGNORE INDEX INNER INOUT INSERT INT INTEGER INTERVAL ITERATE KEY KEYS
    KILL LEADING LEAVE LEFT LIKE LIMIT LINES LOAD LOCALTIME LOCALTIMESTAMP LOCK LONG LOOP MATCH
    MEDIUMINT MOD NATURAL NUMERIC OPTIMIZE OPTION OPTIONALLY OUT OUTER OUTFILE PRECISION PROCEDURE PURGE
    RANGE READ REAL REGEXP RELEASE RENAME REPEAT REPLACE REQUIRE RESTRICT RETURN REVOKE RIGHT RLIKE
    SCHEMA SCHEMAS SEPARATOR SET SHOW SMALLINT SPATIAL SQL SSL STARTING STRAIGHT_JOIN TERMINATED TINYINT
    TRAILING TRIGGER TRUE UNDO UNLOCK UNSIGNED UPDATE USAGE USE USING VALUES VARBINARY VARCHAR VARYING
    WHILE WITH WRITE XOR ZEROFILL""",
    "tsql": """ADD ALTER ANY ASC AUTHORIZATION BACKUP BEGIN BETWEEN BREAK BROWSE BULK BY CASCADE CHECKPOINT CLOSE
    CLUSTERED COALESCE COLUMN COMMIT COMPUTE CONSTRAINT CONTAINS CONTINUE CONVERT CROSS CURRENT
    CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER CURSOR DATABASE DBCC DEALLOCATE DECLARE
    DELETE DENY DESC DISK DISTRIBUTED DOUBLE DROP DUMP END ERRLVL ESCAPE EXCEPT EXEC EXECUTE EXIT
    EXTERNAL FETCH FILE FILLFACTOR FOR FREETEXT FULL FUNCTION GOTO GRANT HOLDLOCK IDENTITY IF INDEX
    INNER INSERT INTERSECT KEY KILL LEFT LIKE LINENO LOAD MERGE NATIONAL NOCHECK NULLIF OF OFF OFFSETS
    OPEN OPTION OUTER OVER PERCENT PIVOT PLAN PRECISION PRINT PROC PROCEDURE PUBLIC RAISERROR READ
    READTEXT RECONFIGURE REPLICATION RESTORE RESTRICT RETURN REVERT REVOKE RIGHT ROLLBACK ROWCOUNT RULE
    SAVE SCHEMA SESSION_USER SET SETUSER SHUTDOWN SOME STATISTICS SYSTEM_USER TABLESAMPLE TEXTSIZE TOP
    TRAN TRANSACTION TRIGGER TRUNCATE UNPIVOT UPDATE USE USER VALUES VARYING VIEW WAITFOR WHILE WITH
    WRITETEXT""",
}
_NOT_RESERVED = {"postgres": frozenset({"EXISTS"})}
_RESERVED = {name: (_ALWAYS | words(text)) - _NOT_RESERVED.get(name, frozenset()) for name, text in _OWN.items()}

TYPES = words(
    """BIGINT BIGSERIAL BINARY BIT BLOB BOOL BOOLEAN BYTEA CHAR CHARACTER CIDR CITEXT CLOB DATE DATETIME DATETIME2
    DATETIMEOFFSET DEC DECIMAL DOUBLE ENUM FLOAT FLOAT4 FLOAT8 GEOGRAPHY GEOMETRY HSTORE IMAGE INET INT INT2 INT4
    INT8 INTEGER INTERVAL JSON JSONB LONGBLOB LONGTEXT MEDIUMBLOB MEDIUMINT MEDIUMTEXT MONEY NCHAR NTEXT NUMBER
    NUMERIC NVARCHAR OID REAL SERIAL SMALLINT SMALLSERIAL TEXT TIME TIMESTAMP TIMESTAMPTZ TIMETZ TINYBLOB TINYINT
    TINYTEXT TSVECTOR UNIQUEIDENTIFIER UUID VARBINARY VARCHAR VARCHAR2 XML YEAR"""
)
COLUMN_WORDS = words(
    """ACTION ALWAYS ARRAY AS ASC AT AUTOINCREMENT AUTO_INCREMENT BY CASCADE CHARSET CHECK CLUSTERED COLLATE COLUMN
    COMMENT COMPRESSION CONFLICT CONSTRAINT CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP DEFAULT DEFERRABLE DEFERRED
    DELETE DESC ENABLE ENCODE FAIL FALSE FIRST FOR FOREIGN FORMAT FULL GENERATED HIDDEN IDENTITY IGNORE IMMEDIATE IN
    INHERIT INITIALLY INVISIBLE IS KEY LARGE LOCAL MATCH NATIONAL NATIVE NO NONCLUSTERED NOT NULL OBJECT ON OPTIONS
    PARTIAL PERSISTED PRECISION  PRIMARY REFERENCES REPLACE RESTRICT ROLLBACK ROW ROWGUIDCOL SEQUENCE SET SIGNED
    SIMPLE SPARSE START STORAGE STORED TO TRUE UNIQUE UNSIGNED UPDATE USING VALUES VARYING VIRTUAL VISIBLE WITH
    WITHOUT ZEROFILL ZONE AND OR LIKE BETWEEN VALUE NOW LONG BIG SMALL MEDIUM TINY WHEN THEN ELSE END CASE EXCLUDE
    SUB_TYPE SEGMENT"""
)
"""Words of column definitions besides types: one of them begins no column of its own where it stands."""


def reserved_in(word: str, dialects: Iterable[str]) -> bool:
    """Whether `word` (upper case) cannot be a name without quotes in any of `dialects`; False when one is unknown."""
    named = tuple(dialects)
    return bool(named) and all(word in _RESERVED.get(name, frozenset()) for name in named)


def quoted_as(word: str, dialects: Iterable[str]) -> str:
    """The name in the quotes of the first dialect."""
    first = next(iter(dialects), "")
    return f"`{word}`" if first == "mysql" else f"[{word}]" if first == "tsql" else f'"{word}"'


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
    rf"CREATE\s+(?:OR\s+REPLACE\s+)?(?:TEMP(?:ORARY)?\s+|UNLOGGED\s+)?{_OBJECT}\s+[\w\"`\[{HOLE}]",
    rf"DROP\s+{_OBJECT}\s+(?:IF\s+EXISTS\s+)?[\w\"`\[{HOLE}.]+\s*(?:;|$|,|CASCADE|ON\b)",
    r"ALTER\s+TABLE\s+(?:IF\s+EXISTS\s+|ONLY\s+)*\S+\s+(?:ADD|DROP|RENAME|ALTER|MODIFY|CHANGE|OWNER|ENABLE|SET)\b",
    rf"(?:INSERT\s+(?:OR\s+\w+\s+|IGNORE\s+)?|REPLACE\s+)INTO\s+[\w\"`\[.{HOLE}]+\"?\s*(?:\(|VALUES\b|SELECT\b|DEFAULT\b|AS\b)",
    rf"UPDATE\s+(?:OR\s+\w+\s+|ONLY\s+)?[\w\"`\[\].{HOLE}]+(?:\s+(?:AS\s+)?\w+)?\s+SET\s+[\w\"`\[\].]+\s*=",
    rf"DELETE\s+FROM\s+[\w\"`\[\].{HOLE}]+\s*(?:;|$|WHERE\b|USING\b|AS\b|RETURNING\b|\w+\s+WHERE\b)",
    r"SELECT\b.+?\bFROM\s+[\w\"`\[({]",
    r"WITH\s+(?:RECURSIVE\s+)?[\w\"]+\s*(?:\([^()]*\)\s*)?AS\s+(?:NOT\s+|MATERIALIZED\s+)*\(",
    r"PRAGMA\s+\w+(?:\.\w+)?\s*(?:;|$|=|\()",
)
_SQL = re.compile(
    rf"(?:\s|--[^\n]*\n|/\*.*?\*/|\()*+(?:EXPLAIN\s+)?(?P<form>{'|'.join(_FORMS)})", re.IGNORECASE | re.DOTALL
)
_HINT = re.compile(r"\b(?:CREATE|DROP|ALTER|INSERT|REPLACE|UPDATE|DELETE|SELECT|WITH|PRAGMA)\s", re.IGNORECASE)
_SIGNS = re.compile(r"[=*?();_\"`%$\d" + HOLE + r"]|\bwhere\b|,|::|:\w", re.IGNORECASE)
"""What a sentence that only begins like a statement has none of."""
_LOOK = 400
"""Characters of a string that are looked at to tell whether it is SQL."""
_EXECUTES = words(
    """execute executemany executescript exec_driver_sql exec query prepare raw text fetch fetchrow fetchval run all get
    each"""
)
"""Calls that hand SQL to a database."""
_FORMAT = re.compile(r"\{[^{}]*\}")
_PERCENT = re.compile(r"%(?:\(\w+\))?[#0 +-]*\d*[sdrif]")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class Piece(NamedTuple):
    """A string of SQL."""

    text: str
    """With HOLE for what the program puts in."""
    line: int
    """Where it begins, 1-based."""
    last: int
    """Where it ends."""
    executed: bool
    """Whether it is handed to a database as it is: nothing can come behind it, and it is no prose."""

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
    """The strings of a code file that are SQL statements, in order; [] when it does not parse. Never raises.

    A string is SQL when it has the form of a statement, not of a sentence: "Select a file from the list" is none. What
    is handed to no database is SQL in capitals only.
    """
    if not _HINT.search(text):
        return []
    if path.lower().endswith(_PYTHON):
        tree = source.parse_python(text)
        found = list(_python(tree)) if tree is not None else []
    else:
        found = list(_javascript(javascript_tree.root(text, path)))
    return sorted(
        (piece for piece in found if is_sql(piece.text, executed=piece.executed)), key=lambda piece: piece.line
    )


def is_sql(text: str, *, executed: bool = False) -> bool:
    """Whether a string is a statement by its form and signs."""
    match = _SQL.match(text[:_LOOK])
    if match is None or not (executed or match["form"][:4].isupper()):
        return False
    return bool(_SIGNS.search(text[:_LOOK])) or (match["form"][:4].isupper() and not text[:_LOOK].isupper())


def _python(tree: ast.Module) -> Iterator[Piece]:
    waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_database(node.func))
    # `SCHEMA`, which nothing is added to; a query in a variable may still grow.
    constants = {arg.id for call in calls for arg in call.args if isinstance(arg, ast.Name) and arg.id.isupper()}
    while waiting:
        node, whole = waiting.pop()
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a docstring
        parts = _assembled(node)
        if parts is not None:
            text, inside = parts
            node_line, last = getattr(node, "lineno", 1), getattr(node, "end_lineno", 0) or 1
            yield Piece(text, node_line, last, whole)
            waiting += [(child, False) for child in inside]
            continue
        handed = set(map(id, node.args)) if isinstance(node, ast.Call) and _is_database(node.func) else set()
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in constants:
            handed = {id(node.value)}
        waiting += [(child, id(child) in handed) for child in ast.iter_child_nodes(node)]


def _is_database(function: ast.expr) -> bool:
    return (getattr(function, "attr", "") or getattr(function, "id", "")) in _EXECUTES


def _assembled(node: ast.AST) -> tuple[str, list[ast.AST]] | None:
    """The text of a string expression with holes, and the expressions in its holes; None for what is no string."""
    if isinstance(node, ast.Constant):
        return (node.value, []) if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(str(v.value) if isinstance(v, ast.Constant) else HOLE for v in node.values), []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        left = _assembled(node.left)
        return (_PERCENT.sub(HOLE, left[0]), [*left[1], node.right]) if left else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _added(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        inner = _assembled(node.func.value)
        return (_FORMAT.sub(HOLE, inner[0]), [*inner[1], *node.args]) if inner else None
    return None


def _added(node: ast.BinOp) -> tuple[str, list[ast.AST]] | None:
    parts: list[ast.expr] = []
    here: ast.expr = node
    while isinstance(here, ast.BinOp) and isinstance(here.op, ast.Add):  # as deep as the sum is long: no recursion
        parts.append(here.right)
        here = here.left
    read = [(part, None if isinstance(part, ast.BinOp) else _assembled(part)) for part in (here, *reversed(parts))]
    if all(text is None for _, text in read):
        return None
    inside = [part for part, text in read if text is None]
    return "".join(text[0] if text else HOLE for _, text in read), [*inside]


def _javascript(tree: Node) -> Iterator[Piece]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if node.type in {"string", "template_string"} or (node.type == "binary_expression" and _is_sum(node)):
            text = _text_of(node)
            if text is not None:
                yield Piece(text, node.start_point.row + 1, node.end_point.row + 1, _is_handed(node))
                continue
        waiting.extend(node.children)


def _is_sum(node: Node) -> bool:
    return any(child.type == "+" for child in node.children)


def _text_of(node: Node) -> str | None:
    """The text of a string, a template or a sum with one in it; None for a sum of something else."""
    parts: list[Node] = []
    here = node
    while here.type == "binary_expression" and _is_sum(here):
        left, right = here.child_by_field_name("left"), here.child_by_field_name("right")
        if left is None or right is None:
            return None
        parts.append(right)
        here = left
    parts.append(here)
    read = [_literal(part) for part in reversed(parts)]
    return None if all(part is None for part in read) else "".join(HOLE if part is None else part for part in read)


def _literal(node: Node) -> str | None:
    if node.type not in {"string", "template_string"}:
        return None
    text = ""
    for child in node.named_children:
        if child.type == "template_substitution":
            text += HOLE
        elif child.type == "escape_sequence":
            text += _ESCAPE.sub(_unescaped, javascript_tree.node_text(child))
        else:
            text += javascript_tree.node_text(child)
    return text.replace("\\\n", "\n")


def _unescaped(match: re.Match[str]) -> str:
    return {"n": "\n", "t": "\t", "r": " ", "\n": " "}.get(match[1], match[1])


def _is_handed(node: Node) -> bool:
    """Whether it is a call's argument as it stands, or a tagged template."""
    parent = node.parent
    call = parent.parent if parent is not None and parent.type == "arguments" else parent
    if call is None or call.type != "call_expression":
        return False
    name = javascript_tree.node_text(call.child_by_field_name("function")).rpartition(".")[2]
    return name in {*_EXECUTES, "sql"}  # sql`…` is a tag
