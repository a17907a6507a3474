"""Keeps pages small, whatever a model wrote: the longest texts of a page are cut."""

from collections.abc import Iterator, Mapping
from typing import Any

from markupsafe import escape

from orchestrator.core.secrets import redact
from orchestrator.core.value import draw_controls

PAGE_CHARS = 600_000
"""Of all texts of a page, as HTML writes them."""
_CAPS = (100_000, 30_000, 10_000, 3_000, 1_000, 300, 100, 30)


def fit(values: dict[str, Any], most: int = PAGE_CHARS) -> dict[str, Any]:
    """Returns values for a template with their longest texts cut where all together are longer than `most`."""
    lengths = [_length(text) for text in _texts(values)]
    if sum(lengths) <= most:
        return values
    cap = next((cap for cap in _CAPS if sum(min(cap, length) for length in lengths) <= most), _CAPS[-1])
    fitted: dict[str, Any] = _cut_texts(values, cap)
    return fitted


def cut_text(text: str, most: int) -> str:
    """Returns the beginning of a longer text, up to the end of a word; half of a secret would not be seen as one."""
    if len(text) <= most:
        return text
    head = redact(text[: 2 * most])[:most]
    blank = max(head.rfind(" "), head.rfind("\n"))
    return f"{head[: blank if blank > most // 2 else most // 2]} … and {len(text) - most:,} more characters"


def _length(text: str) -> int:
    return len(escape(draw_controls(text)))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)


def _cut_texts(value: Any, cap: int) -> Any:
    if isinstance(value, str):
        length = _length(value)
        return value if length <= cap else cut_text(value, max(1, cap * len(value) // length))
    if isinstance(value, Mapping):
        return {name: _cut_texts(one, cap) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_cut_texts(one, cap) for one in value]
    return value
