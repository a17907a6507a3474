"""A patch as HTML, coloured by Pygments."""

from markupsafe import Markup
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers.diff import DiffLexer

from orchestrator.core.secrets import redact
from orchestrator.core.value import draw_controls

MOST_CHARS = 300_000
"""Of a patch on a page, which stays below 1 MB; the text beside it has all."""


def draw_patch(patch: str) -> Markup:
    """Returns a unified diff, or its beginning, escaped, without what looks like a secret. Blocks."""
    text = draw_controls(redact(patch[: 2 * MOST_CHARS])[:MOST_CHARS])
    return Markup(highlight(text, DiffLexer(stripnl=False, ensurenl=False), HtmlFormatter(nowrap=True)))
