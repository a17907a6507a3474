"""The durable steps of one workflow, on dbos: what was done and recorded is not done again after a crash."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Protocol, TypeVar

from dbos import DBOS
from pydantic import TypeAdapter

from orchestrator.core.calls.exchange import EASY_PURPOSES, FailedCall, Prompt, Reply
from orchestrator.core.calls.side_by_side import step_awaited
from orchestrator.core.command import Gate, GateAnswer, Loop, Verdict, decided
from orchestrator.core.errors import BudgetExceeded, OrchestratorError, ProcessEnded, ProviderError, WorkspaceError
from orchestrator.core.event import ACTIVITY_BEGUN, ACTIVITY_ENDED, Event, Level, listening
from orchestrator.core.ports import Clock, EventSink, TurnJournal
from orchestrator.engine.dispatcher import OPEN, Tickets
from orchestrator.engine.gates import GateKeeper
from orchestrator.engine.progress import SLOW_S, Announcer, CallsUnderWay, told_end
from orchestrator.engine.step_results import Results, pack, unpack
from orchestrator.engine.turns import TurnTaker, final, nobody_told, passing, spent

T = TypeVar("T")
MOST_STARTS = 2
"""How often the story may begin to work on one result that ends the process."""


@lru_cache(maxsize=64)
def _adapter(returns: Any) -> TypeAdapter[Any]:
    """Built once per type: building one for a container takes longer than using it."""
    return TypeAdapter(returns)


class Journals(Protocol):
    """Location of the workflows' journals."""

    def workflow(self, workflow_id: str) -> TurnJournal:
        """Returns the journal of one workflow. Blocks."""
        ...


@dataclass(frozen=True, kw_only=True)
class Services:
    """Shared ports of all workflows of a process."""

    turns: TurnTaker
    journals: Journals
    gates: GateKeeper
    sink: EventSink
    clock: Clock
    tickets: Tickets = OPEN
    expect_room: Callable[[BaseException | None], Awaitable[None]] = nobody_told
    """Ends the process where the disk is full: an error says so, or a look does."""
    calls: CallsUnderWay = field(default_factory=CallsUnderWay)
    expect_held: Callable[[str], Awaitable[None]] = nobody_told
    """Raises where another process has taken the sprint over."""
    announce_after_s: float = SLOW_S
    """What of a step lasts longer is told while it lasts."""


