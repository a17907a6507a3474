"""Interprets a test run: its report, its exit, and the names that the report must contain.

Reports are JUnit XML, as test runners write it. The text is hostile: no document types, no entities, bounded size.
"""

from collections.abc import Collection, Sequence
from itertools import accumulate
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from xml.parsers import expat

from orchestrator.core.suite import CaseResult, CommandResult, ReportedCase, RunProblem, TestReport
from orchestrator.test_runners.choice import PYTEST
from orchestrator.test_runners.failures import mendable


class Selection(NamedTuple):
    """What of a project's tests is run; see `ports.SuiteRunner.run`."""

    key: str
    """Of the environment."""
    files: Sequence[str] | None = None
    expected: Sequence[str] = ()
    """Names that must be in the report."""
    only: Sequence[ReportedCase] = ()
    timeout_s: float | None = None

    def those(self, cases: tuple[ReportedCase, ...] | None) -> tuple[ReportedCase, ...] | None:
        """Returns the cases that were asked for, where single ones were."""
        if not self.only or cases is None:
            return cases
        wanted = {case.id for case in self.only}
        return tuple(case for case in cases if case.id in wanted)


MAX_BYTES = 64 * 1024 * 1024  # hostile tests may write any report
_MAX_CASES, _MAX_DEPTH = 100_000, 50
_MAX_SAID = 4_000_000
"""Characters of the messages of all cases; cases behind them keep their results alone."""
_RESULTS = {"failure": CaseResult.FAILED, "error": CaseResult.ERROR, "skipped": CaseResult.SKIPPED}
_INTERNAL = ("pytest", "internal")
"""pytest's report of an internal error, such as an exit at import: no test and no file."""
_WEIGHT = [CaseResult.PASSED, CaseResult.SKIPPED, CaseResult.ERROR, CaseResult.FAILED]


def parse_junit(
    xml: bytes, *, parameters: bool = True, root: Path | None = None, tree: Path | None = None
) -> tuple[ReportedCase, ...]:
    """Returns the cases of a report in its order, one per id; of several entries with one id the worst result counts.

    `parameters`: whether a `[` ends a test's name, as in pytest's reports; elsewhere it is a character like any.
    `root` is given for a report of no runner of ours: files below it are relative to it, and none is invented; the
    name of a test is what stands behind the last `::`. `tree` is where the tests ran: messages tell paths from there.
    Raises ValueError, with a reason for people, when this is no complete, harmless JUnit report.
    """
    if len(xml) > MAX_BYTES:
        raise ValueError(f"the report is larger than {MAX_BYTES // 1024 // 1024} MB")
    reader = _Reader(parameters, root, tree or root)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    try:
        parser.Parse(xml, True)
    except expat.ExpatError as error:
        raise ValueError(f"the report is not well-formed XML ({error})") from error
    if not reader.is_report:
        raise ValueError("the report is no JUnit XML")
    return tuple(reader.cases.values())


def _refuse_doctype(*_: object) -> None:
    raise ValueError("the report declares a document type, which a test runner never does")


class _Reader:
    """Collects the cases while the parser walks."""

    def __init__(self, parameters: bool, root: Path | None, tree: Path | None) -> None:
        self._parameters, self._root, self._tree = parameters, root, tree
        self._suites: list[str] = []
        """Files that the suites around name; many reporters say it there."""
        self.cases: dict[str, ReportedCase] = {}
        self.is_report = False
        self._depth = self._seen = 0
        self._case: dict[str, str] | None = None
        self._result = CaseResult.PASSED
        self._texts: list[str] = []
        self._listening = False

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if self._depth == 0:
            self.is_report = tag in {"testsuites", "testsuite"}
        self._depth += 1
        if self._depth > _MAX_DEPTH or self._seen >= _MAX_CASES:
            raise ValueError("the report is nested too deeply or has too many cases")
        if tag == "testsuite":
            self._suites.append(attributes.get("file", ""))
        elif tag == "testcase":
            self._case, self._result, self._texts = attributes, CaseResult.PASSED, []
        elif self._case is not None and tag in _RESULTS:
            self._result = max(self._result, _RESULTS[tag], key=_WEIGHT.index)
            self._listening = True
            self._texts.append(attributes.get("message", "") + "\n")

    def text(self, data: str) -> None:
        if self._listening:
            self._texts.append(data)

    def end(self, tag: str) -> None:
        self._depth -= 1
        if tag in _RESULTS:
            self._listening = False
        elif tag == "testsuite":
            self._suites.pop()
        elif tag == "testcase" and self._case is not None:
            self._seen += 1
            case, self._case = self._read(self._case), None
            earlier = self.cases.get(case.id)
            if earlier is None or _WEIGHT.index(case.result) > _WEIGHT.index(earlier.result):
                self.cases[case.id] = case

    def _read(self, attributes: dict[str, str]) -> ReportedCase:
        name, classname = attributes.get("name", ""), attributes.get("classname", "")
        files = [attributes.get("file", ""), *(reversed(self._suites) if self._root is not None else ())]
        file = _inside(next(filter(None, files), ""), self._root)
        if self._root is not None:
            shown = name.rpartition("::")[2] or name
        else:
            shown = name.split("[", 1)[0] if self._parameters else name
            file = "" if (classname, name) == _INTERNAL else file or _derived(classname or name)
        title, *texts = self._texts or [""]
        text = "".join(texts).strip()
        # pytest repeats in an attribute what the lines with an E say.
        if "\nE  " not in text and (said := title.strip()).split("\n")[0] not in text:
            text = f"{said}\n{text}".strip()
        message = mendable(text, self._tree)
        return ReportedCase(name=shown, id=f"{classname}::{name}", file=file, result=self._result, message=message)


