"""Which names a file really takes from which module, by its syntax tree."""

import ast
from collections.abc import Iterator
from posixpath import basename, dirname, join, normpath, splitext

from orchestrator.syntax import javascript_tree, python_source
from orchestrator.syntax.grammar import Node

PYTHON = (".py", ".pyi")


def used_names(path: str, text: str) -> Iterator[tuple[str, str]]:
    """(module as the file names it, a name that it takes from there, or "" for the module itself). Never raises."""
    if path.lower().endswith(PYTHON):
        tree = python_source.parse(text)
        yield from _used_by_python(tree, path) if tree is not None else ()
    elif path.lower().endswith(javascript_tree.SUFFIXES):
        yield from _used_by_javascript(path, text)


def _used_by_python(tree: ast.Module, path: str) -> Iterator[tuple[str, str]]:
    modules: dict[str, str] = {}
    nodes = list(ast.walk(tree))
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
        if isinstance(node, ast.Attribute) and (owner := modules.get(_dotted(node.value))):
            yield owner, node.attr


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{owner}.{node.attr}" if (owner := _dotted(node.value)) else ""
    return node.id if isinstance(node, ast.Name) else ""


def _used_by_javascript(path: str, text: str) -> Iterator[tuple[str, str]]:
    spaces: dict[str, str] = {}
    nodes = javascript_tree.everything(javascript_tree.root(text, path))
    for node in nodes:
        if node.type in {"import_statement", "export_statement"}:
            module = javascript_tree.string_value(node.child_by_field_name("source"))
            taken = _imported(node) if module else ()
        else:
            module = _loaded(node) if node.type == "call_expression" else ""
            taken = _taken(node) if module else ()
        for name, is_space in taken:
            yield module, "default" if is_space else name
            spaces |= {name: module} if is_space else {}
        yield from ((module, ""),) if module else ()
    for node in nodes if spaces else ():
        if node.type in {"member_expression", "nested_type_identifier", "nested_identifier"}:
            parts = javascript_tree.short_text(node).replace("?.", ".").split(".")
            if len(parts) > 1 and parts[0] in spaces:
                yield spaces[parts[0]], parts[1]


def _imported(statement: Node) -> Iterator[tuple[str, bool]]:
    """Names that a statement takes, and whether a name stands for the whole module."""
    for part in javascript_tree.below(statement):
        if part.type in {"import_specifier", "export_specifier"}:
            yield javascript_tree.short_text(part.child_by_field_name("name")), False
        elif part.type == "import_clause" and part.named_children[0].type == "identifier":
            yield "default", False
        elif part.type in {"namespace_import", "import_require_clause"}:
            yield from ((javascript_tree.short_text(one), True) for one in part.named_children[:1])


def _loaded(call: Node) -> str:
    """What `require(…)` and `import(…)` name, "" for any other call."""
    if javascript_tree.short_text(call.child_by_field_name("function")) not in {"require", "import"}:
        return ""
    arguments = call.child_by_field_name("arguments")
    return javascript_tree.string_value(arguments.named_children[0]) if arguments and arguments.named_children else ""


def _taken(call: Node) -> Iterator[tuple[str, bool]]:
    """Names that the place of a call takes from the module, and whether a name stands for all of it."""
    place = call.parent
    if place is not None and place.type == "await_expression":
        place = place.parent
    if place is None:
        return
    if place.type == "member_expression":
        yield javascript_tree.short_text(place.child_by_field_name("property")), False
    target = place.child_by_field_name("name") if place.type == "variable_declarator" else None
    if target is not None and target.type == "identifier":
        yield javascript_tree.short_text(target), True
    elif target is not None:
        for part in target.named_children:
            yield javascript_tree.short_text(part.child_by_field_name("key") or part), False


def used_modules(path: str, text: str) -> tuple[str, ...]:
    """The modules that a file imports; what Python takes from a package may be one as well. Never raises."""
    found: dict[str, None] = {}
    for module, name in used_names(path, text):
        found[module] = None
        if name and path.lower().endswith(PYTHON):
            found[f"{module}/{name}"] = None
    return tuple(found)


def is_module(module: str, importer: str, path: str) -> bool:
    """Whether `module`, as `importer` writes it, is the file `path`."""
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
