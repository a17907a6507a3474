"""The answer loop: ask, extract, read, complete, judge; send back with findings while the budget lasts."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

from tenacity import RetryCallState

from orchestrator.core.calls.exchange import Purpose, StopReason
from orchestrator.core.command import Loop
from orchestrator.core.delivery import Delivery
from orchestrator.core.errors import SchemaValidationError
from orchestrator.core.finding import Finding, blocking, major
from orchestrator.core.suite import TestSuite
from orchestrator.core.value import counted, repeated_end, shortened, squeezed
from orchestrator.personas.request import Form, Heard, Request
from orchestrator.personas.session import Desk
from orchestrator.prompts.budget import render_excerpt
from orchestrator.prompts.feedback import is_of_form, render_feedback
from orchestrator.settings.policies import result_of

T = TypeVar("T")

MOST_ALIKE = 2
"""How often the same answer may come before it is asked for no more; the second time changes the request."""
TOO_LONG = "delivery.too_long"
"""Code of the finding on a file that fits into no answer."""

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

    Raises SchemaValidationError when there is none in it. A reply that only asks to be shown something (`look`) counts
    as one of them; it is judged like any other when it is the last.
    """
    answers = _Answers(desk, request, read, judge, complete, look)
    name = Loop.BUILD if request.purpose is Purpose.DELIVERY else Loop.ANSWER
    loop = desk.policies.loop(
        name, lambda answer: not answer.accepted, left=answers.left, before_next=answers.send_back
    )
    last: _Answer[T] = await loop(answers.next)
    await answers.tell(last)
    return _ended(answers.request, last)


_IN_FORM: Mapping[Form, str] = {
    "plan": "Answer with one action plan, as it is described under Output.",
    "whole": "Write one line with the file's path in backticks, then one fenced block with the whole file.",
    "json": "Answer with one JSON object, as it is described under Output.",
}
"""What is to be done about an answer that could not be read, by the form that is asked for next."""


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
        self._refused: Counter[str] = Counter()
        self._said: list[Finding] = []
        """What was said of the answers that were sent back."""
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
        if TOO_LONG in {one.code for one in findings}:
            findings = [one for one in findings if one.code == TOO_LONG]  # the rest follows from it
        elif (
            (self._complete is None and heard.cut_off)
            or (value is None and heard.stopped_early)
            or (heard.endless and blocking(findings))
        ):
            findings.append(_not_whole(heard))
        if self._judge is not None and value is not None and not blocking(findings):
            findings.extend(await self._judge(value))
        answer = _Answer(heard, value, findings)
        if not answer.accepted:
            await self._end_in_vain(answer)
        return answer

    async def _end_in_vain(self, answer: _Answer[T]) -> None:
        """Ends the loop when another request is in vain.

        So it is when the same answer came although it was asked for otherwise, and when a file was twice too long.
        """
        times = 1 + self._refused[squeezed(answer.heard.reply.text)]
        too_long = TOO_LONG in {one.code for one in answer.findings} & {one.code for one in self._said}
        if not (times > MOST_ALIKE or too_long) or not self.left():
            return
        self.request = self.request.no_more()
        if times > MOST_ALIKE:
            told = f"the same answer came {counted(times, 'time')}, also when it was asked for otherwise"
            fix = "name a stronger model for this persona, or make the story smaller"
            answer.findings.append(major("answer.repeated", told, fix=fix))

    async def send_back(self, state: RetryCallState) -> None:
        """The next request says what was wrong with this answer."""
        answer: _Answer[T] = result_of(state)
        if answer.looks:
            return
        await self.tell(answer)
        heard, asked = answer.heard, self.request
        text, again = squeezed(heard.reply.text), ""
        if text in self._refused:
            self.request = asked.otherwise(heard, self._desk.policies.stronger)
            again = self._desk.library.note("notes/same_answer", lines=_faulty_lines(answer)).rstrip()
        else:
            self.request = asked.after(heard)
            if (faults := _faults(answer.findings)) and faults <= _faults(self._said):
                self.request = self.request.by_stronger(self._desk.policies.stronger)
        if heard.endless:  # the likeliest word after a loop is the loop's
            self.request = self.request.warmer(self._desk.policies.stronger)
        if TOO_LONG in {one.code for one in answer.findings} and self._desk.policies.may_plan(self.request.persona):
            # JSON holds nothing but whole files.
            self.request = replace(self.request, form="plan")
        # A model goes on in a text that breaks off: it would be cut again.
        shown = None if heard.cut_off or heard.stopped_early else heard.reply.text
        given = "plan" if heard.meant_as_plan else asked.form if heard.unreadable else "json"
        other = asked.form is not None and self.request.form != given
        findings = [self._in_next_form(one, heard, other_form=other) for one in answer.findings]
        told = render_feedback(findings, shown, self._said, other_form=other)
        self._feedback = "\n\n".join(filter(None, (self.request.feedback, told, again)))
        self._said += blocking(answer.findings)
        self._refused[text] += 1

    def _in_next_form(self, finding: Finding, heard: Heard, *, other_form: bool) -> Finding:
        """Returns a finding on an answer's form with what the next request asks for in place of what would mend it."""
        form = self.request.form
        told = form is not None and self.request.wanted is not None and heard.unreadable
        if (other_form and is_of_form(finding)) or (told and finding.code == "answer.none"):
            return finding.model_copy(update={"fix": _IN_FORM[form] if told and form is not None else ""})
        return finding

    async def tell(self, answer: _Answer[T]) -> None:
        """Record what is done with an answer."""
        repeated = squeezed(answer.heard.reply.text) in self._refused
        await self._desk.tell_judged(self.request, answer.accepted, answer.findings, repeated=repeated)