def _inside(named: str, root: Path | None) -> str:
    """Returns the file that a report names, from the root; "" for none, and for one elsewhere."""
    path = PurePosixPath(named)
    if root is not None and path.is_relative_to(root):
        path = path.relative_to(root)
    return "" if not named or path.is_absolute() or ".." in path.parts else str(path)


def _derived(dotted: str) -> str:
    """Returns the file of a dotted name: modules are lower case by custom, classes are not."""
    parts = dotted.split(".")
    while parts and (not parts[-1].isidentifier() or parts[-1][:1].isupper()):
        parts.pop()
    return "/".join(parts) + ".py" if parts and all(parts) else ""


_NOTHING_COLLECTED = 5
"""With this exit code pytest says that no test was run, whatever stands in the report."""
_INTERNAL_ERROR = 3
"""With this one, that it or a plugin crashed: tests that it had not come to are not in the report."""
_LIMITS = {
    "timeout": RunProblem.TIMEOUT,
    "memory": RunProblem.MEMORY_LIMIT,
    "output": RunProblem.OUTPUT_LIMIT,
}


def read_report(report: Path, runner: str, tree: Path) -> tuple[tuple[ReportedCase, ...] | None, str]:
    """Returns the cases that `runner` wrote down about `tree`, or None and why there are none. Blocks."""
    try:
        with report.open("rb") as file:
            return parse_junit(file.read(MAX_BYTES + 1), parameters=runner == PYTEST, tree=tree), ""
    except OSError:
        return None, f"{runner} ended without writing its report"
    except ValueError as error:
        return None, str(error)


def judged(
    result: CommandResult,
    cases: tuple[ReportedCase, ...] | None,
    trouble: str,
    expected: Sequence[str],
    *,
    runner: str,
    complete: Collection[int],
) -> TestReport:
    """The run as a value; `complete` are the exit codes with which a report without a failure may be believed."""
    if result.limit is not None:
        problem = _LIMITS.get(result.limit, RunProblem.NO_REPORT)
        return reported(result, problem, cases or (), f"ended by the limit on {result.limit}")
    if cases is not None and len(cases) > _MAX_CASES:
        cases, trouble = None, f"the report has more than {_MAX_CASES} cases"
    if cases is None:
        return reported(result, RunProblem.NO_REPORT, trouble=trouble)
    cases = _shortened(cases)
    if runner == PYTEST and result.exit_code == _INTERNAL_ERROR:
        tests = tuple(case for case in cases if case.id != "::".join(_INTERNAL))
        return reported(result, RunProblem.INTERNAL_ERROR, tests, "pytest ended by an INTERNALERROR")
    if not cases or (runner == PYTEST and result.exit_code == _NOTHING_COLLECTED):
        return reported(result, RunProblem.NO_TESTS, cases, "no test was run")
    failed = any(case.result in {CaseResult.FAILED, CaseResult.ERROR} for case in cases)
    if result.exit_code not in complete and not failed:
        return reported(result, RunProblem.NO_REPORT, cases, f"{runner} broke off, its report is not complete")
    missing = unseen(cases, expected)
    if missing:
        return reported(result, RunProblem.MISSING_NAMES, cases, f"not run: {', '.join(missing)}", missing)
    return reported(result, None, cases)


def _shortened(cases: tuple[ReportedCase, ...]) -> tuple[ReportedCase, ...]:
    """Returns the cases without the messages that are too much for everything that looks at them."""
    ends = accumulate(len(case.message) for case in cases)
    kept = sum(end <= _MAX_SAID for end in ends)
    return (*cases[:kept], *(case.model_copy(update={"message": ""}) for case in cases[kept:]))


def merged(titles: Sequence[str], reports: Sequence[TestReport], expected: Sequence[str]) -> TestReport:
    """One report of several runs: a problem of any is the whole's, except that one of them found no test."""
    counted = [report for report in reports if report.problem is not RunProblem.NO_TESTS]
    cases = tuple(case for report in reports for case in report.cases)
    problem = next((report.problem for report in counted if report.problem is not None), None)
    if not counted:
        problem = RunProblem.NO_TESTS
    missing = unseen(cases, expected) if problem is None else ()
    return TestReport(
        cases=cases,
        problem=RunProblem.MISSING_NAMES if missing else problem,
        missing_names=missing,
        exit_code=next((report.exit_code for report in counted if report.exit_code != 0), 0),
        output="".join(f"== {title} ==\n{report.output}\n" for title, report in zip(titles, reports, strict=True)),
        duration_s=round(sum(report.duration_s for report in reports), 3),
        ran_with=tuple(dict.fromkeys(one for report in counted for one in report.ran_with)),
    )


def unseen(cases: Sequence[ReportedCase], expected: Sequence[str]) -> tuple[str, ...]:
    """Expected names that no case stands for; one that was only skipped has shown nothing."""
    shown = {case.name for case in cases if case.result is not CaseResult.SKIPPED}
    return tuple(dict.fromkeys(name for name in expected if name not in shown))


def reported(
    result: CommandResult,
    problem: RunProblem | None,
    cases: tuple[ReportedCase, ...] = (),
    trouble: str = "",
    missing: tuple[str, ...] = (),
) -> TestReport:
    """Returns a report from how the runner's command ended; `trouble` is added to its output for people."""
    return TestReport(
        cases=cases,
        problem=problem,
        missing_names=missing,
        exit_code=result.exit_code,
        output=f"{result.output}\n[{trouble}]\n" if trouble else result.output,
        duration_s=result.duration_s,
    )
