"""A plan that a person brought, judged as it is, by the settings of today. Pure."""

from orchestrator.answers.task_plan import read_task_plan
from orchestrator.checks.task_plan import breakdown_of, check_length, check_planned, check_task_plan
from orchestrator.domain.findings import Finding
from orchestrator.domain.sprint import BroughtPlan
from orchestrator.domain.stages import GivenPlan


def judge_given(
    given: GivenPlan,
    story_id: str,
    existing_files: frozenset[str],
    known_packages: frozenset[str],
    min_chars: int,
) -> tuple[Finding, ...]:
    """What was said of the text, then what the rules of a breakdown say, in the plan's own words; by severity."""
    plan = read_task_plan(given.text, given.path).plan
    findings = [
        *given.findings,
        *check_length(given.text, given.path, min_chars),
        *check_planned(plan, given.breakdown, existing_files, known_packages),
    ]
    told = [
        finding.model_copy(update={"where": finding.where.model_copy(update={"story": story_id})})
        for finding in findings
    ]
    return tuple(sorted(told, key=lambda finding: (-finding.severity.rank, finding.where.line or 0)))


def read_by_rules(plan: BroughtPlan, story_id: str) -> GivenPlan:
    """The plan as it is read without a model, with what its structural checks say."""
    reading = read_task_plan(plan.text, plan.path)
    findings = (*reading.findings, *check_task_plan(reading.plan, story_id))
    return GivenPlan(path=plan.path, text=plan.text, breakdown=breakdown_of(reading.plan, story_id), findings=findings)
