"""A tester's answers → TestSuite and failure instructions, and what the text of a suite alone says about it.

What is proven is refused, a suspicion is advice; whether tests show anything is answered by runs.
"""

import ast
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from posixpath import basename
from types import MappingProxyType

from orchestrator.checks.kept_tests import lost_parts
from orchestrator.checks.suite_place import beside, is_passed_over, is_suite
from orchestrator.code.check import check_syntax
from orchestrator.code.grammar import Node
from orchestrator.code.javascript.tests import JOIN, find_tests, may_make_tests, test_names
from orchestrator.code.javascript.tree import root
from orchestrator.code.python import source
from orchestrator.code.python.tests import doubled_names, may_be_collected, test_functions
from orchestrator.core.breakdown import TestToChange
from orchestrator.core.delivery import FileChange
from orchestrator.core.finding import Finding, Where, blocking, major, minor
from orchestrator.core.paths import RepoPath, tidy, unsafe_reason
from orchestrator.core.suite import FailureInstruction, TestCase, TestSuite


def check_older(suite: TestSuite, older: str | None) -> list[Finding]:
    """Returns a major finding when the suite would take or change anything of `older`, the present text of its file.

    Adding is fine. None stands for a file that cannot be read as text, or read at all: nothing may replace it.
    """
    lost = lost_parts(suite.test_file, older, suite.test_content) if older is not None else [suite.test_file]
    if not lost:
        return []
    return [
        major(
            "suite.older_test",
            f"`{suite.test_file}` is there already, and this would change or remove what it holds: {', '.join(lost)}",
            where=Where(file=suite.test_file),
            fix="Keep all that it holds as it is and add to it, or choose a name that is not taken yet.",
        )
    ]


def read_changed(
    value: object, older: Collection[str], suite_file: str
) -> tuple[tuple[FileChange, ...], list[Finding]]:
    """The older test files in an answer's `changed_tests`, by path; a major finding for what is none of `older`."""
    changed: dict[str, FileChange] = {}
    findings = []
    for entry in value if isinstance(value, list) else ():
        path = tidy(str(entry.get("path", ""))) if isinstance(entry, Mapping) else ""
        content = entry.get("content") if isinstance(entry, Mapping) else None
        if path not in older or path == suite_file or not isinstance(content, str) or not content.strip():
            message = f"`{path[:200] or entry!s:.200}` is no older test file to be rewritten with its whole text"
            fix = "Rewrite only the older test files that are given, each whole, and none twice."
            findings.append(major("suite.changed_test", message, where=Where(file=path or None), fix=fix))
        else:
            changed[path] = FileChange(path=path, content=content)
    return tuple(changed.values()), findings


def check_changed(
    suite: TestSuite, older: Mapping[str, str], check: Callable[[TestSuite], list[Finding]]
) -> list[Finding]:
    """What `check` refuses in the rewritten older tests and did not refuse in them before."""
    found: list[Finding] = []
    for change in suite.changed:
        before = check(TestSuite(test_file=change.path, test_content=older.get(change.path, "")))
        known = {finding.code for finding in blocking(before)}
        now = blocking(check(TestSuite(test_file=change.path, test_content=change.content)))
        found += [finding for finding in now if finding.code not in known]
    return found


_FIX = "Answer with one JSON object that has test_file, test_content and test_cases."
_ANALYSIS_FIX = 'Answer {"failure_analysis": [{"file", "function", "issue", "fix"}, …]}.'


def read_suite(
    value: object,
    story_id: str,
    older: Collection[str] = (),
    covered: Mapping[str, str] = MappingProxyType({}),
    *,
    any_language: bool = False,
) -> tuple[TestSuite | None, list[Finding]]:
    """The suite in an extracted value, with its test functions as `expected_names`; None when the shape is broken.

    `older` are the older test files that may be rewritten with it, `covered` is the one that it may add to, with its
    text. Where it brings tests alone for that file, they become a file of their own beside it. With `any_language`, as
    where people's own command runs the tests, the expected names of a file that is neither Python's nor Node's are
    those that the answer states.
    """
    findings: list[Finding] = []
    suite = _suite(value, story_id, older, any_language, findings) if isinstance(value, Mapping) else None
    if suite is not None and (before := covered.get(suite.test_file)) is not None:
        suite = _added(suite, before, story_id)
    if not isinstance(value, Mapping):
        kind = "a list" if isinstance(value, list) else "no object"
        findings.append(major("suite.shape", f"the answer is {kind}, not one suite", fix=_FIX))
    return suite, [finding.placed(story=story_id) for finding in findings]


