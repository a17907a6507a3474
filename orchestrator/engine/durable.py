"""Stories as durable workflows on dbos, and the steps of one. The only module that launches and ends the engine."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache, partial
from types import TracebackType
from typing import Any, Protocol, TypeVar

from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer, SetWorkflowID
from pydantic import TypeAdapter

from orchestrator.core.command import Gate, GateAnswer, Loop, Verdict, decided
from orchestrator.core.errors import OrchestratorError, ProviderError, WorkspaceError
from orchestrator.core.event import ACTIVITY_BEGUN, ACTIVITY_ENDED, Event, Level, listening
from orchestrator.core.exchange import FailedCall, GivenPlan, Prompt, Reply
from orchestrator.core.ports import Clock, EventSink, Step, TurnJournal
from orchestrator.core.sprint import StoryOutcome
from orchestrator.core.value import Value
from orchestrator.engine.activities import SLOW_S, Announcer, told_end
from orchestrator.engine.calls import CallsUnderWay
from orchestrator.engine.database import EngineDatabase
from orchestrator.engine.dispatcher import OPEN, Tickets
from orchestrator.engine.gates import GateKeeper
from orchestrator.engine.step_records import use_compiled_statements
from orchestrator.engine.step_results import Results, pack, unpack
from orchestrator.engine.turns import IsFull, TurnTaker, final, never, nobody_told, passing, spent, with_room

T = TypeVar("T")


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
    is_full: IsFull = never
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
        self._in_place_of: dict[str, str] = {}
        """Persona → why another model than its own answered last; "" where its own did."""
        self._emitted: list[asyncio.Task[bool]] = []
        """Events on their way into the log."""

    @property
    def workflow_id(self) -> str:
        """Returns `<sprint>/<story>`, with `@N` after it since a reset."""
        return self._workflow_id

    async def step(self, name: str, work: Callable[[str], Awaitable[T]], returns: Any) -> T:
        """See ports.Step."""
        adapter: TypeAdapter[T] = _adapter(returns)

        async def recorded() -> dict[str, Any]:
            name_of_step = f"{self._workflow_id}/{DBOS.step_id}"
            await self._ticket.clear(paid=False)
            tell = partial(self._tell_activity, int(DBOS.step_id or 0))
            announcer = Announcer(tell, after_s=self._services.announce_after_s)
            try:
                async with self._ticket.at_work():
                    with listening(announcer):
                        value = await with_room(lambda: work(name_of_step), self._wait_for_room, self._services.is_full)
            except OrchestratorError as error:
                return {"error": pack(error)}
            except OSError as error:
                return {"error": pack(_disk_error(name, error))}
            return {"value": adapter.dump_python(value, mode="json")}

        result = await self._record(name, recorded)
        if "error" in result:
            raise unpack(result["error"])
        return adapter.validate_python(result["value"])

    async def turn(self, prompt: Prompt) -> Reply:
        """See ports.Step."""
        persona, task = prompt.key.persona, prompt.key.task
        # Budgets are counted from events: no call is paid for before the ones of the last are there.
        await self.store_events()
        await self.emit(
            "turn_started", f"{persona} is asked: {prompt.key.what}", persona=persona, task=task,
            purpose=prompt.key.purpose, prompt_hash=prompt.hash, prompt=prompt.name, prompt_version=prompt.version,
        )  # fmt: skip

        async def recorded() -> dict[str, Any]:
            step = int(DBOS.step_id or 0)
            try:
                async with self._services.calls.follow(
                    prompt.key, self._services.sink, f"{self._workflow_id}:call:{step}", self._here
                ):
                    reply = await self._services.turns.take(
                        self._journal, step, prompt, self._ticket, self._wait_for_room,
                        partial(self._tell_retries, prompt),
                        partial(self._wait_for_service, persona),
                        partial(self._services.expect_held, self._sprint),
                    )  # fmt: skip
            except ProviderError as error:
                failed = [failure.model_dump(mode="json") for failure in self._journal.failures(step)]
                return {"error": pack(error), "failed_calls": failed}
            except OSError as error:
                return {"error": pack(_disk_error("reply journal", error))}
            return {"value": reply.model_dump(mode="json", exclude={"reasoning"})}

        result = await self._record(f"turn:{prompt.key.purpose}", recorded)
        if "error" in result:
            error = unpack(result["error"])
            failures = [FailedCall.model_validate(failed) for failed in result.get("failed_calls", ())]
            await self._tell_retries(prompt, failures[:-1])
            self._events += len(failures[:-1])
            await self.emit(
                "turn_failed", f"{persona}: {error.message}", level=Level.ERROR, persona=persona, task=task,
                purpose=prompt.key.purpose, **spent(failures),
                **decided(Loop.TRANSPORT, Verdict.GIVE_UP, findings=[final(error)], attempt=len(failures) or 1,
                          budget_left=0),
            )  # fmt: skip
            raise error
        reply = Reply.model_validate(result["value"])
        await self._tell_reply(reply, prompt)
        return reply

    async def patched(self, name: str) -> bool:
        """See ports.Step."""
        return await DBOS.patch_async(name)

    async def open_gate(self, gate: Gate, timeout_s: float | None) -> Gate:
        """See ports.Step."""
        await self.store_events()
        self._asked += 1
        number = self._asked

        async def recorded() -> dict[str, Any]:
            return self._services.gates.opened(gate, number, timeout_s).model_dump(mode="json")

        return Gate.model_validate(await self._record("gate:open", recorded))

    async def answer(self, gate: Gate) -> GateAnswer:
        """See ports.Step."""

        async def recorded() -> dict[str, Any]:
            answer = await self._services.gates.answer(self._workflow_id, self._sprint, self._story, gate)
            return answer.model_dump(mode="json")

        return GateAnswer.model_validate(await self._record("gate:answer", recorded))

    async def _record(self, name: str, work: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """Returns the result of `work`, or what was recorded of it."""
        made: list[dict[str, Any]] = []

        async def recorded() -> dict[str, Any]:
            made.append(await work())
            return await self._results.store(made[-1])

        stored = await DBOS.run_step_async({"name": name}, recorded)
        return made[-1] if made else await self._results.load(stored)

    async def _wait_for_room(self, what: str) -> None:
        """Told once per step, with an id of its own: a step that is not repeated after a crash tells nothing."""
        message = f"{self._story} waits for room on the disk: {what}"
        id_ = f"{self._workflow_id}:disk_full:{DBOS.step_id}"
        event = Event(id=id_, level=Level.ERROR, name="disk_full", message=message, **self._here())
        await self._services.sink.emit(event)

    async def _wait_for_service(self, persona: str, what: str) -> None:
        """Told once per turn, with an id of its own, as a full disk is."""
        message = f"{persona} waits, and asks again until it is answered: {what}"
        id_ = f"{self._workflow_id}:service_away:{DBOS.step_id}"
        event = Event(id=id_, level=Level.WARN, name="service_away", message=message, persona=persona, **self._here())
        await self._services.sink.emit(event)

    async def _tell_activity(self, step_id: int, what: str, seconds: float | None) -> None:
        """Told each time with an id of its own: a step that is begun again after a crash tells of it again."""
        here = self._here()
        id_ = f"{self._workflow_id}:activity:{step_id}:{here['time'].isoformat()}"
        if seconds is None:
            await self._services.sink.emit(Event(id=id_, name=ACTIVITY_BEGUN, message=what, **here))
            return
        data = {"duration_ms": round(seconds * 1000)}
        event = Event(id=id_, name=ACTIVITY_ENDED, message=told_end(what, seconds), data=data, **here)
        await self._services.sink.emit(event)

    def _here(self) -> dict[str, Any]:
        """Returns what all events of the workflow have."""
        return {"time": self._services.clock.now(), "sprint": self._sprint, "story": self._story}

    async def _tell_reply(self, reply: Reply, prompt: Prompt) -> None:
        persona, task, what = reply.key.persona, reply.key.task, reply.key.what
        await self._tell_retries(prompt, reply.failed_calls)
        self._events += len(reply.failed_calls)
        await self._tell_switch(reply, task)
        told = f"{persona} answered: {what}" if reply.paid else f"{persona} gave no answer: {what}"
        await self.emit(
            "turn_finished", f"{told}{reply.without}", persona=persona, task=task,
            purpose=reply.key.purpose, turn=reply.turn, prompt=prompt.name, prompt_version=prompt.version,
            duration_ms=reply.duration_ms, **spent([reply, *reply.failed_calls]),
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
        if bool(why) == bool(self._in_place_of.get(persona)):
            return
        self._in_place_of[persona] = why
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
        before = self._events
        for number, failure in enumerate(failures, start=1):
            left = self._services.turns.max_attempts - number
            await self.emit(
                "call_retried", f"{persona}: {failure.message}; asked again", level=Level.WARN, persona=persona,
                task=task, purpose=prompt.key.purpose, turn=failure.turn, kind=failure.kind,
                **decided(Loop.TRANSPORT, Verdict.RETRIED, findings=[passing(failure)], attempt=number,
                          budget_left=left),
            )  # fmt: skip
        self._events = before

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
            id=f"{self._workflow_id}:{self._events}",
            level=level,
            name=name,
            message=message,
            task=task,
            persona=persona,
            data=data,
            **self._here(),
        )
        self._emitted.append(asyncio.create_task(self._services.sink.emit(event), name=f"emit {event.id}"))

    async def store_events(self) -> None:
        """Returns once all events so far are in the log."""
        emitted, self._emitted = self._emitted, []
        await asyncio.gather(*emitted)


def _disk_error(what: str, error: OSError) -> WorkspaceError:
    """Returns the error of a full disk or a missing folder: the surroundings' fault."""
    return WorkspaceError(f"{what}: {error.strerror or error}{f' ({error.filename})' if error.filename else ''}")


