"""Does a Node suite test the project at all, or itself, or its own mocks? By syntax tree."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from posixpath import basename

from orchestrator.checks.suite_project import Project
from orchestrator.domain.findings import Finding, Where, major
from orchestrator.syntax.grammar import Node
from orchestrator.syntax.javascript_tests import FUNCTIONS, FoundTest, bindings, call_arguments, string_value
from orchestrator.syntax.javascript_tree import SUFFIXES, below, everything, node_text, root

_STARTING = re.compile(r"^(node:)?(child_process|worker_threads|fs|fs/promises|vm|module|cluster)$")
_TESTING = frozenset({"chai", "expect", "sinon", "supertest", "fast-check", "nock", "should"})
_REACHING = re.compile(r"^(fetch|import|require)$|^(page|browser)\.")
_DECLARED = re.compile(r"^(function|class|generator_function)_declaration$")
_MOCKING = re.compile(r"\bmock\.method$|^(vi|jest|sinon)\.(spyOn|stub)$")


def subject(tree: Node, tests: Iterable[FoundTest], project: Project, where: Where) -> Iterator[Finding]:
    """Major: nothing of the project is reached; a copy of it, or what a mock stands in for, is tested instead."""
    tests = tuple(test for test in tests if test.body is not None)
    if not _reaches(tree, project):
        fix = "Import the modules of the story by their paths, or start its program and look at what it does."
        yield major("suite.no_subject", "the suite uses nothing of the project", where=where, fix=fix)
        return
    yield from _copies(tree, tests, project, where)
    for test in tests:
        yield from _doubled(test, where)


def _reaches(tree: Node, project: Project) -> bool:
    modules = {binding.module for binding in bindings(tree)} | set(_bare_imports(tree))
    named = {basename(path) for path in project.files or ()}
    for module in modules:
        elsewhere = _built_in(module) or module in _TESTING | (project.packages or frozenset())
        if module.startswith((".", "#", "/")) or _STARTING.match(module) or not elsewhere:
            return True
    for node in everything(tree):
        if node.type == "call_expression" and _REACHING.match(node_text(node.child_by_field_name("function"))):
            arguments = call_arguments(node)
            asked = string_value(arguments[0]) if arguments else None
            if asked is None or asked.startswith((".", "/", "http")):
                return True
        elif node.type == "string":
            text = string_value(node) or ""
            if text.startswith(("./", "../")) or (text and basename(text) in named):
                return True
    return False


def _built_in(module: str) -> bool:
    return module.startswith("node:") or module in {
        "assert",
        "assert/strict",
        "http",
        "https",
        "path",
        "url",
        "util",
        "os",
    }


def _bare_imports(tree: Node) -> Iterator[str]:
    for node in tree.named_children:
        if node.type == "import_statement":
            yield string_value(node.child_by_field_name("source")) or ""


def _copies(tree: Node, tests: tuple[FoundTest, ...], project: Project, where: Where) -> Iterator[Finding]:
    """Functions and classes of the suite that bear the name of one under test and do its work themselves."""
    offered = {name: path for path, text in project.sources.items() for name in _defined(path, text)}
    if offered.keys().isdisjoint(_names(tree)):
        return
    foreign = {b.name for b in bindings(tree) if not _built_in(b.module)}
    bodies = [test.body for test in tests if test.body is not None]
    used = {node_text(node) for body in bodies for node in below(body) if node.type == "identifier"}
    for name, node in _names(tree).items():
        inside = {node_text(part) for part in below(node) if part.type == "identifier"}
        if name not in offered or name not in used or inside & (foreign | {"fetch", "require"}):
            continue
        place = where.model_copy(update={"line": node.start_point.row + 1})
        message = f"`{name}` is written anew in the suite, so its tests say nothing about {offered[name]}"
        fix = f"Import `{name}` from {offered[name]} and delete the copy."
        yield major("suite.own_copy", message, where=place, fix=fix)


def _defined(path: str, text: str) -> Iterator[str]:
    if path.endswith(SUFFIXES):
        yield from (name for name in _names(root(text, path)) if name != "main")


def _names(tree: Node) -> dict[str, Node]:
    """Functions and classes declared at the top of a file, exported or not."""
    found: dict[str, Node] = {}
    exported = (node.named_children for node in tree.named_children if node.type == "export_statement")
    for node in chain(tree.named_children, chain.from_iterable(exported)):
        if _DECLARED.match(node.type):
            found[node_text(node.child_by_field_name("name"))] = node
        elif node.type == "lexical_declaration":
            for declarator in node.named_children:
                value = declarator.child_by_field_name("value")
                if value is not None and value.type in FUNCTIONS:
                    found[node_text(declarator.child_by_field_name("name"))] = declarator
    return found


def _doubled(test: FoundTest, where: Where) -> Iterator[Finding]:
    """A call of the very thing the test has just replaced."""
    calls = [node for node in below(test.body) if node.type == "call_expression"] if test.body is not None else []
    replaced = set[str]()
    for call in calls:
        arguments = call_arguments(call)
        if _MOCKING.search(node_text(call.child_by_field_name("function"))) and len(arguments) > 2:
            replaced.add(f"{node_text(arguments[0])}.{string_value(arguments[1])}")
    for call in calls:
        name = node_text(call.child_by_field_name("function"))
        if name in replaced and not name.startswith(("globalThis.", "console.", "Date.", "Math.", "process.")):
            place = where.model_copy(update={"line": call.start_point.row + 1})
            message = f"the test `{test.name or '…'}` replaces `{name}` and then tests the replacement"
            fix = "Call the real function; replace only what it depends on: the clock, the network, other services."
            yield major("suite.mocked", message, where=place, fix=fix)
            return
