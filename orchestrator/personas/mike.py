"""Mike, the architect: story → breakdown."""

from collections.abc import Mapping, Sequence
from functools import partial

from orchestrator.checks.breakdown import merge_missing, read_breakdown
from orchestrator.checks.prompt_example import copied_plan
from orchestrator.contract.amend import Wanted, read_amendment
from orchestrator.domain.breakdown import Breakdown, Task
from orchestrator.domain.decisions import Verdict
from orchestrator.domain.exchange import Purpose
from orchestrator.domain.findings import Finding, Severity, minor
from orchestrator.domain.sprint import Replan
from orchestrator.domain.stages import Amended, AmendmentBrief, GivenPlan, Planned, StoryBrief
from orchestrator.domain.surface import Surface
from orchestrator.domain.wire import AmendmentAnswer, BreakdownAnswer, BreakdownMissingAnswer
from orchestrator.errors import SchemaValidationError
from orchestrator.personas.ask import ask
from orchestrator.personas.desk import Desk, Heard, Request
from orchestrator.personas.given import given_plan
from orchestrator.personas.telling import account
from orchestrator.prompts import context
from orchestrator.prompts.feedback import render_reasons, render_revision

NAME = "mike"
Slots = Mapping[str, str]
"""What the prompts of one plan are filled with."""


