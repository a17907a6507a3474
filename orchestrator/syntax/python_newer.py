"""Python newer than the running one, written as older ones read it: type parameters, `type`, quotes in f-strings."""

import re
from collections.abc import Iterator

from orchestrator.syntax.grammar import Node, parse

_TYPE_PARAMETERS = re.compile(r"^[ \t]*(?:async[ \t]+)?(?:def|class|type)[ \t]+\w+[ \t]*(\[)", re.MULTILINE)
_ALIAS = re.compile(r"^([ \t]*)type[ \t]+(?=\w+[ \t]*=(?!=))", re.MULTILINE)
_CAUGHT = re.compile(r"^([ \t]*except\*?[ \t]+)([\w.]+(?:[ \t]*,[ \t]*[\w.]+)+)(?=[ \t]*:)", re.MULTILINE)
_RUNS = re.compile(r"[\w)\]]\s*\(|\bimport\b")
_BRACKET = re.compile(r"[\[\](){}\"'#]")
_LONGEST = 500
"""Characters of a list of type parameters."""
_START = re.compile(r"([A-Za-z]*)(\"\"\"|'''|\"|')")
_FORMATTED = re.compile(r"\b[rR]?[fFtT][rR]?[\"']")
_DEEPEST = 8
"""Strings within strings."""


class _Unwritable(Exception):
    """A string that is nested too deep, or holds what this reader does not know."""


def as_older(text: str) -> str:
    """The text with what Python 3.12 to 3.14 brought written as 3.11 reads it, each statement in its line.

    Never raises. What runs when a module is loaded or called stays: expressions within strings stand beside them. What
    cannot be written so is left as it is, and so is a text without any of it: the older parser refuses it then.
    """
    older = _CAUGHT.sub(r"\1(\2)", _ALIAS.sub(r"\1", _without_type_parameters(text)))
    if not _FORMATTED.search(older):
        return older
    root = parse("python", older)
    if root.has_error:
        return older
    try:
        return _written(root, older.encode("utf-8", "replace"), 0).decode("utf-8", "replace")
    except (_Unwritable, RecursionError):
        return older


def _without_type_parameters(text: str) -> str:
    """Their brackets taken out; not where something is called in them, since that may be anything."""
    parts, done = [], 0
    for match in _TYPE_PARAMETERS.finditer(text):
        end = _closed(text, match.start(1))
        held = text[match.start(1) : end]
        if match.start() >= done and end and not _RUNS.search(held):
            parts += [text[done : match.start(1)], "\\\n" * held.count("\n")]
            done = end
    return "".join((*parts, text[done:]))


def _closed(text: str, at: int) -> int:
    """Just behind the bracket that closes the one `at`; 0 when none does, or a string or comment stands between."""
    depth = 0
    for match in _BRACKET.finditer(text, at, at + _LONGEST):
        if match[0] in "\"'#":  # it may hold brackets itself
            return 0
        depth += 1 if match[0] in "[({" else -1
        if depth == 0:
            return match.end()
    return 0


def _written(node: Node, source: bytes, depth: int) -> bytes:
    """The source of the node, with each outermost newer string in it written anew."""
    if depth > _DEEPEST:
        raise _Unwritable
    parts, done = [], node.start_byte
    for string in _outermost(node):
        parts += [source[done : string.start_byte], _string(string, source, depth)]
        done = string.end_byte
    return b"".join((*parts, source[done : node.end_byte]))


def _outermost(root: Node) -> Iterator[Node]:
    """Strings that no other one holds, in order of the text; those that stand side by side come as one node."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.type in {"string", "concatenated_string"}:
            if any(_is_newer(one) for one in _pieces(node)):
                yield node
        else:
            waiting.extend(reversed(node.children))


def _pieces(node: Node) -> list[Node]:
    return [one for one in node.children if one.type == "string"] if node.type == "concatenated_string" else [node]


def _is_newer(string: Node) -> bool:
    """Whether an older parser may stumble over what stands in its braces: its own quotes, a backslash, a comment."""
    start = _start(string)
    if start is None:
        return False
    prefix, quote = start
    inner = [one for one in string.children if one.type == "interpolation"]
    held = b"".join(one.text or b"" for one in inner).decode("utf-8", "replace")
    return "t" in prefix.lower() or (bool(inner) and (quote in held or bool(re.search(r"[\\#\n]", held))))


def _start(string: Node) -> tuple[str, str] | None:
    """Prefix and quote."""
    text = (string.text or b"")[:8].decode("utf-8", "replace")
    found = _START.match(text)
    return (found[1], found[2]) if found else None


def _string(node: Node, source: bytes, depth: int) -> bytes:
    """A sum of the texts and of what is put between them, on as many lines."""
    parts, done = [], node.start_byte
    for number, piece in enumerate(_pieces(node)):
        made = _sum(piece, source, depth) if _is_newer(piece) else piece.text or b""
        parts += [b" + " if number else b"", source[done : piece.start_byte], made]
        done = piece.end_byte
    whole = b"".join(parts)
    missing = (node.text or b"").count(b"\n") - whole.count(b"\n")
    return b"(" + whole + b"\n" * max(missing, 0) + b")"


def _sum(string: Node, source: bytes, depth: int) -> bytes:
    prefix, quote = _start(string) or ("", "")
    opening = f"{re.sub('[fFtT]', '', prefix)}{quote}".encode()
    parts, done = [], string.start_byte + len(prefix) + len(quote)
    for inner in [one for one in string.children if one.type == "interpolation"]:
        parts += [opening, _plain(source[done : inner.start_byte]), quote.encode()]
        values = list(_values(inner))
        if not values:
            raise _Unwritable
        parts += [b" + str((" + _written(value, source, depth + 1) + b"))" for value in values]
        parts.append(b" + ")
        done = inner.end_byte
    return b"".join((*parts, opening, _plain(source[done : string.end_byte - len(quote)]), quote.encode()))


def _plain(text: bytes) -> bytes:
    return text.replace(b"{{", b"{").replace(b"}}", b"}")


def _values(inner: Node) -> Iterator[Node]:
    """What stands in braces, and in the braces of how it is to be written."""
    waiting = [inner]
    while waiting:
        node = waiting.pop()
        value = node.child_by_field_name("expression")
        if value is not None:
            yield value
        waiting.extend(one for one in reversed(node.children) if one.type in {"format_specifier", "format_expression"})
