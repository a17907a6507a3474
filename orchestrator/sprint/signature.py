"""What a red run failed with, without what differs from run to run (pure)."""

import hashlib
import re

from orchestrator.domain.base import Value
from orchestrator.domain.testing import CaseResult, ReportedCase, RunProblem, TestReport

MOST_CASES, MOST_SAID = 20, 1000
"""Failed tests whose messages count, and how many characters of each; of the others only the names."""
MOST_TEXT = 300
"""Characters of a signature's text for people."""
_FILE = r"[\w@+-][\w.@+-]{0,80}\.(?:py|pyi|[cm]?[jt]sx?|json|toml|ya?ml|sql|html?|css|txt|md|db|sqlite)"
_SHAPES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\x1b\[[0-9;]*[A-Za-z]"), ""),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"\b\d\d:\d\d:\d\d(?:[.,]\d+)?"), "<time>"),
    (re.compile(r"\b0x[0-9a-f]+\b", re.IGNORECASE), "<address>"),
    (re.compile(r"(?:file://)?(?<![\w.@+~/-])(?:/[\w.@+~-]{1,80}){1,20}/(" + _FILE + r")\b"), r"\1"),
    (re.compile(r"(?:file://)?(?<![\w/])/(?:tmp|var|private|home|root|Users)(?:/[\w.@+~-]{1,80}){0,20}"), "<path>"),
    (re.compile(r"(?<![\w.@+-])(" + _FILE + r")(?::\d+)+"), r"\1"),
    (re.compile(r"\b((?:line|column|pid|port|process|thread)[ =:#]{1,3})\d+", re.IGNORECASE), r"\1<n>"),
    (re.compile(r"(\b127\.0\.0\.1|\blocalhost|\[::1?\]):\d+"), r"\1:<n>"),
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:ns|µs|us|ms|s|secs?|seconds?|milliseconds?|minutes?)\b"), "<duration>"),
    (re.compile(r"(?<![^\W_])(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{7,}(?![^\W_])", re.IGNORECASE), "<hex>"),
    (re.compile(r"\b(tmp|temp)[-_]?[0-9a-z_]{6,}\b"), r"\1<name>"),
    (re.compile(r"\b\d{9,}(?:\.\d+)?\b"), "<n>"),
)
"""Form → what stands for it, in this order: a path before the line number behind it, a time before its parts."""
_TOLD_BY_NAME = frozenset({RunProblem.FAKED, RunProblem.TAMPERED})
"""What such a run prints shows nothing, and need not be the same twice."""
_SAID = re.compile(r"^E\s+(.*)$", re.MULTILINE)
_CALLED_FROM = re.compile(r"^[ \t]*at .*\n?", re.MULTILINE)


class Signature(Value):
    """The same for two runs that failed in the same way."""

    id: str
    """Sixteen hexadecimal digits."""
    text: str
    """What failed, for people: one line, capped."""


def signature(report: TestReport) -> Signature:
    """Of a red run: its problem, its failed tests whatever their order, and what they said, `normalised`."""
    failing = sorted(
        (case for case in report.cases if case.result in {CaseResult.FAILED, CaseResult.ERROR}),
        key=lambda case: case.id,
    )
    parts = [f"{case.id}: {_said(case)}" for case in failing[:MOST_CASES]]
    parts += [case.id for case in failing[MOST_CASES:]]
    if report.problem is not None:
        names = ", ".join(sorted(report.missing_names))
        parts.insert(0, f"{report.problem}{f': {names}' if names else ''}")
    if not failing and not report.missing_names and report.problem not in _TOLD_BY_NAME:
        parts.append(normalised(report.output[-MOST_SAID:]))
    text = "\n".join(parts)
    shown = " ".join(text.split())
    return Signature(
        id=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16],
        text=shown if len(shown) <= MOST_TEXT else f"{shown[:MOST_TEXT]}…",
    )


def _said(case: ReportedCase) -> str:
    """What a test says for itself: not the code around it, which may change while the failure stays."""
    own = _SAID.findall(case.message)
    text = "\n".join(own) if own else _CALLED_FROM.sub("", case.message)
    return normalised(text[:MOST_SAID])


def normalised(text: str) -> str:
    """`text` without paths' folders, line numbers, addresses, times, durations, hashes, ids, and temporary names."""
    for form, stands_for in _SHAPES:
        text = form.sub(stands_for, text)
    return "\n".join(" ".join(line.split()) for line in text.splitlines() if line.strip())
