"""What is wrong with a suite for pytest (spec 1 C1, C2)."""

from collections.abc import Iterator

from orchestrator.checks.assertions import Assertions, compared_for_nothing, out_of_reach
from orchestrator.checks.suite_awaits import awaits
from orchestrator.checks.suite_project import Project
from orchestrator.checks.suite_reach import reach
from orchestrator.checks.suite_skips import skips
from orchestrator.checks.suite_subject import subject
from orchestrator.domain.findings import Finding, Where, major
from orchestrator.domain.testing import TestSuite
from orchestrator.syntax import python_source
from orchestrator.syntax.check import check_syntax
from orchestrator.syntax.python_tests import PythonSuite, doubled_names, find_tests


def check_python_suite(suite: TestSuite, *, required_criteria: int | None, project: Project) -> list[Finding]:
    """As `suite.check_suite`, for Python."""
    broken = check_syntax(suite.test_file, suite.test_content, code="suite.syntax")
    tree = python_source.parse(suite.test_content)
    if broken or tree is None:
        return broken
    where = Where(file=suite.test_file)
    tests = find_tests(tree)
    if not tests:
        fix = "Write functions named test_* at the top of the file, or as methods of a class named Test*."
        return [major("suite.no_tests", "the file has no test function", where=where, fix=fix)]
    read = PythonSuite.read(tree, tests)
    findings = [*_assertions(read, where), *skips(read, where), *awaits(read, project, where)]
    for name, line in doubled_names(tree):
        place = where.model_copy(update={"line": line})
        message = f"`{name}` is defined again further down, which hides this one"
        findings.append(major("suite.duplicate_test", message, where=place, fix="Give each its own name."))
    count = len({(test.owner, test.name) for test in tests})
    if required_criteria is not None and count < required_criteria:
        message = f"{count} tests for {required_criteria} acceptance criteria"
        fix = "Write a test function of its own for each criterion."
        findings.append(major("suite.criteria", message, where=where, fix=fix))
    return [*findings, *reach(read.nodes, suite.test_file), *subject(read, project, where)]


def _assertions(suite: PythonSuite, where: Where) -> Iterator[Finding]:
    assertions = Assertions(suite.nodes)
    for test in suite.tests:
        found = assertions.of(test.node)
        if not found:
            place = where.model_copy(update={"line": test.node.lineno})
            line = compared_for_nothing(test.node)
            lost = out_of_reach(test.node)
            why = f"; line {line} compares and asserts nothing of it" if line else ""
            why = f"; no failure of line {lost} would be seen: it is not reached, or swallowed" if lost else why
            message = f"`{test.name}` asserts nothing that a run would reach{why}"
            fix = (
                "Assert what the criterion promises, in the test itself or in a function it calls; "
                "for an expected error use `with pytest.raises(…)`."
            )
            yield major("suite.no_assertion", message, where=place, fix=fix)
        for assertion in found:
            if assertion.always_true:
                place = where.model_copy(update={"line": assertion.line})
                message = f"an assertion in `{test.name}` is always true: {assertion.always_true}"
                yield major("suite.always_true", message, where=place, fix="Assert what the program returns or stores.")
