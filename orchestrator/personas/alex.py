"""Alex, the developer: task → files (spec 1 B)."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from orchestrator.answers import Extraction, extract
from orchestrator.answers.join import join
from orchestrator.checks.delivery import read_delivery
from orchestrator.domain.delivery import Delivery
from orchestrator.domain.exchange import Purpose
from orchestrator.domain.findings import Finding, blocking, major
from orchestrator.domain.stages import Delivered, StoryBrief, TaskBrief
from orchestrator.domain.wire import DeliveryAnswer
from orchestrator.personas.ask import ask
from orchestrator.personas.desk import Desk, Heard, Request
from orchestrator.personas.telling import account
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
            read=self._reader(brief, "developer/delivery"),
            judge=judge,
            complete=partial(self._complete, brief),
        )
        return Delivered(delivery=asked.value, accepted=asked.accepted, findings=asked.findings)

    async def _complete(
        self, brief: TaskBrief, delivery: Delivery | None, heard: Heard, left: int
    ) -> tuple[Delivery | None, Sequence[Finding], int]:
        """A cut delivery: its whole files are kept and the rest is asked for once."""
        missing = _missing(brief, delivery)
        if not missing or not (heard.cut_off or heard.at_limit):
            return delivery, [], 0
        if left < 1:
            return delivery, [_cut_off(missing)], 0
        request = self._continuation(brief, delivery, missing)
        more = await self._desk.hear(request)
        completed, findings, used = self._merged(brief, delivery, heard, more)
        still = _missing(brief, completed)
        came = [path for path in missing if path not in still]
        await self._desk.emit(
            request,
            "delivery_completed" if came else "delivery_left_short",
            f"{NAME} was asked for the missing files only: {', '.join(came) or 'none'} came",
            **account(more.reply, used),
        )
        return completed, [*findings, *([_cut_off(still)] if still else [])], 1

    def _merged(
        self, brief: TaskBrief, delivery: Delivery | None, heard: Heard, more: Heard
    ) -> tuple[Delivery | None, list[Finding], Extraction]:
        """The continuation may bring the missing files whole, or go on where the text broke off.

        Returns the extraction that was used too. What is cut again keeps the files that are whole.
        """
        read = self._reader(brief, "developer/continuation")
        for extraction in (more.extraction, extract(join(heard.reply.text, more.reply.text), DeliveryAnswer)):
            rest, findings = read(extraction.value) if extraction.value is not None else (None, [])
            if rest is not None and not blocking(findings):
                kept = {change.path: change for change in (*(delivery.files if delivery else ()), *rest.files)}
                return rest.model_copy(update={"files": tuple(kept.values())}), list(findings), extraction
        return delivery, [], more.extraction

    def _continuation(self, brief: TaskBrief, delivery: Delivery | None, missing: Sequence[str]) -> Request:
        slots = self._slots(brief)
        received: dict[str, str] = {change.path: change.content for change in delivery.files} if delivery else {}
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

    def _reader(self, brief: TaskBrief, prompt: str) -> Callable[[object], tuple[Delivery | None, list[Finding]]]:
        examples = self._desk.library.examples(prompt)
        story, task = self._brief.story.id, brief.task.task_id
        return partial(read_delivery, story_id=story, task_id=task, examples=examples)

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
