"""What a value lost although its text parses: half of a character, code that is named in place of being there."""

import re
from collections.abc import Iterator
from typing import Any

from orchestrator.answers.code import PATH_OF, path_of
from orchestrator.answers.model import excerpt
from orchestrator.syntax.elision import stands_for_code

_HALF = re.compile(r"[\ud800-\udfff]")
_PAIR = re.compile(r"[\ud800-\udbff][\udc00-\udfff]")
_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_COMMENT = re.compile(
    r"^[ \t]*(?:\{[ \t]*)?(?://+|#+|/\*+|<!--+|--+)(?P<said>.*?)(?:\*+/|-->)?[ \t]*\}?[ \t]*$", re.MULTILINE
)
"""A line that is only a comment: what stands behind code may well be about that code."""
_WORDS = ("...", "…", "unchanged", "omitted", "same", " here", "before", "existing", "remaining", "rest of", "Rest of")
"""One of them is in nearly all comments that stand for code: most contents need no closer look."""


def may_have_lost(text: str) -> bool:
    """Returns whether `text` holds anything that `losses` looks for: a quick look, because most texts hold nothing."""
    halves = "\\u" in text and _ESCAPED_HALF.search(text) is not None
    if halves or (not text.isascii() and _HALF.search(text) is not None):
        return True
    return any(word in text for word in _WORDS)


def join_halves(value: Any) -> Any:
    """Returns the value with the two halves of a character that stand side by side made one."""
    if isinstance(value, str):
        return value if _PAIR.search(value) is None else _PAIR.sub(_joined, value)
    if isinstance(value, dict):
        return {key: join_halves(member) for key, member in value.items()}
    return [join_halves(member) for member in value] if isinstance(value, list) else value


def _joined(pair: re.Match[str]) -> str:
    return pair.group().encode("utf-16", "surrogatepass").decode("utf-16")


def without_losses(value: Any) -> tuple[Any, tuple[str, ...]]:
    """Returns the value without the items and outermost fields that lost something, and what each of them lost."""
    told: list[str] = []

    def is_whole(member: Any, field: str) -> bool:
        found = next(_losses(member, field), None)
        told.extend([found] if found else [])
        return found is None

    if isinstance(value, list):
        return [item for index, item in enumerate(value) if is_whole(item, f"[{index}]")], tuple(told)
    kept: dict[str, Any] = {}
    for name, member in value.items():
        if isinstance(member, str) and (elided := _elision(member, name, value)):
            told.append(f"`{name}` holds `{elided}` in place of code")
        elif isinstance(member, list) and any(isinstance(item, dict) for item in member):
            kept[name] = [item for index, item in enumerate(member) if is_whole(item, f"{name}[{index}]")]
        elif is_whole(member, name):
            kept[name] = member
    return kept, tuple(told)


def _losses(value: Any, field: str) -> Iterator[str]:
    """What the strings inside a member lost; level by level, so that depth costs no stack."""
    waiting: list[tuple[str, Any]] = [(field, value)]
    for place, member in waiting:
        if isinstance(member, dict):
            for name, inner in member.items():
                if isinstance(inner, str) and (elided := _elision(inner, name, member)):
                    yield f"`{place}.{name}` holds `{elided}` in place of code"
            waiting += [(f"{place}.{name}", inner) for name, inner in member.items()]
        elif isinstance(member, list):
            waiting += [(f"{place}[{index}]", inner) for index, inner in enumerate(member)]
        elif isinstance(member, str) and not member.isascii() and _HALF.search(member):
            yield f"half of a character is missing in `{place}`"


def _elision(code: str, field: str, siblings: dict[str, Any]) -> str:
    """The first line of code that stands for others, "" without one: prose tells of code that its reader has."""
    if field not in PATH_OF or (path_of(field, siblings) or "").lower().endswith((".md", ".mdx", ".rst", ".txt")):
        return ""
    comments = _COMMENT.finditer(code) if any(word in code for word in _WORDS) else ()
    found = next((comment for comment in comments if stands_for_code(comment["said"])), None)
    return excerpt(found.group().strip()) if found else ""
