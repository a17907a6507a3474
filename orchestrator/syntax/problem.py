"""What every parser here says of a text that does not parse."""

from orchestrator.domain.base import Value

MOST = 3
"""Problems told per file: what stands behind the first ones is often made by them."""


class Problem(Value):
    """One place that does not parse."""

    line: int | None = None
    """1-based."""
    column: int | None = None
    """1-based, in characters."""
    message: str
    """What is wrong, without the place and the language."""
    fix: str = ""
    """What to do about it; empty for the usual: write the whole file anew."""


def place(text: str, offset: int) -> tuple[int, int]:
    """Line and column, both 1-based, of the character at `offset`."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def shown(text: str) -> str:
    """A piece of a text on one line, short enough for a message, without what would break its quotes."""
    return " ".join(text.split())[:60].replace("`", "'")
