"""What the checks say about a plan as a whole."""

from collections.abc import Iterable

from orchestrator.domain.base import Value
from orchestrator.domain.findings import Finding, Severity, blocking


class PlanValidationResult(Value):
    """A judged plan. Built by `of`."""

    issues: tuple[Finding, ...] = ()
    """Findings of major severity or worse: what makes it invalid."""
    notes: tuple[Finding, ...] = ()
    """Minor findings; they never change `valid`."""

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> "PlanValidationResult":
        """The result that these findings mean."""
        found = tuple(findings)
        return cls(issues=blocking(found), notes=tuple(finding for finding in found if not finding.severity.blocks))

    @property
    def valid(self) -> bool:
        """Whether nothing major was found."""
        return not self.issues

    @property
    def severity(self) -> Severity:
        """none when valid; major with one issue, critical with two or more, or the highest finding's if higher."""
        if self.valid:
            return Severity.NONE
        counted = Severity.MAJOR if len(self.issues) == 1 else Severity.CRITICAL
        return max([counted, *(issue.severity for issue in self.issues)], key=lambda severity: severity.rank)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Issues first, then notes."""
        return (*self.issues, *self.notes)
