"""`ports.Step` bound to dbos: results recorded by step number, events numbered by their order in the workflow."""

from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from dbos import DBOS
from pydantic import TypeAdapter

from orchestrator.domain.decisions import Loop, Verdict, decided
from orchestrator.domain.events import Event, Level
from orchestrator.domain.exchange import FailedCall, Prompt, Reply
from orchestrator.domain.findings import Finding, critical, minor
from orchestrator.domain.gate import Gate, GateAnswer
from orchestrator.engine.codec import pack, restored, storable, unpack
from orchestrator.engine.gates import GateKeeper
from orchestrator.engine.room import IsFull, with_room
from orchestrator.engine.switchboard import Ticket
from orchestrator.engine.turns import TurnTaker, describe
from orchestrator.errors import OrchestratorError, ProviderError, WorkspaceError
from orchestrator.ports import Clock, EventSink, TurnJournal

T = TypeVar("T")


@lru_cache(maxsize=64)
def _adapter(returns: Any) -> TypeAdapter[Any]:
    """Built once per type: building one for a container takes longer than using it."""
    return TypeAdapter(returns)


class DurableStep:
    """The Step of one running workflow. Made anew on each execution; its counters restart with the body."""

    def __init__(
        self,
        *,
        workflow_id: str,
        sprint: str,
        story: str,
        journal: TurnJournal,
        turns: TurnTaker,
        gates: GateKeeper,
        ticket: Ticket,
        is_full: IsFull,
        sink: EventSink,
        clock: Clock,
    ) -> None:
        self._workflow_id = workflow_id
        self._sprint, self._story = sprint, story
        self._journal, self._turns = journal, turns
        self._gates, self._ticket, self._is_full = gates, ticket, is_full
        self._sink, self._clock = sink, clock
        self._events = self._asked = 0

    @property
    def workflow_id(self) -> str:
        """`<sprint>/<story>`, with `@N` behind it after a reset."""
        return self._workflow_id

    async def step(self, name: str, work: Callable[[str], Awaitable[T]], returns: Any) -> T:
        """See ports.Step."""
        adapter: TypeAdapter[T] = _adapter(returns)

        async def recorded() -> dict[str, Any]:
            name_of_step = f"{self._workflow_id}/{DBOS.step_id}"
            await self._ticket.clear(paid=False)
            try:
                async with self._ticket.at_work():
                    value = await with_room(lambda: work(name_of_step), self._wait_for_room, self._is_full)
            except OrchestratorError as error:
                return storable({"error": pack(error)})
            except OSError as error:
                return storable({"error": pack(_disk_error(name, error))})
            return storable({"value": adapter.dump_python(value, mode="json")})

        result = restored(await DBOS.run_step_async({"name": name}, recorded))
        if "error" in result:
            raise unpack(result["error"])
        return adapter.validate_python(result["value"])

    async def turn(self, prompt: Prompt) -> Reply:
        """See ports.Step."""
        what = describe(prompt.key)
        persona, task = prompt.key.persona, prompt.key.task
        await self.emit(
            "turn_started", f"{persona} is asked: {what}", level=Level.DEBUG, persona=persona, task=task,
            purpose=prompt.key.purpose, prompt_hash=prompt.hash, prompt=prompt.name, prompt_version=prompt.version,
        )  # fmt: skip

        async def recorded() -> dict[str, Any]:
            step = int(DBOS.step_id or 0)
            try:
                reply = await self._turns.take(self._journal, step, prompt, self._ticket, self._wait_for_room)
            except ProviderError as error:
                failed = [failure.model_dump(mode="json") for failure in self._journal.failures(step)]
                return storable({"error": pack(error), "failed_calls": failed})
            except OSError as error:
                return storable({"error": pack(_disk_error("reply journal", error))})
            return storable({"value": reply.model_dump(mode="json")})

        result = restored(await DBOS.run_step_async({"name": f"turn:{prompt.key.purpose}"}, recorded))
        if "error" in result:
            error = unpack(result["error"])
            failures = [FailedCall.model_validate(failed) for failed in result.get("failed_calls", ())]
            await self._tell_retries(prompt, failures[:-1])
            await self.emit(
                "turn_failed", f"{persona}: {error.message}", level=Level.ERROR, persona=persona, task=task,
                purpose=prompt.key.purpose,
                **decided(Loop.TRANSPORT, Verdict.GIVE_UP, findings=[_final(error)], attempt=len(failures) or 1,
                          budget_left=0),
            )  # fmt: skip
            raise error
        reply = Reply.model_validate(result["value"])
        await self._tell_reply(reply, prompt)
        return reply

    async def open_gate(self, gate: Gate, timeout_s: float | None) -> Gate:
        """See ports.Step."""
        self._asked += 1
        number = self._asked

        async def recorded() -> dict[str, Any]:
            return storable(self._gates.opened(gate, number, timeout_s).model_dump(mode="json"))

        return Gate.model_validate(restored(await DBOS.run_step_async({"name": "gate:open"}, recorded)))

    async def answer(self, gate: Gate) -> GateAnswer:
        """See ports.Step."""

        async def recorded() -> dict[str, Any]:
            answer = await self._gates.answer(self._workflow_id, self._sprint, self._story, gate)
            return storable(answer.model_dump(mode="json"))

        return GateAnswer.model_validate(restored(await DBOS.run_step_async({"name": "gate:answer"}, recorded)))

    async def _wait_for_room(self, what: str) -> None:
        """Told once per step, with an id of its own: a step that is not repeated after a crash tells nothing."""
        await self._sink.emit(
            Event(
                id=f"{self._workflow_id}:disk_full:{DBOS.step_id}",
                time=self._clock.now(),
                level=Level.ERROR,
                name="disk_full",
                message=f"{self._story} waits for room on the disk: {what}",
                sprint=self._sprint,
                story=self._story,
            )
        )

    async def _tell_reply(self, reply: Reply, prompt: Prompt) -> None:
        persona, task, what = reply.key.persona, reply.key.task, describe(reply.key)
        await self._tell_retries(prompt, reply.failed_calls)
        await self.emit(
            "turn_finished",
            f"{persona} answered: {what}" if reply.paid else f"{persona} gave no answer: {what}",
            persona=persona,
            task=task,
            purpose=reply.key.purpose,
            turn=reply.turn,
            prompt=prompt.name,
            prompt_version=prompt.version,
            duration_ms=reply.duration_ms,
            input_tokens=reply.usage.input,
            cached_tokens=reply.usage.cached,
            output_tokens=reply.usage.output,
            cost_usd=reply.cost_usd,
            model=reply.model,
            provider=reply.provider,
            stop_reason=reply.stop_reason,
            paid=reply.paid,
        )

    async def _tell_retries(self, prompt: Prompt, failures: Sequence[FailedCall]) -> None:
        """Each of the failures was followed by another call."""
        persona, task = prompt.key.persona, prompt.key.task
        for number, failure in enumerate(failures, start=1):
            left = self._turns.max_attempts - number
            await self.emit(
                "call_retried", f"{persona}: {failure.message}; asked again", level=Level.WARN, persona=persona,
                task=task, purpose=prompt.key.purpose, turn=failure.turn, kind=failure.kind,
                **decided(Loop.TRANSPORT, Verdict.RETRIED, findings=[_passing(failure)], attempt=number,
                          budget_left=left),
            )  # fmt: skip

    async def emit(
        self,
        name: str,
        message: str,
        *,
        level: Level = Level.INFO,
        task: str | None = None,
        persona: str | None = None,
        **data: Any,
    ) -> None:
        """See ports.Step."""
        self._events += 1
        await self._sink.emit(
            Event(
                id=f"{self._workflow_id}:{self._events}",
                time=self._clock.now(),
                level=level,
                name=name,
                message=message,
                sprint=self._sprint,
                story=self._story,
                task=task,
                persona=persona,
                data=data,
            )
        )


def _passing(failure: FailedCall) -> Finding:
    code = failure.code or f"provider.{failure.kind}"
    return minor(code, failure.message, fix="nothing: the same request was sent again")


def _final(error: OrchestratorError) -> Finding:
    code = error.code if isinstance(error, ProviderError) else "story.workspaceerror"
    return critical(code, error.message, fix="remove the cause, then reset the story so that it can be run anew")


def _disk_error(what: str, error: OSError) -> WorkspaceError:
    """A full disk or a missing folder is the surroundings' fault, and told as that."""
    return WorkspaceError(f"{what}: {error.strerror or error}{f' ({error.filename})' if error.filename else ''}")
