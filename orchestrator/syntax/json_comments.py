"""JSON with comments and trailing commas, as TypeScript and its like write it."""

import re

# Strings are taken whole, so that what looks like a comment in one is none. Behind a comma blanks and comments are
# taken possessively: a comment that holds a bracket closes nothing.
_PIECES = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/|,(?=(?>\s|//[^\n]*|/\*.*?\*/)*+[\]}])', re.DOTALL)


def without_comments(text: str) -> str:
    """The same as plain JSON, what stays at its old place."""
    return _PIECES.sub(_blank, text.removeprefix("\ufeff"))


def _blank(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith('"') else re.sub(r"[^\n]", " ", match[0])
