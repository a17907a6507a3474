"""How much is wrong with a plan, by its findings."""

import pytest

from orchestrator.core.breakdown import PlanValidationResult
from orchestrator.core.finding import Finding, critical, major, minor

WRONG = [major("x.y", "wrong")]


@pytest.mark.parametrize(
    ("findings", "severity"),
    [
        ([], "none"),
        ([minor("x.y", "small"), minor("x.z", "small")], "none"),
        (WRONG, "major"),
        ([*WRONG, minor("x.y", "small")], "major"),
        ([*WRONG, *WRONG], "critical"),
        ([critical("x.y", "bad")], "critical"),
    ],
)
def test_how_much_is_wrong_with_a_plan(findings: list[Finding], severity: str) -> None:
    result = PlanValidationResult.of(findings)
    assert result.severity == severity
    assert result.valid is (severity == "none")
    assert all(note.severity == "minor" for note in result.notes)
    assert sorted(map(str, result.findings)) == sorted(map(str, findings))
