"""Names and routes that a changed file had and lost, though its task speaks of none of them."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from posixpath import basename, dirname, join, normpath, splitext

from rapidfuzz import fuzz

from orchestrator.domain.base import Value
from orchestrator.domain.delivery import Delivery
from orchestrator.domain.file_kinds import is_test_file
from orchestrator.domain.findings import Finding, Where, major, minor
from orchestrator.domain.surface import Endpoint
from orchestrator.syntax import (
    javascript_endpoints,
    javascript_source,
    javascript_tree,
    python_endpoints,
    python_imports,
    python_source,
)
from orchestrator.syntax.check import check_syntax

CODE = "delivery.lost_export"
_PYTHON = (".py", ".pyi")
_ALIKE = 75
"""How alike (of 100) a new name must be to pass for the old one under another name."""
_OFFERS_UNSEEN = re.compile(
    r"\bimport \*(?! as\b)|\bexport \*(?! as\b)|\bmodule\.exports\s*=(?!\s*\{)|\bexports\s*=\s*\{[^}]{0,2000}\.\.\."
    r"|\bexports\[|\bassign\((?:module\.)?exports|\bglobals\(\)|^def __getattr__",
    re.MULTILINE,
)
"""A text that offers more than its tree shows: nothing can be said to be lost."""
_CHANGES = re.compile(
    r"\b(?:remov|delet|drop|renam|replac|mov|extract|split|merg|deprecat|instead|eliminat|get rid|no longer|inline)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{3,}(?![a-z])")
_PARAMETER = re.compile(r":\w+\??|<[^>]*>|\{[^}]*\}|\[\w+\]")
_DEFAULT_IMPORT = r"import\s+[A-Za-z_$][\w$]*\s*(?:,|\bfrom)|=\s*(?:await\s+)?(?:require|import)\s*\("


class Lost(Value):
    """One thing that is gone."""

    file: str
    name: str
    """Of an export; `GET /users` of a route."""
    route: bool = False
    instead: str = ""
    """A new name of the same file that may stand for it."""
    moved: bool = False
    """Whether another delivered file offers it now."""


def lost_exports(delivery: Delivery, before: Mapping[str, str], task: str = "") -> tuple[Lost, ...]:
    """What changed files offered and no delivered file offers any more, but for what `task` names. Never raises.

    A task names a thing by its name, or by a word of it where it speaks of removing, renaming, moving or replacing.
    A file that lost all its text or does not parse is left to other checks; so are tests.
    """
    changed = [(c.path, before[c.path], c.content) for c in delivery.files if before.get(c.path, "").strip()]
    sound = [one for one in changed if one[2].strip() and not is_test_file(one[0]) and _is_read(one[0], one[2])]
    offered: dict[str, tuple[str, ...]] = {}
    offered.update((change.path, _names(change.path, change.content)) for change in delivery.files if sound)
    routes = {route for change in delivery.files for route in _routes(change.path, change.content)} if sound else set()
    mounted = (
        {where for change in delivery.files for where in _mounted(change.path, change.content)} if sound else set()
    )
    found: list[Lost] = []
    for path, old, new in sound:
        found += _names_lost(path, old, new, offered)
        found += (
            Lost(file=path, name=f"{method} {where}", route=True)
            for method, where in _routes(path, old)
            if not any(method == other and _leads(where, short, mounted) for other, short in routes)
        )
    return tuple(one for one in found if not _is_named(one, task))


def _names_lost(path: str, old: str, new: str, offered: Mapping[str, tuple[str, ...]]) -> Iterator[Lost]:
    if _OFFERS_UNSEEN.search(new):
        return
    had = _names(path, old)
    gone = set(had) - set(offered[path])
    gone -= _bound(path, new) if gone else set()
    for name in had:
        if name in gone:
            instead = _alike(name, [one for one in offered[path] if one not in had])
            moved = any(name in names for other, names in offered.items() if other != path and name != "default")
            yield Lost(file=path, name=name, instead=instead, moved=moved)


def _bound(path: str, text: str) -> set[str]:
    """What a Python module holds besides what it offers: imported names, and those that `__all__` leaves out."""
    tree = python_source.parse(text) if path.lower().endswith(_PYTHON) else None
    found: set[str] = set()
    for statement in python_source.top_level(tree.body) if tree is not None else ():
        if isinstance(statement, ast.Import | ast.ImportFrom):
            found.update(alias.asname or alias.name for alias in statement.names)
        elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(statement.name)
        else:
            found.update(node.id for node in ast.walk(statement) if isinstance(node, ast.Name))
    return found


def users_of(lost: tuple[Lost, ...], texts: Mapping[str, str]) -> dict[str, list[str]]:
    """Name of a lost export → the files of `texts` that import its file and speak of it, sorted. Never raises."""
    found: dict[str, list[str]] = {}
    for path, text in sorted(texts.items()):
        wanted = [one for one in lost if not one.route and one.file != path and _speaks(text, one)]
        modules = _modules(path, text) if wanted else ()
        for one in wanted:
            if any(_is_module(module, relative, path, one.file) for module, relative in modules):
                found.setdefault(f"{one.file}:{one.name}", []).append(path)
    return found


def check_lost(delivery: Delivery, before: Mapping[str, str], task: str, texts: Mapping[str, str]) -> list[Finding]:
    """Major for a route, and for an export that a file of `texts` uses; minor for what nobody known uses.

    `texts` are other files of the project; what is delivered stands there as delivered.
    """
    lost = lost_exports(delivery, before, task)
    users = users_of(lost, {**texts, **{change.path: change.content for change in delivery.files}}) if lost else {}
    told = ((one, users.get(f"{one.file}:{one.name}", [])) for one in lost)
    return [_finding(one, using) for one, using in told if using or not one.moved]


def _finding(one: Lost, users: list[str]) -> Finding:
    what = "route" if one.route else "export"
    message = f"`{one.file}` lost the {what} `{one.name}`, of which the task does not speak"
    if one.instead:
        message += f"; `{one.instead}` may stand for it"
    if users:
        message += f"; used by {', '.join(users[:3])}{' and others' if len(users) > 3 else ''}"
    make = major if users or one.route else minor
    return make(CODE, message, where=Where(file=one.file), fix=f"Keep `{one.name}` as it was.")


def _is_code(path: str) -> bool:
    return path.lower().endswith((*_PYTHON, *javascript_tree.SUFFIXES))


def _is_read(path: str, text: str) -> bool:
    """Whether what the text offers can be seen; a Python newer than ours is read as well."""
    return python_source.parse(text) is not None if path.lower().endswith(_PYTHON) else not check_syntax(path, text)


def _names(path: str, text: str) -> tuple[str, ...]:
    if path.lower().endswith(_PYTHON):
        return python_source.exported_names(text)
    return javascript_source.exported_names(text, path) if _is_code(path) else ()


def _routes(path: str, text: str) -> Iterator[tuple[str, str]]:
    """(method, path without the names of its parameters); what is mounted stands in its own file."""
    for one in _endpoints(path, text):
        if one.method not in {"MOUNT", "ANY"}:
            yield one.method, _PARAMETER.sub(":", one.path).rstrip("/") or "/"


def _mounted(path: str, text: str) -> Iterator[str]:
    """Where the routes of other files are put."""
    for one in _endpoints(path, text):
        if one.method == "MOUNT":
            yield _PARAMETER.sub(":", one.path).rstrip("/")


def _leads(where: str, short: str, mounted: set[str]) -> bool:
    """Whether a route that its file calls `short` may be the one at `where`; a router's root is where that hangs."""
    return where.endswith(short) or (short == "/" and any(place and where.endswith(place) for place in mounted))


