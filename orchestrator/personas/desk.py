"""What a persona works with: one story's Step, the prompts, the budgets."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.answers import Extraction, extract
from orchestrator.domain.base import AnswerValue
from orchestrator.domain.events import Level
from orchestrator.domain.exchange import Prompt, Purpose, Reply, TurnKey
from orchestrator.ports import Step
from orchestrator.prompts import context
from orchestrator.prompts.render import PromptLibrary
from orchestrator.settings import Policies

PREVIEW = 400
"""Characters of a broken answer that an event shows."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """One thing asked of a persona; `slots` holds everything but the feedback, which changes between replies."""

    persona: str
    purpose: Purpose
    prompt: str
    """Name in the prompt library."""
    answer: type[AnswerValue]
    """Shape of the answer: the contract of its extraction."""
    schema_name: str
    replies: int
    """Replies that may be asked for, the first included; the repair request comes on top."""
    slots: Mapping[str, str]
    task: str | None = None
    feedback: str = ""


@dataclass(frozen=True, kw_only=True)
class Heard:
    """A reply and what could be extracted from it."""

    reply: Reply
    extraction: Extraction
    repair_asked: bool = False

    @property
    def cut_off(self) -> bool:
        """Whether only a part of the answer is there."""
        return self.extraction.status == "truncated"


@dataclass(frozen=True, kw_only=True)
class Desk:
    """Shared by the personas of one running story."""

    step: Step
    library: PromptLibrary
    policies: Policies
    story: str
    schemas: Mapping[str, str] = field(default_factory=dict)
    """Schema name → its JSON text, for the prompts."""

    async def hear(self, request: Request, feedback: str | None = None, *, may_repair: bool = False) -> Heard:
        """Ask once, extract, tell what happened; ask for a repair when nothing could be extracted and it is allowed.

        A text of more than `policies.context_tokens` is not sent for repair: it is asked for anew.
        """
        slots = dict(request.slots)
        if feedback is not None:
            slots["feedback"] = feedback
        reply = await self.step.turn(self._prompt(request, request.purpose, request.prompt, slots))
        heard = Heard(reply=reply, extraction=extract(reply.text, request.answer))
        await self._tell(request, heard)
        if heard.extraction.status == "refused" and may_repair and self._repairable(reply.text):
            return await self._repair(request, heard)
        return heard

    def _repairable(self, text: str) -> bool:
        """A text beyond the budget would have to be shortened, and a repair of a part passes for the whole."""
        return context.tokens(text) <= self.policies.context_tokens

    async def _repair(self, request: Request, broken: Heard) -> Heard:
        problems = "\n".join(f"- {problem}" for problem in broken.extraction.problems)
        slots = {"problem": problems, "broken": context.fence(broken.reply.text)}
        reply = await self.step.turn(self._prompt(request, Purpose.REPAIR, "repair", slots))
        mended = Heard(reply=reply, extraction=extract(reply.text, request.answer), repair_asked=True)
        if mended.extraction.status in {"ok", "repaired"}:
            await self._emit(request, "answer_repaired_by_model", f"{request.persona} repaired the {request.purpose}")
            return mended
        return Heard(reply=broken.reply, extraction=broken.extraction, repair_asked=True)

    def _prompt(self, request: Request, purpose: Purpose, name: str, slots: dict[str, str]) -> Prompt:
        slots["schema"] = self._schema(request)
        return Prompt(
            key=TurnKey(persona=request.persona, story=self.story, task=request.task, purpose=purpose),
            segments=self.library.render(name, slots),
            schema_name=request.schema_name,
        )

    def _schema(self, request: Request) -> str:
        return context.fence(self.schemas[request.schema_name], "json")

    async def _tell(self, request: Request, heard: Heard) -> None:
        extraction, persona = heard.extraction, request.persona
        if extraction.status == "repaired":
            kinds = Counter(repair.kind for repair in extraction.repairs)
            told = ", ".join(f"{kind} x{count}" for kind, count in sorted(kinds.items()))
            await self._emit(
                request, "answer_healed", f"{persona}'s {request.purpose} was not valid JSON and healed: {told}",
                layer=extraction.layer, repairs=dict(kinds),
            )  # fmt: skip
        elif extraction.status == "truncated":
            await self._emit(
                request, "answer_truncated", f"{persona}'s {request.purpose} was cut off; its whole items are kept",
                level=Level.WARN, layer=extraction.layer,
            )  # fmt: skip
        elif extraction.status == "refused":
            why = extraction.problems[0].message if extraction.problems else "no value found"
            await self._emit(
                request, "answer_refused", f"{persona}'s {request.purpose} holds no trustworthy value: {why}",
                level=Level.WARN, preview=heard.reply.text[:PREVIEW],
            )  # fmt: skip

    async def _emit(
        self, request: Request, name: str, message: str, *, level: Level = Level.INFO, **data: object
    ) -> None:
        await self.step.emit(name, message, level=level, task=request.task, persona=request.persona, **data)
