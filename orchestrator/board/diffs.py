"""A patch as HTML, coloured by Pygments."""

from markupsafe import Markup
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers.diff import DiffLexer

from orchestrator.core.secrets import redact
from orchestrator.core.value import draw_controls

MOST_CHARS, MOST_LINES = 150_000, 5_000
"""Of a patch on a page, which stays below 1 MB; the text beside it has all."""


def is_long(patch: str) -> bool:
    """Returns whether `draw_patch` draws the beginning of a patch only."""
    return len(patch) > MOST_CHARS or patch.count("\n") > MOST_LINES


def draw_patch(patch: str) -> Markup:
    """Returns a unified diff, or its beginning, escaped, without what looks like a secret. Blocks."""
    # Redacted before it is cut: half of a secret would not be seen as one.
    text = redact(patch[: 2 * MOST_CHARS])[:MOST_CHARS]
    text = draw_controls("".join(text.splitlines(keepends=True)[:MOST_LINES]))
    # The lexer ends the last line: without that its time would grow with the square of a long one.
    return Markup(highlight(text, DiffLexer(stripnl=False), HtmlFormatter(nowrap=True)))
