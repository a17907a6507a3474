"""The page of the changes of a story, or of one of its tasks, with the comments of the reviews that read them."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from orchestrator.app.sprint_reader import Reader, SprintView
from orchestrator.board.deliveries import list_deliveries, list_reviews
from orchestrator.board.diffs import LARGEST, build_files
from orchestrator.core.errors import UnknownName, WorkspaceError
from orchestrator.core.event import Event
from orchestrator.core.secrets import redact
from orchestrator.git.changed_files import Range, find_task_range, list_commits, read_changed_files, read_patch
from orchestrator.git.mirror import Mirror, SprintRefs

InThread = Callable[..., Awaitable[Any]]
"""Runs what blocks: (function, arguments) → its result."""


class StoryChanges:
    """The changes of a story, or of one of its tasks: up to the commit `until`, of one file."""

    def __init__(
        self, reader: Reader, in_thread: InThread, sprint: str, story: str, *, task: str, until: str, file: str
    ) -> None:
        self._reader, self._in_thread = reader, in_thread
        self._sprint, self._story, self._task, self._until, self._file = sprint, story, task, until, file

    async def values(self) -> dict[str, Any]:
        """Returns what diff.html shows. Raises UnknownName for what is not there."""
        view: SprintView = await self._in_thread(self._reader.story, self._sprint, self._story)
        values: dict[str, Any] = await self._in_thread(self._frame, view)
        try:
            mirror, between = await self._find_range(view)
            changed = await read_changed_files(mirror, between, limit=LARGEST)
        except WorkspaceError as error:
            return {**values, "why": error.message}
        shown = [one for one in changed if self._file in ("", one.path)]
        if self._file and not shown:
            raise UnknownName(f"{self._file} is not among the changes of {self._task or self._story}")
        comments = _by_file(values["comments"])
        files = await self._in_thread(build_files, shown, comments, alone=bool(self._file))
        there = {one.path for one in changed}
        return {
            **values,
            "files": files,
            "more_files": len(shown) - len(files),
            "comments": [one for one in values["comments"] if one["file"] not in there],
            "base": between.base,
            "head": between.head,
        }

    async def patch(self, secrets: Iterable[str]) -> str:
        """Returns the same as git's patch, without what looks like a secret and these. Raises WorkspaceError."""
        view: SprintView = await self._in_thread(self._reader.story, self._sprint, self._story)
        mirror, between = await self._find_range(view)
        text = await read_patch(mirror, between, self._file)
        redacted: str = await self._in_thread(redact, text, secrets)
        return redacted

    async def _find_range(self, view: SprintView) -> tuple[Mirror, Range]:
        record = view.record
        if why := await self._reader.why_no_branch(record, self._story):
            raise WorkspaceError(why)
        mirror = Mirror(self._reader.folder.mirror(Path(record.repo)))
        refs = SprintRefs(mirror, record.sprint)
        if not self._task:
            return mirror, Range(*await refs.own_part(self._story))
        made = await list_commits(mirror, refs, self._story)
        return mirror, await find_task_range(mirror, made, self._task, self._until)

    def _frame(self, view: SprintView) -> dict[str, Any]:
        """Returns what stands around the files."""
        events = view.histories[self._story].events
        by_task: dict[str, list[Event]] = {}
        for event in events:
            if event.task and event.name in {"task_committed", "task_finished"}:
                by_task.setdefault(event.task, []).append(event)
        versions = [*list_deliveries(by_task.get(self._task, ()))]
        reviews = list_reviews(events)
        for one in versions:
            own = [review for review in reviews if review["commit"] == one["commit"]]
            one["reviewed"] = own[-1]["verdict"] if own else ""
        last = {task: [*list_deliveries(own)][-1]["commit"] for task, own in by_task.items() if [*list_deliveries(own)]}
        read = {self._until or last.get(self._task, "")} if self._task else {*last.values()}
        return {
            "sprint": self._sprint,
            "story": self._story,
            "title": view.record.titles.get(self._story, ""),
            "task": self._task,
            "until": self._until,
            "file": self._file,
            "why": "",
            "tasks": [*by_task],
            "versions": versions,
            "comments": [
                {
                    **one,
                    "by": ", ".join(who["by"] for who in review["by"]),
                    "review": review["number"],
                    "task": review["task"],
                }
                for review in reviews
                if review["commit"] in read
                for one in review["comments"]
            ],
            "files": [],
            "more_files": 0,
            "base": "",
            "head": "",
        }


def _by_file(comments: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for one in comments:
        found.setdefault(one["file"], []).append(one)
    return found