def _suite(
    value: Mapping[str, object], story_id: str, older: Collection[str], any_language: bool, findings: list[Finding]
) -> TestSuite | None:
    stated = value.get("story_id")
    if stated is not None and stated != story_id:
        message = f"story_id was {str(stated)[:80]!r} and is now {story_id!r}"
        findings.append(minor("suite.story_id", message, fix=f'Give "story_id": "{story_id}".'))
    file, content = value.get("test_file"), value.get("test_content")
    for field, held in (("test_file", file), ("test_content", content)):
        if not isinstance(held, str) or not held.strip():
            findings.append(major("suite.shape", f"{field} is missing or no text", fix=_FIX))
    cases = _cases(value.get("test_cases"), findings, of_node=isinstance(file, str) and _is_node(file))
    if not isinstance(file, str) or not isinstance(content, str) or blocking(findings):
        return None
    file = tidy(file)
    findings += _file_name(file, any_language)
    if blocking(findings):
        return None
    changed, wrong = read_changed(value.get("changed_tests"), older, file)
    findings += wrong
    names = names_of_tests(file, content) if is_suite(file) else tuple(dict.fromkeys(case.name for case in cases))
    if _is_node(file):
        meant = _by_letters(names)
        cases = tuple(case.model_copy(update={"name": meant.get(_letters(case.name), case.name)}) for case in cases)
    # Rows of a table have titles that only a run knows.
    stated = tuple(case for case in cases if not (_is_node(file) and re.search("[%$]", case.name)))
    findings += _unknown_cases(stated, names) if names else []
    suite = TestSuite(test_file=file, test_content=content, test_cases=cases, changed=changed)
    more = (names_of_tests(change.path, change.content) for change in changed if change.path in suite.run_files)
    expected = tuple(dict.fromkeys((*names, *(name for found in more for name in found))))
    return suite.model_copy(update={"expected_names": expected})


def _added(suite: TestSuite, before: str, story_id: str) -> TestSuite:
    """Returns a suite for a file that is there; with none of its tests it gets a file beside it."""
    older = names_of_tests(suite.test_file, before)
    if older and not {*older} & {*suite.expected_names}:
        return suite.model_copy(update={"test_file": RepoPath(beside(suite.test_file, story_id))})
    return without_older(suite, before)


def without_older(suite: TestSuite, before: str) -> TestSuite:
    """Returns a suite in a file that was there: of the tests that it held, the story's are those that alone show a
    criterion, as those with a new row in their table do."""
    older = names_of_tests(suite.test_file, before)
    shown = {"", *(case.criterion for case in suite.test_cases if case.name not in older)}
    named = {case.name for case in suite.test_cases if case.criterion not in shown}
    own = tuple(name for name in suite.expected_names if name not in older or name in named)
    if not own:
        own = tuple(case.name for case in suite.test_cases if case.name in suite.expected_names)
    if not own:
        return suite
    rest = tuple(name for name in older if name not in own)
    return suite.model_copy(update={"expected_names": own, "older_names": rest})


def read_analysis(value: object) -> tuple[tuple[FailureInstruction, ...], list[Finding]]:
    """The instructions of a failure analysis; a major finding for each entry that is none, and for an empty answer."""
    held = value.get("failure_analysis") if isinstance(value, Mapping) else value
    where = Where(field="failure_analysis")
    others = *map(partial(reason_of, value), ("suite_fault", "environment")), read_tests_to_change(value)
    if held == [] and any(others):
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


def read_tests_to_change(value: object) -> tuple[TestToChange, ...]:
    """The older tests that an analysis wants changed; entries without a file or a reason are none."""
    held = value.get("tests_to_change") if isinstance(value, Mapping) else None
    entries = [_texts(entry, ("file", "reason")) for entry in held] if isinstance(held, list) else []
    full = (entry for entry in entries if entry.get("file") and entry.get("reason"))
    return tuple(TestToChange(file=tidy(entry["file"].strip()), reason=entry["reason"]) for entry in full)


def reason_of(value: object, name: str) -> str:
    """What the analysis says under `suite_fault` or `environment`, "" when it does not."""
    held = value.get(name) if isinstance(value, Mapping) else None
    return _texts(held, ("reason",)).get("reason", "")


def names_of_tests(file: str, content: str) -> tuple[str, ...]:
    """Returns the names of the tests in a file, as its runner reports them."""
    return test_names(content, file) if _is_node(file) else test_functions(content)


def _by_letters(names: Sequence[str]) -> dict[str, str]:
    """Returns the letters of what a test may be called → its whole name: however its titles are joined, or its own
    title alone. What means several tests means none.
    """
    found: dict[str, str] = {}
    for form in (lambda name: name.rsplit(JOIN, 1)[-1], str):  # a whole name goes before another test's own title
        count = Counter(_letters(form(name)) for name in names)
        found |= {letters: name for name in names if count[letters := _letters(form(name))] == 1}
    return found


def _letters(name: str) -> str:
    return re.sub(r"\W+", "", name).casefold()


def _texts(entry: object, names: tuple[str, ...]) -> dict[str, str]:
    if not isinstance(entry, Mapping):
        return {}
    return {name: text.strip() for name in names if isinstance(text := entry.get(name), str)}


