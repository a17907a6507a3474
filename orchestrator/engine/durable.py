"""Stories as durable workflows on dbos. The only module that launches and ends the engine."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any

from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer, SetWorkflowID
from opentelemetry import trace

from orchestrator.core.ports import Step
from orchestrator.core.sprint import StoryOutcome
from orchestrator.core.value import Value
from orchestrator.engine.database import EngineDatabase
from orchestrator.engine.durable_step import DurableStep, Services
from orchestrator.engine.step_results import Results

APPLICATION_VERSION = "1"
"""Constant on purpose: the default is a hash of the source, and a new one orphans whatever is pending."""
WORKFLOW_NAME, ANALYSIS_WORKFLOW_NAME = "story.v1", "analysis.v1"
"""A deployed body is never edited; a changed one gets a new name beside this one."""
WORKFLOW_NAMES = (WORKFLOW_NAME, ANALYSIS_WORKFLOW_NAME)


Body = Callable[[Step, dict[str, Any]], Awaitable[Value]]
"""Body of a workflow: (step, frozen input) → its result. Deterministic between its steps."""


def send_traces(variables: Mapping[str, str]) -> None:
    """Sends dbos's spans of workflows and steps to the collector that OpenTelemetry's own variables name, if any.

    Call it before secrets leave the environment of the process: the exporter reads its headers there.
    """
    if not any(variables.get(f"OTEL_EXPORTER_OTLP_{name}") for name in ("ENDPOINT", "TRACES_ENDPOINT")):
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    own = {} if "OTEL_SERVICE_NAME" in variables else {SERVICE_NAME: "orchestrator"}
    provider = TracerProvider(resource=Resource.create(own))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)


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
        await asyncio.to_thread(self._opened.prepare)
        DBOS(config=self._config(self._opened))

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
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A cancelled body leaves its workflow pending, to be resumed. One that dbos is taken away from while it
        # runs would have its last error recorded as the story's end.
        self._closing = True
        bodies = list(self._bodies)
        for body in bodies:
            body.cancel()
        await asyncio.gather(*bodies, return_exceptions=True)
        self._opened.end()
        own_pool = ThreadPoolExecutor(thread_name_prefix="orchestrator")
        # dbos made its own pool the loop's default and is about to shut it down.
        asyncio.get_running_loop().set_default_executor(own_pool)
        await asyncio.to_thread(DBOS.destroy, destroy_registry=True)
        await asyncio.to_thread(self._opened.close)

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

    async def run_analysis(self, workflow_id: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Like `run_story`, for one question about a repository; returns the body's value as JSON.

        One that was cut here before resumes behind its last recorded step.
        """
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
        words = (f"{sprint}/", self._version, self._executor_id, besides)
        for workflow_id in await asyncio.to_thread(self._opened.take_over_all, *words):
            await DBOS.resume_workflow_async(workflow_id)

    async def adopt_story(self, workflow_id: str) -> None:
        """Takes over one story, which the caller has claimed."""
        if await asyncio.to_thread(self._opened.take_over_one, workflow_id, self._version, self._executor_id):
            await DBOS.resume_workflow_async(workflow_id)

    async def give_up_story(self, workflow_id: str) -> None:
        """Interrupts the story and leaves it to the engine that adopts it."""
        await self.cut_story(workflow_id)
        await asyncio.to_thread(self._opened.take_over_one, workflow_id, f"{APPLICATION_VERSION}/", "")

    async def _result(self, name: str, workflow_id: str, payload: dict[str, Any]) -> dict[str, Any]:
        results = self._results(workflow_id)
        payload = await results.store(payload)
        with SetWorkflowID(workflow_id):
            handle = await DBOS.start_workflow_async(self._workflows[name], payload)
        return await results.load(await handle.get_result())

    def _results(self, workflow_id: str) -> Results:
        return Results(self._opened, workflow_id.partition("/")[0])

    @property
    def _opened(self) -> EngineDatabase:
        assert self._database is not None
        return self._database

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
            "enable_otlp": not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider),
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
            finally:
                step.end_reading()
            await step.store_events()
            return await results.store(result.model_dump(mode="json"))
        finally:
            del self._bodies[task]
