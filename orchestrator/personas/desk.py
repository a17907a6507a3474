"""What a persona works with: one story's Step, the prompts, the budgets."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from orchestrator.answers import Extraction, Status, extract
from orchestrator.domain.base import AnswerValue
from orchestrator.domain.events import Level
from orchestrator.domain.exchange import Prompt, Purpose, Reply, StopReason, TurnKey
from orchestrator.personas.repair import RepairRequest, repair_request
from orchestrator.personas.telling import account, telling
from orchestrator.ports import Step
from orchestrator.prompts import context
from orchestrator.prompts.render import PromptLibrary
from orchestrator.settings import Policies


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
    def at_limit(self) -> bool:
        """Whether the model stopped because it had no room left."""
        return self.reply.stop_reason is StopReason.MAX_TOKENS

    @property
    def cut_off(self) -> bool:
        """Whether only a part of the answer is there.

        Where the model stopped is weighed with what came: a whole value is whole although the limit was reached behind
        it; a text that cannot be read and ends at the limit was cut.
        """
        status = self.extraction.status
        return status is Status.TRUNCATED or (status is Status.REFUSED and self.at_limit)


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

        A text that was cut off is not sent for repair: closed by a model, its first part would pass for the whole.
        """
        slots = {**request.slots, "schema": self._schema(request)}
        if feedback is not None:
            slots["feedback"] = feedback
        reply = await self.step.turn(self._prompt(request, request.purpose, request.prompt, slots))
        heard = Heard(reply=reply, extraction=extract(reply.text, request.answer))
        await self._tell(request, heard)
        if heard.extraction.status is not Status.REFUSED or heard.cut_off or not may_repair:
            return heard
        repair = repair_request(
            reply, heard.extraction, request.answer, json.loads(self.schemas[request.schema_name]),
            self.policies.context_tokens,
        )  # fmt: skip
        return await self._repaired(request, heard, repair) if repair else heard

    async def _repaired(self, request: Request, broken: Heard, repair: RepairRequest) -> Heard:
        """What the one repair request gave; the broken reply, with the request spent, when it gave nothing whole."""
        prompt = self._prompt(request, Purpose.REPAIR, repair.prompt, repair.slots, part=repair.part is not None)
        reply = await self.step.turn(prompt)
        found = repair.read(reply)
        what = f"{request.persona} repaired the {request.purpose}"
        if found is None:
            message = f"{request.persona}'s repair of the {request.purpose} is no whole answer either"
            await self.emit(request, "answer_repair_failed", message, level=Level.WARN, purpose=request.purpose)
            return replace(broken, repair_asked=True)
        mended, extraction = found
        await self.emit(request, "answer_repaired_by_model", what, **account(mended, extraction))
        return Heard(reply=mended, extraction=extraction, repair_asked=True)

    def _prompt(
        self, request: Request, purpose: Purpose, name: str, slots: Mapping[str, str], *, part: bool = False
    ) -> Prompt:
        return Prompt(
            key=TurnKey(persona=request.persona, story=self.story, task=request.task, purpose=purpose),
            segments=self.library.render(name, slots),
            name=name,
            version=self.library.version(name),
            # A part of a text is no answer of its own: no schema says what it must be.
            schema_name=None if part else request.schema_name,
        )

    def _schema(self, request: Request) -> str:
        return context.fence(self.schemas[request.schema_name], "json")

    async def _tell(self, request: Request, heard: Heard) -> None:
        told = telling(f"{request.persona}'s {request.purpose}", heard.reply, heard.extraction)
        if told is not None:
            await self.emit(request, told.name, told.message, level=told.level, **told.data)

    async def emit(
        self, request: Request, name: str, message: str, *, level: Level = Level.INFO, **data: object
    ) -> None:
        """Record an event about a request of a persona."""
        await self.step.emit(name, message, level=level, task=request.task, persona=request.persona, **data)
