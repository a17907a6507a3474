"""SQL cut into tokens and statements, whatever its dialect, as far as the rules need; words that dialects reserve."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

# Jinja, shells, psql, `{name}` of str.format, `@name@` of Autoconf, `??` of JDBC, `%s` of Python's drivers.
# At most 200 characters each: a longer one is no placeholder.
_HOLES = (
    r"\{\{[^{}]{0,200}\}\}|\{%[^%]{0,200}%\}|[$#]\{[^{}]{0,200}\}"
    r"|\$\(\w{1,60}\)|\{\w{1,60}\}|@\w{1,60}@|\?\?|%\(\w{1,80}\)s|%s\b"
)
# Possessive throughout: an open quote in a long text must not be tried from every end. The order counts: a hole may
# look like a parameter, `E'…'` like a word, a dollar quote like a parameter.
_FORM = r"""
    (?P<space>\s++|--[^\n]*+|/\*.*?(?:\*/|\Z){comment})
  | (?P<hole>{holes})
  | (?P<string>[eE]'(?:[^'\\]|\\.|'')*+(?:'|\Z)|(?:[nNxXbB]|[uU]&)?'{single}(?:'|\Z))
  | (?P<quoted>(?:[uU]&)?"{double}(?:"|\Z)|`[^`]*+(?:`|\Z)|\[[A-Za-z_][\w\ $#.-]*+\])
  | (?P<dollar>\$(?P<tag>(?:[A-Za-z_]\w*+)?)\$.*?(?:\$(?P=tag)\$|\Z))
  | (?P<param>\?\d*+|\$\d++|(?<![:\w])[:@$]@?[A-Za-z_]\w*+)
  | (?P<number>\d[\w.]*+|\.\d\w*+)
  | (?P<word>[^\W\d][\w$]*+)
  | (?P<mark>::|:=|->>|->|\|\||<>|!=|<=|>=|.)
"""


def _compiled(single: str, double: str, comment: str = "") -> re.Pattern[str]:
    form = _FORM.format(holes=_HOLES, single=single, double=double, comment=comment)
    return re.compile(form, re.VERBOSE | re.DOTALL)


_PLAIN = _compiled(r"(?:[^']|'')*+", r'(?:[^"]|"")*+')
_ESCAPED = _compiled(r"(?:[^'\\]|\\.|'')*+", r'(?:[^"\\]|\\.|"")*+', r"|\#(?!\{)[^\n]*+")
# psql's `\d`, the sqlite3 shell's `.tables`, MySQL's `# …`, sqlcmd's `GO 5`, Oracle's `/`.
_CLIENT_LINE = re.compile(
    r"[ \t]*(?:\\[a-zA-Z!?.]|\.[a-z]+\b|#(?![>-])|(?:GO|/)[ \t]*(?:\d+[ \t]*)?$)[^\n]*", re.M | re.I
)
"""A line for psql, the sqlite3 shell or sqlcmd, or MySQL's other comment."""
_DELIMITER = re.compile(r"[ \t]*DELIMITER[ \t]+(?P<sign>\S{1,10})[ \t]*$", re.M | re.I)
_BODIES = frozenset({"TRIGGER", "PROCEDURE", "FUNCTION", "EVENT", "PACKAGE", "TYPE", "PROC", "RULE"})
# Behind `BEGIN` these start a transaction; anything else starts a block.
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
    """Yields the statements of a text, in order; lines that are for a client program are none. Never raises.

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
        """Returns whether a line for a client begins here, which is then behind us; one inside brackets is none."""
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
    """Returns the words of a text as a set."""
    return frozenset(text.split())


NAME_KINDS = frozenset({"word", "quoted"})
"""Kinds of tokens that may be a name."""
_MAKING = words("CREATE OR REPLACE GLOBAL LOCAL TEMP TEMPORARY UNLOGGED FOREIGN EXTERNAL TABLE")
_QUERIES = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "FROM", "("})


def _table_name(tokens: Sequence[Token]) -> int | None:
    """Returns where the last part of the name stands that CREATE TABLE gives; None for any other statement."""
    keys = [token.key for token in tokens[:12]]
    making = keys[: keys.index("TABLE")] if keys[:1] == ["CREATE"] and "TABLE" in keys else ["no table"]
    if not set(making) <= _MAKING:
        return None
    at = len(making) + (4 if keys[len(making) + 1 :][:3] == ["IF", "NOT", "EXISTS"] else 1)
    while at + 2 < len(tokens) and tokens[at + 1].key == ".":
        at += 2
    return at if at < len(tokens) and tokens[at].kind in NAME_KINDS else None


def table_items(tokens: Sequence[Token]) -> list[list[Token]]:
    """Returns what CREATE TABLE lists between its brackets, parted by its commas; [] for anything else."""
    name = _table_name(tokens)
    behind = tokens[name + 1 :] if name is not None else ()
    if len(behind) < 2 or behind[0].key != "(" or behind[1].key in _QUERIES:
        return []
    return list_items(behind[1:])


def list_items(tokens: Sequence[Token]) -> list[list[Token]]:
    """Returns the tokens up to the bracket that closes them, or their end, parted by the commas outside of brackets."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token.key, 0)
        if depth < 0:
            break
        if depth == 0 and token.key == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


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


def is_reserved(word: str, dialects: Iterable[str]) -> bool:
    """Returns whether `word` (upper case) is no name without quotes in any of `dialects`; False when one is unknown."""
    named = tuple(dialects)
    return bool(named) and all(word in _RESERVED.get(name, frozenset()) for name in named)


def quoted_as(word: str, dialects: Iterable[str]) -> str:
    """Returns the name in the quotes of the first dialect."""
    return f"`{word}`" if next(iter(dialects), "") == "mysql" else f'"{word}"'
