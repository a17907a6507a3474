"""What is wrong with a suite for `node --test`, vitest, jest or mocha (spec 1 C1, C2)."""

import re
from collections.abc import Iterator, Sequence

from orchestrator.checks.node_assertions import Assertions
from orchestrator.checks.node_awaits import awaits
from orchestrator.checks.node_resources import resources
from orchestrator.checks.node_runs import runs, waits
from orchestrator.checks.node_subject import subject
from orchestrator.checks.suite_project import Project
from orchestrator.domain.findings import Finding, Where, major
from orchestrator.domain.testing import TestSuite
from orchestrator.syntax.check import check_syntax
from orchestrator.syntax.grammar import Node
from orchestrator.syntax.javascript_tests import JOIN, FoundTest, find_tests, runners_imported
from orchestrator.syntax.javascript_tree import root

_FRAMEWORKS = ("vitest", "jest", "mocha")
"""Packages that run tests and make their functions known to every file."""
_BROUGHT_BY = {"vitest": "vitest", "@jest/globals": "jest", "mocha": "mocha"}
"""Module that has these functions → the package that brings it."""


def check_node_suite(suite: TestSuite, *, required_criteria: int | None, project: Project) -> list[Finding]:
    """As `suite.check_suite`, for JavaScript and TypeScript. Only literal titles count: a report must name them."""
    broken = check_syntax(suite.test_file, suite.test_content, code="suite.syntax")
    if broken:
        return broken
    tree, where = root(suite.test_content, suite.test_file), Where(file=suite.test_file)
    tests = find_tests(tree)
    named = [test for test in tests if test.name is not None]
    has = {*_FRAMEWORKS} if project.packages is None else {*_FRAMEWORKS} & project.packages
    taken = {_BROUGHT_BY.get(module, "") for module in runners_imported(tree)}
    tables = [test for test in tests if test.of_table and test.name is None]
    if not (named or tables) or not (taken & {"", *has} if taken else has):
        others = f", or use {', '.join(sorted(has))}," if has else " (the project has no other runner)"
        fix = (
            f"Import `test` from 'node:test'{others} and write tests with literal titles outside loops and functions: "
            "test('adds a row', …)."
        )
        return [major("suite.no_tests", "the file has no test with a title of its own", where=where, fix=fix)]
    findings = [*_assertions(tree, tests, where), *_doubled(named, where), *runs(tests, where)]
    findings += [*awaits(tree, tests, project, where), *waits(tree, where), *subject(tree, tests, project, where)]
    count = len({test.name for test in named}) + len(tables)
    if required_criteria is not None and count < required_criteria:
        message = f"{count} tests for {required_criteria} acceptance criteria"
        findings.append(
            major("suite.criteria", message, where=where, fix="Write a test of its own for each criterion.")
        )
    return [*findings, *resources(tree, suite.test_file, min(test.line for test in tests))]


def whole_name(said: str, names: Sequence[str]) -> str:
    """The one of `names` that is meant: named whole in whatever way its titles are joined, or by its own title alone.

    What means none of them, or several, is given back as it is.
    """
    for form in (_letters, lambda name: _letters(name.rsplit(JOIN, 1)[-1])):
        meant = [name for name in names if form(name) == _letters(said)]
        if len(meant) == 1:
            return meant[0]
    return said


def _letters(name: str) -> str:
    return re.sub(r"\W+", "", name).casefold()


def _assertions(tree: Node, tests: tuple[FoundTest, ...], where: Where) -> Iterator[Finding]:
    assertions = Assertions(tree)
    told: set[tuple[int, str]] = set()
    for test in tests:
        name, place = test.name or "…", where.model_copy(update={"line": test.line})
        if test.body is None:
            continue  # it is switched off, which is told
        found = assertions.of(test.body)
        if not found:
            message = f"the test `{name}` asserts nothing that a run would reach"
            fix = (
                "Assert what the criterion promises, in the test itself or in a function it calls; "
                "for an expected error use assert.throws or `await assert.rejects`."
            )
            yield major("suite.no_assertion", message, where=place, fix=fix)
        for assertion in found:
            key = (assertion.line, assertion.always_true)
            if assertion.always_true and key not in told:  # a subtest's stands in its parent too
                told.add(key)
                place = where.model_copy(update={"line": assertion.line})
                message = f"an assertion in `{name}` is always true: {assertion.always_true}"
                yield major("suite.always_true", message, where=place, fix="Assert what the program returns or stores.")


def _doubled(tests: list[FoundTest], where: Where) -> Iterator[Finding]:
    seen: set[str | None] = set()
    for test in tests:
        if test.name in seen:
            place = where.model_copy(update={"line": test.line})
            message = f"there are two tests `{test.name}`, which a report cannot tell apart"
            yield major("suite.duplicate_test", message, where=place, fix="Give each its own name.")
        seen.add(test.name)
