"""What a delivery takes away: names and methods that a changed file had, and files that others still import."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from posixpath import basename, dirname, join, normpath, splitext

from orchestrator.code.check import is_well_formed
from orchestrator.code.javascript import source as javascript_source
from orchestrator.code.javascript import tree as javascript_tree
from orchestrator.code.python import source as python_source
from orchestrator.core.delivery import Delivery
from orchestrator.core.finding import Finding, Where, major, minor
from orchestrator.core.paths import is_test_file
from orchestrator.core.value import Value

PYTHON = (".py", ".pyi")
_LOADS = frozenset({"require", "import"})
_STATEMENT_BYTES = 4000
"""Of an import statement that is read: a longer one is generated."""


def used_names(path: str, text: str) -> Iterator[tuple[str, str]]:
    """(module as the file names it, a name that it takes from there, or "" for the module itself). Never raises."""
    if path.lower().endswith(PYTHON):
        tree = python_source.parse_python(text)
        yield from _used_by_python(tree, path) if tree is not None else ()
    elif path.lower().endswith(javascript_tree.SUFFIXES):
        yield from _used_by_javascript(path, text)


def _used_by_python(tree: ast.Module, path: str) -> Iterator[tuple[str, str]]:
    modules: dict[str, str] = {}
    nodes = python_source.walk(tree)
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            module = (node.module or "").replace(".", "/")
            if node.level:
                module = f"./{normpath(join(dirname(path), '../' * (node.level - 1), module))}"
            for alias in node.names:
                yield module, alias.name
                modules[alias.asname or alias.name] = f"{module}/{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                modules[alias.asname or alias.name] = module = alias.name.replace(".", "/")
                yield module, ""
    for node in nodes:
        if isinstance(node, ast.Attribute) and (owner := modules.get(python_source.dotted(node.value))):
            yield owner, node.attr


# `import x, { a as b } from`, `* as x`, `import x = require(…)`, `const { a: b } = require(…)`, `require(…).a`.
_BRACES = re.compile(r"\{([^{}]*)\}")
_ENTRY = re.compile(r"(?:^|,)\s*(?:type\s+)?([\w$]+)")
_DEFAULT = re.compile(r"^import\s+(?:type\s+)?[\w$]+\s*(?:,|from\b)")
_SPACE = re.compile(r"\*\s*as\s+([\w$]+)|^(?:import\s+)?([\w$]+)\s*=")
_MEMBER = re.compile(r"\)\s*\??\.\s*([\w$]+)$")


_TAKING = frozenset({"import_statement", "export_statement", "call_expression"})


def _used_by_javascript(path: str, text: str) -> Iterator[tuple[str, str]]:
    for node in javascript_tree.nodes_of(javascript_tree.root(text, path), path, _TAKING):
        module, taker = "", node
        if node.type in {"import_statement", "export_statement"}:
            module = javascript_tree.string_value(node.child_by_field_name("source"))
            clause = next((child for child in node.children if child.type == "import_require_clause"), None)
            module = module or javascript_tree.string_value(clause and clause.child_by_field_name("source"))
        elif node.type == "call_expression" and javascript_tree.short_text(javascript_tree.callee(node)) in _LOADS:
            module = javascript_tree.string_value(next(iter(javascript_tree.arguments(node)), None))
            taker = node.parent or node
            taker = (taker.parent or taker) if taker.type == "await_expression" else taker
        if module:
            yield module, ""
            yield from ((module, name) for name in _taken(javascript_tree.short_text(taker, _STATEMENT_BYTES), text))


def _taken(statement: str, text: str) -> Iterator[str]:
    """Names that a statement takes from its module, and those that `text` takes from what stands for the module."""
    for braces in _BRACES.finditer(statement):
        yield from _ENTRY.findall(braces[1])
    yield from _MEMBER.findall(statement)
    if _DEFAULT.match(statement):
        yield "default"
    if space := _SPACE.search(statement):
        yield "default"
        yield from re.findall(rf"(?<![\w$.]){re.escape(space[1] or space[2])}\??\.([\w$]+)", text)


def is_module(module: str, importer: str, path: str) -> bool:
    """Returns whether `module`, as `importer` writes it, is the file `path`."""
    stem = splitext(path)[0]
    names = {stem, dirname(stem)} if basename(stem) in {"index", "__init__"} else {stem}
    if not importer.lower().endswith(PYTHON):
        if module.startswith("."):
            target = normpath(join(dirname(importer), module))
            return bool(names & {target, splitext(target)[0]})
        alias = splitext(module.lstrip("@~#/"))[0]
        return module.startswith(("@/", "~/", "#")) and any(f"/{name}".endswith(f"/{alias}") for name in names)
    if module.startswith("./"):
        return module.removeprefix("./") in names
    return bool(module) and any(_is_at(module, name, importer) for name in names)


def _is_at(module: str, name: str, importer: str) -> bool:
    root = name.removesuffix(module).rstrip("/") if f"/{name}".endswith(f"/{module}") else None
    # A single word below a folder that is no root is some package's name rather than a neighbour's.
    return root in {"", "src"} or (root is not None and "/" in module and importer.startswith(f"{root}/"))


CODE = "delivery.lost_export"
MOST_SHOWN = 3
"""Names that a message repeats."""
_OFFERS_UNSEEN = re.compile(
    r"\bimport \*(?! as\b)|\bexport \*(?! as\b)|\bmodule\.exports\s*=(?!\s*\{)|\bexports\s*=\s*\{[^}]{0,2000}\.\.\."
    r"|\bexports\[|\bassign\((?:module\.)?exports|\bglobals\(\)|^def __getattr__",
    re.MULTILINE,
)
"""A text that offers more than its tree shows: nothing can be said to be lost."""
# A task with such a word asks for the removal of names.
_CHANGES = re.compile(
    r"\b(?:remov|delet|drop|renam|replac|mov|extract|split|merg|deprecat|instead|eliminat|get rid|no longer|inline)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{3,}(?![a-z])")


class Lost(Value):
    """One thing that is gone."""

    file: str
    name: str
    moved: bool = False
    """Whether another delivered file offers it now."""


def lost_exports(
    delivery: Delivery, before: Mapping[str, str], task: str = "", *, members: bool = False
) -> tuple[Lost, ...]:
    """What changed files offered and no delivered file offers any more, but for what `task` names. Never raises.

    With `members`, public members of classes (`Class.name`) are looked at as well. A task names a thing by its name, or
    by a word of it where it speaks of removing, renaming, moving or replacing. A file that lost all its text or does
    not parse is left to other checks; so are tests.
    """
    changed = [(c.path, before[c.path], c.content) for c in delivery.files if before.get(c.path, "").strip()]
    sound = [one for one in changed if one[2].strip() and not is_test_file(one[0]) and _is_read(one[0], one[2])]
    offered: dict[str, tuple[str, ...]] = {}
    offered.update((change.path, _names(change.path, change.content)) for change in delivery.files if sound)
    found: list[Lost] = []
    for path, old, new in sound:
        found += _names_lost(path, old, new, offered)
        found += (Lost(file=path, name=name) for name in _members_lost(path, old, new) if members)
    return tuple(one for one in found if not _is_named(one, task))


def _names_lost(path: str, old: str, new: str, offered: Mapping[str, tuple[str, ...]]) -> Iterator[Lost]:
    if _OFFERS_UNSEEN.search(new):
        return
    had = _names(path, old)
    gone = set(had) - set(offered[path])
    gone -= _bound(path, new) if gone else set()
    for name in had:
        if name in gone:
            moved = any(name in names for other, names in offered.items() if other != path and name != "default")
            yield Lost(file=path, name=name, moved=moved)


def _members_lost(path: str, old: str, new: str) -> list[str]:
    """Members that are gone; one whose class is gone counts as kept by its name alone."""
    kept = set(_members(path, new))
    owners, names = ({name.split(".")[place] for name in kept} for place in (0, 1))
    gone = (name for name in dict.fromkeys(_members(path, old)) if name not in kept)
    return [name for name in gone if kept and (name.split(".")[0] in owners or name.split(".")[1] not in names)]


def _bound(path: str, text: str) -> set[str]:
    """What a Python module holds besides what it offers: imported names, and those that `__all__` leaves out."""
    tree = python_source.parse_python(text) if path.lower().endswith(PYTHON) else None
    found: set[str] = set()
    for statement in python_source.top_level(tree.body) if tree is not None else ():
        if isinstance(statement, ast.Import | ast.ImportFrom):
            found.update(alias.asname or alias.name for alias in statement.names)
        elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(statement.name)
        else:
            found.update(node.id for node in python_source.walk(statement) if isinstance(node, ast.Name))
    return found


def users_of(lost: Sequence[Lost], texts: Mapping[str, str]) -> dict[str, list[str]]:
    """Name of a lost export → the files of `texts` that import that very name, sorted. Never raises."""
    found: dict[str, list[str]] = {}
    for path, text in sorted(texts.items()):
        wanted = [one for one in lost if one.file != path and _may_use(text, one)]
        if wanted:
            used = set(used_names(path, text))
            for one in wanted:
                if any(name == one.name and is_module(module, path, one.file) for module, name in used):
                    found.setdefault(f"{one.file}:{one.name}", []).append(path)
    return found


def check_lost(delivery: Delivery, lost: Sequence[Lost], texts: Mapping[str, str]) -> list[Finding]:
    """Major for exports that a file of `texts` still imports; else one minor finding for what a file lost.

    `texts` are other files of the project; what is delivered stands there as delivered. Tests are no users: the tester
    may change them, and a run says whether they still pass.
    """
    after: dict[str, str] = {**texts, **{change.path: change.content for change in delivery.files}} if lost else {}
    users = users_of(lost, {path: text for path, text in after.items() if not is_test_file(path)})
    findings: list[Finding] = []
    unused: dict[str, list[Lost]] = {}
    for one in lost:
        using = users.get(f"{one.file}:{one.name}", [])
        if using:
            more = " and others" if len(using) > MOST_SHOWN else ""
            message = f"`{one.file}` lost the export `{one.name}`, which {', '.join(using[:MOST_SHOWN])}{more} imports"
            fix = f"Keep `{one.name}` as it was, or change what imports it."
            findings.append(major(CODE, message, where=Where(file=one.file), fix=fix))
        elif not one.moved:
            unused.setdefault(one.file, []).append(one)
    return [*findings, *(_advice(file, gone) for file, gone in unused.items())]


def check_gone(delivery: Delivery, before: Mapping[str, str]) -> list[Finding]:
    """Major for each file, delivered or left as it was in `before`, that imports a removed one by its full name.

    Files of other tasks are not looked at: a later task may change them. Never raises.
    """
    if not delivery.removed:
        return []
    after = {path: text for path, text in before.items() if path not in delivery.removed}
    after |= {change.path: change.content for change in delivery.files}
    return [
        major(
            "delivery.gone_import",
            f"`{path}` imports `{gone}`, which is taken away",
            where=Where(file=path),
            fix=f"Change the import in `{path}`, or keep `{gone}`.",
        )
        for path, text in sorted(after.items())
        for gone in delivery.removed
        if any(
            is_module(module, path, gone) and not any(is_module(module, path, other) for other in after)
            for module in _used_modules(path, text)
        )
    ]


def _used_modules(path: str, text: str) -> set[str]:
    """The modules that a file imports; what Python takes from a package may be one as well."""
    used = set(used_names(path, text))
    inner = {f"{module}/{name}" for module, name in used if name and path.lower().endswith(PYTHON)}
    return inner | {module for module, _ in used}


def _advice(file: str, gone: Sequence[Lost]) -> Finding:
    named = ", ".join(f"`{one.name}`" for one in gone[:MOST_SHOWN])
    more = f" and {len(gone) - MOST_SHOWN} more" if len(gone) > MOST_SHOWN else ""
    message = f"`{file}` lost the export{'s' if len(gone) > 1 else ''} {named}{more}, of which the task does not speak"
    return minor(CODE, message, where=Where(file=file), fix="Keep what nobody asked to take away.")


def _may_use(text: str, one: Lost) -> bool:
    """Returns whether it pays to read the text's imports: it names what was lost and the file, or the file's folder."""
    stem = splitext(basename(one.file))[0]
    in_folder = stem in {"index", "__init__"}  # a folder may be named by dots alone
    if not in_folder and stem not in text:
        return False
    if one.name == "default":  # the importer may call it anything
        return not in_folder or basename(dirname(one.file)) in text
    return one.name in text


def _is_code(path: str) -> bool:
    return path.lower().endswith((*PYTHON, *javascript_tree.SUFFIXES))


def _is_read(path: str, text: str) -> bool:
    """Returns whether what the text offers can be seen; a Python newer than ours is read as well."""
    return python_source.parse_python(text) is not None if path.lower().endswith(PYTHON) else is_well_formed(path, text)


def _names(path: str, text: str) -> tuple[str, ...]:
    if path.lower().endswith(PYTHON):
        return python_source.exported_names(text)
    return javascript_source.exported_names(text, path) if _is_code(path) else ()


def _is_named(one: Lost, task: str) -> bool:
    name = one.name.rpartition(".")[2]
    if not task:
        return False
    if re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", task):
        return True
    said = task.lower()
    return bool(_CHANGES.search(task)) and any(word.lower() in said for word in _WORD.findall(name))


_MEMBERS = frozenset({"method_definition", "field_definition", "public_field_definition", "abstract_method_signature"})


def _members(path: str, text: str) -> Iterator[str]:
    """`Class.name` of every public member."""
    found: Iterable[tuple[str, str]] = ()
    if path.lower().endswith(PYTHON):
        tree = python_source.parse_python(text)
        found = _of_python(tree.body if tree is not None else ())
    elif path.lower().endswith(javascript_tree.SUFFIXES):
        found = _of_javascript(path, text)
    return (f"{owner}.{name}" for owner, name in found if not name.startswith(("_", "#")))


def _of_python(body: Sequence[ast.stmt]) -> Iterator[tuple[str, str]]:
    for owner in python_source.top_level(body):
        if not isinstance(owner, ast.ClassDef):
            continue
        for member in python_source.top_level(owner.body):
            if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
                yield owner.name, member.name
            elif isinstance(member, ast.Assign):
                yield from ((owner.name, target.id) for target in member.targets if isinstance(target, ast.Name))


def _of_javascript(path: str, text: str) -> Iterator[tuple[str, str]]:
    for body in javascript_tree.nodes_of(javascript_tree.root(text, path), path, frozenset({"class_body"})):
        owner = javascript_tree.short_text(body.parent.child_by_field_name("name") if body.parent else None)
        for member in body.named_children:
            named = member.child_by_field_name("name") or member.child_by_field_name("property")
            if member.type in _MEMBERS and named is not None:
                yield owner or "class", javascript_tree.short_text(named)
