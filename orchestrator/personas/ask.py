"""The answer loop: ask, extract, read, complete, judge; send back with findings while the budget lasts."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

from orchestrator.core.command import Verdict
from orchestrator.core.errors import AnswerInvalid, AnswerRefused, AnswerTruncated, SchemaValidationError
from orchestrator.core.event import Level
from orchestrator.core.exchange import StopReason
from orchestrator.core.finding import Finding, blocking, major
from orchestrator.core.value import counted, squeezed
from orchestrator.personas.session import Desk, Heard, Request
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


Look = Callable[[Heard, Request], Awaitable[Looked | None]]
"""What was heard, what had been asked → what it asked to be shown, None when nothing."""


@dataclass(frozen=True, kw_only=True)
class Asked(Generic[T]):
    """How an answer loop ended, with a value."""

    value: T
    """The last value that had the right structure in the last reply."""
    findings: tuple[Finding, ...]
    previous: str
    """The last reply verbatim."""

    @property
    def accepted(self) -> bool:
        """Nothing major is said about the value."""
        return not blocking(self.findings)


async def ask(
    desk: Desk,
    request: Request,
    *,
    read: Read[T],
    judge: Judge[T] | None = None,
    complete: Complete[T] | None = None,
    look: Look | None = None,
) -> Asked[T]:
    """Ask until an answer is accepted or `request.replies` are used up; the last value is returned either way.

    Raises SchemaValidationError when there is none in it: AnswerTruncated, AnswerRefused or AnswerInvalid. A reply that
    only asks to be shown something (`look`) is one of them; it is judged like any other when it is the last.
    """
    feedback, request = request.feedback, replace(request, attempt=0)
    refused: set[str] = set()
    repairs = int(desk.policies.answer.repair_requests)
    while True:
        request = request.spent(1)
        heard = await desk.hear(request, feedback, may_repair=repairs > 0)
        repairs -= heard.repair_asked
        value, findings = _read(heard, read)
        if look is not None and request.left and (looked := await look(heard, request)) is not None:
            request = request.showing(looked.slots)
            if looked.only:
                continue
        if complete is not None:
            completed, more, spent = await complete(value, heard, request.left)
            if value is None and completed is not None:
                findings = []  # what was said about an unreadable answer says nothing once its completion could be read
            value, findings, request = completed, [*findings, *more], request.spent(spent)
        if (complete is None and heard.cut_off) or (value is None and heard.at_limit):
            findings.append(major("answer.truncated", "the answer was cut off", fix="answer again, whole and shorter"))
        if judge is not None and value is not None and not blocking(findings):
            findings.extend(await judge(value))
        accepted = value is not None and not blocking(findings)
        await _tell(desk, request, accepted, findings, repeated=squeezed(heard.reply.text) in refused)
        if accepted or not request.left:
            return _ended(request, heard, value, findings)
        request, feedback = request.after(heard), _feedback(desk, findings, heard.reply.text, refused)


def _feedback(desk: Desk, findings: Sequence[Finding], answer: str, refused: set[str]) -> str:
    """What is said of a refused answer, which becomes one of `refused`; that it is one of them already is said too."""
    told, said = render_feedback(findings, answer), squeezed(answer)
    again = desk.library.note("notes/same_answer") if said in refused else ""
    refused.add(said)
    return f"{told}\n\n{again}" if again else told


def _read(heard: Heard, read: Read[T]) -> tuple[T | None, list[Finding]]:
    if heard.extraction.value is None:
        told = [problem for problem in heard.extraction.problems if problem.severity.blocks]
        return None, _elsewhere(heard) or told
    value, findings = read(heard.extraction.value)
    return value, list(findings)


def _elsewhere(heard: Heard) -> list[Finding]:
    """What came in place of an answer."""
    if heard.declined:
        fix = "Answer in the shape asked for; what you will not do, leave out and say so inside the answer."
        return [major("answer.declined", "the model declined to answer", fix=fix)]
    if heard.reply.stop_reason is StopReason.TOOL_USE:
        fix = "Write the answer itself, as text."
        return [major("answer.tool_call", "a tool was called and none was offered", fix=fix)]
    return []


def _ended(request: Request, heard: Heard, value: T | None, findings: Sequence[Finding]) -> Asked[T]:
    if value is None:
        times = counted(request.attempt, "time")
        cls, told = _unanswered(heard, f"{request.persona} was asked {times} for the {request.purpose}")
        name, said = heard.reply.provider, heard.reply.text
        raise cls(told.message, provider_name=name, original_message=said, findings=(told, *findings))
    return Asked(value=value, findings=tuple(findings), previous=heard.reply.text)


def _unanswered(heard: Heard, asked: str) -> tuple[type[SchemaValidationError], Finding]:
    """Which error it is that no value came, and what it comes to for a person."""
    fix = "read what came (`answers export`); a higher limit, another model, a smaller story may help: reset it then"
    if heard.cut_off:
        return AnswerTruncated, major("answer.truncated", f"{asked}, and the last answer was cut off", fix=fix)
    if heard.unreadable:
        return AnswerRefused, major("answer.refused", f"{asked}, and nothing could be read in the last answer", fix=fix)
    return AnswerInvalid, major("answer.invalid", f"{asked}, and the last answer could not be accepted", fix=fix)


async def _tell(desk: Desk, request: Request, accepted: bool, findings: Sequence[Finding], *, repeated: bool) -> None:
    """What the loop does with the answer that it asked for last; `repeated`: it was refused before, word for word."""
    what = f"{request.persona}'s {request.purpose}"
    if accepted:
        await desk.emit(
            request,
            "answer_accepted",
            f"{what} is accepted",
            level=Level.DEBUG,
            purpose=request.purpose,
            **request.decided(Verdict.ACCEPTED, findings),
        )
        return
    blocked = blocking(findings)
    said = f"{'the same answer again, ' * repeated}{blocked[0].message if blocked else 'no value'}"
    how = f"is not asked for again after {counted(request.replies, 'reply', 'replies')}"
    await desk.emit(
        request,
        "answer_sent_back" if request.left else "answer_given_up",
        f"{what} {'is sent back' if request.left else how}: {said}",
        level=Level.WARN,
        purpose=request.purpose,
        repeated=repeated,
        **request.decided(Verdict.SENT_BACK if request.left else Verdict.GIVE_UP, blocked),
    )
