"""What is surely wrong between the brackets of CREATE TABLE, and in the constraints of ALTER TABLE."""

from collections.abc import Iterator, Sequence

from orchestrator.syntax.sql_rules import NAMES, Problem, reserved, table_items
from orchestrator.syntax.sql_tokens import Statement, Token
from orchestrator.syntax.sql_words import COLUMN_WORDS, TYPES, reserved_in, words

_CONSTRAINTS = words(
    """CONSTRAINT PRIMARY FOREIGN UNIQUE CHECK EXCLUDE LIKE INDEX KEY FULLTEXT SPATIAL PERIOD PARTITION INHERITS
    PROJECTION WATERMARK"""
)
_ENDS_A_COLUMN = words(
    """) NULL KEY UNIQUE AUTOINCREMENT AUTO_INCREMENT TRUE FALSE CURRENT_TIMESTAMP CURRENT_DATE CURRENT_TIME CASCADE
    RESTRICT ACTION STORED VIRTUAL DEFERRED IMMEDIATE ] UNSIGNED ZEROFILL"""
)
_ENDS_BEHIND = frozenset({"REFERENCES", "COLLATE"})


def table_problems(statement: Statement, dialects: Sequence[str]) -> Iterator[Problem]:
    """Reserved words as columns, commas that are missing, CHECK without brackets, and what one dialect misreads."""
    if statement.body:
        return
    tokens = statement.tokens
    for item in table_items(tokens):
        if item:
            yield from _named(item, dialects)
            yield from _missing_comma(item)
            yield from _checks(item)
            yield from _misread(item, dialects)
    if statement.words[:2] == ("ALTER", "TABLE") and statement.words[2:5] != ("IF", "EXISTS", "CHECK"):
        at = next((index for index, token in enumerate(tokens) if token.key == "ADD"), None)
        if at is not None and "NOCHECK" not in statement.words and tokens[at - 1].key not in {"CHECK", "WITH"}:
            yield from _checks(tokens[at + 1 :], added=True)


def _named(item: Sequence[Token], dialects: Sequence[str]) -> Iterator[Problem]:
    first = item[0]
    behind = item[1] if len(item) > 1 else None
    if first.kind != "word" or behind is None or behind.kind not in {"word", "quoted"}:
        return
    typed = behind.key in TYPES and (len(item) < 3 or item[2].key != "(" or behind.key not in {"DATE", "YEAR", "TIME"})
    if first.key in _CONSTRAINTS and not (typed and _is_column(item)):
        return
    if reserved_in(first.key, dialects):
        yield reserved(first, "column", dialects)


def _is_column(item: Sequence[Token]) -> bool:
    """`index INTEGER NOT NULL` is a column; `INDEX date (a)` and `LIKE text INCLUDING ALL` are none."""
    rest = [token.key for token in item[2:4]]
    sized = rest[:1] == ["("] and len(item) > 3 and item[3].kind == "number"
    return (rest[:1] != ["("] and rest[:1] not in (["USING"], ["INCLUDING"], ["EXCLUDING"])) or sized


def _missing_comma(item: Sequence[Token]) -> Iterator[Problem]:
    depth = 0
    for index, token in enumerate(item):
        depth += {"(": 1, ")": -1}.get(token.key, 0)
        if depth or index == 0 or token.key == ")":
            continue
        if _begins_constraint(item, index):
            # SQLite lets commas between constraints of the table be left out: it has the last word
            yield _between(item, token, f"{token.text} …")._replace(certain=False)
            return
        if _begins_column(item, index):
            yield _between(item, token, token.text)
            return


def _begins_constraint(item: Sequence[Token], index: int) -> bool:
    keys = [token.key for token in item[index : index + 3]]
    opens = keys[:2] == ["UNIQUE", "("] or keys in (["FOREIGN", "KEY", "("], ["PRIMARY", "KEY", "("])
    return opens and not (index <= 2 and item[0].key == "CONSTRAINT")


def _begins_column(item: Sequence[Token], index: int) -> bool:
    """A name before a type, behind something with which a column's definition may end."""
    token, before = item[index], item[index - 1]
    behind = item[index + 1] if index + 1 < len(item) else None
    if behind is None or behind.kind != "word" or behind.key not in TYPES or index < 2:
        return False
    if token.kind not in NAMES or (token.kind == "word" and token.key in COLUMN_WORDS | TYPES):
        return False
    if before.kind in {"string", "number", "dollar"}:
        return True
    if item[index - 2].key in _ENDS_BEHIND:
        return before.kind in NAMES
    return before.key in _ENDS_A_COLUMN or (before.kind == "word" and before.key in TYPES)


def _between(item: Sequence[Token], at: Token, second: str) -> Problem:
    first = " ".join(token.text for token in item[:2])[:40]
    # SQLite reads `a TEXT b TEXT` as one column of a long type: it takes it, and the second column is lost.
    fix = f"Put a comma before `{second}`."
    return Problem(at, f"a comma is missing between `{first}` and `{second}`", fix, certain=True)


def _checks(item: Sequence[Token], *, added: bool = False) -> Iterator[Problem]:
    for index, token in enumerate(item):
        behind = item[index + 1] if index + 1 < len(item) else None
        if token.kind != "word" or token.key != "CHECK" or (behind is not None and behind.key in {"(", "NOT"}):
            continue
        if index == 0 and not added and behind is not None and behind.key in TYPES:
            continue  # a column of that name: told as a reserved word
        if behind is not None and behind.kind == "hole":
            continue
        if behind is None or (index > 0 and item[index - 1].key in {".", "WITH", "CONSTRAINT"}):
            continue
        yield Problem(token, "CHECK stands without brackets", "Write `CHECK (…)` with the condition in brackets.")


def _misread(item: Sequence[Token], dialects: Sequence[str]) -> Iterator[Problem]:
    """What a dialect reads otherwise than it was meant, or another dialect's word: told, never refused."""
    keys = [token.key for token in item]
    own = dialects[0] if len(set(dialects)) == 1 else ""
    for index, token in enumerate(item):
        if (
            index
            and token.kind == "quoted"
            and token.text[0] == '"'
            and keys[index - 1] == "DEFAULT"
            and own in {"sqlite", "postgres"}
        ):
            fix = f"Write the text in single quotes: '{token.text.strip(chr(34))}'."
            yield Problem(token, f"`{token.text}` is a name, not a text, as a default", fix, major=False)
        elif token.kind == "word" and token.key in {"AUTOINCREMENT", "AUTO_INCREMENT"}:
            yield from _counted(item, token, keys, own)


def _counted(item: Sequence[Token], token: Token, keys: Sequence[str], own: str) -> Iterator[Problem]:
    right = {"sqlite": "INTEGER PRIMARY KEY AUTOINCREMENT", "mysql": "AUTO_INCREMENT", "tsql": "IDENTITY(1,1)"}.get(
        own, "GENERATED ALWAYS AS IDENTITY"
    )
    wrong = own == "sqlite" and (token.key == "AUTO_INCREMENT" or keys[1:2] != ["INTEGER"])
    wrong = wrong or (own == "mysql" and token.key == "AUTOINCREMENT") or own in {"postgres", "tsql"}
    if wrong:
        message = f"`{token.text}` is not how this database numbers the column `{item[0].text}`"
        yield Problem(token, message, f"Write `{right}`.", major=False)
