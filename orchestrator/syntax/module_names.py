"""Names under which a project's own modules are imported: aliases of tsconfig.json and of package.json."""

import json
import re
from posixpath import basename

_CONFIG = re.compile(r"^(ts|js)config(\.[\w-]+)?\.json$")
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')


def names_modules(path: str) -> bool:
    """Whether `local_modules` reads this file."""
    return _CONFIG.match(basename(path).lower()) is not None


def local_modules(path: str, text: str) -> frozenset[str]:
    """Patterns of `compilerOptions.paths` that lead into the project; a `*` at the end stands for anything.

    Comments and trailing commas are allowed as TypeScript allows them. What cannot be read has none. Never raises.
    """
    if not names_modules(path):
        return frozenset()
    try:
        data = json.loads(_TRAILING_COMMA.sub(r"\1", _COMMENT.sub(r"\1", text.removeprefix("\ufeff"))))
        paths = data.get("compilerOptions", {}).get("paths", {})
        return frozenset(name for name, targets in paths.items() if name.strip("*/") and _inside(targets))
    except (ValueError, AttributeError, TypeError, RecursionError):
        return frozenset()


def _inside(targets: object) -> bool:
    """Whether every target of an alias is a path of the project, not of what is installed."""
    if not isinstance(targets, list) or not targets:
        return False
    return all(isinstance(target, str) and "node_modules" not in target for target in targets)
