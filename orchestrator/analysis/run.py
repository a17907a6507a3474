"""`analyse` and its run: the command in the foreground, and one analysis in the runtime that stories use.

The stages of an analysis are workflows; then its plan is written.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from orchestrator import __version__
from orchestrator.analysis.files import PLAN, PLAN_JSON, Outputs, Written, write_plan
from orchestrator.analysis.input import PRD_SHARE, AnalysisInput, packed_repository, read_options
from orchestrator.analysis.plan_file import aggregate, prd_summary
from orchestrator.analysis.stages import AnalysisEstimate, Ledger, estimate, run_stages
from orchestrator.analysis.store import AnalysisStore
from orchestrator.app.runtime import Works
from orchestrator.app.secrets import known_secrets, masks_of
from orchestrator.app.team import prompt_library, schema_texts
from orchestrator.core.analysis import (
    AnalysisRecord,
    Codebase,
    ImprovementPlan,
    Packed,
    StagePrompt,
    StageReport,
    StageResult,
    StageStatus,
    TaskPriority,
)
from orchestrator.core.calls.exchange import Purpose, ScriptEntry
from orchestrator.core.event import Event, Level
from orchestrator.core.finding import Finding, major
from orchestrator.core.ports import Step
from orchestrator.core.secrets import Masks
from orchestrator.core.value import Value, counted
from orchestrator.engine.durable import ANALYSIS_WORKFLOW_NAME, Body
from orchestrator.files.process import SystemClock, end_at_once
from orchestrator.personas.analyst import CONTRACT, NAME, Analyst
from orchestrator.personas.session import Desk
from orchestrator.prompts.analysis import render_history, render_prd
from orchestrator.prompts.render import PromptLibrary
from orchestrator.providers.routing import open_providers, open_script
from orchestrator.providers.scripted import Script
from orchestrator.providers.seats import model_of, policies_of
from orchestrator.records.histories import event_url
from orchestrator.settings import Environment, Policies, Settings, forget_secrets
from orchestrator.settings.options import AnalyseOptions
from orchestrator.settings.prices import find_price
from orchestrator.sprint.state import Board
from orchestrator.storage.leases import Lease
from orchestrator.storage.locks import SprintLock

MOCK = "mock"


class AnalysisRun:
    """The place of one analysis in the runtime (see `works.Place`); the caller holds the analysis's lock.

    `forced` is the provider that answers everybody, if one does; `tell` gets sentences for people.
    """

    def __init__(
        self,
        works: Works,
        store: AnalysisStore,
        settings: Settings,
        library: PromptLibrary,
        *,
        secrets: Sequence[str],
        forced: str | None,
        tell: Callable[[str], None],
    ) -> None:
        self._works, self._store, self._settings, self._library = works, store, settings, library
        self._secrets, self._forced, self._tell = secrets, forced, tell
        self._current: frozenset[str] = frozenset()
        self.bodies: dict[str, Body] = {}

    async def is_current(self, workflow_id: str) -> bool:
        """See Place. A generation that failed is not current any more."""
        return workflow_id in self._current

    def saw(self, event: Event) -> None:
        """See Place."""

    async def run(
        self, record: AnalysisRecord, packed: Packed, outputs: Outputs, *, resumed: bool, provider: str
    ) -> Written:
        """Asks the stages that have not answered yet and write the files; `provider` is its name in the log.

        Raises ConfigError for a file that cannot be written.
        """
        works, name = self._works, record.analysis
        for event in self._started(record, packed, resumed, provider):
            await works.sink.emit(event)
        record = await asyncio.to_thread(self._restart_failed, record)
        masks = await asyncio.to_thread(masks_of, works.folder, self._secrets)
        self.bodies = {ANALYSIS_WORKFLOW_NAME: self._body(record, packed, masks)}
        self._current = frozenset(record.workflow_id(prompt.id) for prompt in record.prompts)
        with works.switchboard.following(Board(name, takes_slots=False)):
            works.admit(name, self)
            try:
                results = await run_stages(
                    record.prompts,
                    partial(self._ask, record),
                    at_once=self._settings.concurrency.turns,
                    stop_after=self._settings.analysis.stop_after_failures,
                )
            finally:
                for workflow_id in self._current:
                    await works.engine.cut_story(workflow_id)
                works.dismiss(name)
        ledger = await asyncio.to_thread(self._store.ledger, record)
        plan = improvement_plan(record, packed, results, ledger, works.clock.now())
        return await asyncio.to_thread(self._write, record, plan, outputs)

    def _write(self, record: AnalysisRecord, plan: ImprovementPlan, outputs: Outputs) -> Written:
        written = write_plan(outputs, plan, self._library, secrets=self._secrets)
        finished = all(stage.status in {StageStatus.ANSWERED, StageStatus.PROSE} for stage in plan.stages)
        self._works.folder.save_analysis(record.model_copy(update={"finished": finished}))
        return written

    def _restart_failed(self, record: AnalysisRecord) -> AnalysisRecord:
        """Failed stages restart as a new generation; all others resume, and no answer is asked for twice."""
        failed = [stage for stage, result in self._store.ledger(record).results.items() if result.failed]
        if not failed:
            return record
        raised = {stage: record.generations.get(stage, 1) + 1 for stage in failed}
        record = record.model_copy(update={"generations": {**record.generations, **raised}})
        self._works.folder.save_analysis(record)
        self._tell(f"{counted(len(raised), 'stage')} that failed before: asked again")
        return record

    def _body(self, record: AnalysisRecord, packed: Packed, masks: Masks) -> Body:
        schemas = schema_texts()
        prd = shown_prd(record.prd, self._settings)

        async def body(step: Step, payload: dict[str, Any]) -> Value:
            policies, story = Policies.model_validate(payload["policies"]), payload["story"]
            desk = Desk(step=step, library=self._library, policies=policies, story=story, schemas=schemas, masks=masks)
            prompt = StagePrompt.model_validate(payload["prompt"])
            return await Analyst(desk, prd, packed.text).stage(prompt, payload["history"])

        return body

    async def _ask(self, record: AnalysisRecord, prompt: StagePrompt, earlier: Sequence[StageResult]) -> StageResult:
        """Asks one stage; its input about earlier ones is frozen with it."""
        payload = {
            "sprint": record.analysis,
            "story": prompt.id,
            "purpose": str(Purpose.STAGE),
            "prompt": prompt.model_dump(mode="json"),
            "policies": policies_of(self._settings, self._forced).model_dump(mode="json"),
            "history": render_history(earlier),
        }
        answered = await self._works.engine.run_analysis(record.workflow_id(prompt.id), payload)
        return StageResult.model_validate(answered)

    def _started(self, record: AnalysisRecord, packed: Packed, resumed: bool, provider: str) -> tuple[Event, Event]:
        now, stages = self._works.clock.now(), [prompt.id for prompt in record.prompts]
        name = "analysis_continued" if resumed else "analysis_started"
        how = "resumes" if resumed else "starts"
        shown = f"{len(packed.shown)} of {counted(len(packed.paths), 'file')} whole, {len(packed.cut)} in part"
        return Event(
            id=f"{record.analysis}:{name}:{now.isoformat()}",
            time=now,
            name=name,
            message=f"analysis {record.analysis} {how}: {record.profile}, provider {provider}",
            sprint=record.analysis,
            data={"version": __version__, "profile": record.profile, "stages": stages},
        ), Event(
            id=f"{record.analysis}:codebase_packed",
            time=now,
            name="codebase_packed",
            message=f"the prompts show {shown}, about {packed.tokens} tokens",
            level=Level.WARN if packed.masked else Level.INFO,
            sprint=record.analysis,
            data={"shown": len(packed.shown), "left_out": len(packed.left_out), "masked": list(packed.masked)},
        )


def freeze(
    store: AnalysisStore,
    analysis: str,
    repo: Path,
    given: AnalysisInput,
    packed: Packed,
    settings: Settings,
    masks: Masks,
) -> AnalysisRecord:
    """Keeps what an analysis that starts now shows and asks, whatever changes later. Blocks."""
    record = AnalysisRecord(
        analysis=analysis,
        repo=str(repo),
        prd_file=given.prd_file,
        prd=masks.masked(given.prd),
        profile=given.profile,
        prompts=given.prompts,
        mock=given.mock,
        asked=given.key(settings),
        started_at=SystemClock().now(),
    )
    store.folder.save_packed(analysis, packed)
    store.folder.save_analysis(record)
    return record


def improvement_plan(
    record: AnalysisRecord,
    packed: Packed,
    results: Sequence[StageResult],
    ledger: Ledger,
    generated: datetime,
) -> ImprovementPlan:
    """Returns what the stages come to."""
    tasks = aggregate(results)
    reports = [{**result.model_dump(exclude={"tasks", "stop"}), "tasks": len(result.tasks)} for result in results]
    return ImprovementPlan(
        analysis=record.analysis,
        generated=generated,
        mock=record.mock,
        profile=record.profile,
        repo=record.repo,
        prd_file=record.prd_file,
        prd_summary=prd_summary(record.prd),
        stages=tuple(StageReport.model_validate(report) for report in reports),
        tasks=tasks,
        findings=() if tasks else (_no_task(results),),
        codebase=Codebase(
            files=len(packed.paths),
            shown=len(packed.shown),
            **packed.model_dump(include={"cut", "left_out", "masked", "tokens"}),
        ),
        calls=ledger.calls,
        tokens=ledger.tokens,
        cost_usd=ledger.cost_usd,
    )


def _no_task(results: Sequence[StageResult]) -> Finding:
    """Returns the finding that keeps a plan without a task from being silent."""
    answered = sum(result.status is StageStatus.ANSWERED for result in results)
    message = f"the plan holds no task: {answered} of {len(results)} stages answered as asked"
    fix = "read the summaries and what is said of the stages; ask another profile or another model"
    return major("improve.no_tasks", message, fix=fix)


def shown_prd(prd: str, settings: Settings) -> str:
    """Returns the PRD as every prompt begins with it."""
    return render_prd(prd, settings.analysis.context_tokens // PRD_SHARE)


def mock_script(prompts: Sequence[StagePrompt], packed: Packed) -> Script:
    """Returns a script with one answer for each stage; none is paid for, and none claims a finding."""
    shown = (*packed.shown, *(one.path for one in packed.cut))
    entries = (_stand_in(prompt, shown, packed, number) for number, prompt in enumerate(prompts))
    return {entry.lookup: entry for entry in entries}


def _stand_in(prompt: StagePrompt, shown: Sequence[str], packed: Packed, number: int) -> ScriptEntry:
    # A file of the repository, another one for each stage: the plan then shows what a reference looks like.
    file = shown[number % len(shown)] if shown else ""
    told = f"the prompt shows {len(packed.shown)} of {len(packed.paths)} files whole, {len(packed.cut)} in part"
    task = {
        "title": f"Mock: {prompt.name}",
        "description": (
            f"No model was asked, and nothing was found. This entry shows where a task of the stage `{prompt.id}` "
            "stands in a plan and in a backlog, and how it refers to a file."
        ),
        "priority": TaskPriority.LOW,
        "file": file,
    }
    answer = {
        "summary": f"Mock answer: no model was asked; {told}.",
        "recommendations": ["Give the same command without --mock to have a model answer."],
        "tasks": [task],
    }
    return ScriptEntry(
        persona=NAME, story=prompt.id, purpose=Purpose.STAGE, text=json.dumps(answer), model=MOCK, paid=False
    )


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
        self._outputs = Outputs.of(options)
        self._store = AnalysisStore(environment)
        self._secrets = known_secrets(environment, options.repo)

    def dry_run(self) -> AnalysisEstimate:
        """Returns what it would ask. Needs no provider, key or network, and writes nothing. Blocks. Raises
        UserError."""
        settings = self._settings
        given = read_options(self._options, settings, self._environment)
        self._outputs.check()
        packed = self._packed(given, Masks(known=self._secrets))
        library = prompt_library(settings, self._environment)
        contract = library.note(CONTRACT, schema=schema_texts()["stage"])
        price = find_price(settings.prices, model_of(settings, NAME, self._options.provider) or "")
        texts = (shown_prd(given.prd, settings), contract)
        return estimate(given.profile, given.prompts, packed, texts, settings, price)

    async def go(self) -> Written:
        """Returns the whole analysis. Raises UserError before anything is spent."""
        settings, environment, folder = self._settings, self._environment, self._store.folder
        given = await asyncio.to_thread(read_options, self._options, settings, environment)
        library = await asyncio.to_thread(prompt_library, settings, environment)
        provider = None
        if not given.mock:  # a key that is missing is told before anything is kept
            provider = await asyncio.to_thread(
                open_providers, self._options, settings, environment, SystemClock(), alone=NAME
            )
        try:
            forget_secrets()
            if warning := await asyncio.to_thread(folder.make):
                self._tell(f"warning: {warning}")
            record, packed, resumed = await asyncio.to_thread(self._chosen, given)
            provider = provider or open_script(mock_script(record.prompts, packed), MOCK)
            # A name of its own for each: what a killed one left is resumed by the process that asks for the same.
            name, url = record.analysis, event_url(environment, folder)
            lease = Lease(url, f"analyse-{name}", folder=str(folder.home), lost=end_at_once)
            async with SprintLock(folder.analysis(name) / "lock", f"analysis {name}"), lease, lease.holding(name):
                works = Works(settings, environment, provider, lease=lease, listen=self._listen)
                works.sink.hide(self._secrets)
                async with works:
                    run = AnalysisRun(
                        works, self._store, settings, library,
                        secrets=self._secrets, forced=self._options.provider, tell=self._tell,
                    )  # fmt: skip
                    return await run.run(record, packed, self._outputs, resumed=resumed, provider=str(provider))
        finally:
            if provider is not None:
                await provider.close()

    def _chosen(self, given: AnalysisInput) -> tuple[AnalysisRecord, Packed, bool]:
        """Returns the analysis that this command resumes (then True), as it was frozen; else a new one."""
        options, folder = self._options, self._store.folder
        repo = options.repo.resolve()
        known = self._store.resumable(options.analysis, repo, given.key(self._settings))
        packed = folder.packed(known.analysis) if known is not None else None
        self._outputs.check(known.analysis if known is not None else None)
        if known is not None and packed is not None:
            started = f"{known.started_at:%Y-%m-%d %H:%M}"
            self._tell(f"analysis {known.analysis} of {started} goes on unchanged; --id with a new ID reads again")
            return known, packed, True
        masks = masks_of(folder, self._secrets)
        packed = self._packed(given, masks)
        for path in packed.masked:
            self._tell(f"warning: {path} holds what looks like a secret; it is masked in prompts")
        record = freeze(self._store, self._store.claim(options.analysis), repo, given, packed, self._settings, masks)
        self._tell(f"analysis {record.analysis}, {record.profile}: {counted(len(record.prompts), 'stage')}")
        return record, packed, False

    def _packed(self, given: AnalysisInput, masks: Masks) -> Packed:
        options = self._options
        own = (options.out / PLAN, options.out / PLAN_JSON, options.to_backlog, options.script, options.call_log)
        excluded = [path for path in own if path is not None]
        return packed_repository(options.repo, given.prd, self._settings, self._environment, masks, excluded)
