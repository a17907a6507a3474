"""Words as people look for them: without capital letters and accents."""

import re
import unicodedata


def fold(text: str) -> str:
    """The text without accents and without differences between capital and small letters."""
    apart = unicodedata.normalize("NFKD", text)
    return "".join(char for char in apart if not unicodedata.combining(char)).casefold()


def words(text: str) -> list[str]:
    """The folded words of a text, without punctuation."""
    return re.findall(r"\w+", fold(text))
