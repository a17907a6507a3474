"""What is asked of a persona, and what was heard: values, without the desk that asks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal

from orchestrator.answers import Extraction, Status
from orchestrator.answers.action_plan import PLAN_LAYER
from orchestrator.answers.looks import look_in
from orchestrator.answers.whole_files import LAYER as WHOLE_LAYER
from orchestrator.answers.whole_files import Wanted
from orchestrator.core.calls.exchange import Purpose, Reply, StopReason
from orchestrator.core.command import Loop, decided
from orchestrator.core.finding import Finding
from orchestrator.core.value import AnswerValue, repeated_end
from orchestrator.personas.shown import Shown
from orchestrator.settings import WireFormat

# Every service takes it, most have it as their own; a server that was told 0 says the same for ever.
OTHER_TEMPERATURE = 1.0
"""Temperature of a request after the same answer came twice."""
Form = Literal["plan", "whole", "json"]
"""What files are asked for in: an action plan, paths and whole files, JSON."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """One thing asked of a persona, as the next reply is asked for it."""

    persona: str
    purpose: Purpose
    prompt: str
    """Name in the prompt library; with `_plan` behind it where files are asked for as an action plan."""
    slots: Mapping[str, str]
    """Everything but the feedback."""
    task: str | None = None
    stronger: bool = False
    """Whether the persona's stronger model is asked."""
    filled_with: str = ""
    """Hash of a prompt of its own that fills a slot of this one: a part of its version."""
    answer: type[AnswerValue] = AnswerValue
    """Shape of the answer: the contract of its extraction."""
    schema_name: str | None = None
    """None: the answer has no schema."""
    replies: int = 1
    """Replies that may be asked for, the first included; the repair request comes on top."""
    attempt: int = 1
    """Which of them it asks for."""
    feedback: str = ""
    shows_schema: bool = True
    """Whether the prompt shows the schema, unless it asks for a plan."""
    form: Form | None = None
    """In which form files are asked for; None where none are."""
    whole_slots: Mapping[str, str] = field(default_factory=dict)
    """Slots in place of others where whole files are asked for as JSON."""
    falls_back: bool = False
    """Whether another form is asked for after an answer that could not be read: plan, whole files, JSON."""
    wanted: Wanted | None = None
    """The files that are asked for, where whole ones are read as they come."""
    may_repair: bool = True
    """Whether a repair may be asked for at all; not of a request that is the only one by itself."""
    temperature: float | None = None
    """None: the service's own."""
    keeps_whole: bool = False
    """Whether of an answer that was cut off is kept what came whole."""
    shown: Shown | None = None
    """What is shown of the project, where the persona may look at more of it."""

    def in_form(self, form: WireFormat) -> "Request":
        """Returns the same asked for in this form; `auto` begins with a plan, and takes the next when it is not met."""
        chosen: Form = "plan" if form == "auto" else form
        asked = replace(self, form=chosen, falls_back=form == "auto")
        return asked if chosen == "plan" else asked.showing(self.whole_slots)

    @property
    def prompt_name(self) -> str:
        """Name of the prompt for the form that is asked for."""
        return f"{self.prompt}_{self.form}" if self.form in {"plan", "whole"} else self.prompt

    def answer_form(self, *, looks_as_json: bool) -> Literal["any", "json", "json_or_look"]:
        """Returns whether nothing but JSON of the schema is asked for: no plan, no whole files, no look as text."""
        if self.form in {"plan", "whole"}:
            return "any"
        if self.shown is None:
            return "json"
        return "json_or_look" if looks_as_json else "any"

    def after(self, heard: "Heard") -> "Request":
        """Returns what is to be sent next when this answer was not accepted."""
        if not self.falls_back or not heard.unreadable or heard.broken_off:
            return self
        form: Form = "whole" if self.form == "plan" and self.wanted is not None else "json"
        return replace(self, form=form).showing(self.whole_slots)

    def otherwise(self, heard: "Heard", stronger: Sequence[str]) -> "Request":
        """Returns what is to be sent next when the same answer came again; `stronger`: personas with such a model."""
        asked = self.after(heard)
        if asked.falls_back and heard.unreadable and asked.form == self.form:
            asked = replace(asked, form="json" if self.form == "plan" else "plan")
        return asked.warmer(stronger)

    def warmer(self, stronger: Sequence[str]) -> "Request":
        """Returns the same with another temperature, to the stronger model where there is one."""
        return replace(self.by_stronger(stronger), temperature=OTHER_TEMPERATURE)

    def by_stronger(self, stronger: Sequence[str]) -> "Request":
        """Returns the same, to the stronger model where there is one."""
        return replace(self, stronger=self.stronger or self.persona in stronger)

    def no_more(self) -> "Request":
        """Returns the same with its budget used up."""
        return replace(self, replies=self.attempt)

    def repairable(self, heard: "Heard") -> bool:
        """Returns whether a model may be asked to repair it: JSON is repaired, the other forms are asked for again."""
        never_json = self.form == "whole" or (self.form == "plan" and not self.falls_back)
        whole = heard.meant_as_plan or heard.broken_off or heard.only_looks
        return self.may_repair and not never_json and not whole

    def decided(self, verdict: StrEnum, findings: Iterable[Finding] = ()) -> dict[str, Any]:
        """Returns what an event about the answer to it says of the decision."""
        return decided(Loop.ANSWER, verdict, findings=findings, attempt=self.attempt, budget_left=self.left)

    @property
    def left(self) -> int:
        """Replies that may still be asked for."""
        return max(0, self.replies - self.attempt)

    def spent(self, replies: int) -> "Request":
        """Returns the same when this many more replies have been asked for."""
        return replace(self, attempt=self.attempt + replies)

    def showing(self, slots: Mapping[str, str]) -> "Request":
        """Returns the same with other texts in these slots."""
        return replace(self, slots={**self.slots, **slots})


