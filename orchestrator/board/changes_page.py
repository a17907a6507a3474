"""The page of the changes of a story, or of one of its tasks, with the comments of the reviews that read them."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from orchestrator.board.calls import StoryCalls
from orchestrator.board.deliveries import list_deliveries, list_reviews
from orchestrator.board.diffs import MOST_CHARS, is_long
from orchestrator.core.errors import UnknownName, WorkspaceError
from orchestrator.core.secrets import redact
from orchestrator.git.changed_files import Range, find_task_range, list_commits, read_patch
from orchestrator.git.mirror import Mirror, SprintRefs
from orchestrator.records.sprint_reader import Reader, SprintView

InThread = Callable[..., Awaitable[Any]]
"""Runs what blocks: (function, arguments) → its result."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Which changes are to be shown; what is empty limits nothing."""

    sprint: str
    story: str
    task: str = ""
    since: str = ""
    until: str = ""
    """Commits of the task: what changed after the one, up to the other."""
    file: str = ""


class StoryChanges:
    """The changes that `asked` names."""

    def __init__(self, reader: Reader, in_thread: InThread, asked: Asked) -> None:
        self._reader, self._in_thread, self._asked = reader, in_thread, asked

    async def values(self) -> dict[str, Any]:
        """Returns what diff.html shows. Raises UnknownName for what is not there."""
        asked, view = self._asked, await self._look()
        values: dict[str, Any] = await self._in_thread(self._frame, view)
        try:
            mirror, between = await self._find_range(view)
            patch = await read_patch(mirror, between, asked.file)
        except WorkspaceError as error:
            return {**values, "why": error.message}
        if asked.file and not patch:
            raise self._unknown_file()
        shown = {"patch": patch[: 2 * MOST_CHARS], "is_cut": is_long(patch)}  # secrets are looked for in twice as much
        return {**values, **shown, "base": between.base, "head": between.head}

    async def patch(self, secrets: Iterable[str]) -> str:
        """Returns the same as git's patch, without what looks like a secret and these. Raises UnknownName for what is
        not there."""
        try:
            mirror, between = await self._find_range(await self._look())
            patch = await read_patch(mirror, between, self._asked.file)
        except WorkspaceError as error:
            raise UnknownName(error.message) from error
        if self._asked.file and not patch:
            raise self._unknown_file()
        text: str = await self._in_thread(redact, patch, secrets)
        return text

    def _unknown_file(self) -> UnknownName:
        asked = self._asked
        return UnknownName(f"{asked.file} is not among the changes of {asked.task or asked.story}")

    async def _look(self) -> SprintView:
        view: SprintView = await self._in_thread(self._reader.story, self._asked.sprint, self._asked.story)
        return view

    async def _find_range(self, view: SprintView) -> tuple[Mirror, Range]:
        asked, record = self._asked, view.record
        if why := await self._reader.why_no_branch(record, asked.story):
            raise WorkspaceError(why)
        mirror = Mirror(self._reader.folder.mirror(Path(record.repo)))
        refs = SprintRefs(mirror, record.sprint)
        if not asked.task:
            return mirror, Range(*await refs.own_part(asked.story))
        made = await list_commits(mirror, refs, asked.story)
        return mirror, await find_task_range(mirror, made, asked.task, since=asked.since, until=asked.until)

    def _frame(self, view: SprintView) -> dict[str, Any]:
        """Returns what stands around the files."""
        asked, events = self._asked, view.histories[self._asked.story].events
        names = dict.fromkeys(event.task for event in events if event.name == "task_committed" and event.task)
        tasks = {task: [*list_deliveries(events, task)] for task in names}
        versions = tasks.get(asked.task, [])
        calls = StoryCalls(self._reader.folder, view.record, asked.story, events)
        reviews = list_reviews(events, calls.find_answer)
        latest = {task: made[-1]["commit"] for task, made in tasks.items()}
        read = {asked.until or latest.get(asked.task, "")} if asked.task else {*latest.values()}
        verdicts = {review["commit"]: review["verdict"] for review in reviews}
        return {
            **asdict(asked),
            "title": view.record.titles.get(asked.story, ""),
            "why": "",
            "tasks": [*tasks],
            "versions": [{**one, "reviewed": verdicts.get(one["commit"], "")} for one in versions],
            "comments": [
                {**one, "review": review["number"], "task": review["task"]}
                for review in reviews
                if review["commit"] in read
                for one in review["comments"]
                if asked.file in {"", one["file"]}
            ],
            "patch": "",
            "is_cut": False,
            "base": "",
            "head": "",
        }
