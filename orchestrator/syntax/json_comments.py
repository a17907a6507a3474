"""JSON with comments and trailing commas, as TypeScript and its like write it."""

import re

_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')


def without_comments(text: str) -> str:
    """The same as plain JSON."""
    return _TRAILING_COMMA.sub(r"\1", _COMMENT.sub(r"\1", text.removeprefix("\ufeff")))
