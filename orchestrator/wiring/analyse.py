"""`analyse`: a repository in, an improvement plan and a backlog out; durable like a sprint."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from orchestrator import __version__
from orchestrator.adapters.clock import SystemClock
from orchestrator.adapters.event_store import EventReader, EventStore, sqlite_url
from orchestrator.adapters.reply_journal import ReplyJournal
from orchestrator.adapters.sprint_lock import SprintLock
from orchestrator.adapters.state_folder import StateFolder
from orchestrator.analysis.estimate import AnalysisEstimate, estimate
from orchestrator.analysis.ledger import Ledger, fold
from orchestrator.analysis.loop import run_stages
from orchestrator.domain.analysis import AnalysisRecord, Packed, StagePrompt, StageResult, StageStatus, Triaged
from orchestrator.domain.base import Value
from orchestrator.domain.events import Event, Level
from orchestrator.domain.exchange import Purpose
from orchestrator.domain.words import counted
from orchestrator.engine.durable import DurableEngine
from orchestrator.engine.gates import GateKeeper
from orchestrator.engine.turns import TurnTaker
from orchestrator.personas.analyst import CONTRACT, NAME, Analyst
from orchestrator.personas.desk import Desk
from orchestrator.ports import Clock, Provider, Step
from orchestrator.prompts.analysis import render_history, render_prd
from orchestrator.prompts.render import PromptLibrary
from orchestrator.settings import Environment, Policies, Settings
from orchestrator.sprint.slots import Slots
from orchestrator.wiring.analysis_input import (
    PRD_SHARE,
    AnalysisInput,
    analysis_input,
    check_outputs,
    packed_repository,
)
from orchestrator.wiring.analysis_output import Outcome, Written, write_results
from orchestrator.wiring.analysis_record import chosen_record, new_record
from orchestrator.wiring.options import AnalyseOptions
from orchestrator.wiring.providers import model_of, open_providers, policies_of
from orchestrator.wiring.sprints import event_url
from orchestrator.wiring.team import prompt_library, schema_texts

AnalysisBody = Callable[[Step, dict[str, Any]], Awaitable[Value]]
TRIAGE = "triage"
"""Stands where a stage's id stands, for the request that picks the stages."""


def analysis_body(library: PromptLibrary, prd: str, codebase: str, settings: Settings) -> AnalysisBody:
    """What the engine runs for each stage, and for triage; `prd` and `codebase` are what all prompts begin with."""
    schemas, analysis = schema_texts(), settings.analysis

    async def body(step: Step, payload: dict[str, Any]) -> Value:
        policies = Policies.model_validate(payload["policies"])
        desk = Desk(step=step, library=library, policies=policies, story=payload["story"], schemas=schemas)
        analyst = Analyst(desk, prd, codebase)
        prompts = [StagePrompt.model_validate(prompt) for prompt in payload["prompts"]]
        if payload["purpose"] == Purpose.TRIAGE:
            return await analyst.triage(prompts)
        return await analyst.stage(
            prompts[0], payload["history"], contract=payload["contract"], synonyms=analysis.priority_synonyms
        )

    return body


