"""Checks whether a suite notices its story: runs it without the change, and with functions that return nothing.

A test that passes there says nothing about the change. If the code under test is new, every test fails without it,
whatever it asserts; only the second run, on a hollow tree, judges such a test. This judges suites, not honesty.
A test is not judged if it did not run there, or mentions what remains: constants, classes with fields, callbacks.
"""

import ast
import asyncio
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from posixpath import basename, splitext
from typing import NamedTuple

from orchestrator.checks.coverage import Covered, coverage
from orchestrator.code.hollow import hollow_javascript, hollow_python, javascript_mentions, python_mentions
from orchestrator.code.javascript.tree import SUFFIXES
from orchestrator.code.python.source import parse_python
from orchestrator.core.delivery import FileChange
from orchestrator.core.event import Level
from orchestrator.core.finding import Finding, minor
from orchestrator.core.paths import is_test_file
from orchestrator.core.sprint import CaseOutcome
from orchestrator.core.suite import CaseResult, TestReport, TestSuite
from orchestrator.core.value import Value, listed
from orchestrator.story.context import Stage, tests_outcome

# Errors of Python and Node when the code under test does not exist yet.
_NOT_THERE = re.compile(
    r"^(?:E\s+)?(?:ModuleNotFoundError|ImportError|NameError)\b|\b(?:ERR_)?MODULE_NOT_FOUND\b"
    r"|^(?:E\s+)?AttributeError: .*has no attribute|\bis not (?:defined|a function|a constructor)\b"
    r"|does not provide an export named",
    re.MULTILINE,
)
# A criterion of this kind asks that something stays: its tests are right to pass without the change.
_STAYS = re.compile(
    r"\bas (?:before|today|now|is|it (?:is|was)|they (?:are|were))\b|\bunchanged\b|\bstill\b|\bkeeps? working\b"
    r"|\bnothing (?:else )?changes?\b|\bdo(?:es)? not change\b|\b(?:stay|remain)s? (?:as|the same|unchanged)\b"
    r"|\bthe same as\b",
    re.IGNORECASE,
)
# One of this kind asks that a name is there: its tests fail without the change because the name is missing.
_IS_THERE = re.compile(
    r"[^,;]*\b(?:importable|can be imported|is (?:re-?)?exported)(?: from)?(?: the)?(?: package)?"
    r"[\s`'\"]*[\w./@-]*[`'\".]*",
    re.IGNORECASE,
)
_NAMED = 5
"""Limit on the tests that a reason names per criterion."""


class Ended(StrEnum):
    """Result of a test on another tree: without the story's change, or with functions that return nothing."""

    FAILED = "failed"
    PASSED = "passed"
    NOT_JUDGED = "not judged"


class Elsewhere(Value):
    """A run of the suite on another tree."""

    results: dict[str, str]
    """By test name."""
    seconds: float = 0.0


async def run_before(stage: Stage, suite: TestSuite) -> dict[str, str]:
    """Runs the suite where the story's branch starts, as a durable step; returns results by test name."""

    async def run(folder: Path) -> TestReport:
        return await stage.runner.run(folder, files=suite.run_files, key=f"{stage.brief.sprint}-base")

    async def work(_step_id: str) -> Elsewhere:
        added = [entry.path for entry in await stage.workspace.diff(stage.story_id) if entry.status == "A"]
        if needs_added(suite, added):  # none of its tests could be loaded there
            return Elsewhere(results=dict.fromkeys(test_names(suite), Ended.NOT_JUDGED.value))
        report = await stage.workspace.start_tree(stage.story_id, suite.changes, run)
        results = {name: result.value for name, result in results_before(suite, report).items()}
        return Elsewhere(results=results, seconds=report.duration_s)

    ended = await stage.step.step("tests_before", work, Elsewhere)
    told = f"tests without the story's change: {_counted(ended.results)}"
    milliseconds = round(ended.seconds * 1000)
    await stage.step.emit("tests_run_before", told, results=ended.results, duration_ms=milliseconds)
    return ended.results


def needs_added(suite: TestSuite, added: Sequence[str]) -> bool:
    """Returns whether each file of the suite imports a Python module, first of all, that is among the `added` files."""
    code = [path for path in added if path.endswith(".py") and path not in suite.files]
    modules = {_module_name(path.removeprefix(root)) for path in code for root in ("", "src/")}
    texts: dict[str, str] = {change.path: change.content for change in suite.changes}
    trees = [parse_python(texts.get(path, "")) if path.endswith(".py") else None for path in suite.run_files]
    return bool(trees) and all(tree is not None and _imported(tree) & modules for tree in trees)


