"""Mike, the architect: story → breakdown."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from orchestrator.checks.breakdown import merge_missing, read_breakdown
from orchestrator.checks.breakdown_rules import counted_tasks
from orchestrator.contract.amend import Wanted, read_amendment
from orchestrator.core.breakdown import Breakdown
from orchestrator.core.calls.exchange import Amended, AmendmentBrief, Planned, Purpose, StoryBrief
from orchestrator.core.calls.wire import AmendmentAnswer, BreakdownAnswer, BreakdownMissingAnswer
from orchestrator.core.command import Loop, Verdict
from orchestrator.core.contract import Surface
from orchestrator.core.errors import SchemaValidationError
from orchestrator.core.finding import Finding, Severity, blocking, minor
from orchestrator.core.paths import tidy
from orchestrator.core.sprint import Replan
from orchestrator.core.value import squeezed
from orchestrator.personas.ask import ask
from orchestrator.personas.request import Heard, Request
from orchestrator.personas.session import Desk, account
from orchestrator.personas.shown import Shown
from orchestrator.prompts import context
from orchestrator.prompts.budget import fence
from orchestrator.prompts.feedback import render_reasons, render_revision

NAME = "mike"
Slots = Mapping[str, str]
"""Slots of the prompts of one plan."""


class Mike:
    """`ports.Architect` of one running story."""

    def __init__(self, desk: Desk, brief: StoryBrief) -> None:
        self._desk = desk
        self._brief = brief
        self._refused: set[str] = set()
        """Plans that were sent back."""
        self._said: list[Finding] = []
        """What was said of them."""
        self._again = False
        """Whether the last of them had been sent back before."""
        self._shown: Shown | None = None
        """What the last plan's prompts showed."""

    async def breakdown(self, surface: Surface, feedback: str, said: Replan | None) -> Planned:
        """See ports.Architect: one plan within the answer budget, completed when it came cut or short."""
        slots = self._slots(surface, said)
        shown = self._shown = await self._shown_for(feedback)
        request = self._desk.request(
            NAME, Purpose.BREAKDOWN, BreakdownAnswer, slots, feedback=feedback, keeps_whole=True, shown=shown
        )
        request = request.warmer(self._desk.policies.stronger) if self._again else request
        try:
            asked = await ask(self._desk, request, read=self._read, complete=partial(self._complete, slots, shown))
        except SchemaValidationError as error:
            return Planned(breakdown=None, findings=error.findings)
        # What was left out of a sound structure (an entry that is no path) is reported, and the plan is judged (A5).
        findings = tuple(finding.model_copy(update={"severity": Severity.MINOR}) for finding in asked.findings)
        return Planned(breakdown=asked.value, findings=findings, previous=asked.previous)

    async def _shown_for(self, feedback: str) -> Shown:
        """Returns what a prompt shows besides the project: a revision keeps what was asked for before."""
        known = self._shown
        if not feedback or known is None or not known.asked:
            return self._desk.shown()
        known.renew_looks()
        return known

    def _read(self, value: object) -> tuple[Breakdown | None, Sequence[Finding]]:
        return read_breakdown(value, self._brief.story.id, names=True)

    def revision(self, planned: Planned, findings: Sequence[Finding]) -> str:
        """See ports.Architect."""
        told, plan = render_revision(findings, planned.previous, self._said), squeezed(planned.previous)
        self._again = plan in self._refused
        self._refused.add(plan)
        self._said += blocking(findings)
        return f"{told}\n\n{self._desk.library.note('notes/same_answer', lines='')}".rstrip() if self._again else told

    async def amendment(self, brief: AmendmentBrief) -> Amended:
        """See ports.Architect. An answer that cannot be read grants nothing."""
        slots = {
            **self._desk.common(self._brief, brief.surface),
            "done_tasks": "\n\n".join(brief.done_tasks),
            "plan": context.render_tasks(brief.breakdown.tasks),
            "task": context.render_task(brief.task),
            "asked_files": context.render_paths(brief.files),
            "asked_packages": context.render_paths(brief.packages),
            "asked_tests": "\n".join(f"- {one.file}: {one.reason}" for one in brief.tests),
            "refused": render_reasons(brief.findings),
        }
        shown = self._desk.shown()
        request = self._desk.request(NAME, Purpose.AMENDMENT, AmendmentAnswer, slots, replies=1, shown=shown)
        heard = await self._desk.hear(request)
        value = heard.extraction.value
        if not isinstance(value, dict) or heard.cut_off:
            return Amended(amendment=None, reason="the answer could not be read")
        if brief.tests:
            named = value.get("files")
            granted = {tidy(one) for one in named if isinstance(one, str)} if isinstance(named, list) else set()
            tests = tuple(one.file for one in brief.tests if one.file in granted)
            return Amended(amendment=None, tests=tests, reason=_reason(value))
        asked = Wanted(files=brief.files, packages=brief.packages)
        amendment, findings = read_amendment(value, brief.contract, asked, task_id=brief.task.task_id, by=NAME)
        return Amended(amendment=amendment, reason=_reason(value), findings=tuple(findings))

    async def _complete(
        self, slots: Slots, shown: Shown, plan: Breakdown | None, heard: Heard, left: int
    ) -> tuple[Breakdown | None, Sequence[Finding], int]:
        """A4: ask only for the tasks that are missing, giving the ones already there; each request is a re-ask."""
        findings: list[Finding] = []
        spent, cut_off = 0, heard.cut_off
        if plan is None or plan.architectural_conflict.detected:
            return plan, findings, spent
        completing = plan

        async def ask_missing() -> bool:
            """Returns whether more is to be asked for."""
            nonlocal completing, cut_off, spent
            spent += 1
            came = 0
            request = self._missing_request(slots, shown, completing, left - spent)
            more = await self._desk.hear(request)
            if more.extraction.value is not None:
                before = len(completing.tasks)
                completing, said = merge_missing(completing, more.extraction.value)
                # What is wrong with the rest leaves the plan as good as it was: it is reported, and the plan is judged.
                findings.extend(finding.model_copy(update={"severity": Severity.MINOR}) for finding in said)
                cut_off = more.cut_off and not (_announced(heard) and len(completing.tasks) >= completing.task_count)
                came = len(completing.tasks) - before
                await self._desk.emit(
                    request,
                    "breakdown_completed" if came else "breakdown_left_short",
                    f"{NAME} was asked for the missing tasks only: {came or 'none'} came",
                    **account(more.reply, more.extraction),
                    **request.decided(Verdict.COMPLETED if came else Verdict.LEFT_SHORT, said),
                )
            # Tasks that a request did not bring are none where nothing but the count speaks for them.
            return cut_off or (len(completing.tasks) < completing.task_count and bool(came))

        if (cut_off or len(plan.tasks) < plan.task_count) and spent < left:
            await self._desk.policies.loop(Loop.ANSWER, bool, left=lambda: left - spent)(ask_missing)
        if cut_off:
            message = "the plan was cut off and its rest did not come"
            fix = "look whether tasks are missing at its end; raise provider.max_output_tokens when it happens often"
            findings.append(minor("breakdown.cut_off", message, fix=fix))
        if completing.tasks:
            completing, said = counted_tasks(completing)
            findings.extend(said)
        return completing, findings, spent

    def _missing_request(self, slots: Slots, shown: Shown, plan: Breakdown, left: int) -> Request:
        """Returns a re-ask of the plan's answer loop, which has `left` more."""
        missing = context.render_missing(self._brief.story.id, plan.tasks, plan.task_count)
        more = {**slots, "known_tasks": context.render_tasks(plan.tasks), "missing": missing}
        request = self._desk.request(
            NAME, Purpose.BREAKDOWN_MISSING, BreakdownMissingAnswer, more, keeps_whole=True, shown=shown
        )
        return replace(request, attempt=request.replies - left)

    def _slots(self, surface: Surface, said: Replan | None) -> Slots:
        brief = self._brief
        return {
            "vision": brief.vision,
            **self._desk.common(brief, surface),
            "sprint_stories": context.render_sprint_stories(brief.sprint_stories),
            "wireframe": brief.wireframe,
            "followed_plan": fence(brief.followed.text, "markdown") if brief.followed else "",
            "overridden_conflict": said.overridden_conflict if said else "",
            "comment": said.comment if said else "",
        }


def _reason(value: Mapping[str, object]) -> str:
    reason = value.get("reason")
    return reason if isinstance(reason, str) else ""


def _announced(heard: Heard) -> int:
    """Returns the number of tasks that the answer itself names, 0 when it names none."""
    value = heard.extraction.value
    count = value.get("task_count") if isinstance(value, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) else 0
