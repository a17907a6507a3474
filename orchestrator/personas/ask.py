"""The answer loop: ask, extract, read, complete, judge; send back with findings while the budget lasts."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

from tenacity import RetryCallState

from orchestrator.core.command import Loop
from orchestrator.core.errors import AnswerInvalid, AnswerRefused, AnswerTruncated, SchemaValidationError
from orchestrator.core.exchange import Purpose, StopReason
from orchestrator.core.finding import Finding, blocking, major
from orchestrator.core.value import counted, squeezed
from orchestrator.personas.session import Desk, Heard, Request
from orchestrator.prompts.feedback import render_feedback
from orchestrator.settings.policies import result_of

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
    """Result of an answer loop that found a value."""

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
    answers = _Answers(desk, request, read, judge, complete, look)
    name = Loop.BUILD if request.purpose is Purpose.DELIVERY else Loop.ANSWER
    loop = desk.policies.loop(
        name, lambda answer: not answer.accepted, left=answers.left, before_next=answers.send_back
    )
    last: _Answer[T] = await loop(answers.next)
    await answers.tell(last)
    return _ended(answers.request, last)


@dataclass(frozen=True)
class _Answer(Generic[T]):
    """One round of the loop."""

    heard: Heard
    value: T | None
    findings: list[Finding]
    looks: bool = False
    """Whether it only asks to be shown something."""

    @property
    def accepted(self) -> bool:
        return self.value is not None and not self.looks and not blocking(self.findings)


class _Answers(Generic[T]):
    """State of an answer loop between its rounds."""

    def __init__(
        self,
        desk: Desk,
        request: Request,
        read: Read[T],
        judge: Judge[T] | None,
        complete: Complete[T] | None,
        look: Look | None,
    ) -> None:
        self._desk, self._read, self._judge, self._complete, self._look = desk, read, judge, complete, look
        self.request = replace(request, attempt=0)
        self._feedback = request.feedback
        self._refused: set[str] = set()
        self._repairs = int(desk.policies.answer.repair_requests)

    def left(self) -> int:
        """Replies that may still be asked for."""
        return self.request.left

    async def next(self) -> _Answer[T]:
        """Ask once, and judge what came."""
        self.request = self.request.spent(1)
        heard = await self._desk.hear(self.request, self._feedback, may_repair=self._repairs > 0)
        self._repairs -= heard.repair_asked
        value, findings = _read(heard, self._read)
        looks = self._desk.policies.looks
        look = self._look if self.left() or looks else None
        if look is not None and (looked := await look(heard, self.request)) is not None:
            self.request = self.request.showing(looked.slots)
            if looked.only and self.left():
                return _Answer(heard, value, findings, looks=True)
            if looks:
                # Held against what is shown now: a change of a file that was not shown may fit it.
                value, findings = _read(heard, self._read)
        if self._complete is not None:
            completed, more, spent = await self._complete(value, heard, self.left())
            if value is None and completed is not None:
                findings = []  # what was said about an unreadable answer says nothing once its completion could be read
            value, findings, self.request = completed, [*findings, *more], self.request.spent(spent)
        if (self._complete is None and heard.cut_off) or (value is None and heard.at_limit):
            findings.append(major("answer.truncated", "the answer was cut off", fix="answer again, whole and shorter"))
        if self._judge is not None and value is not None and not blocking(findings):
            findings.extend(await self._judge(value))
        return _Answer(heard, value, findings)

    async def send_back(self, state: RetryCallState) -> None:
        """The next request says what was wrong with this answer."""
        answer: _Answer[T] = result_of(state)
        if answer.looks:
            return
        await self.tell(answer)
        self.request, said = self.request.after(answer.heard), squeezed(answer.heard.reply.text)
        told = render_feedback(answer.findings, answer.heard.reply.text)
        again = self._desk.library.note("notes/same_answer") if said in self._refused else ""
        self._feedback = f"{told}\n\n{again}" if again else told
        self._refused.add(said)

    async def tell(self, answer: _Answer[T]) -> None:
        """Record what is done with an answer."""
        repeated = squeezed(answer.heard.reply.text) in self._refused
        await self._desk.tell_judged(self.request, answer.accepted, answer.findings, repeated=repeated)


def _read(heard: Heard, read: Read[T]) -> tuple[T | None, list[Finding]]:
    if heard.extraction.value is None:
        told = [problem for problem in heard.extraction.problems if problem.severity.blocks]
        return None, _elsewhere(heard) or told
    value, findings = read(heard.extraction.value)
    return value, list(findings)


def _elsewhere(heard: Heard) -> list[Finding]:
    """Returns what came in place of an answer."""
    if heard.declined:
        fix = "Answer in the shape asked for; what you will not do, leave out and say so inside the answer."
        return [major("answer.declined", "the model declined to answer", fix=fix)]
    if heard.reply.stop_reason is StopReason.TOOL_USE:
        fix = "Write the answer itself, as text."
        return [major("answer.tool_call", "a tool was called and none was offered", fix=fix)]
    if heard.only_looks:
        fix = "Answer with what you have been shown."
        return [major("answer.look", "more files were asked for, and no look is left", fix=fix)]
    return []


def _ended(request: Request, last: _Answer[T]) -> Asked[T]:
    heard = last.heard
    if last.value is None:
        times = counted(request.attempt, "time")
        cls, told = _unanswered(heard, f"{request.persona} was asked {times} for the {request.purpose}")
        name, said = heard.reply.provider, heard.reply.text
        raise cls(told.message, provider_name=name, original_message=said, findings=(told, *last.findings))
    return Asked(value=last.value, findings=tuple(last.findings), previous=heard.reply.text)


def _unanswered(heard: Heard, asked: str) -> tuple[type[SchemaValidationError], Finding]:
    """Returns which error it is that no value came, and what it comes to for a person."""
    fix = "read what came (`answers export`); a higher limit, another model, a smaller story may help: reset it then"
    if heard.cut_off:
        return AnswerTruncated, major("answer.truncated", f"{asked}, and the last answer was cut off", fix=fix)
    if heard.unreadable:
        return AnswerRefused, major("answer.refused", f"{asked}, and nothing could be read in the last answer", fix=fix)
    return AnswerInvalid, major("answer.invalid", f"{asked}, and the last answer could not be accepted", fix=fix)
