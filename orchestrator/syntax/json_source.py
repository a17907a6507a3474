"""Does a JSON text parse strictly?"""

import json
from posixpath import basename

from orchestrator.domain.findings import Finding, Where, major

_WITH_COMMENTS = ("tsconfig", "jsconfig", "devcontainer")


def allows_comments(path: str) -> bool:
    """Whether tools read this `.json` file as JSON with comments, so that strict JSON says nothing about it."""
    return basename(path).lower().startswith(_WITH_COMMENTS) or path.startswith(".vscode/") or "/.vscode/" in path


def problem(text: str, path: str, *, code: str = "content.syntax") -> Finding | None:
    """A major finding with line and column when `text` is no strict JSON (RFC 8259), else None. Never raises."""
    try:
        json.loads(text, parse_constant=_no_constant, parse_int=_digits)
    except json.JSONDecodeError as error:
        place = Where(file=path, line=error.lineno, column=error.colno)
        return major(code, f"JSON does not parse: {error.msg}", where=place, fix="Write the whole file as strict JSON.")
    except ValueError as error:
        return major(code, f"JSON does not parse: {error}", where=Where(file=path), fix="Use null or a number.")
    except RecursionError:
        message = "JSON does not parse: it is nested too deeply"
        return major(code, message, where=Where(file=path), fix="Write it with less nesting.")
    return None


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON value")


def _digits(digits: str) -> int:
    """Stands in for int(), which refuses numbers of more than 4300 digits that JSON allows."""
    return len(digits)
