"""What a persona works with: one story's Step, the prompts, the budgets."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from orchestrator.answers import Extraction, Status, extract
from orchestrator.answers.action_plan import begins_with_an_action, plan_in, with_sections
from orchestrator.answers.looks import AS_JSON, look_in
from orchestrator.answers.whole_files import read_whole_files
from orchestrator.core.calls.exchange import Prompt, Purpose, Reply, StoryBrief, TurnKey
from orchestrator.core.command import Loop, Verdict, decided
from orchestrator.core.contract import Surface
from orchestrator.core.event import Level
from orchestrator.core.finding import Finding, blocking
from orchestrator.core.ports import Look, Step
from orchestrator.core.secrets import Masks
from orchestrator.core.value import AnswerValue, counted
from orchestrator.personas.request import Heard, Request
from orchestrator.personas.secrecy import Secrecy
from orchestrator.personas.shown import Shown
from orchestrator.prompts import context
from orchestrator.prompts.budget import fence, render_excerpt, tokens
from orchestrator.prompts.render import PromptLibrary
from orchestrator.settings import Policies

UNREADABLE = "answer.unreadable"
"""Code of the finding that names the place where an answer breaks."""


def repair_slots(
    broken: Reply, extraction: Extraction, schema: Mapping[str, Any], context_tokens: int
) -> dict[str, str] | None:
    """Returns what the repair request for a reply that was refused shows; None when it is empty or too long.

    A text that is longer than the context is not sent: a model would shorten it, and that would pass for the whole.
    """
    if not broken.text.strip() or tokens(broken.text) > context_tokens:
        return None
    place = next((one for one in extraction.problems if one.code == UNREADABLE and one.where.line), None)
    problem = "\n".join(f"- {problem}" for problem in extraction.problems)
    if place is not None:
        problem += f"\n\n{render_excerpt(broken.text, place.where.line or 1, place.where.column or 1)}"
    return {
        "schema": fence(json.dumps(schema, ensure_ascii=False), "json"),
        "problem": problem,
        "broken": fence(broken.text),
    }


# A long answer may need hundreds; the first show where it began to go wrong.
FIRST_REPAIRS = 5
"""Repairs whose offset is recorded; the others are counted."""
PREVIEW = 400
"""Characters of a broken answer that an event shows."""
ROLES = {"mike": "architect", "alex": "developer", "jordan": "tester", "analyst": "analyst"}
"""Persona → the folder of its prompts."""


def account(reply: Reply, extraction: Extraction) -> dict[str, Any]:
    """Which answer it was, the layer that found the value, and its repairs: counted by kind, the first with offsets."""
    return {
        "purpose": reply.key.purpose,
        "turn": reply.turn,
        "layer": extraction.layer,
        "repairs": dict(Counter(repair.kind for repair in extraction.repairs)),
        "first_repairs": [
            {"kind": repair.kind, "offset": repair.offset} for repair in extraction.repairs[:FIRST_REPAIRS]
        ],
    }


def _extracted(request: Request, text: str) -> Extraction:
    """Returns the value in a text: in the form that was asked for, in another, or as whole files that have none."""
    wanted, asked = request.wanted, request.form == "whole"
    if wanted is not None and asked and (whole := read_whole_files(text, wanted, asked=True)) is not None:
        return whole
    extraction = extract(text, request.answer)
    if wanted is None or asked or extraction.value is not None:
        return extraction
    return read_whole_files(text, wanted) or extraction


def _has_items(value: object) -> bool:
    """Returns whether any item of a list came whole: a task, a file, an action."""
    plan = plan_in(value)
    if plan is not None:
        return bool(plan.actions)
    return isinstance(value, dict) and any(isinstance(held, list) and held for held in value.values())


def _kinds(extraction: Extraction) -> str:
    """Returns `trailing_comma x2, comment x1`; "" without repairs."""
    found = sorted(Counter(repair.kind for repair in extraction.repairs).items())
    return ", ".join(f"{kind} x{count}" for kind, count in found)


async def _nothing(paths: Sequence[str]) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, kw_only=True)
class Desk:
    """Shared by the personas of one running story."""

    step: Step
    library: PromptLibrary
    policies: Policies
    story: str
    schemas: Mapping[str, str] = field(default_factory=dict)
    """Schema name → its JSON text, for the prompts."""
    masks: Masks = field(default_factory=Masks)
    """Masks for secrets in the prompts."""
    look: Look = _nothing
    """Reads files of the story's branch."""
    in_part: Callable[[str, str], str] = lambda _path, _text: ""
    """Returns of a long file, by path and text, what the story is about; "" where it has no such parts."""

    @cached_property
    def secrecy(self) -> Secrecy:
        """Returns what the prompts so far have shown to be secret."""
        return Secrecy(self.masks)

    def common(self, brief: StoryBrief, surface: Surface) -> dict[str, str]:
        """Returns the slots that all personas of the story begin with; `surface` is the project before the story."""
        return context.render_common(surface, brief.record, brief.story, self.policies.context_tokens)

    def shown(self, *texts: Mapping[str, str]) -> Shown:
        """Returns what a prompt shows that has these texts whole; its persona may look at other files."""
        whole = {path: text for shown in texts for path, text in shown.items()}
        room, looks = self.policies.context_tokens, self.policies.looks
        return Shown(whole, self.look, room, looks=looks, parts_of=self.in_part)

    def request(
        self, persona: str, purpose: Purpose, answer: type[AnswerValue], slots: Mapping[str, str], **more: Any
    ) -> Request:
        """Returns what is asked in the prompt and the schema of this purpose, within the answer budget."""
        usual = {
            "prompt": f"{ROLES[persona]}/{purpose}",
            "schema_name": str(purpose),
            "replies": 1 + self.policies.answer.max_attempts,
        }
        return Request(persona=persona, purpose=purpose, answer=answer, slots=slots, **{**usual, **more})

    async def reply(self, request: Request, feedback: str = "") -> Reply:
        """Ask once for an answer that has no schema."""
        return await self._asked(request, {**request.slots, "feedback": feedback})

    async def hear(self, request: Request, feedback: str | None = None, *, may_repair: bool = False) -> Heard:
        """Ask once, extract, tell what happened; ask for a repair when nothing could be extracted and it is allowed.

        A text that was cut off is not sent for repair: closed by a model, its first part would pass for the whole. Nor
        is what stands before a refusal or a call of a tool: the answer is not in it.
        """
        schema = self.schemas[request.schema_name or ""]
        slots = dict(request.slots)
        if request.shows_schema and request.form not in {"plan", "whole"}:
            slots["schema"] = fence(schema, "json")
        if feedback is not None:
            slots["feedback"] = feedback
        reply = await self._asked(request, slots)
        heard = Heard(reply=reply, extraction=await asyncio.to_thread(_extracted, request, reply.text))
        await self._tell(request, heard)
        if not heard.unreadable or heard.cut_off or not (may_repair and request.repairable(heard)):
            return heard
        repair = repair_slots(reply, heard.extraction, json.loads(schema), self.policies.context_tokens)
        return await self._repaired(request, heard, repair) if repair else heard

    async def _repaired(self, request: Request, broken: Heard, slots: Mapping[str, str]) -> Heard:
        """Returns the reply of the one repair request; the broken reply, with the request spent, if it is unusable."""
        reply = await self._turn(replace(request, purpose=Purpose.REPAIR, prompt="repair", form=None), slots)
        extraction = await asyncio.to_thread(extract, reply.text, request.answer)
        if extraction.status not in {Status.OK, Status.REPAIRED}:
            message = f"{request.persona}'s repair of the {request.purpose} is no whole answer either"
            await self.emit(
                request, "answer_repair_failed", message, level=Level.WARN, purpose=request.purpose,
                **request.decided(Verdict.NOT_REPAIRED, broken.extraction.problems),
            )  # fmt: skip
            return replace(broken, repair_asked=True)
        what = f"{request.persona} repaired the {request.purpose}"
        await self.emit(
            request, "answer_repaired_by_model", what, **account(reply, extraction),
            **request.decided(Verdict.REPAIRED, broken.extraction.problems),
        )  # fmt: skip
        return Heard(reply=reply, extraction=extraction, repair_asked=True)

    async def _asked(self, request: Request, slots: Mapping[str, str]) -> Reply:
        """Returns the reply. One that only asks to be shown files is followed by the same request with them, as often
        as looks are left: it costs a call, and no attempt."""
        shown = request.shown
        if shown is None:
            return await self._with_sections(request, await self._turn(request, slots))
        while True:
            seen = {**slots, **shown.slots, **(request.whole_slots if request.form in {"json", "whole"} else {})}
            reply = await self._with_sections(request, await self._turn(request, seen))
            wanted = look_in(reply.text) if shown.looks_left else None
            if wanted is None:
                return reply
            files = await shown.free_look(wanted.reads, wanted.prunes)
            message = f"{request.persona} is shown {', '.join(files) or 'nothing more'}"
            said = decided(Loop.ANSWER, Verdict.SHOWN, attempt=max(1, request.attempt), budget_left=request.left)
            await self.emit(
                request, "files_shown", message, files=list(files), pruned=list(wanted.prunes), only=True, **said
            )

    async def _with_sections(self, request: Request, reply: Reply) -> Reply:
        """Returns a reply of actions alone as the plan that it is."""
        if request.purpose is Purpose.CONTINUATION or not begins_with_an_action(reply.text):
            return reply  # a continuation begins where a plan was cut off
        whole = await asyncio.to_thread(with_sections, reply.text)
        return reply if whole is None else reply.model_copy(update={"text": whole})

    async def _turn(self, request: Request, slots: Mapping[str, str]) -> Reply:
        prompt, fresh = await asyncio.to_thread(self._prompt, request, slots)
        if fresh:
            more = f" (and {len(fresh) - 1} more)" if len(fresh) > 1 else ""
            message = f"{request.persona} is not shown a secret: {fresh[0].message}{more}"
            told = [finding.model_dump(mode="json") for finding in fresh]
            await self.emit(request, "secret_masked", message, level=Level.WARN, findings=told)
        return await self.step.turn(prompt)

    def _prompt(self, request: Request, slots: Mapping[str, str]) -> tuple[Prompt, Sequence[Finding]]:
        """Returns the prompt, and the secrets that are masked in it for the first time: all prompts are made here."""
        plain, fresh = self.secrecy.masked(slots)
        segments = self.library.render(request.prompt_name, plain)
        looks = any(AS_JSON in segment.text for segment in segments)
        prompt = Prompt(
            key=TurnKey(persona=request.persona, story=self.story, task=request.task, purpose=request.purpose),
            segments=segments,
            name=request.prompt_name,
            version="+".join(filter(None, (self.library.version(request.prompt_name), request.filled_with))),
            schema_name=request.schema_name,
            answer_form="json" if request.purpose is Purpose.REPAIR else request.answer_form(looks_as_json=looks),
            stronger=request.stronger,
            temperature=request.temperature,
        )
        return prompt, fresh

    async def _tell(self, request: Request, heard: Heard) -> None:
        """Record how an answer came: nothing more is said of one that came whole and valid."""
        what, reply, extraction = f"{request.persona}'s {request.purpose}", heard.reply, heard.extraction
        healed, problems = _kinds(extraction), [str(problem) for problem in extraction.problems]
        if extraction.status is Status.REPAIRED:
            await self.emit(
                request,
                "answer_healed",
                f"{what} was not as asked for and healed (layer {extraction.layer}): {healed}",
                **account(reply, extraction),
                **request.decided(Verdict.HEALED, extraction.problems),
            )
        if extraction.status is Status.TRUNCATED:
            kept = "; its whole items are kept" if request.keeps_whole and _has_items(extraction.value) else ""
            await self.emit(
                request,
                "answer_truncated",
                f"{what} was cut off{kept}{f'; healed: {healed}' if healed else ''}",
                level=Level.WARN,
                stop_reason=reply.stop_reason,
                problems=problems,
                **account(reply, extraction),
                **request.decided(Verdict.CUT_OFF, extraction.problems),
            )
        elif extraction.status is Status.REFUSED:
            why = str(extraction.problems[0].message) if extraction.problems else "no value found"
            await self.emit(
                request,
                "answer_refused",
                f"{what} holds no trustworthy value: {why}",
                level=Level.WARN,
                stop_reason=reply.stop_reason,
                problems=problems,
                preview=reply.text[:PREVIEW],
                **account(reply, extraction),
                **request.decided(Verdict.UNREADABLE, extraction.problems),
            )

    async def tell_judged(
        self, request: Request, accepted: bool, findings: Sequence[Finding], *, repeated: bool = False
    ) -> None:
        """Record what an answer loop does with an answer; `repeated`: it was refused before, word for word."""
        what = f"{request.persona}'s {request.purpose}"
        if accepted:
            await self.emit(
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
        await self.emit(
            request,
            "answer_sent_back" if request.left else "answer_given_up",
            f"{what} {'is sent back' if request.left else how}: {said}",
            level=Level.WARN,
            purpose=request.purpose,
            repeated=repeated,
            **request.decided(Verdict.SENT_BACK if request.left else Verdict.GIVE_UP, blocked),
        )

    async def emit(
        self, request: Request, name: str, message: str, *, level: Level = Level.INFO, **data: object
    ) -> None:
        """Record an event about something asked of a persona."""
        await self.step.emit(name, message, level=level, task=request.task, persona=request.persona, **data)
