"""Names under which a project's own modules are imported: aliases of tsconfig.json and its like."""

import json
import re
from collections.abc import Iterator, Mapping
from posixpath import basename, dirname, join, normpath
from typing import NamedTuple

from orchestrator.syntax.json_comments import without_comments

_CONFIG = re.compile(r"^(ts|js)config(\.[\w-]+)?\.json$")
_IMPORT_MAP = re.compile(r"^(deno\.jsonc?|import[-_]?map\.json|.+\.importmap(\.json)?)$")


class Aliases(NamedTuple):
    """Where the modules of a project are found by names that are no paths."""

    patterns: Mapping[str, tuple[str, ...]]
    """Pattern, with at most one `*`, → paths from the repository's root that it stands for."""
    roots: frozenset[str]
    """Folders from the repository's root, "" for the root itself, in which a bare name is looked up first."""


def names_modules(path: str) -> bool:
    """Whether `local_modules` reads this file."""
    return _CONFIG.match(basename(path).lower()) is not None or is_import_map(path)


def is_import_map(path: str) -> bool:
    """Whether the file gives modules names by `imports`, as browsers and deno read it."""
    return _IMPORT_MAP.match(basename(path).lower()) is not None


def local_modules(path: str, text: str) -> frozenset[str]:
    """Names by which modules are imported and that the project itself gives: patterns of `compilerOptions.paths` that
    lead into it, and the keys of an import map. A `*` at the end stands for anything.
    """
    if is_import_map(path):
        try:
            keys = json.loads(without_comments(text)).get("imports", {})
            return frozenset(f"{key}*" if key.endswith("/") else key for key in keys if key.strip("*/"))
        except (ValueError, AttributeError, TypeError, RecursionError):
            return frozenset()
    return frozenset(name for name in aliases(path, text).patterns if name.strip("*/"))


def aliases(path: str, text: str) -> Aliases:
    """`compilerOptions.paths` and `baseUrl`, as far as they stay in the project and out of what is installed there.

    What cannot be read has none. Never raises.
    """
    if not _CONFIG.match(basename(path).lower()):
        return Aliases({}, frozenset())
    try:
        options = json.loads(without_comments(text)).get("compilerOptions", {})
        base = options.get("baseUrl")
        start = join(dirname(path), base or ".")
        own = {name: _inside(start, targets) for name, targets in options.get("paths", {}).items()}
    except (ValueError, AttributeError, TypeError, RecursionError):
        return Aliases({}, frozenset())
    roots = [normpath(start)] if base else []
    roots += [target.removesuffix("/*") for target in own.get("*", ())]
    inside = frozenset("" if root == "." else root for root in roots if not _is_outside(root))
    return Aliases({name: targets for name, targets in own.items() if targets and name != "*"}, inside)


def _inside(start: str, targets: object) -> tuple[str, ...]:
    """The targets of an alias, none unless every one is a path of the project."""
    if not isinstance(targets, list) or not all(isinstance(target, str) for target in targets):
        return ()
    paths = [normpath(join(start, target)) for target in targets]
    return () if any(_is_outside(path) for path in paths) else tuple(paths)


def _is_outside(path: str) -> bool:
    return path.startswith(("/", "..")) or "node_modules" in path.split("/")


def filled(patterns: Mapping[str, tuple[str, ...]], module: str) -> Iterator[str]:
    """The paths that `module` may stand for."""
    for pattern, targets in patterns.items():
        start, star, end = pattern.partition("*")
        if star and module.startswith(start) and module.endswith(end) and len(module) >= len(start) + len(end):
            inner = module[len(start) : len(module) - len(end)]
            yield from (normpath(target.replace("*", inner)) for target in targets)
        elif module == pattern:
            yield from targets