def _endpoints(path: str, text: str) -> Sequence[Endpoint]:
    if path.lower().endswith(_PYTHON):
        return python_endpoints.endpoints(text, path)
    return javascript_endpoints.endpoints(text, path) if _is_code(path) else ()


def _alike(name: str, fresh: list[str]) -> str:
    return next((other for other in fresh if fuzz.ratio(name.lower(), other.lower()) >= _ALIKE), "")


def _is_named(one: Lost, task: str) -> bool:
    name = one.name.partition(" ")[2] if one.route else one.name
    if not task:
        return False
    if re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", _PARAMETER.sub(":", task) if one.route else task):
        return True
    said = task.lower()
    return bool(_CHANGES.search(task)) and any(word.lower() in said for word in _WORD.findall(name))


def _speaks(text: str, one: Lost) -> bool:
    if one.name == "default":
        return bool(re.search(_DEFAULT_IMPORT, text))
    return one.name in text and bool(re.search(rf"(?<![\w$]){re.escape(one.name)}(?![\w$])", text))


def _modules(path: str, text: str) -> list[tuple[str, bool]]:
    if path.lower().endswith(_PYTHON):
        return [(item.module, item.relative) for item in python_imports.imports(text) or ()]
    return [(item.module, True) for item in javascript_source.imports(text, path)] if _is_code(path) else []


def _is_module(module: str, relative: bool, importer: str, path: str) -> bool:
    """Whether `module`, as `importer` writes it, is the file `path`."""
    stem = splitext(path)[0]
    stem = dirname(stem) if basename(stem) in {"index", "__init__"} else stem
    if importer.lower().endswith(_PYTHON):
        dotted = module.replace(".", "/")
        if relative:  # how far up is not told: the same top folder, and the same end
            return path.split("/")[0] == importer.split("/")[0] and (not dotted or f"/{stem}".endswith(f"/{dotted}"))
        # `from app import prices` names the package, `import prices` a module of a source folder
        return bool(dotted) and (f"/{stem}".endswith(f"/{dotted}") or dirname(stem).endswith(dotted))
    if not module.startswith("."):
        return module.startswith(("@/", "~/", "#")) and stem.endswith(splitext(module.lstrip("@~#/"))[0])
    target = normpath(join(dirname(importer), module))
    return stem in {target, splitext(target)[0]} or splitext(path)[0] in {target, splitext(target)[0]}
