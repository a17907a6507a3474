"""What a delivery takes away that others still use: names that its files offered and that another file imports."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from posixpath import basename, dirname, join, normpath, splitext

from orchestrator.code.javascript import tree as javascript_tree
from orchestrator.code.javascript.source import exported_names
from orchestrator.code.outline import outline
from orchestrator.code.python import source as python_source
from orchestrator.core.delivery import Delivery
from orchestrator.core.finding import Finding, Where, major
from orchestrator.core.paths import is_test_file
from orchestrator.core.value import Value, listed

PYTHON = (".py", ".pyi")
CODE = "delivery.lost_export"


class Lost(Value):
    """One name that a file no longer offers."""

    file: str
    name: str


def lost_exports(delivery: Delivery, before: Mapping[str, str], task: str = "") -> tuple[Lost, ...]:
    """Returns what changed and removed files offered before and do not offer now. Never raises.

    What the `task` lets go does not count; tests are left to other checks.
    """
    after = {**dict.fromkeys(delivery.removed, ""), **{change.path: change.content for change in delivery.files}}
    return tuple(
        Lost(file=path, name=name)
        for path, new in after.items()
        if path in before and not is_test_file(path)
        for name in _gone(path, before[path], new)
        if not may_go(task, name) and not (path in delivery.removed and may_go(task, path))
    )


_OFFERS_UNSEEN = re.compile(
    r"\b(?:import|export) \*(?! as\b)|\bexports\s*=\s*(?:[^{\s]|\{\s*\.\.\.)|^def __getattr__\b", re.MULTILINE
)
"""A text that offers more than can be seen in it: nothing can be said to be lost."""


def _gone(path: str, old: str, new: str) -> list[str]:
    if _OFFERS_UNSEEN.search(new) or _is_broken(path, new):
        return []
    kept = {"default", *_exported(path, new), *_bound(path, new)}
    return [name for name in _exported(path, old) if name not in kept]


def _is_broken(path: str, text: str) -> bool:
    if path.lower().endswith(javascript_tree.SUFFIXES):
        return javascript_tree.root(text, path).has_error
    return path.lower().endswith(PYTHON) and python_source.parse_python(text) is None


def _bound(path: str, text: str) -> set[str]:
    """Returns what a Python module holds besides: names that it imports, and those that `__all__` leaves out."""
    tree = python_source.parse_python(text) if path.lower().endswith(PYTHON) else None
    nodes = python_source.walk(tree) if tree is not None else ()
    taken = (alias for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names)
    return {*(alias.asname or alias.name for alias in taken), *(one.name for one in outline(text, path) if tree)}


def _exported(path: str, text: str) -> tuple[str, ...]:
    if path.lower().endswith(PYTHON):
        return python_source.exported_names(text)
    return exported_names(text, path) if path.lower().endswith(javascript_tree.SUFFIXES) else ()


_VERB = r"(?:remov|delet|renam|replac|extract|split|merg|eliminat|inlin|drop|mov|get(?:ting)? rid of)[a-z]*"
# `in`, `of` and their kind lead to what only surrounds what goes: "Remove the cache of `parse_price`".
_GOES = (
    rf"(?i:(?<!not )(?<!n't )(?<!never )(?<!without )\b{_VERB}\s+"
    r"(?:(?!(?:at|by|for|from|in|inside|into|of|on|to|with|within)\b)[^\s.;]+\s+){0,5}?)"
)
_IS_GONE = rf"(?i:\s+(?:(?:is|are|be|can|gets|has|may|must|should|to|will)\s+){{1,3}}(?:{_VERB}|no longer)\b)"


def may_go(task: str, name: str) -> bool:
    """Returns whether a task says to take a name away, rename or move it; it also names what it extends or keeps."""
    named = rf"[`'\"(]?(?:[\w$]+[.#])*(?<![\w$]){re.escape(name)}(?![\w$])"
    return re.search(rf"{_GOES}{named}|{named}[`'\"()]*{_IS_GONE}", task) is not None


def users_of(lost: Sequence[Lost], texts: Mapping[str, str]) -> dict[str, list[str]]:
    """Returns `file:name` of a lost name → the files of `texts` that import that very name, sorted. Never raises.

    Tests are no users: the tester may change them, and a run says whether they still pass.
    """
    found: dict[str, list[str]] = {}
    for path, text in sorted(texts.items()):
        wanted = [one for one in lost if one.file != path and one.name in text and not is_test_file(path)]
        used = set(_used(path, text)) if wanted else set()
        for one in wanted:
            if any(name == one.name and _is_module(module, path, one.file) for module, name in used):
                found.setdefault(f"{one.file}:{one.name}", []).append(path)
    return found


def check_lost(delivery: Delivery, lost: Sequence[Lost], texts: Mapping[str, str]) -> list[Finding]:
    """Returns a major finding for each lost name that a file of `texts`, or one that is delivered, still imports."""
    after: dict[str, str] = {**texts, **{change.path: change.content for change in delivery.files}}
    users = users_of(lost, {path: after[path] for path in after if path not in delivery.removed}) if lost else {}
    return [
        major(
            CODE,
            f"`{one.file}` lost the export `{one.name}`, which {listed(using, 3)} imports",
            where=Where(file=one.file),
            fix=f"Keep `{one.name}` as it was, or change what imports it.",
        )
        for one in lost
        # `old.py` may have become `old/__init__.py`.
        if (using := users.get(f"{one.file}:{one.name}"))
        and not any(
            _stem(path) == _stem(one.file) and one.name in _exported(path, after[path]) for path in delivery.paths
        )
    ]


def _used(path: str, text: str) -> Iterator[tuple[str, str]]:
    """Yields a module as the file names it, and a name that it takes from there; relative ones of Python as paths."""
    if path.lower().endswith(javascript_tree.SUFFIXES):
        yield from _used_by_script(text)
    tree = python_source.parse_python(text) if path.lower().endswith(PYTHON) else None
    modules: dict[str, str] = {}
    nodes = python_source.walk(tree) if tree is not None else ()
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            module = (node.module or "").replace(".", "/")
            if node.level:
                module = f"./{normpath(join(dirname(path), '../' * (node.level - 1), module))}"
            yield from ((module, alias.name) for alias in node.names)
            modules |= {alias.asname or alias.name: f"{module}/{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            modules |= {alias.asname or alias.name: alias.name.replace(".", "/") for alias in node.names}
    for node in nodes:
        if isinstance(node, ast.Attribute) and (owner := modules.get(python_source.dotted(node.value))):
            yield owner, node.attr


# `import x, { a as b } from "m"`, `export { a } from "m"`, `const { a: b } = require("m")`, `const a = require("m").a`.
# A clause ends where the next statement begins, so that none runs on to the module of another.
_CLAUSE = r"((?:[^'\"`;=()\n]|\n(?![ \t]*(?:import|export|const|let|var)\b)){0,2000}?)"
_TAKEN = re.compile(
    rf"^[ \t]*(?:(?:import|export)\b{_CLAUSE}\bfrom\s*"
    rf"|(?:import|const|let|var)\b{_CLAUSE}=\s*(?:await\s+)?(?:require|import)\s*\(\s*)"
    r"[\"']([^\"'\n]+)[\"']\)?(?:\.([\w$]+))?",
    re.MULTILINE,
)


def _used_by_script(text: str) -> Iterator[tuple[str, str]]:
    for taken in _TAKEN.finditer(text):
        clause, module, member = taken[1] or taken[2] or "", taken[3], taken[4]
        listed = "".join(re.findall(r"\{([^{}]*)\}", clause))
        yield from ((module, name) for name in re.findall(r"(?:^|,)\s*(?:type\s+)?([\w$]+)", listed))
        if member:
            yield module, member
        for whole in re.findall(r"\*\s*as\s+([\w$]+)|^\s*([\w$]+)\s*$", clause):
            names = re.findall(rf"(?<![\w$.]){re.escape(''.join(whole))}\??\.([\w$]+)", text)
            yield from ((module, name) for name in names)


def _stem(path: str) -> str:
    """Returns the name of a module by its path: the folder's where the file stands for it."""
    stem = splitext(path)[0]
    return dirname(stem) if basename(stem) in {"index", "__init__"} else stem


def _is_module(module: str, importer: str, path: str) -> bool:
    """Returns whether `module`, as `importer` writes it, is the file `path`."""
    stem = _stem(path)
    if not importer.lower().endswith(PYTHON):
        if module.startswith("."):
            target = normpath(join(dirname(importer), module))
            return stem in {target, _stem(target)}
        return module.startswith(("@/", "~/", "#")) and f"/{stem}".endswith(f"/{_stem(module.lstrip('@~#/'))}")
    if module.startswith("./"):
        return module.removeprefix("./") == stem
    root = stem.removesuffix(module).rstrip("/") if module and f"/{stem}".endswith(f"/{module}") else None
    # A single word below a folder that is no root is some package's name rather than a neighbour's.
    return root in {"", "src"} or (root is not None and "/" in module and importer.startswith(f"{root}/"))
