"""The subject of a commit, in the words of the persona whose work it holds (pure)."""

import re
import textwrap
from collections.abc import Collection, Iterable

WIDTH = 72
"""Characters of a subject, as git's own tools expect them."""
# The form's own words and ids say nothing of the change; `UTF-8 is read` begins with neither.
_FORM = re.compile(
    r"^(?:[#*\s]+|(?i:action plan|task|story|title|commit)\s*(?::|$)|T-[\w.-]+:?|[A-Z][A-Z0-9]*-\d[\w.-]*\s*(?::|$))+"
)


def subject_of(title: str) -> str:
    """Returns a persona's title as a subject, cut between words; "" when it says nothing, as an id or one word."""
    line = _FORM.sub("", title).strip().rstrip(".")
    return fitted(line) if " " in line else ""


def fitted(text: str) -> str:
    """Returns the text on one line of at most `WIDTH` characters, cut between words where it has any."""
    line = textwrap.shorten(text, WIDTH, placeholder="…")
    return text.strip()[:WIDTH] if line == "…" else line


def unlike(subject: str, used: Collection[str], others: Iterable[str] = ()) -> str:
    """Returns the first of a subject and `others` that no earlier commit of the story has; else the subject."""
    return next((one for one in (subject, *map(fitted, others)) if one not in used), subject)