@dataclass(frozen=True, kw_only=True)
class Heard:
    """A reply and what could be extracted from it."""

    reply: Reply
    extraction: Extraction
    repair_asked: bool = False

    @property
    def stopped_early(self) -> bool:
        """Returns whether the model had no room left, or its stream broke."""
        return self.reply.stop_reason in {StopReason.MAX_TOKENS, StopReason.INTERRUPTED}

    @cached_property
    def endless(self) -> bool:
        """Returns whether the answer was stopped while it repeated itself."""
        return self.stopped_early and repeated_end(self.reply.text) is not None

    @property
    def declined(self) -> bool:
        """Returns whether the model, or a filter between it and us, refused to answer or to continue."""
        return self.reply.stop_reason is StopReason.REFUSAL

    @property
    def broken_off(self) -> bool:
        """Returns whether the reply is not an answer: a refusal, or a call of a tool that was not offered."""
        return self.declined or self.reply.stop_reason is StopReason.TOOL_USE

    @property
    def only_looks(self) -> bool:
        """Returns whether nothing is said but which files are to be shown."""
        return look_in(self.reply.text) is not None

    @property
    def stopped_inside(self) -> bool:
        """Returns whether the model was stopped within an answer, so that a continuation may follow."""
        return self.stopped_early or (self.declined and not self.unreadable)

    @property
    def cut_off(self) -> bool:
        """Returns whether only a part of the answer is there.

        Where the model stopped is weighed with what came: a whole value is whole although the limit was reached behind
        it; a text that cannot be read and ends at the limit was cut. A plan that reads well says nothing by its end:
        whether it lacks actions is for who knows what they were to be.
        """
        return self.extraction.status is Status.TRUNCATED or (self.unreadable and self.stopped_early)

    @property
    def unreadable(self) -> bool:
        """Returns whether no value could be read."""
        return self.extraction.status is Status.REFUSED

    @property
    def is_plan(self) -> bool:
        """Returns whether it came as an action plan that could be read."""
        return self.extraction.layer == PLAN_LAYER

    @property
    def form(self) -> Form:
        """Returns the form that it came in, as far as it could be read."""
        return "plan" if self.meant_as_plan else "whole" if self.extraction.layer == WHOLE_LAYER else "json"

    @property
    def meant_as_plan(self) -> bool:
        """Returns whether it is an action plan, readable or not."""
        return self.is_plan or any(problem.code.startswith("plan.") for problem in self.extraction.problems)
