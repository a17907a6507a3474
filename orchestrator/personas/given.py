"""A person's task plan read by a model, and by rules alone where no model's reading can be used."""

from collections.abc import Sequence

from orchestrator.answers.task_plan import TaskPlanReading, read_task_plan
from orchestrator.checks.plan_extract import read_plan_extract
from orchestrator.checks.task_plan import breakdown_of, check_task_plan
from orchestrator.domain.events import Level
from orchestrator.domain.exchange import Purpose
from orchestrator.domain.findings import Finding, Where, blocking, minor
from orchestrator.domain.stages import GivenPlan, StoryBrief
from orchestrator.domain.task_plan import TaskPlan
from orchestrator.domain.wire import PlanExtractAnswer
from orchestrator.domain.words import counted
from orchestrator.errors import OrchestratorError
from orchestrator.personas.ask import ask
from orchestrator.personas.desk import Desk, Request
from orchestrator.prompts import context

READ_BY_RULES = "task_plan.read_by_rules"
"""Said of a plan for which no model's reading could be used."""


async def given_plan(desk: Desk, brief: StoryBrief, persona: str, path: str, text: str) -> GivenPlan:
    """The plan in `text` with what its structural checks say; read by rules alone whenever a model fails."""
    reading = read_task_plan(text, path)
    plan, said = await _by_model(desk, brief, persona, reading, text)
    findings = (
        *_still_true(reading.findings, plan),
        *check_task_plan(plan, desk.story),
        *said,
    )
    blocked = blocking(findings)
    await desk.step.emit(
        "plan_given",
        f"{path} was read: a person's plan with {counted(plan.task_count, 'task')}"
        + (f": {counted(len(blocked), 'finding')} to be looked at" if blocked else ""),
        level=Level.WARN if blocked else Level.INFO,
        plan_file=path,
        goal=plan.goal,
        key_files=list(plan.key_files),
        task_count=plan.task_count,
        findings=[finding.model_dump(mode="json") for finding in findings],
    )
    return GivenPlan(path=path, text=text, breakdown=breakdown_of(plan, desk.story), findings=findings)


async def _by_model(
    desk: Desk, brief: StoryBrief, persona: str, reading: TaskPlanReading, text: str
) -> tuple[TaskPlan, Sequence[Finding]]:
    """What a model's reading adds to the rules'; theirs alone, and why, when it cannot be used."""
    if context.tokens(text) > desk.policies.context_tokens:
        return reading.plan, [_by_rules(reading.plan, "the plan is longer than prompts.context_tokens allows")]

    def read(value: object) -> tuple[TaskPlan | None, Sequence[Finding]]:
        return read_plan_extract(value, reading.plan, text, desk.story)

    # Without a task there is nothing for a model to get wrong twice: the plan cannot be built either way.
    replies = 1 + desk.policies.answer.max_attempts if reading.plan.tasks else 1
    request = Request(
        persona=persona,
        purpose=Purpose.PLAN_EXTRACT,
        prompt="architect/plan_extract",
        answer=PlanExtractAnswer,
        schema_name="plan_extract",
        replies=replies,
        slots={"story": context.render_story(brief.story), "plan": context.fence(text, "markdown")},
    )
    try:
        asked = await ask(desk, request, read=read)
    except OrchestratorError as error:
        # No answer, nobody to answer, a budget used up: what ails more than this reading is told by the next call.
        return reading.plan, [_by_rules(reading.plan, error.message)]
    if asked.value is None or not asked.accepted:
        return reading.plan, [_by_rules(reading.plan, blocking(asked.findings)[0].message)]
    return asked.value, asked.findings


def _by_rules(plan: TaskPlan, why: str) -> Finding:
    message = f"the plan was read by rules alone, no model's reading could be used: {why}"
    fix = "Look in `show` whether goal, tasks and files are those you mean; nothing else needs to be done."
    return minor(READ_BY_RULES, message, where=Where(file=plan.path or None), fix=fix)


def _still_true(findings: Sequence[Finding], plan: TaskPlan) -> list[Finding]:
    """Without what the rules could not read and a model could: a path that stood in prose."""
    files = {task.name: task.files for task in plan.tasks}
    return [
        finding
        for finding in findings
        if not (
            finding.code in {"task_plan.path", "task_plan.unread_files"}
            and any(path in finding.message for path in files.get(finding.where.task or "", ()))
        )
    ]
