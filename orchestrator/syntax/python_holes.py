"""Texts with holes in them: what could be worked out of an expression, and what could not."""

import ast
import re

_OPEN, _CLOSE = "\x01", "\x02"
_HOLE = re.compile(f"{_OPEN}([^{_CLOSE}]*){_CLOSE}")
_OWN = re.compile(rf"^{_OPEN}[^{_CLOSE}]*__(name|package|spec|module|path)__")
"""A text that starts with the name of a module that is loaded already."""


def hole(name: str) -> str:
    """The text of what cannot be known."""
    return f"{_OPEN}{name[:80] or '…'}{_CLOSE}"


def is_whole(text: str) -> bool:
    """Whether everything in a text is known."""
    return _OPEN not in text


def known_start(text: str) -> str:
    """A text up to its first hole."""
    return text.split(_OPEN, 1)[0]


def starts_with_own(text: str) -> bool:
    """Whether a text starts with the name of the module it stands in, or of one that is loaded already."""
    return _OWN.match(text) is not None


def filled(text: str, pattern: str = "{%s}") -> str:
    """A text with its holes written out."""
    return _HOLE.sub(lambda match: pattern.replace("%s", match[1]), text)


def label(node: ast.AST | None) -> str:
    """An expression in short, for people."""
    behind = ""
    while True:
        if isinstance(node, ast.Name):
            return node.id + behind
        if isinstance(node, ast.Attribute):
            behind, node = f".{node.attr}{behind}"[:80], node.value
        elif isinstance(node, ast.Call):
            behind, node = f"(…){behind}"[:80], node.func
        elif isinstance(node, ast.Subscript):
            behind, node = f"[…]{behind}"[:80], node.value
        else:
            return f"…{behind}"