APPLICATION_VERSION = "1"
"""Constant on purpose: the default is a hash of the source, and a new one orphans whatever is pending."""
WORKFLOW_NAME, PLAN_WORKFLOW_NAME, ANALYSIS_WORKFLOW_NAME = "story.v1", "plan.v1", "analysis.v1"
"""A deployed body is never edited; a changed one gets a new name beside this one."""
WORKFLOW_NAMES = (WORKFLOW_NAME, PLAN_WORKFLOW_NAME, ANALYSIS_WORKFLOW_NAME)


Body = Callable[[Step, dict[str, Any]], Awaitable[Value]]
"""Body of a workflow: (step, frozen input) → its result. Deterministic between its steps."""


class DurableEngine:
    """One launched dbos instance. Use as an async context manager, once at a time in a process."""

    def __init__(
        self,
        *,
        url: str,
        executor_id: str,
        bodies: Mapping[str, Body],
        services: Services,
        is_current: Callable[[str], Awaitable[bool]],
    ) -> None:
        """`bodies` are by the names of their workflows."""
        self._url, self._executor_id = url, executor_id
        self._named_bodies, self._services, self._is_current = bodies, services, is_current
        self._workflows: dict[str, Callable[[dict[str, Any]], Any]] = {}
        self._bodies: dict[asyncio.Task[Any], str] = {}
        self._unfinished: set[str] = set()
        """Analyses' workflows that were asked for here and have no result yet."""
        self._closing = False
        self._database: EngineDatabase | None = None

    async def __aenter__(self) -> "DurableEngine":
        logger = logging.getLogger("dbos")
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
        self._database = await asyncio.to_thread(EngineDatabase, self._url)
        await asyncio.to_thread(self._database.prepare)
        dbos = DBOS(config=self._config(self._database))

        def workflow_of(body: Body) -> Callable[[dict[str, Any]], Any]:
            async def workflow(payload: dict[str, Any]) -> dict[str, Any]:
                # dbos marks the function it registers, which a bound method does not allow.
                return await self._run(body, payload)

            return workflow

        for name, body in self._named_bodies.items():
            workflow = workflow_of(body)
            self._workflows[name] = DBOS.workflow(name=name, max_recovery_attempts=None)(workflow)
        # Launched on the loop itself: that is how dbos learns which loop recovered workflows belong to.
        DBOS.launch()
        use_compiled_statements(dbos)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A cancelled body leaves its workflow pending, to be resumed. One that dbos is taken away from while it
        # runs would have its last error recorded as the story's end.
        assert self._database is not None
        self._closing = True
        bodies = list(self._bodies)
        for body in bodies:
            body.cancel()
        await asyncio.gather(*bodies, return_exceptions=True)
        self._database.end()
        own_pool = ThreadPoolExecutor(thread_name_prefix="orchestrator")
        # dbos made its own pool the loop's default and is about to shut it down.
        asyncio.get_running_loop().set_default_executor(own_pool)
        await asyncio.to_thread(DBOS.destroy, destroy_registry=True)
        await asyncio.to_thread(self._database.close)

    async def run_story(self, workflow_id: str, payload: dict[str, Any]) -> StoryOutcome:
        """Start the workflow, or join the one of this id that runs or has ended; return its outcome."""
        work = self._result(WORKFLOW_NAME, workflow_id, payload)
        del payload  # as large as the brief, and the story may wait for days
        return StoryOutcome.model_validate(await work)

    async def cut_story(self, workflow_id: str) -> None:
        """Interrupts the workflow, including a call in flight. It stays pending: the next engine would resume it."""
        bodies = [body for body, name in self._bodies.items() if name == workflow_id]
        for body in bodies:
            body.cancel()
        await asyncio.gather(*bodies, return_exceptions=True)

    async def end_story(self, workflow_id: str) -> None:
        """End the workflow for good, whatever it does: a call in flight is cut. One that has ended stays as it is."""
        await self.cut_story(workflow_id)
        await DBOS.cancel_workflow_async(workflow_id)

    async def resume_story(self, workflow_id: str) -> None:
        """Go on with a workflow that was cut, behind its last recorded step. One that has ended stays as it is."""
        await DBOS.resume_workflow_async(workflow_id)

    async def run_plan(self, workflow_id: str, payload: dict[str, Any]) -> GivenPlan:
        """Like `run_story`, for the reading of a person's plan."""
        return GivenPlan.model_validate(await self._result(PLAN_WORKFLOW_NAME, workflow_id, payload))

    async def run_analysis(self, workflow_id: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Like `run_story`, for one question about a repository; returns the body's value as JSON.

        One that was cut here before resumes behind its last recorded step.
        """
        # Analyses had an engine of their own each, up to 0.1, also those that a daemon began.
        await self._take_over(workflow_id, f"{APPLICATION_VERSION}/analyse-{payload['sprint']}")
        if (
            workflow_id in self._unfinished
            and workflow_id not in self._bodies.values()
            and await DBOS.get_workflow_status_async(workflow_id) is not None
        ):
            await DBOS.resume_workflow_async(workflow_id)
        self._unfinished.add(workflow_id)
        result = await self._result(ANALYSIS_WORKFLOW_NAME, workflow_id, payload)
        self._unfinished.discard(workflow_id)
        return result

    async def has_ended(self, workflow_id: str) -> bool:
        """Returns whether the workflow has an outcome, or an error of ours in its place."""
        status = await DBOS.get_workflow_status_async(workflow_id)
        return status is not None and status.status not in {"PENDING", "ENQUEUED"}

    async def adopt(self, sprint: str, besides: Collection[str] = ()) -> None:
        """Takes over the unfinished workflows of a sprint from an engine that has ended, those `besides` excepted; they
        wait for their place.

        The caller holds the sprint. What the other engine still writes for them is refused from then on.
        """
        assert self._database is not None
        words = (f"{sprint}/", self._version, self._executor_id, besides)
        for workflow_id in await asyncio.to_thread(self._database.take_over_all, *words):
            await DBOS.resume_workflow_async(workflow_id)

    async def adopt_story(self, workflow_id: str) -> None:
        """Takes over one story, which the caller has claimed."""
        assert self._database is not None
        if await asyncio.to_thread(self._database.take_over_one, workflow_id, self._version, self._executor_id):
            await DBOS.resume_workflow_async(workflow_id)

    async def give_up_story(self, workflow_id: str) -> None:
        """Interrupts the story and leaves it to the engine that adopts it."""
        await self.cut_story(workflow_id)
        assert self._database is not None
        await asyncio.to_thread(self._database.take_over_one, workflow_id, f"{APPLICATION_VERSION}/", "")

    async def _result(self, name: str, workflow_id: str, payload: dict[str, Any]) -> dict[str, Any]:
        await self._take_over(workflow_id, APPLICATION_VERSION)
        results = self._results(workflow_id)
        payload = await results.store(payload)
        with SetWorkflowID(workflow_id):
            handle = await DBOS.start_workflow_async(self._workflows[name], payload)
        return await results.load(await handle.get_result())

    def _results(self, workflow_id: str) -> Results:
        assert self._database is not None
        return Results(self._database, workflow_id.partition("/")[0])

    async def _take_over(self, workflow_id: str, since: str) -> None:
        # A workflow of another version has an executor that no engine looks for any more. The caller
        # works on its sprint alone.
        assert self._database is not None
        if since == self._version:
            return
        words = (workflow_id, since, self._version, self._executor_id)
        if await asyncio.to_thread(self._database.take_over, *words):
            await DBOS.resume_workflow_async(workflow_id)

    @property
    def _version(self) -> str:
        # What was cut goes through a queue that every engine of the database looks at, and takes its version from.
        return f"{APPLICATION_VERSION}/{self._executor_id}"

    def _config(self, database: EngineDatabase) -> DBOSConfig:
        return {
            "name": "orchestrator",
            "system_database_engine": database.engine,
            "application_version": self._version,
            "executor_id": self._executor_id,
            "serializer": DBOSPortableJSONSerializer(),
            "log_level": "CRITICAL",
            "enable_otlp": False,
            "max_executor_threads": 64,
            # Nothing here waits for messages, and a pooler between us and the server knows no LISTEN.
            "use_listen_notify": False,
            # Ending the engine waits for one such interval; without a waiter for a message a check costs nothing.
            "notification_listener_polling_interval_sec": 0.2,
        }

    async def _run(self, body: Body, payload: dict[str, Any]) -> dict[str, Any]:
        workflow_id = str(DBOS.workflow_id)
        task = asyncio.current_task()
        if task is None or self._closing:
            raise asyncio.CancelledError
        # One from before another engine had it: what it still wrote would be refused.
        await self.cut_story(workflow_id)
        self._bodies[task] = workflow_id
        try:
            if not await self._is_current(workflow_id):
                raise RuntimeError(f"workflow {workflow_id} was reset and must not go on")
            results = self._results(workflow_id)
            payload = {**await results.load(payload)}  # the body's own, which it may empty
            journal = await asyncio.to_thread(self._services.journals.workflow, workflow_id)
            step = DurableStep(workflow_id, payload["sprint"], payload["story"], self._services, journal, results)
            try:
                result = await body(step, payload)
            except Exception:
                await step.store_events()
                raise
            await step.store_events()
            return await results.store(result.model_dump(mode="json"))
        finally:
            del self._bodies[task]
