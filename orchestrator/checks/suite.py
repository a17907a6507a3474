"""A tester's answers → TestSuite and failure instructions."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from posixpath import basename

from orchestrator.checks.file_paths import tidy
from orchestrator.checks.suite_older import read_changed
from orchestrator.domain.file_kinds import is_test_file
from orchestrator.domain.findings import Finding, Where, major, minor
from orchestrator.domain.paths import unsafe_reason
from orchestrator.domain.testing import FailureInstruction, TestCase, TestSuite
from orchestrator.syntax.javascript_tests import JOIN, test_names
from orchestrator.syntax.python_tests import test_functions

_FIX = "Answer with one JSON object that has test_file, test_content and test_cases."
_PYTHON_TEST = re.compile(r"^(tests?(_[\w.-]*)?|[\w.-]+_tests?)\.py$")
_NODE_TEST = re.compile(
    r"(^|/)([\w.-]+[._-](test|spec)|test(-[\w.-]+)?|__tests__/([\w.-]+/)*[\w.-]+|tests?/([\w.-]+/)*[\w.-]+)"
    r"\.[cm]?[jt]sx?$"
)
"""By their names as node and the others look for them, or of any name where jest and mocha look for tests."""
_NOT_COLLECTED = frozenset({"build", "dist", "node_modules", "venv", "cvs", "_darcs", "{arch}"})
_ANALYSIS_FIX = 'Answer {"failure_analysis": [{"file", "function", "issue", "fix"}, …]}.'


def read_suite(
    value: object, story_id: str, older: Collection[str] = (), *, any_language: bool = False
) -> tuple[TestSuite | None, list[Finding]]:
    """The suite in an extracted value, with its test functions as `expected_names`; None when the shape is broken.

    `older` are the older test files that may be rewritten with it. With `any_language`, as where people's own command
    runs the tests, the expected names of a file that is neither Python's nor Node's are those that the answer states.
    """
    where = Where(story=story_id)
    if not isinstance(value, Mapping):
        said = "the answer is a list" if isinstance(value, list) else "the answer is no object"
        return None, [major("suite.shape", f"{said}, not one suite", where=where, fix=_FIX)]
    findings: list[Finding] = []
    stated = value.get("story_id")
    if stated is not None and stated != story_id:
        message = f"story_id was {str(stated)[:80]!r} and is now {story_id!r}"
        fix = f'Give "story_id": "{story_id}".'
        findings.append(minor("suite.story_id", message, where=where, fix=fix))
    file, content = value.get("test_file"), value.get("test_content")
    for field, held in (("test_file", file), ("test_content", content)):
        if not isinstance(held, str) or not held.strip():
            findings.append(major("suite.shape", f"{field} is missing or no text", where=where, fix=_FIX))
    cases = _cases(value.get("test_cases"), where, findings, of_node=isinstance(file, str) and _is_node(file))
    if not isinstance(file, str) or not isinstance(content, str) or any(f.severity.blocks for f in findings):
        return None, findings
    file = tidy(file)
    findings += _file_name(file, where, any_language)
    if any(finding.severity.blocks for finding in findings):
        return None, findings
    changed, wrong = read_changed(value.get("changed_tests"), older, file)
    findings += wrong
    names = _names(file, content) if is_suite(file) else tuple(dict.fromkeys(case.name for case in cases))
    if _is_node(file):
        cases = tuple(case.model_copy(update={"name": _whole_name(case.name, names)}) for case in cases)
    findings += _unknown_cases(cases, names, where) if names else []
    suite = TestSuite(test_file=file, test_content=content, test_cases=cases, changed=changed)
    more = (_names(change.path, change.content) for change in changed if change.path in suite.run_files)
    expected = tuple(dict.fromkeys((*names, *(name for found in more for name in found))))
    return suite.model_copy(update={"expected_names": expected}), findings


def read_analysis(value: object) -> tuple[tuple[FailureInstruction, ...], list[Finding]]:
    """The instructions of a failure analysis; a major finding for each entry that is none, and for an empty answer."""
    held = value.get("failure_analysis") if isinstance(value, Mapping) else value
    where = Where(field="failure_analysis")
    if held == [] and any(map(partial(reason_of, value), ("suite_fault", "environment"))):
        return (), []
    if not isinstance(held, list) or not held:
        return (), [major("analysis.shape", "failure_analysis is no filled list", where=where, fix=_ANALYSIS_FIX)]
    instructions: list[FailureInstruction] = []
    findings: list[Finding] = []
    for place, entry in enumerate(held):
        texts = _texts(entry, ("file", "issue", "fix", "function"))
        lacking = [name for name in ("file", "issue", "fix") if not texts.get(name)]
        if lacking:
            message = f"entry {place} lacks {', '.join(lacking)}"
            findings.append(major("analysis.shape", message, where=where, fix=_ANALYSIS_FIX))
            continue
        file = tidy(re.sub(r":\d+(:\d+)?$", "", texts["file"].strip()))
        instructions.append(FailureInstruction(**{**texts, "file": file}))
    return tuple(instructions), findings


def is_suite(path: str, *, any_language: bool = False) -> bool:
    """Whether a file is named like tests that can be checked and run here, or like tests of any language."""
    known = _PYTHON_TEST.match(basename(path)) or _NODE_TEST.search(path)
    return bool(known or (any_language and is_test_file(path)))


def reason_of(value: object, name: str) -> str:
    """What the analysis says under `suite_fault` or `environment`, "" when it does not."""
    held = value.get(name) if isinstance(value, Mapping) else None
    return _texts(held, ("reason",)).get("reason", "")


def _names(file: str, content: str) -> tuple[str, ...]:
    return test_names(content, file) if _is_node(file) else test_functions(content)


def _whole_name(said: str, names: Sequence[str]) -> str:
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


def _texts(entry: object, names: tuple[str, ...]) -> dict[str, str]:
    if not isinstance(entry, Mapping):
        return {}
    return {name: text.strip() for name in names if isinstance(text := entry.get(name), str)}


def _is_node(file: str) -> bool:
    return bool(re.search(r"\.[cm]?[jt]sx?$", file))


def _cases(value: object, where: Where, findings: list[Finding], *, of_node: bool) -> tuple[TestCase, ...]:
    if not isinstance(value, list):
        findings.append(major("suite.shape", "test_cases is missing or no list", where=where, fix=_FIX))
        return ()
    cases: list[TestCase] = []
    for entry in value:
        texts = {"name": entry} if isinstance(entry, str) else _texts(entry, ("name", "criterion"))
        name = texts.get("name", "").strip()
        name = name if of_node else _function_named(name)
        if name:
            cases.append(TestCase(name=name, criterion=texts.get("criterion", "")))
        else:
            message = "a test case has no name and was left out"
            findings.append(minor("suite.case", message, where=where, fix="Name every test case after its function."))
    return tuple(cases)


def _function_named(text: str) -> str:
    """The function in `file::Class::test_x[1]`, `Class.test_x` and `test_x()`; a sentence stays as it is."""
    name = re.sub(r"\[.*\]$|\(\)$", "", text).split("::")[-1]
    return name.rpartition(".")[2] if re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)+", name) else name


def _file_name(path: str, where: Where, any_language: bool) -> Iterator[Finding]:
    fix = "Name it test_<subject>.py, <subject>.test.js or as the project's runner wants it, in a folder like tests/."
    reason = unsafe_reason(path)
    name = basename(path)
    if reason is not None:
        yield major("suite.file_name", f"`{path[:200]}` is unsafe: {reason}", where=where, fix=fix)
    elif not is_suite(path, any_language=any_language):
        message = f"`{name[:100]}` is no test file that can be checked and run here"
        yield major("suite.file_name", message, where=where, fix=fix)
    elif any(part.startswith(".") or part.lower() in _NOT_COLLECTED for part in path.split("/")[:-1]):
        yield major("suite.file_name", f"test runners do not look into the folders of `{path}`", where=where, fix=fix)


def _unknown_cases(cases: tuple[TestCase, ...], names: tuple[str, ...], where: Where) -> Iterator[Finding]:
    for case in cases:
        if case.name not in names:
            message = f"the test case `{case.name[:100]}` names no test function"
            yield minor("suite.unknown_case", message, where=where, fix="Name the function that tests it.")