class Analysis:
    """One `analyse`. `tell` gets sentences for people, `listen` new events."""

    def __init__(
        self,
        options: AnalyseOptions,
        settings: Settings,
        environment: Environment,
        *,
        tell: Callable[[str], None],
        listen: Callable[[Event], None],
    ) -> None:
        self._options, self._settings, self._environment = options, settings, environment
        self._tell, self._listen = tell, listen
        self._folder = StateFolder(environment.home)
        self._clock: Clock = SystemClock()

    def dry_run(self) -> AnalysisEstimate:
        """What it would ask. Needs no provider, key or network, and writes nothing. Raises UserError. Blocks."""
        given = analysis_input(self._options, self._settings, self._environment)
        check_outputs(self._options)
        packed = packed_repository(given, self._options, self._settings, self._environment)
        library = prompt_library(self._settings, self._environment)
        contract = library.note(CONTRACT, schema=schema_texts()["stage"])
        besides = contract if self._settings.analysis.response_contract else ""
        model = model_of(self._settings, NAME, self._options.provider)
        fallback = [prompt.id for prompt in given.chosen.prompts]
        texts = (self._prd_text(given.prd), besides)
        price = self._settings.prices.get(model or "")
        return estimate(given.chosen.profile, given.prompts, fallback, packed, texts, self._settings, price)

    async def go(self) -> Written:
        """The whole analysis. Raises UserError before anything is spent."""
        given = await asyncio.to_thread(analysis_input, self._options, self._settings, self._environment)
        library = await asyncio.to_thread(prompt_library, self._settings, self._environment)
        provider = await asyncio.to_thread(
            open_providers, self._options, self._settings, self._environment, self._clock, alone=NAME
        )
        try:
            await asyncio.to_thread(self._folder.make)
            record, packed, continued = await asyncio.to_thread(self._begun, given)
            async with SprintLock(self._folder.analysis(record.analysis) / "lock"):
                return await self._work(record, packed, provider, library, continued)
        finally:
            await provider.close()

    def _begun(self, given: AnalysisInput) -> tuple[AnalysisRecord, Packed, bool]:
        """The analysis this command goes on with (then True), as it was frozen; else a new one."""
        known = chosen_record(self._folder, self._options.analysis, given.asked)
        packed = self._folder.packed(known.analysis) if known is not None else None
        check_outputs(self._options, known.wrote if known is not None else None)
        if known is not None and packed is not None:
            self._tell(f"analysis {known.analysis} of {known.started_at:%Y-%m-%d %H:%M} goes on, as it was begun")
            return known, packed, True
        packed = packed_repository(given, self._options, self._settings, self._environment)
        record = new_record(self._folder, self._environment, self._options.analysis, given, self._settings, self._clock)
        self._folder.save_packed(record.analysis, packed)
        self._folder.save_analysis(record)
        what = "prompts for triage" if record.triage else "stages"
        self._tell(f"analysis {record.analysis}, {record.profile}: {len(record.prompts)} {what}")
        return record, packed, False

    async def _work(
        self, record: AnalysisRecord, packed: Packed, provider: Provider, library: PromptLibrary, continued: bool
    ) -> Written:
        ledger = await asyncio.to_thread(self._ledger, record)
        record = await asyncio.to_thread(self._anew, record, ledger)
        async with AsyncExitStack() as stack:
            sink = await stack.enter_async_context(EventStore(self._url, on_event=self._listen))
            for event in _begun_events(record, packed, continued, str(provider), self._clock):
                await sink.emit(event)
            slots = Slots(self._settings.concurrency.stories)
            gates = await stack.enter_async_context(GateKeeper(sink, self._clock, slots.given_back))
            engine = await stack.enter_async_context(self._engine(record, packed, provider, library, sink, gates))
            asked = _Asked(engine, record, policies_of(self._settings, self._options.provider))
            record, triaged = await self._triaged(asked, record)
            results = await run_stages(
                record.stages,
                asked.stage,
                at_once=self._settings.concurrency.turns,
                stop_after=self._settings.analysis.stop_after_failures,
                warm=record.triage,
            )
        ledger = await asyncio.to_thread(self._ledger, record)
        return await asyncio.to_thread(self._written, library, (record, packed, results, triaged, ledger))

    def _written(self, library: PromptLibrary, outcome: Outcome) -> Written:
        """The files, and the record as it is in the end."""
        record, _, results, *_ = outcome

        def wrote(path: Path, content: str) -> None:
            nonlocal record
            record = record.model_copy(update={"wrote": {**record.wrote, str(path.absolute()): content}})
            self._folder.save_analysis(record)

        written = write_results(self._options, self._settings, library, outcome, self._clock, wrote)
        finished = all(result.status in {StageStatus.ANSWERED, StageStatus.PROSE} for result in results)
        self._folder.save_analysis(record.model_copy(update={"finished": finished}))
        return written

    def _engine(
        self,
        record: AnalysisRecord,
        packed: Packed,
        provider: Provider,
        library: PromptLibrary,
        sink: EventStore,
        gates: GateKeeper,
    ) -> DurableEngine:
        current = {_triage_id(record), *(record.workflow_id(prompt.id) for prompt in record.prompts)}
        return DurableEngine(
            url=self._environment.database_url or sqlite_url(self._folder.engine_database),
            executor_id=f"analyse-{record.analysis}",
            turns=TurnTaker(provider, self._settings, asyncio.Semaphore(self._settings.concurrency.turns)),
            journals=ReplyJournal(self._folder.replies),
            gates=gates,
            sink=sink,
            clock=self._clock,
            is_current=lambda workflow_id: workflow_id in current,
            analysis_body=analysis_body(library, self._prd_text(record.prd), packed.text, self._settings),
        )

    async def _triaged(self, asked: "_Asked", record: AnalysisRecord) -> tuple[AnalysisRecord, Triaged]:
        """The record with the stages that a model picked, or the profile's when it picked none."""
        if not record.triage:
            return record, Triaged()
        triaged = await asked.triage(record.prompts)
        picked = triaged.picked or record.fallback
        record = record.model_copy(update={"picked": picked})
        await asyncio.to_thread(self._folder.save_analysis, record)
        return record, triaged

    def _anew(self, record: AnalysisRecord, ledger: Ledger) -> AnalysisRecord:
        """Stages that failed are begun anew; all others go on, and what answered is not asked again."""
        failed = [stage for stage, result in ledger.results.items() if result.failed]
        raised = {stage: record.generations.get(stage, 1) + 1 for stage in failed}
        if not raised:
            return record
        record = record.model_copy(update={"generations": {**record.generations, **raised}})
        self._folder.save_analysis(record)
        self._tell(f"{counted(len(raised), 'stage')} that failed before: asked again")
        return record

    def _ledger(self, record: AnalysisRecord) -> Ledger:
        if self._environment.database_url is None and not self._folder.event_database.exists():
            return Ledger()
        reader = EventReader(self._url)
        try:
            return fold(record, (event for _, event in reader.read(record.analysis)))
        finally:
            reader.close()

    @property
    def _url(self) -> str:
        return event_url(self._environment, self._folder)

    def _prd_text(self, prd: str) -> str:
        return render_prd(prd, self._settings.analysis.context_tokens // PRD_SHARE)


class _Asked:
    """What is asked through the engine: once and for all per workflow."""

    def __init__(self, engine: DurableEngine, record: AnalysisRecord, policies: Policies) -> None:
        self._engine, self._record = engine, record
        self._policies = policies.model_dump(mode="json")

    async def stage(self, prompt: StagePrompt, earlier: Sequence[StageResult]) -> StageResult:
        """One stage; what it is told of earlier ones is frozen with it."""
        payload = self._payload(prompt.id, Purpose.STAGE, [prompt])
        payload |= {"history": render_history(earlier), "contract": self._record.contract}
        return StageResult.model_validate(await self._engine.run_analysis(self._record.workflow_id(prompt.id), payload))

    async def triage(self, offered: Sequence[StagePrompt]) -> Triaged:
        """The stages that a model picks."""
        payload = self._payload(TRIAGE, Purpose.TRIAGE, offered)
        return Triaged.model_validate(await self._engine.run_analysis(_triage_id(self._record), payload))

    def _payload(self, story: str, purpose: Purpose, prompts: Sequence[StagePrompt]) -> dict[str, Any]:
        return {
            "sprint": self._record.analysis,
            "story": story,
            "purpose": str(purpose),
            "prompts": [prompt.model_dump(mode="json") for prompt in prompts],
            "policies": self._policies,
        }


def _triage_id(record: AnalysisRecord) -> str:
    """No id of a prompt begins with a plus sign."""
    return f"{record.analysis}/+{TRIAGE}"


def _begun_events(
    record: AnalysisRecord, packed: Packed, continued: bool, provider: str, clock: Clock
) -> Sequence[Event]:
    now = clock.now()
    name = "analysis_continued" if continued else "analysis_started"
    how = "goes on" if continued else "starts"
    begun = Event(
        id=f"{record.analysis}:{name}:{now.isoformat()}",
        time=now,
        name=name,
        message=f"analysis {record.analysis} {how}: {record.profile}, provider {provider}",
        sprint=record.analysis,
        data={"version": __version__, "profile": record.profile, "stages": [prompt.id for prompt in record.prompts]},
    )
    told = f"{len(packed.shown)} of {counted(len(packed.paths), 'file')} whole, {len(packed.cut)} in part"
    seen = Event(
        id=f"{record.analysis}:codebase_packed",
        time=now,
        name="codebase_packed",
        message=f"the prompts show {told}, about {packed.tokens} tokens",
        level=Level.WARN if packed.masked else Level.INFO,
        sprint=record.analysis,
        data={"shown": len(packed.shown), "left_out": len(packed.left_out), "masked": list(packed.masked)},
    )
    return begun, seen
