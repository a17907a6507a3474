"""One door to every parser: is this file well-formed in its own language?"""

from posixpath import splitext

from orchestrator.domain.findings import Finding
from orchestrator.syntax import javascript_check, json_source, python_source

CHECKED_SUFFIXES = (".py", ".pyi", ".json", *javascript_check.SUFFIXES)
"""Languages that have a parser here; other files are not judged."""


def check_syntax(path: str, text: str, *, code: str = "content.syntax") -> list[Finding]:
    """Major findings, of `code`, when `text` does not parse in the language of `path`'s suffix; [] otherwise.

    Never raises. A suffix outside CHECKED_SUFFIXES gives [].
    """
    suffix = splitext(path)[1].lower()
    found: Finding | None = None
    if suffix in {".py", ".pyi"}:
        found = python_source.problem(text, path, code=code)
    elif suffix in javascript_check.SUFFIXES:
        found = javascript_check.problem(text, path, code=code)
    elif suffix == ".json" and not json_source.allows_comments(path):
        found = json_source.problem(text, path, code=code)
    return [found] if found else []