class DurableStep:
    """The Step of one running workflow, a new one for each execution: its counters restart with the body."""

    def __init__(
        self, workflow_id: str, sprint: str, story: str, services: Services, journal: TurnJournal, results: Results
    ) -> None:
        self._workflow_id, self._sprint, self._story = workflow_id, sprint, story
        self._services, self._journal, self._results = services, journal, results
        self._ticket = services.tickets(workflow_id, sprint, story)
        self._events = self._asked = 0
        self._switched = set[str]()  # personas that another model than their own answered last
        self._emitted: list[asyncio.Task[bool]] = []
        """Events on their way into the log."""
        self._reading: int | None = None
        """The step whose result the story works on."""

    @property
    def workflow_id(self) -> str:
        """Returns `<sprint>/<story>`, with `@N` after it since a reset."""
        return self._workflow_id

    async def step(self, name: str, work: Callable[[str], Awaitable[T]], returns: Any) -> T:
        """See ports.Step."""
        adapter: TypeAdapter[T] = _adapter(returns)

        async def recorded(number: int) -> dict[str, Any]:
            name_of_step = f"{self._workflow_id}/{number}"
            await self._ticket.clear(paid=False)
            tell = partial(self._tell_activity, number)
            announcer = Announcer(tell, after_s=self._services.announce_after_s)
            try:
                async with self._ticket.at_work():
                    with listening(announcer):
                        value = await work(name_of_step)
            except OrchestratorError as error:
                await self._services.expect_room(error)
                return {"error": pack(error)}
            except OSError as error:
                await self._services.expect_room(error)
                return {"error": pack(_disk_error(name, error))}
            # Programs that cannot write fail in ways of their own, and tests with them: none of that counts.
            await self._services.expect_room(None)
            return {"value": adapter.dump_python(value, mode="json")}

        result = await self._record(name, recorded)
        if "error" in result:
            raise unpack(result["error"])
        return adapter.validate_python(result["value"])

    async def turn(self, prompt: Prompt) -> Reply:
        """See ports.Step."""
        self.end_reading()
        persona, task = prompt.key.persona, prompt.key.task
        # Budgets are counted from events: no call is paid for before the ones of the last are there.
        await self.store_events()
        await self.emit(
            "turn_started", f"{persona} is asked: {prompt.key.what}", persona=persona, task=task,
            purpose=prompt.key.purpose, prompt_hash=prompt.hash, prompt=prompt.name, prompt_version=prompt.version,
        )  # fmt: skip

        async def recorded(step: int) -> dict[str, Any]:
            try:
                with self._services.calls.follow(prompt.key):
                    reply = await self._services.turns.take(
                        self._journal, step, prompt, self._ticket,
                        partial(self._tell_retries, prompt),
                        partial(self._wait_for_service, step, persona),
                        partial(self._services.expect_held, self._sprint),
                    )  # fmt: skip
            except ProviderError as error:
                failed = [failure.model_dump(mode="json") for failure in self._journal.failures(step)]
                # Behind the last one no other was begun, unless something else than its failure ended the turn.
                retried = len(failed) - (error.kind not in {BudgetExceeded.kind, "outage"})
                return {"error": pack(error), "failed_calls": failed, "retried": max(0, retried)}
            except OSError as error:
                await self._services.expect_room(error)
                return {"error": pack(_disk_error("reply journal", error))}
            return {"value": reply.model_dump(mode="json", exclude={"reasoning"})}

        result = await self._record(f"turn:{prompt.key.purpose}", recorded)
        if "error" in result:
            error = unpack(result["error"])
            failures = [FailedCall.model_validate(failed) for failed in result["failed_calls"]]
            await self._tell_retries(prompt, failures[: result["retried"]])
            await self.emit(
                "turn_failed", f"{persona}: {error.message}", level=Level.ERROR, persona=persona, task=task,
                purpose=prompt.key.purpose,
                **decided(Loop.TRANSPORT, Verdict.GIVE_UP, findings=[final(error)], attempt=len(failures) or 1,
                          budget_left=0),
            )  # fmt: skip
            raise error
        reply = Reply.model_validate(result["value"])
        await self._tell_reply(reply, prompt)
        return reply

    async def open_gate(self, gate: Gate, timeout_s: float | None) -> Gate:
        """See ports.Step."""
        self.end_reading()
        await self.store_events()
        self._asked += 1
        number = self._asked

        async def recorded(_step: int) -> dict[str, Any]:
            return self._services.gates.opened(gate, number, timeout_s).model_dump(mode="json")

        return Gate.model_validate(await self._record("gate:open", recorded))

    async def answer(self, gate: Gate) -> GateAnswer:
        """See ports.Step."""

        async def recorded(_step: int) -> dict[str, Any]:
            answer = await self._services.gates.answer(self._workflow_id, self._sprint, self._story, gate)
            return answer.model_dump(mode="json")

        return GateAnswer.model_validate(await self._record("gate:answer", recorded))

    async def _record(self, name: str, work: Callable[[int], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """Returns the result of `work`, which is given the step's number, or what was recorded of it.

        Raises ProcessEnded where the process ended each time while the story worked on this result.
        """
        self.end_reading()
        step = DBOS.reserve_step()
        made: list[dict[str, Any]] = []

        async def stored() -> dict[str, Any]:
            made.append(await work(step.step_id))
            return await self._results.store(made[-1])

        # The engine looks first: of a workflow that was cancelled meanwhile no further step begins.
        async with step_awaited(self.end_reading):
            recorded = await step.run_async({"name": name}, stored)
        result = made[-1] if made else await self._results.load(recorded)
        self._begin_reading(name, step.step_id)
        return result

    def _begin_reading(self, name: str, step: int) -> None:
        """Marks that the story works on a result, until it takes its next step: what follows holds the loop.

        The mark stays where the process is killed meanwhile, by itself or by another. A result that was begun with
        often enough takes no process with it any more.
        """
        if self._journal.begin_reading(step) > MOST_STARTS:
            told = f"while the story worked on the result of its step {step} ({name})"
            raise ProcessEnded(f"the process ended {MOST_STARTS} times {told}")
        self._reading = step

    def end_reading(self) -> None:
        """Takes the mark away: the story goes on, or is interrupted in good order."""
        if self._reading is not None:
            self._journal.end_reading(self._reading)
            self._reading = None

    async def _wait_for_service(self, step: int, persona: str, what: str) -> None:
        """Told once per turn, in the same way."""
        message = f"{persona} waits, and asks again until it is answered: {what}"
        await self._emit("service_away", message, f"away:{step}", level=Level.WARN, persona=persona)

    async def _tell_activity(self, step_id: int, what: str, seconds: float | None) -> None:
        """Told each time with an id of its own: a step that is begun again after a crash tells of it again."""
        which = f"activity:{step_id}:{self._services.clock.now().isoformat()}"
        if seconds is None:
            await self._emit(ACTIVITY_BEGUN, what, which)
        else:
            data = {"duration_ms": round(seconds * 1000)}
            await self._emit(ACTIVITY_ENDED, told_end(what, seconds), which, data=data)

    async def _emit(self, name: str, message: str, which: str, **fields: Any) -> None:
        """Stores an event at once, with an id beside the numbers of `emit`."""
        event = Event(id=f"{self._workflow_id}:{which}", name=name, message=message, **fields, **self._here())
        await self._services.sink.emit(event)

    def _here(self) -> dict[str, Any]:
        """Returns what all events of the workflow have."""
        return {"time": self._services.clock.now(), "sprint": self._sprint, "story": self._story}

    async def _tell_reply(self, reply: Reply, prompt: Prompt) -> None:
        persona, task, what = reply.key.persona, reply.key.task, reply.key.what
        await self._tell_retries(prompt, reply.failed_calls)
        await self._tell_switch(reply, task)
        told = f"{persona} answered: {what}" if reply.paid else f"{persona} was not asked: {what}"
        await self.emit(
            "turn_finished", f"{told}{reply.without}", persona=persona, task=task,
            purpose=reply.key.purpose, turn=reply.turn, prompt=prompt.name, prompt_version=prompt.version,
            duration_ms=reply.duration_ms, **spent(reply),
            model=reply.model, provider=reply.provider, stop_reason=reply.stop_reason, paid=reply.paid,
        )  # fmt: skip
        if reply.unconstrained:
            await self.emit(
                "schema_left_out", f"{persona}: {reply.unconstrained}", level=Level.WARN, persona=persona, task=task,
                purpose=reply.key.purpose, schema=prompt.schema_name, model=reply.model, provider=reply.provider,
            )  # fmt: skip

    async def _tell_switch(self, reply: Reply, task: str | None) -> None:
        """Told when another model begins to answer a persona, and when its own does again."""
        persona, why = reply.key.persona, reply.in_place_of
        if not why and reply.key.purpose in EASY_PURPOSES:
            return  # the cheap model's answer does not say that the persona's own is back
        if bool(why) != (persona in self._switched):
            self._switched ^= {persona}
            told = f"in place of its own: {why}" if why else "again"
            await self.emit(
                "model_switched", f"{persona} is answered by {reply.provider} {reply.model} {told}",
                level=Level.WARN if why else Level.INFO, persona=persona, task=task, model=reply.model,
                provider=reply.provider, reason=why,
            )  # fmt: skip

    async def _tell_retries(self, prompt: Prompt, failures: Sequence[FailedCall]) -> None:
        """Each of the failures was followed by another call: told before it, and once more with the recorded result.

        A process that resumes the story then counts them as the one before did.
        """
        persona, task = prompt.key.persona, prompt.key.task
        for number, failure in enumerate(failures, start=1):
            left = self._services.turns.max_attempts - number
            # An id of its own: it is told while another reviewer may be heard.
            which = f"retry:{persona}:{task or ''}:{prompt.key.purpose}:{failure.turn}"
            await self._emit(
                "call_retried", f"{persona}: {failure.message}; asked again", which,
                level=Level.WARN, persona=persona, task=task,
                data={
                    "purpose": prompt.key.purpose, "turn": failure.turn, "kind": failure.kind,
                    **decided(Loop.TRANSPORT, Verdict.RETRIED, findings=[passing(failure)], attempt=number,
                              budget_left=left),
                },
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
        """See ports.Step. Waits for nothing: a process that resumes the story emits the same again."""
        self._events += 1
        event = Event(
            id=f"{self._workflow_id}:{self._events}", level=level, name=name, message=message, task=task,
            persona=persona, data=data, **self._here(),
        )  # fmt: skip
        self._emitted.append(asyncio.create_task(self._services.sink.emit(event), name=f"emit {event.id}"))

    async def store_events(self) -> None:
        """Returns once all events so far are in the log."""
        emitted, self._emitted = self._emitted, []
        await asyncio.gather(*emitted)


def _disk_error(what: str, error: OSError) -> WorkspaceError:
    """Returns the error of a full disk or a missing folder: the surroundings' fault."""
    return WorkspaceError(f"{what}: {error.strerror or error}{f' ({error.filename})' if error.filename else ''}")
