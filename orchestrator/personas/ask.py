"""The answer loop: ask, extract, read, complete, judge; send back with findings while the budget lasts (DESIGN 5.5)."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from orchestrator.domain.events import Level
from orchestrator.domain.findings import Finding, blocking, major
from orchestrator.personas.desk import Desk, Heard, Request
from orchestrator.prompts.feedback import render_feedback

T = TypeVar("T")

Read = Callable[[Any], tuple[T | None, Sequence[Finding]]]
"""Extracted value → typed value (None when it has not the structure of one) and findings."""
Judge = Callable[[T], Awaitable[Sequence[Finding]]]
"""Typed value → findings; may touch the world through durable steps."""
Complete = Callable[[T | None, Heard, int], Awaitable[tuple[T | None, Sequence[Finding], int]]]
"""(value, what was heard, replies left) → (value with what was missing, findings, replies spent)."""


class Looked(NamedTuple):
    """What an action plan asked to be shown."""

    slots: Mapping[str, str]
    """Texts of the next request's slots."""
    only: bool
    """Whether it asked for nothing else, so that there is nothing to judge yet."""


Look = Callable[[Heard], Awaitable[Looked | None]]
"""What was heard → what it asked to be shown, None when nothing."""


@dataclass(frozen=True, kw_only=True)
class Asked(Generic[T]):
    """How an answer loop ended."""

    value: T | None
    """The last value that had the right structure in the last reply; None when that reply had none."""
    findings: tuple[Finding, ...]
    previous: str
    """The last reply verbatim."""

    @property
    def accepted(self) -> bool:
        """There is a value and nothing major is said about it."""
        return self.value is not None and not blocking(self.findings)


async def ask(
    desk: Desk,
    request: Request,
    *,
    read: Read[T],
    judge: Judge[T] | None = None,
    complete: Complete[T] | None = None,
    look: Look | None = None,
) -> Asked[T]:
    """Ask until an answer is accepted or `request.replies` are used up; the last answer is returned either way.

    A reply that only asks to be shown something (`look`) is one of them; it is judged like any other when it is the
    last.
    """
    feedback, used = request.feedback, 0
    repairs = int(desk.policies.answer.repair_requests)
    while True:
        heard = await desk.hear(request, feedback, may_repair=repairs > 0)
        used += 1
        repairs -= heard.repair_asked
        value, findings = _read(heard, read)
        looked = await look(heard) if look is not None and used < request.replies else None
        if looked is not None:
            request = request.showing(looked.slots)
            if looked.only:
                continue
        if complete is not None:
            completed, more, spent = await complete(value, heard, request.replies - used)
            if value is None and completed is not None:
                findings = []  # what was said about an unreadable answer says nothing once its completion could be read
            value, findings, used = completed, [*findings, *more], used + spent
        if (complete is None and heard.cut_off) or (value is None and heard.at_limit):
            findings.append(major("answer.truncated", "the answer was cut off", fix="answer again, whole and shorter"))
        if judge is not None and value is not None and not blocking(findings):
            findings.extend(await judge(value))
        asked = Asked(value=value, findings=tuple(findings), previous=heard.reply.text)
        if asked.accepted or used >= request.replies:
            return asked
        await _send_back(desk, request, asked, used)
        request, feedback = request.after(heard), render_feedback(asked.findings, asked.previous)


def _read(heard: Heard, read: Read[T]) -> tuple[T | None, list[Finding]]:
    if heard.extraction.value is None:
        told = [problem for problem in heard.extraction.problems if problem.severity.blocks]
        return None, told or [major("answer.refused", "no JSON value could be read", fix="answer with the JSON only")]
    value, findings = read(heard.extraction.value)
    return value, list(findings)


async def _send_back(desk: Desk, request: Request, asked: Asked[T], used: int) -> None:
    blocked = blocking(asked.findings)
    await desk.step.emit(
        "answer_sent_back",
        f"{request.persona}'s {request.purpose} is sent back: {blocked[0].message if blocked else 'no value'}",
        level=Level.WARN,
        task=request.task,
        persona=request.persona,
        attempt=used,
        findings=[finding.model_dump(mode="json") for finding in blocked],
    )
