"""The state folder, as commands use it where no daemon carries them out; a daemon beside it reads the same record."""

import asyncio
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from orchestrator.core.command import AnswerBody, OrderBody, ReplanBody, Settled
from orchestrator.core.sprint import Pruned
from orchestrator.records.sprint_reader import FollowedSprint, Reader
from orchestrator.records.views import read_contract, sprint_json, story_json
from orchestrator.reports.path import as_data, of_story
from orchestrator.settings import Environment, Settings

if TYPE_CHECKING:
    from orchestrator.app.commands import SprintCommands


class LocalFolder:
    """The sprints of one state folder. Every method raises ConfigError with one sentence."""

    url, poll_s = "", 0.5

    def __init__(self, environment: Environment, settings: Settings) -> None:
        self.environment, self._settings = environment, settings
        self._reader = Reader(environment)
        self._followed: FollowedSprint | None = None

    @cached_property
    def _commands(self) -> "SprintCommands":
        # Imported here: it brings what reads plans, and most commands only look.
        from orchestrator.app.commands import SprintCommands

        return SprintCommands(self.environment, self._settings)

    def sprint(self, name: str | None, *, story: str | None = None) -> dict[str, Any]:
        """Returns the named sprint, or the latest (that has `story`), as `status --json` prints it."""
        return sprint_json(self._reader.sprint(name, story=story))

    def follow(self, name: str, tell: Callable[[str], None]) -> dict[str, Any]:
        """Returns the sprint again; how long its stages took is not told."""
        if self._followed is None:
            self._followed = self._reader.follow(name)
        return sprint_json(self._followed.look())

    def story(self, sprint: str | None, story: str, *, full: bool = False) -> dict[str, Any]:
        """Returns a story as `show --json` prints it."""
        view = self._reader.story(sprint, story)
        history = view.histories[story]
        stat = asyncio.run(self._reader.diff_stat(view.record, story))
        drawn = of_story(history, running=view.is_running, full=full, orders=view.events)
        return {**story_json(view, story, stat), "timeline": as_data(drawn)}

    def contract(self, sprint: str, story: str) -> dict[str, Any]:
        """Returns a story's contract."""
        return read_contract(self._reader.story(sprint, story), story).model_dump(mode="json")

    def answer(self, sprint: str | None, story: str, given: AnswerBody) -> dict[str, Any]:
        """Returns the answer to the story's question that counts: this one, or an earlier one."""
        return asyncio.run(self._commands.answer(sprint, story, given))

    def replan(self, sprint: str | None, story: str, given: ReplanBody) -> dict[str, Any]:
        """Returns the answer that counts, of a story that waits; else which stories are run again."""
        return asyncio.run(self._commands.replan(sprint, story, given))

    def target(self, name: str | None, sprint: str | None) -> tuple[str | None, str | None]:
        """Returns (sprint or None for the latest, story or None for all of it) that an order with this name means."""
        if name is None or name == sprint:
            return sprint, None
        return (name, None) if sprint is None and self._reader.has(name) else (sprint, name)

    def order(self, sprint: str | None, story: str | None, given: OrderBody) -> Settled:
        """Returns what became of an order."""
        return asyncio.run(self._commands.order(sprint, story, given))

    def prune(self, limits: Mapping[str, float | None], *, dry_run: bool) -> Pruned:
        """Deletes what is too old or too much; `limits` are in the settings already."""
        # Imported here: it brings git, databases and locks, and most commands need none of them.
        from orchestrator.maintenance.retention import prune

        return asyncio.run(prune(self.environment, self._settings, dry_run=dry_run))
