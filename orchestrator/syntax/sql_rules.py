"""What is surely wrong in SQL, told so that it can be mended: brackets, commas, reserved words, CHECK."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from orchestrator.syntax.sql_tokens import Statement, Token
from orchestrator.syntax.sql_words import TYPES, quoted_as, reserved_in, words

NAMES = frozenset({"word", "quoted"})
_MAKING = frozenset(
    {"CREATE", "OR", "REPLACE", "GLOBAL", "LOCAL", "TEMP", "TEMPORARY", "UNLOGGED", "FOREIGN", "EXTERNAL", "TABLE"}
)
_CANNOT_END = words(
    """, = < > + || ( . <= >= <> != WHERE AND OR INTO BY HAVING JOIN LIKE BETWEEN CREATE INSERT ALTER DROP WITH NOT
    REFERENCES UNION EXCEPT INTERSECT WHEN THEN ELSE FROM SET"""
)
_NO_COMMA_BEFORE = frozenset({"FROM", "WHERE", ")", ",", "HAVING"})
_OPENINGS = frozenset(
    (first, second)
    for first, seconds in {"CREATE": "TABLE INDEX UNIQUE", "INSERT": "INTO", "ALTER": "TABLE", "DROP": "TABLE"}.items()
    for second in seconds.split()
)
_QUERIES = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "FROM", "("})


class Problem(NamedTuple):
    """One thing that is wrong with a statement."""

    at: Token
    message: str
    fix: str
    major: bool = True
    certain: bool = False
    """Whether it stays wrong although a database takes it as grammar: it does not mean what was meant."""
    cut: bool = False
    """Whether only the end is missing, which a program may put there."""


def problems(statement: Statement, dialects: Sequence[str]) -> Iterator[Problem]:
    """What is wrong by the rules that hold in all of `dialects`. A trigger's or function's body is not looked at."""
    if statement.body:
        return
    yield from _brackets(statement)
    if "tsql" not in dialects:  # which takes a comma too many, and needs no `;` between statements
        yield from _commas(statement.tokens)
        yield from _cut_short(statement)
        yield from _joined(statement.tokens)
    yield from _reserved_table(statement.tokens, dialects)
    if statement.words[:1] in {("INSERT",), ("REPLACE",)}:
        yield from _inserted(statement.tokens, dialects)


def table_items(tokens: Sequence[Token]) -> list[list[Token]]:
    """What CREATE TABLE lists between its brackets, parted by its commas; [] for anything else."""
    at = _table_name_at(tokens)
    if at is None:
        return []
    while at < len(tokens) and (tokens[at].kind in {*NAMES, "hole"} or tokens[at].key == "."):
        at += 1
    if at >= len(tokens) or tokens[at].key != "(" or (at + 1 < len(tokens) and tokens[at + 1].key in _QUERIES):
        return []
    return list_at(tokens, at)


def list_at(tokens: Sequence[Token], at: int) -> list[list[Token]]:
    """The parts between the bracket at `at` and its closing one (or the end), at its own commas."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens[at:]:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token.key, 0)
        if depth == 0:
            break
        if depth == 1 and token.key == ",":
            parts.append([])
        elif token is not tokens[at]:
            parts[-1].append(token)
    return parts


def _table_name_at(tokens: Sequence[Token]) -> int | None:
    """Where the name stands that CREATE TABLE gives."""
    keys = [token.key for token in tokens[:12]]
    if keys[:1] != ["CREATE"] or "TABLE" not in keys:
        return None
    at = keys.index("TABLE")
    if not set(keys[:at]) <= _MAKING:
        return None
    return at + 4 if keys[at + 1 : at + 4] == ["IF", "NOT", "EXISTS"] else at + 1


def _brackets(statement: Statement) -> Iterator[Problem]:
    waiting: list[Token] = []
    for token in statement.tokens:
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
        elif one.key == "(" and behind.key == ",":
            yield Problem(behind, "a comma stands right behind `(`", "Take the comma out.")


def _cut_short(statement: Statement) -> Iterator[Problem]:
    tokens = statement.tokens
    last, before = tokens[-1], tokens[-2].key if len(tokens) > 1 else ""
    # `LIKE t.*`, `AS from`, `"x".set`: what stands behind AS or a point is a name, whatever the word
    if len(tokens) > 1 and last.key in _CANNOT_END and before not in {"AS", "."} and not last.open:
        message = f"the statement ends with `{last.text}`: the rest is missing"
        yield Problem(last, message, "Write the statement to its end.", cut=True)


def _joined(tokens: Sequence[Token]) -> Iterator[Problem]:
    """A second statement that begins where the first has no `;`, and CREATE TABLE without its bracket."""
    if (tokens[0].key, tokens[1].key if len(tokens) > 1 else "") not in _OPENINGS:
        return
    depth = 0
    for before, one, behind in zip(tokens, tokens[1:], tokens[2:], strict=False):
        depth += {"(": 1, ")": -1}.get(before.key, 0)
        if depth == 0 and (one.key, behind.key) in _OPENINGS and before.key not in {"AS", "."}:
            message = f"`{one.text} {behind.text}` begins while the statement before it has no `;`"
            yield Problem(one, message, f"Put a `;` before `{one.text} {behind.text}`.")
            return
    at = _table_name_at(tokens)
    if at is not None and [token.kind for token in tokens[at : at + 3]] == ["word"] * 3 and tokens[at + 2].key in TYPES:
        yield Problem(tokens[at + 1], f"`(` is missing before `{tokens[at + 1].text}`", "Put the columns in brackets.")


def _reserved_table(tokens: Sequence[Token], dialects: Sequence[str]) -> Iterator[Problem]:
    keys = [token.key for token in tokens[:8]]
    at = _table_name_at(tokens)
    if at is None and keys[:1] == ["INSERT"] and "INTO" in keys[:4]:
        at = keys.index("INTO") + 1
    if at is None or at + 1 >= len(tokens) or tokens[at + 1].key not in {"(", "VALUES"}:
        return
    if tokens[at].kind == "word" and reserved_in(tokens[at].key, dialects):
        yield reserved(tokens[at], "table", dialects)


def reserved(token: Token, what: str, dialects: Sequence[str]) -> Problem:
    """The finding on a name that is a word of the language."""
    message = f"`{token.text}` is a reserved word of SQL and cannot be a {what}'s name without quotes"
    fix = f"Write {quoted_as(token.text, dialects)} wherever the {what} is named, or name it otherwise."
    return Problem(token, message, fix)


def _inserted(tokens: Sequence[Token], dialects: Sequence[str]) -> Iterator[Problem]:
    """The columns of INSERT INTO t (…), and whether each row has as many values."""
    at = next((index for index, token in enumerate(tokens[:12]) if token.key == "("), None)
    keys = [token.key for token in tokens[: at or 0]]
    if at is None or "INTO" not in keys or at + 1 >= len(tokens) or tokens[at + 1].key in _QUERIES or "VALUES" in keys:
        return
    parts = list_at(tokens, at)
    for part in parts:
        if part and part[0].kind == "word" and len(part) == 1 and reserved_in(part[0].key, dialects):
            yield reserved(part[0], "column", dialects)
        elif len(part) == 2 and all(token.kind in NAMES for token in part):
            message = f"a comma is missing between `{part[0].text}` and `{part[1].text}`"
            yield Problem(part[1], message, f"Write `{part[0].text}, {part[1].text}`.")
    behind = at + sum(len(part) for part in parts) + len(parts) + 1
    if all(len(part) == 1 and part[0].kind in NAMES for part in parts) and behind < len(tokens):
        yield from _rows(tokens, behind, len(parts))


def _rows(tokens: Sequence[Token], at: int, columns: int) -> Iterator[Problem]:
    if tokens[at].key != "VALUES" or at + 1 >= len(tokens) or tokens[at + 1].key != "(":
        return
    values = list_at(tokens, at + 1)
    vague = any(token.kind == "hole" or (token.key == "?" and len(values) == 1) for token in values[-1])
    if len(values) != columns and values[-1] and not vague:
        message = f"{len(values)} values are given for {columns} columns"
        yield Problem(
            tokens[at + 1], message, "Give a value for each column that is named, in their order.", certain=True
        )
