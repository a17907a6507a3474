"""The reviewer: a task's diff → a verdict with comments."""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from tenacity import RetryCallState

from orchestrator.answers.review import parse_review
from orchestrator.core.calls.exchange import Purpose, Reply, StopReason, StoryBrief
from orchestrator.core.command import Loop
from orchestrator.core.delivery import REPLIES, Review, ReviewBrief, Reviewed, ReviewIssue, Verdict
from orchestrator.core.event import Level
from orchestrator.core.finding import Finding, major
from orchestrator.personas.request import Request
from orchestrator.personas.session import Desk
from orchestrator.personas.shown import Shown
from orchestrator.prompts import context
from orchestrator.prompts.feedback import (
    ShownDiff,
    files_of,
    render_diff,
    render_earlier,
    render_feedback,
    render_issues,
)
from orchestrator.prompts.skills import Skill, choose_skills, render_skills
from orchestrator.settings.policies import result_of

NAME = "reviewer"
"""The one that is configured unless another is named."""
PROMPT = "reviewer/review"
# Some compatible servers name no stop reason at all.
_WHOLE = frozenset({StopReason.END_TURN, StopReason.STOP_SEQUENCE, StopReason.UNKNOWN})
"""Stop reasons after which a text counts as complete."""


@dataclass(frozen=True)
class _Memory:
    """What the reviewer of a task has read; replay builds it again."""

    changes: dict[str, int]
    """Path → hash of its part of the diff."""
    looked_at: tuple[str, ...]
    """Files that it asked to see."""


class Reviewer:
    """One reviewer of one running story, under its configured name."""

    def __init__(self, desk: Desk, brief: StoryBrief, name: str = NAME) -> None:
        self._desk, self._brief, self._name = desk, brief, name
        self._memories: dict[str, _Memory] = {}
        """By task."""

    async def review(self, brief: ReviewBrief) -> Reviewed:
        """Returns a verdict on the task's change: one reply, a second one when the first has none.

        Nothing is approved without a verdict, nor when the diff was too long to be shown whole.
        """
        shown = render_diff(brief.diff, self._desk.policies.context_tokens)
        skills = await asyncio.to_thread(choose_skills, self._desk.library.skills, files_of(brief.diff))
        files = await self._files(brief)
        request = self._request(brief, shown, skills, files)
        if shown.cut:
            message = f"{self._name} cannot be shown the whole change: {', '.join(shown.cut)}"
            await self._desk.emit(request, "review_diff_cut", message, level=Level.WARN, files=list(shown.cut))
        review, findings = await self._heard(request)
        self._memories[brief.task.task_id] = _Memory(_hashes(brief.diff), files.asked)
        await self._desk.emit(
            request,
            "review_read",
            f"{self._name} says {review.verdict.replace('_', ' ')} of {brief.task.task_id}",
            level=Level.DEBUG,
            says=review.verdict,
            severity=review.severity,
            issues=len(review.issues),
            approved=review.approved and not shown.cut,
            skills=[skill.name for skill in skills],
        )
        told = (*findings, *_diff_cut(shown.cut))
        return Reviewed(by=self._name, review=review, unseen=shown.cut, findings=told)

    async def _files(self, brief: ReviewBrief) -> Shown:
        """Returns the files that the last review of the task asked to see, as they are now."""
        files, memory = self._desk.shown(), self._memories.get(brief.task.task_id)
        if memory and memory.looked_at:
            await files.show(memory.looked_at, ())
        return files

    async def _heard(self, request: Request) -> tuple[Review, Sequence[Finding]]:
        """The review that counts: the first one with a verdict, else the last; comments found before it are kept."""
        kept: tuple[ReviewIssue, ...] = ()
        feedback = ""

        async def read_reply() -> tuple[Review, Sequence[Finding], Reply]:
            nonlocal request
            request = request.spent(1)
            reply = await self._desk.reply(request, feedback)
            review, findings = self._read(reply)
            if not review.issues and not (review.verdict is Verdict.YES and review.summary):
                # A second reply that brings no more than its verdict speaks of the comments before it.
                review = review.model_copy(update={"issues": kept})
            await self._desk.tell_judged(request, _settled(review), findings)
            return review, findings, reply

        async def send_back(state: RetryCallState) -> None:
            nonlocal kept, feedback
            review, findings, reply = result_of(state)
            kept, feedback = review.issues, render_feedback(findings, reply.text)

        loop = self._desk.policies.loop(
            Loop.ANSWER, lambda said: not _settled(said[0]), left=lambda: request.left, before_next=send_back
        )
        last: tuple[Review, Sequence[Finding], Reply] = await loop(read_reply)
        return last[0], last[1]

    def _read(self, reply: Reply) -> tuple[Review, Sequence[Finding]]:
        return parse_review(reply.text, cut_off=reply.stop_reason not in _WHOLE)

    def _request(self, brief: ReviewBrief, shown: ShownDiff, skills: Sequence[Skill], files: Shown) -> Request:
        contract, notes = brief.contract, render_skills(skills)
        memory, now = self._memories.get(brief.task.task_id), _hashes(brief.diff)
        then = memory.changes if memory else {}
        same = [path for path, part in now.items() if then.get(path) == part]
        changed = sorted({*now, *then} - {*same})
        # Its files are told by the contract, with those that were granted since it was planned.
        task = brief.task.model_copy(update={"files_to_create": ()})
        return Request(
            persona=self._name,
            purpose=Purpose.REVIEW,
            prompt=PROMPT,
            slots={
                **self._desk.common(self._brief, brief.surface),
                "task_files": context.render_paths(contract.task_files.get(brief.task.task_id, ())),
                "allowed_dependencies": context.render_names(contract.allowed_dependencies),
                "skills": notes,
                "done_tasks": "\n\n".join(brief.done_tasks),
                "task": context.render_task(task) + _advice(brief.advice),
                "diff": shown.text or "The change is empty: no file differs from the base commit.",
                "earlier": render_earlier(brief.earlier, self._name, changed, same),
                "previous": render_issues(brief.previous),
            },
            task=brief.task.task_id,
            replies=REPLIES,
            attempt=0,
            filled_with=hashlib.sha256(notes.encode("utf-8", "surrogatepass")).hexdigest()[:16] if notes else "",
            shown=files,
        )


def _hashes(diff: str) -> dict[str, int]:
    return {path: hash(text) for path, text in files_of(diff)}


def _settled(review: Review) -> bool:
    """Returns whether there is nothing to ask again for: a verdict, and no Yes in a text that was cut off."""
    return review.verdict is not Verdict.NONE and (review.complete or review.verdict is not Verdict.YES)


def _diff_cut(files: Sequence[str]) -> list[Finding]:
    """Returns a finding on files that were not shown whole, because an unseen change must not be approved."""
    if not files:
        return []
    told = f"the change is too long or no text, so no reviewer saw it whole, and it is not approved: {', '.join(files)}"
    fix = "Keep the change as small as the task asks and write no data out that code can make; or a person reads it."
    return [major("review.diff_cut", told, fix=fix)]


def _advice(found: Sequence[Finding]) -> str:
    if not found:
        return ""
    lines = [f"- {finding.where.file}:{finding.where.line}: {finding.message}" for finding in found]
    return "\n\nNoticed in the change by a check; judge whether the task needs it:\n" + "\n".join(lines)
