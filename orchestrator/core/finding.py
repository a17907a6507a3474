"""The one type every check returns: feedback renders it, routing looks at its severity, events carry it."""

from collections.abc import Iterable, Sequence
from enum import StrEnum

from orchestrator.core.value import Value


class Severity(StrEnum):
    """How much a finding weighs, in rising order."""

    NONE = "none"
    MINOR = "minor"
    MAJOR = "major"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """0 for none up to 3 for critical."""
        return list(Severity).index(self)

    @property
    def blocks(self) -> bool:
        """Whether a finding of this severity makes what it speaks of invalid (major or worse)."""
        return self.rank >= Severity.MAJOR.rank


class Where(Value):
    """The place a finding speaks of; every part is optional."""

    file: str | None = None
    """Path relative to the repository, or the name of an input file."""
    line: int | None = None
    """1-based."""
    column: int | None = None
    """1-based."""
    story: str | None = None
    task: str | None = None
    field: str | None = None
    """Path of a field inside an answer or a settings tree, e.g. `tasks[2].task_id`."""

    def __str__(self) -> str:
        place = self.file or ""
        if self.line is not None:
            place += f":{self.line}" if place else f"line {self.line}"
            if self.column is not None:
                place += f":{self.column}"
        parts = [place, self.story or "", self.task or "", self.field or ""]
        return " ".join(part for part in parts if part)


class Finding(Value):
    """What a check says: stable `code` (dotted, lower case), severity, message, place, and what to do about it.

    Its class follows from how it is built. `major` and `critical` are proven: a parser, the file system, the installed
    environment or a run says so, and they may refuse. `policy` is a question: nothing is wrong, but plan or settings do
    not allow it. `minor` is a suspicion: advice, which never refuses.
    """

    code: str
    severity: Severity
    message: str
    where: Where = Where()
    fix: str = ""
    ask: bool = False
    """A question of policy: the architect (packages, files) or a person (CI, credentials, publishing) decides."""

    def placed(self, **parts: str | int | None) -> "Finding":
        """Returns the finding with these parts of its place in place of its own."""
        return self.model_copy(update={"where": self.where.model_copy(update=parts)})

    def __str__(self) -> str:
        place = str(self.where)
        return f"[{self.severity}] {self.code}{f' ({place})' if place else ''}: {self.message}"


# From the cause that explains all others to what only follows from them.
_FIRST = ("environment.", "provider.", "budget.", "internal.", "contract.", "breakdown.conflict")
_LAST = frozenset({"review.unapproved", "story.unfinished"})


_CLOSING = frozenset({"test.uncovered", "test.flaky"})


def closing_notes(findings: Sequence["Finding"]) -> list[str]:
    """Returns what is told beside a story's status, however it ended: what its green does not show."""
    return [one.message for one in findings if one.code in _CLOSING]


def decisive(findings: Sequence["Finding"]) -> "Finding | None":
    """Returns the finding that says best why a story ended; None without any."""
    found = blocking(findings) or [*findings]
    for begin in _FIRST:
        if one := next((one for one in found if one.code.startswith(begin)), None):
            return one
    own = [one for one in found if one.code not in _LAST] or found
    return own[-1] if own else None


def blocking(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Only the findings of major severity or worse, in order."""
    return tuple(finding for finding in findings if finding.severity.blocks)


def questions(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Only the questions of policy, in order."""
    return tuple(finding for finding in findings if finding.ask)


def policy(code: str, message: str, *, where: Where | None = None, fix: str = "") -> Finding:
    """Returns a question: nothing is wrong, but the plan or the settings do not allow it. Never refuses by itself."""
    return Finding(code=code, severity=Severity.MINOR, message=message, where=where or Where(), fix=fix, ask=True)


def minor(code: str, message: str, *, where: Where | None = None, fix: str = "") -> Finding:
    """Returns a suspicion or a note: advice that never refuses."""
    return Finding(code=code, severity=Severity.MINOR, message=message, where=where or Where(), fix=fix)


def major(code: str, message: str, *, where: Where | None = None, fix: str = "") -> Finding:
    """Returns a proven fault that makes its subject invalid."""
    return Finding(code=code, severity=Severity.MAJOR, message=message, where=where or Where(), fix=fix)


def critical(code: str, message: str, *, where: Where | None = None, fix: str = "") -> Finding:
    """Returns a proven fault that no retry budget may wave through."""
    return Finding(code=code, severity=Severity.CRITICAL, message=message, where=where or Where(), fix=fix)
