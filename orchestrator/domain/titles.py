"""Titles of tasks as people and models write them: one line, and what counts as the same one."""

import re
import unicodedata

from orchestrator.domain.words import printable

MAX_TITLE = 300
_BETWEEN = re.compile(r"(?:[^\w+#]|_|(?<![\w+#])[+#])+")
"""What stands between words; `+` and `#` behind a word belong to it: C++ is not C#."""


def one_line(text: str) -> str:
    """The text on one line, without what no terminal and no file takes; storable as UTF-8."""
    sound = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return " ".join(printable(sound, keep="").split())


def same_title(title: str) -> str:
    """What titles that mean the same have in common: letters and digits, without case, layout and punctuation.

    A title of nothing but other signs is compared by these.
    """
    plain = unicodedata.normalize("NFKC", title).casefold()
    return _BETWEEN.sub(" ", plain).strip() or " ".join(plain.split())