def _is_node(file: str) -> bool:
    return bool(re.search(r"\.[cm]?[jt]sx?$", file))


def _cases(value: object, findings: list[Finding], *, of_node: bool) -> tuple[TestCase, ...]:
    if not isinstance(value, list):
        findings.append(major("suite.shape", "test_cases is missing or no list", fix=_FIX))
        return ()
    cases: list[TestCase] = []
    for entry in value:
        texts = {"name": entry} if isinstance(entry, str) else _texts(entry, ("name", "criterion"))
        shown = entry.get("criterion") if isinstance(entry, Mapping) else None
        if isinstance(shown, int | list):
            texts["criterion"] = ", ".join(map(str, shown)) if isinstance(shown, list) else str(shown)
        name = texts.get("name", "").strip()
        name = name if of_node else _function_named(name)
        if name:
            cases.append(TestCase(name=name, criterion=texts.get("criterion", "")))
        else:
            message = "a test case has no name and was left out"
            findings.append(minor("suite.case", message, fix="Name every test case after its function."))
    return tuple(cases)


def _function_named(text: str) -> str:
    """Returns the function in `file::Class::test_x[1]`, `Class.test_x` and `test_x()`; a sentence stays as it is."""
    name = re.sub(r"\[.*\]$|\(\)$", "", text).split("::")[-1]
    return name.rpartition(".")[2] if re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)+", name) else name


def _file_name(path: str, any_language: bool) -> Iterator[Finding]:
    fix = "Name it test_<subject>.py, <subject>.test.js or as the project's runner wants it, in a folder like tests/."
    reason = unsafe_reason(path)
    name = basename(path)
    if reason is not None:
        yield major("suite.file_name", f"`{path[:200]}` is unsafe: {reason}", fix=fix)
    elif not is_suite(path, any_language=any_language):
        message = f"`{name[:100]}` is no test file that can be checked and run here"
        yield major("suite.file_name", message, fix=fix)
    elif is_passed_over(path):
        yield major("suite.file_name", f"test runners do not look into the folders of `{path}`", fix=fix)


def _unknown_cases(cases: tuple[TestCase, ...], names: tuple[str, ...]) -> Iterator[Finding]:
    for case in cases:
        if case.name not in names:
            message = f"the test case `{case.name[:100]}` names no test function"
            yield minor("suite.unknown_case", message, fix="Name the function that tests it.")


_OWN_NAME = "Give each its own name."


def check_suite(suite: TestSuite, *, required_criteria: int | None) -> list[Finding]:
    """What is wrong with the tests by their text alone.

    `required_criteria` is the number of tests wanted at least, None for a smoke test. A suite that does not parse has
    that one finding: nothing else can be said about it.
    """
    broken = check_syntax(suite.test_file, suite.test_content, code="suite.syntax")
    if broken:
        return broken
    where = Where(file=suite.test_file)
    found: list[Finding] = []
    if suite.test_file.endswith(".py"):
        tree = source.parse_python(suite.test_content)
        found = [] if tree is None else _check_python(tree, where)
    elif is_suite(suite.test_file):  # files of other languages are not read here
        found = _check_node(root(suite.test_content, suite.test_file), where)
    # One test may show several criteria, as one with a row for each does.
    count = max(len(suite.expected_names), len({case.criterion for case in suite.test_cases}))
    if required_criteria is not None and 0 < count < required_criteria:
        message = f"{count} tests for {required_criteria} acceptance criteria"
        found.append(minor("suite.criteria", message, where=where, fix="Write a test of its own for each criterion."))
    return found


def _check_python(tree: ast.Module, where: Where) -> list[Finding]:
    if not may_be_collected(tree):
        fix = "Write functions named test_* at the top of the file, or as methods of a class named Test*."
        return [major("suite.no_tests", "the file has no test function", where=where, fix=fix)]
    found = []
    for name, line in doubled_names(tree):
        message = f"`{name}` is defined again further down, which hides this one"
        found.append(major("suite.duplicate_test", message, where=_at(where, line), fix=_OWN_NAME))
    return found


def _check_node(tree: Node, where: Where) -> list[Finding]:
    if not may_make_tests(tree):
        fix = "Write tests with literal titles outside loops and functions: test('adds a row', …)."
        return [major("suite.no_tests", "the file calls nothing that makes a test", where=where, fix=fix)]
    seen, found = set[tuple[int, str]](), []
    for test in find_tests(tree):
        if test.name is None:
            continue
        if (test.scope, test.name) in seen:
            # Both are run, so nothing is lost but the way to tell them apart.
            message = f"there are two tests `{test.name}`, which a report cannot tell apart"
            found.append(minor("suite.duplicate_test", message, where=_at(where, test.line), fix=_OWN_NAME))
        seen.add((test.scope, test.name))
    return found


def _at(where: Where, line: int) -> Where:
    return where.model_copy(update={"line": line})
