"""`analyse`: an improvement plan and a backlog of a repository, in the foreground."""

import asyncio
from collections.abc import Callable

from orchestrator.analysis.files import PLAN, PLAN_JSON, Outputs, Written
from orchestrator.analysis.input import AnalysisInput, packed_repository, read_options
from orchestrator.analysis.run import AnalysisRun, freeze, shown_prd
from orchestrator.analysis.stages import AnalysisEstimate, estimate
from orchestrator.analysis.store import AnalysisStore
from orchestrator.app.runtime import Works
from orchestrator.app.secrets import masks_of
from orchestrator.app.team import prompt_library, schema_texts
from orchestrator.core.analysis import AnalysisRecord, Packed
from orchestrator.core.event import Event
from orchestrator.core.secrets import Masks, secrets_of
from orchestrator.files.process import SystemClock
from orchestrator.personas.analyst import CONTRACT, NAME
from orchestrator.providers.routing import model_of, open_providers
from orchestrator.settings import Environment, Settings, forget_secrets
from orchestrator.settings.options import AnalyseOptions
from orchestrator.storage.locks import SprintLock


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
        self._secrets = secrets_of(environment.variables)

    def dry_run(self) -> AnalysisEstimate:
        """Returns what it would ask. Needs no provider, key or network, and writes nothing. Blocks. Raises
        UserError."""
        settings = self._settings
        given = read_options(self._options, settings, self._environment)
        self._outputs.check()
        packed = self._packed(given, Masks(known=self._secrets))
        library = prompt_library(settings, self._environment)
        contract = library.note(CONTRACT, schema=schema_texts()["stage"]) if settings.analysis.response_contract else ""
        price = settings.prices.get(model_of(settings, NAME, self._options.provider) or "")
        texts = (shown_prd(given.prd, settings), contract)
        return estimate(given.profile, given.prompts, given.fallback, packed, texts, settings, price)

    async def go(self) -> Written:
        """The whole analysis. Raises UserError before anything is spent."""
        settings, environment, folder = self._settings, self._environment, self._store.folder
        given = await asyncio.to_thread(read_options, self._options, settings, environment)
        library = await asyncio.to_thread(prompt_library, settings, environment)
        provider = await asyncio.to_thread(
            open_providers, self._options, settings, environment, SystemClock(), alone=NAME
        )
        try:
            forget_secrets()
            if warning := await asyncio.to_thread(folder.make):
                self._tell(f"warning: {warning}")
            record, packed, resumed = await asyncio.to_thread(self._chosen, given)
            # A name of its own for each: what a killed one left is resumed by the process that asks for the same.
            executor_id = f"analyse-{record.analysis}"
            async with SprintLock(folder.analysis(record.analysis) / "lock", f"analysis {record.analysis}"):
                works = Works(settings, environment, provider, executor_id=executor_id, listen=self._listen)
                works.sink.hide(self._secrets)
                async with works:
                    run = AnalysisRun(
                        works, self._store, settings, library,
                        secrets=self._secrets, forced=self._options.provider, tell=self._tell,
                    )  # fmt: skip
                    return await run.run(record, packed, self._outputs, resumed=resumed, provider=str(provider))
        finally:
            await provider.close()

    def _chosen(self, given: AnalysisInput) -> tuple[AnalysisRecord, Packed, bool]:
        """The analysis that this command resumes (then True), as it was frozen; else a new one."""
        options, folder = self._options, self._store.folder
        repo = options.repo.resolve()
        known = self._store.resumable(options.analysis, given.key(repo, self._settings))
        packed = folder.packed(known.analysis) if known is not None else None
        self._outputs.check(known.wrote if known is not None else None)
        if known is not None and packed is not None:
            begun = f"{known.started_at:%Y-%m-%d %H:%M}"
            self._tell(f"analysis {known.analysis} of {begun} goes on, as it was begun; --id with a new ID reads anew")
            return known, packed, True
        masks = masks_of(folder, self._secrets)
        packed = self._packed(given, masks)
        for path in packed.masked:
            self._tell(f"warning: {path} holds what looks like a secret; it is masked in prompts")
        record = freeze(self._store, self._store.claim(options.analysis), repo, given, packed, self._settings, masks)
        what = "prompts for triage" if record.triage else "stages"
        self._tell(f"analysis {record.analysis}, {record.profile}: {len(record.prompts)} {what}")
        return record, packed, False

    def _packed(self, given: AnalysisInput, masks: Masks) -> Packed:
        options = self._options
        own = (options.out / PLAN, options.out / PLAN_JSON, options.to_backlog, options.script, options.call_log)
        excluded = [path for path in own if path is not None]
        return packed_repository(options.repo, given.prd, self._settings, self._environment, masks, excluded)
