"""JUnit XML, as test runners write it, to values; the text is hostile: no document types, no entities, bounded size."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from xml.parsers import expat

from orchestrator.core.suite import CaseResult, ReportedCase

MAX_BYTES = 64 * 1024 * 1024
MAX_CASES = 100_000
MAX_DEPTH = 50
MESSAGE_CAP = 4000
"""Characters of one case's failure text."""
_GAP = "\n[...]\n"
_RESULTS = {"failure": CaseResult.FAILED, "error": CaseResult.ERROR, "skipped": CaseResult.SKIPPED}
_INTERNAL = ("pytest", "internal")
"""How pytest reports an error of its own, for example an exit at import: no test and no file."""
_WEIGHT = [CaseResult.PASSED, CaseResult.SKIPPED, CaseResult.ERROR, CaseResult.FAILED]


def parse_junit(xml: bytes, *, parameters: bool = True, root: Path | None = None) -> tuple[ReportedCase, ...]:
    """The cases of a report in its order, one per id; of several entries with one id the worst result counts.

    `parameters`: whether a `[` ends a test's name, as in pytest's reports; elsewhere it is a character like any.
    `root` is given for a report of no runner of ours: files below it are told from there, and none is made up; the
    name of a test is what stands behind the last `::`.
    Raises ValueError, with a reason for people, when this is no complete, harmless JUnit report.
    """
    if len(xml) > MAX_BYTES:
        raise ValueError(f"the report is larger than {MAX_BYTES // 1024 // 1024} MB")
    reader = _Reader(parameters, root)
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
    return tuple(_merged(reader.cases))


def _refuse_doctype(*_: object) -> None:
    raise ValueError("the report declares a document type, which a test runner never does")


class _Reader:
    """Collects the cases while the parser walks."""

    def __init__(self, parameters: bool, root: Path | None) -> None:
        self._parameters, self._root = parameters, root
        self._suites: list[str] = []
        """Files that the suites around name; many reporters say it there."""
        self.cases: list[ReportedCase] = []
        self.is_report = False
        self._depth = 0
        self._case: dict[str, str] | None = None
        self._result = CaseResult.PASSED
        self._texts: list[str] = []
        self._listening = False

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if self._depth == 0:
            self.is_report = tag in {"testsuites", "testsuite"}
        self._depth += 1
        if self._depth > MAX_DEPTH or len(self.cases) >= MAX_CASES:
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
            text = "".join(self._texts)
            if self._root is None:
                self.cases.append(_case(self._case, self._result, text, self._parameters))
            else:
                files = [self._case.get("file", ""), *reversed(self._suites)]
                self.cases.append(
                    _foreign_case(self._case, self._result, text, next(filter(None, files), ""), self._root)
                )
            self._case = None


def _case(attributes: dict[str, str], result: CaseResult, text: str, parameters: bool) -> ReportedCase:
    name, classname = attributes.get("name", ""), attributes.get("classname", "")
    return ReportedCase(
        name=name.split("[", 1)[0] if parameters else name,
        id=f"{classname}::{name}",
        file="" if (classname, name) == _INTERNAL else _file(attributes.get("file", ""), classname or name),
        result=result,
        message=shortened(text.strip()),
    )


def _foreign_case(attributes: dict[str, str], result: CaseResult, text: str, file: str, root: Path) -> ReportedCase:
    path = PurePosixPath(file)
    inside = path.relative_to(root) if path.is_relative_to(root) else path
    safe = not inside.is_absolute() and ".." not in inside.parts
    name = attributes.get("name", "")
    return ReportedCase(
        name=name.rpartition("::")[2] or name,
        id=f"{attributes.get('classname', '')}::{name}",
        file=str(inside) if file and safe else "",
        result=result,
        message=shortened(text.strip()),
    )


def _file(named: str, dotted: str) -> str:
    """The file as the report names it, else derived: modules are lower case by custom, classes are not."""
    path = PurePosixPath(named)
    if named and not path.is_absolute() and ".." not in path.parts:
        return str(path)
    parts = dotted.split(".")
    while parts and (not parts[-1].isidentifier() or parts[-1][:1].isupper()):
        parts.pop()
    return "/".join(parts) + ".py" if parts and len(parts) == len([part for part in parts if part]) else ""


def shortened(text: str) -> str:
    """Head and tail: the first lines say what failed, the last ones where."""
    if len(text) <= MESSAGE_CAP:
        return text
    half = (MESSAGE_CAP - len(_GAP)) // 2
    return text[:half] + _GAP + text[-half:]


def _merged(cases: list[ReportedCase]) -> Iterator[ReportedCase]:
    by_id: dict[str, ReportedCase] = {}
    for case in cases:
        earlier = by_id.get(case.id)
        if earlier is None or _WEIGHT.index(case.result) > _WEIGHT.index(earlier.result):
            by_id[case.id] = case
    yield from by_id.values()