def _not_whole(heard: Heard) -> Finding:
    """Returns why the end of an answer did not come."""
    if not heard.endless:
        return major("answer.truncated", "the answer was cut off", fix="answer again, whole and shorter")
    piece = shortened(repeated_end(heard.reply.text) or "", 60)
    told = f"the answer repeated {f'`{piece}`' if piece else 'blanks'} without end, and was cut off there"
    return major("answer.degenerate", told, fix="Answer again, and end the answer once everything is said.")


def _faults(findings: Sequence[Finding]) -> set[tuple[str, str | None]]:
    """Returns what is wrong, and in which file, wherever in it."""
    return {(one.code, one.where.file) for one in blocking(findings)}


_FAULTY = 3
"""Faulty places that are shown of an answer that came again."""


def _faulty_lines(answer: _Answer[Any]) -> str:
    """Returns the places that the findings name, as they stand in the answer; "" where they name none."""
    files = _files(answer.value)
    shown = dict[str, None]()
    for finding in blocking(answer.findings):
        where, text = finding.where, answer.heard.reply.text
        if where.line is None or (where.file not in files and not is_of_form(finding)):
            continue
        place = f"line {where.line} of {'your answer' if where.file not in files else f'`{where.file}`'}"
        excerpt = render_excerpt(files.get(where.file or "", text), where.line, where.column or 1)
        shown[f"It fails at {place}: {finding.message}\n\n{excerpt}"] = None
    return "\n\n".join([*shown][:_FAULTY])


def _files(value: object) -> Mapping[str, str]:
    """Returns path → text of the files in an answer."""
    if isinstance(value, TestSuite):
        return {change.path: change.content for change in value.changes}
    return {change.path: change.content for change in value.files} if isinstance(value, Delivery) else {}


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
        told = _unanswered(heard, f"{request.persona} was asked {times} for the {request.purpose}")
        name, said = heard.reply.provider, heard.reply.text
        raise SchemaValidationError(
            told.message, provider_name=name, original_message=said, findings=(told, *last.findings)
        )
    return Asked(value=last.value, findings=tuple(last.findings), previous=heard.reply.text)


def _unanswered(heard: Heard, asked: str) -> Finding:
    """Returns why no value came, and what it comes to for a person."""
    fix = "read what came (on the story's page); a higher limit, another model, a smaller story may help: reset it then"
    if heard.cut_off:
        return major("answer.truncated", f"{asked}, and the last answer was cut off", fix=fix)
    if heard.unreadable:
        return major("answer.refused", f"{asked}, and nothing could be read in the last answer", fix=fix)
    return major("answer.invalid", f"{asked}, and the last answer could not be accepted", fix=fix)
