"""Alex, the developer: task → files (spec 1 B)."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from orchestrator.answers import extract
from orchestrator.answers.join import join
from orchestrator.checks.delivery import read_delivery
from orchestrator.domain.delivery import Delivery
from orchestrator.domain.exchange import Purpose
from orchestrator.domain.findings import Finding, blocking, major
from orchestrator.domain.stages import Delivered, StoryBrief, TaskBrief
from orchestrator.domain.wire import DeliveryAnswer
from orchestrator.personas.ask import ask
from orchestrator.personas.desk import Desk, Heard, Request
from orchestrator.prompts import context

NAME = "alex"


class Alex:
    """`ports.Developer` of one running story."""

    def __init__(self, desk: Desk, brief: StoryBrief) -> None:
        self._desk = desk
        self._brief = brief

    async def deliver(self, brief: TaskBrief, judge: Callable[[Delivery], Awaitable[Sequence[Finding]]]) -> Delivered:
        """See ports.Developer: `build.max_attempts` replies, continuations included."""
        asked = await ask(
            self._desk,
            Request(
                persona=NAME,
                purpose=Purpose.DELIVERY,
                prompt="developer/delivery",
                answer=DeliveryAnswer,
                schema_name="delivery",
                replies=self._desk.policies.build.max_attempts,
                slots=self._slots(brief),
                task=brief.task.task_id,
            ),
            read=partial(read_delivery, story_id=self._brief.story.id, task_id=brief.task.task_id),
            judge=judge,
            complete=partial(self._complete, brief),
        )
        return Delivered(delivery=asked.value, accepted=asked.accepted, findings=asked.findings)

    async def _complete(
        self, brief: TaskBrief, delivery: Delivery | None, heard: Heard, left: int
    ) -> tuple[Delivery | None, Sequence[Finding], int]:
        """A cut delivery: its whole files are kept and the rest is asked for once."""
        missing = _missing(brief, delivery)
        if not heard.cut_off or not missing:
            return delivery, [], 0
        if left < 1:
            return delivery, [_cut_off(missing)], 0
        more = await self._desk.hear(self._continuation(brief, delivery, missing))
        completed, findings = self._merged(brief, delivery, heard, more)
        still = _missing(brief, completed)
        return completed, [*findings, *([_cut_off(still)] if still else [])], 1

    def _merged(
        self, brief: TaskBrief, delivery: Delivery | None, heard: Heard, more: Heard
    ) -> tuple[Delivery | None, list[Finding]]:
        """The continuation may bring the missing files whole, or go on where the text broke off."""
        read = partial(read_delivery, story_id=self._brief.story.id, task_id=brief.task.task_id)
        joined = extract(join(heard.reply.text, more.reply.text), DeliveryAnswer)
        for value in (more.extraction.value, joined.value if joined.complete else None):
            if value is None:
                continue
            rest, findings = read(value)
            if rest is not None and not blocking(findings):
                kept = {change.path: change for change in (*(delivery.files if delivery else ()), *rest.files)}
                return rest.model_copy(update={"files": tuple(kept.values())}), list(findings)
        return delivery, []

    def _continuation(self, brief: TaskBrief, delivery: Delivery | None, missing: Sequence[str]) -> Request:
        slots = self._slots(brief)
        received = {change.path: change.content for change in delivery.files} if delivery else {}
        slots["whole_files"] = context.render_files(received, self._desk.policies.context_tokens)
        slots["missing_files"] = context.render_paths(missing)
        return Request(
            persona=NAME,
            purpose=Purpose.CONTINUATION,
            prompt="developer/continuation",
            answer=DeliveryAnswer,
            schema_name="delivery",
            replies=1,
            slots=slots,
            task=brief.task.task_id,
        )

    def _slots(self, brief: TaskBrief) -> dict[str, str]:
        budget = self._desk.policies.context_tokens
        return {
            "surface": context.render_surface(brief.surface, budget),
            "design": context.render_design(brief.breakdown),
            "allowed_dependencies": context.render_names(brief.allowed_dependencies),
            "story": context.render_story(self._brief.story),
            "done_tasks": "\n".join(brief.done_tasks),
            "task": context.render_task(brief.task),
            "modified_files": context.render_files(brief.modified_files),
            "import_summaries": context.render_summaries(brief.surface, exclude=tuple(brief.modified_files)),
            "instructions": context.render_instructions(brief.instructions) or brief.failure_output,
        }


def _missing(brief: TaskBrief, delivery: Delivery | None) -> list[str]:
    there = set(delivery.paths) if delivery else set()
    return [path for path in brief.task.files_to_create if path not in there]


def _cut_off(missing: Sequence[str]) -> Finding:
    return major(
        "delivery.cut_off",
        f"the delivery was cut off before {', '.join(missing)} was whole",
        fix="deliver every file of the task whole",
    )