class Mike:
    """`ports.Architect` of one running story."""

    def __init__(self, desk: Desk, brief: StoryBrief) -> None:
        self._desk = desk
        self._brief = brief

    async def breakdown(self, surface: Surface, feedback: str, said: Replan | None) -> Planned:
        """See ports.Architect: one plan within the answer budget, completed when it came cut or short."""
        slots = self._slots(surface, said)
        request = Request(
            persona=NAME,
            purpose=Purpose.BREAKDOWN,
            prompt="architect/breakdown",
            answer=BreakdownAnswer,
            schema_name="breakdown",
            replies=1 + self._desk.policies.answer.max_attempts,
            slots=slots,
            feedback=feedback,
        )
        try:
            asked = await ask(self._desk, request, read=self._read, complete=partial(self._complete, slots))
        except SchemaValidationError as error:
            return Planned(breakdown=None, findings=error.findings)
        # What was left out of a sound structure (an entry that is no path) is told, and the plan is judged (A5).
        findings = tuple(finding.model_copy(update={"severity": Severity.MINOR}) for finding in asked.findings)
        return Planned(breakdown=asked.value, findings=findings, previous=asked.previous)

    def _read(self, value: object) -> tuple[Breakdown | None, Sequence[Finding]]:
        """A plan that copies the prompt's example is none of this story."""
        plan, findings = read_breakdown(value, self._brief.story.id)
        copied = self._copied(plan) if plan is not None else []
        return (None if copied else plan), [*findings, *copied]

    def _copied(self, plan: Breakdown) -> list[Finding]:
        return copied_plan(plan, self._desk.library.worked("architect/breakdown"))

    async def extract_plan(self, path: str, text: str) -> GivenPlan:
        """See ports.Architect."""
        return await given_plan(self._desk, self._brief, NAME, path, text)

    def revision(self, planned: Planned, findings: Sequence[Finding]) -> str:
        """See ports.Architect."""
        return render_revision(findings, planned.previous)

    async def amendment(self, brief: AmendmentBrief) -> Amended:
        """See ports.Architect. An answer that cannot be read grants nothing."""
        heard = await self._desk.hear(
            Request(
                persona=NAME,
                purpose=Purpose.AMENDMENT,
                prompt="architect/amendment",
                answer=AmendmentAnswer,
                schema_name="amendment",
                replies=1,
                slots={
                    "surface": context.render_surface(brief.surface, self._desk.policies.context_tokens),
                    "record": self._brief.record,
                    "story": context.render_story(self._brief.story),
                    "plan": context.render_tasks(brief.breakdown.tasks),
                    "task": context.render_task(brief.task),
                    "asked_files": context.render_paths(brief.files),
                    "asked_packages": context.render_paths(brief.packages),
                    "refused": render_reasons(brief.findings),
                },
            )
        )
        value = heard.extraction.value
        if not isinstance(value, dict) or heard.cut_off:
            return Amended(amendment=None, reason="the answer could not be read")
        asked = Wanted(files=brief.files, packages=brief.packages)
        amendment, findings = read_amendment(value, brief.contract, asked, task_id=brief.task.task_id, by=NAME)
        reason = value.get("reason")
        return Amended(amendment=amendment, reason=reason if isinstance(reason, str) else "", findings=tuple(findings))

    async def _complete(
        self, slots: Slots, plan: Breakdown | None, heard: Heard, left: int
    ) -> tuple[Breakdown | None, Sequence[Finding], int]:
        """A4: ask only for the tasks that are missing, giving the ones already there; each request is a re-ask."""
        findings: list[Finding] = []
        spent, cut_off = 0, heard.cut_off
        if plan is None and cut_off and heard.extraction.value and left > 0:
            plan, said, cut_off = await self._from_head(slots, heard, left - 1)
            spent, findings = 1, [*said]
        if plan is None or plan.architectural_conflict.detected:
            return plan, findings, spent
        while (cut_off or len(plan.tasks) < plan.task_count) and spent < left:
            spent += 1
            request = self._missing_request(slots, plan.tasks, plan.task_count, left - spent)
            more = await self._desk.hear(request)
            if more.extraction.value is not None:
                before = len(plan.tasks)
                merged, said = merge_missing(plan, more.extraction.value)
                copied = self._copied(merged)
                plan, said = (plan, copied) if copied else (merged, said)
                # What is wrong with the rest leaves the plan as good as it was: it is told, and the plan is judged.
                findings.extend(finding.model_copy(update={"severity": Severity.MINOR}) for finding in said)
                cut_off = more.cut_off and not (_announced(heard) and len(plan.tasks) >= plan.task_count)
                came = len(plan.tasks) - before
                await self._desk.emit(
                    request,
                    "breakdown_completed" if came else "breakdown_left_short",
                    f"{NAME} was asked for the missing tasks only: {came or 'none'} came",
                    **account(more.reply, more.extraction),
                    **request.decided(Verdict.COMPLETED if came else Verdict.LEFT_SHORT, said),
                )
        if cut_off:
            message = "the plan was cut off and its rest did not come"
            fix = "look whether tasks are missing at its end; raise provider.max_output_tokens when it happens often"
            findings.append(minor("breakdown.cut_off", message, fix=fix))
        return plan, findings, spent

    async def _from_head(
        self, slots: Slots, heard: Heard, left: int
    ) -> tuple[Breakdown | None, Sequence[Finding], bool]:
        """A plan cut before its first whole task: what stands is kept and all its tasks are asked for, once.

        Returns the plan, what is said of it, and whether it is still cut off.
        """
        head = heard.extraction.value
        head = head if isinstance(head, dict) else {}
        more = await self._desk.hear(self._missing_request(slots, (), _announced(heard), left))
        rest = more.extraction.value
        if not isinstance(rest, dict):
            return None, [], True
        whole = {**rest, **{name: value for name, value in head.items() if name != "tasks"}}
        plan, said = self._read(whole)
        return plan, said, more.cut_off

    def _missing_request(self, slots: Slots, known: Sequence[Task], announced: int, left: int) -> Request:
        """A re-ask of the plan's answer loop, which has `left` more."""
        replies = 1 + self._desk.policies.answer.max_attempts
        missing = context.render_missing(self._brief.story.id, known, announced)
        return Request(
            persona=NAME,
            purpose=Purpose.BREAKDOWN_MISSING,
            prompt="architect/breakdown_missing",
            answer=BreakdownMissingAnswer,
            schema_name="breakdown_missing",
            replies=replies,
            attempt=replies - left,
            slots={**slots, "known_tasks": context.render_tasks(known), "missing": missing},
        )

    def _slots(self, surface: Surface, said: Replan | None) -> Slots:
        brief = self._brief
        return {
            "vision": brief.vision,
            "surface": context.render_surface(surface, self._desk.policies.context_tokens),
            "record": brief.record,
            "sprint_stories": context.render_sprint_stories(brief.sprint_stories),
            "story": context.render_story(brief.story),
            "wireframe": brief.wireframe,
            "overridden_conflict": said.overridden_conflict if said else "",
            "comment": said.comment if said else "",
        }


def _announced(heard: Heard) -> int:
    """The number of tasks that the answer itself names, 0 when it names none."""
    value = heard.extraction.value
    count = value.get("task_count") if isinstance(value, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) else 0
