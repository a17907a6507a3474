"""`analyse`: a repository in, an improvement plan and a backlog out; durable like a sprint."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from orchestrator import __version__
from orchestrator.adapters.clock import SystemClock
from orchestrator.adapters.event_store import FOREVER, EventReader, EventStore, sqlite_url
from orchestrator.adapters.reply_journal import ReplyJournal
from orchestrator.adapters.sprint_lock import SprintLock
from orchestrator.adapters.state_folder import StateFolder
from orchestrator.analysis.estimate import AnalysisEstimate, estimate
from orchestrator.analysis.stages import Ledger, fold
from orchestrator.analysis.stages import run_stages
from orchestrator.domain.analysis import (
    AnalysisRecord,
    Packed,
    StageStatus,
    Triaged,
)
from orchestrator.domain.events import Event, Level
from orchestrator.domain.masking import Masks
from orchestrator.domain.redaction import secrets_of
from orchestrator.domain.words import counted
from orchestrator.engine.durable import DurableEngine
from orchestrator.engine.gates import GateKeeper
from orchestrator.engine.turns import TurnTaker
from orchestrator.personas.analyst import CONTRACT, NAME
from orchestrator.ports import Clock, Provider
from orchestrator.prompts.analysis import render_prd
from orchestrator.prompts.render import PromptLibrary
from orchestrator.settings import Environment, Settings, forget_secrets
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
from orchestrator.wiring.analysis_stages import Asked, analysis_body, triage_id
from orchestrator.wiring.options import AnalyseOptions
from orchestrator.wiring.providers import model_of, open_providers, policies_of
from orchestrator.wiring.secrecy import masks_of
from orchestrator.wiring.sprints import event_url
from orchestrator.wiring.team import prompt_library, schema_texts


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
        self._secrets = secrets_of(environment.variables)

    def dry_run(self) -> AnalysisEstimate:
        """What it would ask. Needs no provider, key or network, and writes nothing. Raises UserError. Blocks."""
        given = analysis_input(self._options, self._settings, self._environment)
        check_outputs(self._options)
        plain = Masks(known=self._secrets)
        packed = packed_repository(given, self._options, self._settings, self._environment, plain)
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
            forget_secrets()
            if warning := await asyncio.to_thread(self._folder.make):
                self._tell(f"warning: {warning}")
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
            begun = f"{known.started_at:%Y-%m-%d %H:%M}"
            self._tell(f"analysis {known.analysis} of {begun} goes on, as it was begun; --id with a new ID reads anew")
            return known, packed, True
        masks = masks_of(self._folder, self._secrets)
        packed = packed_repository(given, self._options, self._settings, self._environment, masks)
        for path in packed.masked:
            self._tell(f"warning: {path} holds what looks like a secret; it is masked in prompts")
        name = self._options.analysis
        record = new_record(self._folder, self._environment, name, given, self._settings, self._clock, masks)
        self._folder.save_packed(record.analysis, packed)
        self._folder.save_analysis(record)
        what = "prompts for triage" if record.triage else "stages"
        self._tell(f"analysis {record.analysis}, {record.profile}: {len(record.prompts)} {what}")
        return record, packed, False

    async def _work(
        self, record: AnalysisRecord, packed: Packed, provider: Provider, library: PromptLibrary, continued: bool
    ) -> Written:
        ledger = await asyncio.to_thread(self._ledger, record)
        record, forced = await asyncio.to_thread(self._anew, record, ledger), self._options.provider
        async with AsyncExitStack() as stack:
            log = EventStore(self._url, on_event=self._listen, secrets=self._secrets, patience_s=FOREVER)
            sink = await stack.enter_async_context(log)
            for event in _begun_events(record, packed, continued, str(provider), self._clock):
                await sink.emit(event)
            slots = Slots(self._settings.concurrency.stories)
            gates = await stack.enter_async_context(GateKeeper(sink, self._clock, slots.given_back))
            masks = await asyncio.to_thread(masks_of, self._folder, self._secrets)
            engine = self._engine(record, packed, provider, library, sink, gates, masks)
            asked = Asked(await stack.enter_async_context(engine), record, policies_of(self._settings, forced))
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

        written = write_results(self._options, self._settings, library, outcome, self._clock, wrote, self._secrets)
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
        masks: Masks,
    ) -> DurableEngine:
        current = {triage_id(record), *(record.workflow_id(prompt.id) for prompt in record.prompts)}

        async def is_current(workflow_id: str) -> bool:
            return workflow_id in current

        return DurableEngine(
            url=self._environment.database_url or sqlite_url(self._folder.engine_database),
            executor_id=f"analyse-{record.analysis}",
            turns=TurnTaker(provider, self._settings, asyncio.Semaphore(self._settings.concurrency.turns)),
            journals=ReplyJournal(self._folder.replies),
            gates=gates,
            sink=sink,
            clock=self._clock,
            is_current=is_current,
            analysis_body=analysis_body(
                library,
                self._prd_text(record.prd),
                packed.text,
                self._settings.analysis.priority_synonyms,
                masks,
            ),
        )

    async def _triaged(self, asked: Asked, record: AnalysisRecord) -> tuple[AnalysisRecord, Triaged]:
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
