"""The base of a sprint, tried before its first call: told, kept for others, refused where nothing runs."""

import asyncio
import hashlib
import json
import sys

from orchestrator import __version__
from orchestrator.adapters.git_workspace import GitWorkspace
from orchestrator.domain.base_trial import BASE_TRIED, TRYING, BaseTrial, TriedBase
from orchestrator.domain.events import Event, Level
from orchestrator.errors import BaseUnusable
from orchestrator.ports import SuiteRunner
from orchestrator.settings import Settings
from orchestrator.sprint.base import holds_something, try_base
from orchestrator.sprint.older_tests import OlderTests
from orchestrator.wiring.works import Works


class SprintBase:
    """The base commit of one sprint; what its tests did there, `older` knows from then on."""

    def __init__(
        self, works: Works, sprint: str, workspace: GitWorkspace, runner: SuiteRunner, older: OlderTests
    ) -> None:
        self._works, self._sprint, self._workspace = works, sprint, workspace
        self._runner, self._older = runner, older

    async def require(self, settings: Settings) -> None:
        """Try it, unless that was done with the same files and settings. Raises BaseUnusable when nothing can be run
        and `environment.base` is `require`; what cannot be run is not kept, and tried again the next time."""
        if settings.environment.base == "skip":
            return
        base = self._workspace.base
        if settings.test.custom is None and not holds_something(await self._workspace.files_at(base)):
            return
        key = await self._key(settings)
        async with self._works.bases[key]:  # of two sprints on the same files, the second one waits for the first
            tried = await asyncio.to_thread(self._works.folder.base, key)
            if tried is None:
                tried = await self._try(settings)
                if tried.trial.usable:
                    await asyncio.to_thread(self._works.folder.save_base, key, tried)
        refused = not tried.trial.usable and settings.environment.base == "require"
        await self._tell(tried.trial, key, tried.trial.told if refused else "")
        if tried.trial.usable:
            self._older.know_base(base, tried.report)
        if refused:
            raise BaseUnusable(tried.trial.refusal)

    async def recall(self, settings: Settings) -> None:
        """Take what was found when the sprint began, if it is still kept."""
        if settings.environment.base != "skip":
            tried = await asyncio.to_thread(self._works.folder.base, await self._key(settings))
            if tried is not None:
                self._older.know_base(self._workspace.base, tried.report)

    async def _try(self, settings: Settings) -> TriedBase:
        await self._emit("base_begun", TRYING, self._works.clock.now().isoformat())
        key, limit = f"{self._sprint}-base", settings.environment.base_timeout_s
        return await try_base(self._workspace, self._runner, key=key, timeout_s=limit)

    async def _key(self, settings: Settings) -> str:
        """Changes with the files of the base, and with what decides how they are run."""
        return key_of(await self._workspace.base_tree_id(), settings)

    async def _tell(self, trial: BaseTrial, key: str, reason: str) -> None:
        fine = trial.usable and not trial.failed and trial.problem is None
        # What is kept is told once by a sprint; what is tried again is told again.
        which = key if trial.usable else self._works.clock.now().isoformat()
        level = Level.INFO if fine else Level.WARN if trial.usable else Level.ERROR
        await self._emit(BASE_TRIED, trial.told, which, level=level, base=trial.model_dump(mode="json"), reason=reason)

    async def _emit(self, name: str, message: str, which: str, *, level: Level = Level.INFO, **data: object) -> None:
        await self._works.sink.emit(
            Event(
                id=f"{self._sprint}:{name}:{which}",
                time=self._works.clock.now(),
                level=level,
                name=name,
                message=message,
                sprint=self._sprint,
                data=data,
            )
        )


def key_of(tree: str, settings: Settings) -> str:
    """The name under which the trial of a tree is kept."""
    parts = [
        settings.commands.model_dump(mode="json"),
        settings.sandbox.model_dump(mode="json"),
        settings.environment.model_dump(mode="json", exclude={"base"}),
        settings.test.model_dump(mode="json", include={"command", "custom"}),
    ]
    content = json.dumps([tree, __version__, sys.version, *parts], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:32]