def _module_name(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _imported(tree: ast.Module) -> set[str]:
    """Returns the modules that loading the file imports in any case."""
    names = {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
    return names | {node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom) and not node.level}


def _counted(results: Mapping[str, str]) -> str:
    counts = Counter(results.values())
    return ", ".join(f"{counts[ended]} {ended}" for ended in Ended if counts[ended])


def test_names(suite: TestSuite) -> tuple[str, ...]:
    """Returns the names of the tests to judge."""
    return suite.expected_names or tuple(case.name for case in suite.test_cases)


test_names.__test__ = False  # type: ignore[attr-defined]  # its name would make pytest collect it where imported


def results_before(suite: TestSuite, report: TestReport) -> dict[str, Ended]:
    """Returns results by test name; a skipped or unreached test, or one that failed for a missing name, is unjudged."""
    found: dict[str, Ended] = dict.fromkeys(test_names(suite), Ended.NOT_JUDGED)
    for case in report.cases:
        if case.name not in found or case.result is CaseResult.SKIPPED:
            continue
        if case.result is CaseResult.PASSED:
            if found[case.name] is Ended.NOT_JUDGED:
                found[case.name] = Ended.PASSED
        elif not _NOT_THERE.search(case.message):
            found[case.name] = Ended.FAILED
    return found


class Unnoticed(NamedTuple):
    """A criterion whose tests show nothing, with the reasons (keys of `_WHY`)."""

    row: Covered
    why: tuple[str, ...]


_WHY = {
    "test.passes_before": "pass without the story's change as well",
    "test.passes_hollow": "pass with functions that return nothing as well",
    "test.skipped": "are skipped",
}


def unnoticed(
    criteria: Sequence[str], suite: TestSuite, after: TestReport, before: Mapping[str, str], hollow: Mapping[str, str]
) -> tuple[Unnoticed, ...]:
    """Returns the criteria none of whose tests shows anything, or that have no test, with reasons."""
    covered, _ = coverage(criteria, tests_outcome(suite, after).cases)
    rows = ((row, [_silence(case, before, hollow) for case in row.cases] or ["test.uncovered"]) for row in covered)
    return tuple(Unnoticed(row, tuple(dict.fromkeys(why))) for row, why in rows if all(why))


def uncovered_finding(criteria: Sequence[str], suite: TestSuite, after: TestReport) -> list[Finding]:
    """Returns the finding on criteria without a test, if there are any."""
    covered, _ = coverage(criteria, tests_outcome(suite, after).cases)
    without = [row.criterion for row in covered if not row.cases]
    if not without:
        return []
    told = f"{len(without)} of {len(criteria)} criteria have no test: {listed([*map(repr, without)], _NAMED)}"
    fix = "look whether the code does what they ask for; a test names the criterion that it shows"
    return [minor("test.uncovered", told, fix=fix)]


def _silence(case: CaseOutcome, before: Mapping[str, str], hollow: Mapping[str, str]) -> str:
    """Returns the reason why a test shows nothing, "" when it shows something or failed."""
    if case.result == CaseResult.SKIPPED:
        return "test.skipped"
    if case.result != CaseResult.PASSED or before.get(case.name) == Ended.FAILED:
        return ""
    if before.get(case.name) == Ended.PASSED:
        return "test.passes_before"
    return "test.passes_hollow" if hollow.get(case.name) == Ended.PASSED else ""


def only_stays(row: Unnoticed) -> bool:
    """Returns whether the criterion asks, by its words, for no more than what the code did before the story."""
    return row.why == ("test.passes_before",) and bool(_STAYS.search(row.row.criterion))


def only_is_there(row: Unnoticed) -> bool:
    """Returns whether the criterion asks, by its words, only for a name that was missing without the change."""
    return row.why == ("test.passes_hollow",) and _IS_THERE.fullmatch(row.row.criterion.strip()) is not None


def reason_to_ask(rows: Sequence[Unnoticed]) -> str:
    """Returns the reason for requesting the suite again from the tester."""
    lines = "\n".join(f"- {one.row.criterion}: {_reason(one)}" for one in rows)
    return (
        f"The tests of these criteria show nothing about the story's change:\n{lines}\nFor each of these criteria, "
        "write at least one test that fails without the change and passes with it, and that a function which does "
        "nothing and returns nothing would not pass; keep the other tests. Where a criterion only asks that something "
        "stays as it was, or that nothing comes back, keep its test."
    )


def _reason(one: Unnoticed) -> str:
    if not one.row.cases:
        return "no test case names this criterion"
    return f"{_tests(one.row)} {', or '.join(_WHY[code] for code in one.why)}"


def unnoticed_findings(rows: Sequence[Unnoticed]) -> list[Finding]:
    """Returns advice per criterion that has tests, for the report; some, such as unchanged behaviour, need no other."""
    shown = (one for one in rows if one.row.cases)
    return [_finding(one.why[0], f"the criterion {one.row.criterion!r} is shown by {_tests(one.row)}") for one in shown]


def _finding(why: str, shown: str) -> Finding:
    fix = "look whether the criterion asks for something new that code does; if so, add a test that fails without it"
    if why == "test.passes_before":
        return minor("test.passes_before", f"{shown}, passing without the story's change as well", fix=fix)
    if why == "test.passes_hollow":
        return minor("test.passes_hollow", f"{shown}, passing with functions that return nothing as well", fix=fix)
    return minor("test.skipped", f"{shown}, which was skipped", fix=fix)


def _tests(row: Covered) -> str:
    return listed(dict.fromkeys(case.name for case in row.cases), _NAMED)


async def tell_not_stronger(stage: Stage, why: str) -> None:
    """Records that the suite is unchanged."""
    await stage.step.emit("suite_kept", f"the suite stays as it is: {why}", level=Level.WARN)


class Hollow(Value):
    """Hollowed files, and names that could not be hollowed."""

    texts: dict[str, str]
    """Texts by path of the files with emptied functions; empty when there is nothing to run."""
    left: frozenset[str]
    """Constants, classes with fields, functions that an import calls, and stems of files of other kinds.

    A test that mentions one of them may pass and nevertheless show something.
    """


def hollow(texts: Mapping[str, str]) -> Hollow:
    """Returns the files with emptied functions; skips files of other languages and those with syntax errors."""
    done, left = hollow_python({path: text for path, text in texts.items() if path.endswith(".py")})
    more, names = hollow_javascript({path: text for path, text in texts.items() if path.endswith(SUFFIXES)})
    others = {splitext(basename(path))[0] for path in texts if not path.endswith((".py", *SUFFIXES))}
    return Hollow(texts={**done, **more}, left=frozenset(left | names | others))


def mentions(path: str, text: str) -> dict[str, frozenset[str]]:
    """Returns, by test name, the names and words in the test and in the parts of its file that it uses."""
    return python_mentions(text) if path.endswith(".py") else javascript_mentions(path, text)


_LEAST_S = 30.0
"""Minimum limit: when nothing answers, even a test of a quick suite waits for its own timeout."""


async def run_hollow(stage: Stage, suite: TestSuite, seconds: float) -> dict[str, str]:
    """Runs the suite on the hollow tree, as a durable step; returns results by test name.

    `seconds` is the suite's duration on the story's branch.
    """

    async def run(folder: Path) -> TestReport:
        key, limit = f"{stage.environment_key}-hollow", _LEAST_S + 3 * seconds
        return await stage.runner.run(folder, files=suite.run_files, key=key, timeout_s=limit)

    async def work(_step_id: str) -> Elsewhere:
        entries = await stage.workspace.diff(stage.story_id)
        own = [entry.path for entry in entries if entry.path not in suite.files and not is_test_file(entry.path)]
        made = await asyncio.to_thread(hollow, await stage.workspace.read(stage.story_id, own))
        if not made.texts:
            return Elsewhere(results=dict.fromkeys(test_names(suite), Ended.NOT_JUDGED.value))
        changes = [FileChange(path=path, content=text) for path, text in made.texts.items()]
        report = await stage.workspace.story_tree(stage.story_id, changes, run)
        results = await asyncio.to_thread(results_hollow, suite, report, made)
        return Elsewhere(results={name: result.value for name, result in results.items()}, seconds=report.duration_s)

    ended = await stage.step.step("tests_hollow", work, Elsewhere)
    told = f"tests with functions that return nothing: {_counted(ended.results)}"
    milliseconds = round(ended.seconds * 1000)
    await stage.step.emit("tests_run_hollow", told, results=ended.results, duration_ms=milliseconds)
    return ended.results


def results_hollow(suite: TestSuite, report: TestReport, made: Hollow) -> dict[str, Ended]:
    """Returns results by test name; a pass counts only if the test mentions nothing that remains."""
    texts = {change.path: change.content for change in suite.changes if change.path in suite.run_files}
    spoken = {name: words for path, text in texts.items() for name, words in mentions(path, text).items()}
    found = dict.fromkeys(test_names(suite), Ended.NOT_JUDGED)
    for case in report.cases:
        if case.name not in found:
            continue
        if case.result in {CaseResult.FAILED, CaseResult.ERROR}:
            found[case.name] = Ended.FAILED
        elif case.result is CaseResult.PASSED and case.name in spoken and not spoken[case.name] & made.left:
            found[case.name] = Ended.PASSED if found[case.name] is Ended.NOT_JUDGED else found[case.name]
    return found
