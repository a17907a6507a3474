"""Sprints of a state folder: which one a command is about, and what the event log says of each."""

import math
from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from orchestrator.backlogs.files import open_backlog
from orchestrator.checks.backlog import all_problems, refusal
from orchestrator.core.errors import BacklogError, ConfigError
from orchestrator.core.finding import blocking
from orchestrator.core.history import StoryHistory
from orchestrator.core.ports import Clock
from orchestrator.core.sprint import SprintRecord
from orchestrator.core.story import BacklogContent
from orchestrator.git.workspace import GitWorkspace
from orchestrator.records.histories import open_log
from orchestrator.settings import Environment, Settings
from orchestrator.settings.options import RunOptions
from orchestrator.sprint.selection import select
from orchestrator.storage.leases import MERGE, Lease
from orchestrator.storage.state_folder import StateFolder


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The sprint of this run."""

    record: SprintRecord
    continued: bool
    content: BacklogContent


def workspace_of(
    folder: StateFolder,
    record: SprintRecord,
    lock_fds: tuple[int, ...] = (),
    *,
    kept: bool = False,
    lease: Lease | None = None,
) -> GitWorkspace:
    """Returns the workspace of a sprint; commands in it keep `lock_fds` open. With a `lease` other daemons may merge
    stories of it. Unless it is `kept` it is there to be read only, and nothing of it is kept in Postgres.
    """
    store = folder.shared.commits if kept and folder.shared is not None else None
    turn = nullcontext if lease is None else partial(lease.holding, f"{MERGE}{record.sprint}", wait_s=math.inf)
    return GitWorkspace(
        mirror=folder.mirror(Path(record.repo)),
        folder=folder.worktrees(record.sprint),
        sprint=record.sprint,
        base=record.base,
        lock_fds=lock_fds,
        store=store,
        merge_turn=turn,
    )


def read_checked(path: Path, settings: Settings, folder: StateFolder) -> BacklogContent:
    """Returns the content of a backlog that may be worked on. Raises BacklogError with every problem. Blocks."""
    content = open_backlog(path, settings, folder).read()
    problems = all_problems(content)
    if blocking(problems):
        raise refusal(content.source, problems)
    return content


def find_resumable_sprint(
    options: RunOptions, repo: Path, folder: StateFolder, unfinished: Callable[[SprintRecord], bool]
) -> SprintRecord | None:
    """Returns the record that this command resumes; None for a new sprint. Raises ConfigError if names contradict."""
    if options.sprint is not None:
        record = folder.record(options.sprint)
        if record is not None and not record.cleared:
            _same(record, options, repo)
        if record is not None and record.executor and not record.cleared:
            raise ConfigError(f"sprint {record.sprint} is the daemon's; `orchestrator serve` resumes it")
        return record
    # A selection is part of what identifies a sprint: other stories of the same backlog are another one.
    fitting = [
        record
        for record in folder.records()
        if (record.backlog, record.repo) == (str(options.backlog.absolute()), str(repo))
        and set(record.requested) == set(options.stories)
        and not record.cleared
        and not record.executor
    ]
    return next((record for record in reversed(fitting) if unfinished(record)), None)


def make_sprint_record(
    options: RunOptions,
    content: BacklogContent,
    folder: StateFolder,
    *,
    repo: Path,
    base: str,
    clock: Clock,
    elsewhere: Collection[str],
) -> SprintRecord:
    """Returns the record of a new sprint; `elsewhere` are sprints of other state folders in a shared database.

    Raises BacklogError, ConfigError.
    """
    if options.sprint in elsewhere:
        told = f"the database of DATABASE_URL holds a sprint {options.sprint} of another state folder"
        raise ConfigError(f"{told}; give it another id")
    over = {record.sprint for record in folder.records(pruned=True)}
    if options.sprint in over:
        raise ConfigError(
            f"sprint {options.sprint} is over and was pruned: its result branch, and its report "
            f"(reports/{options.sprint}/report.md in the state folder), are left; give the new one another id"
        )
    taken = {record.sprint for record in folder.records() if not record.cleared} | set(elsewhere) | over
    selection = select(
        content, sprint=options.sprint, stories=options.stories, taken_sprints=taken, strict=options.strict
    )
    # A sprint that was reset as a whole keeps its generations: no workflow id is used twice.
    known = folder.record(selection.sprint)
    rows = [story for story in content.stories if story.id in selection.needs]
    return SprintRecord(
        sprint=selection.sprint,
        backlog=str(options.backlog.absolute()),
        repo=str(repo),
        base=base,
        story_ids=selection.story_ids,
        titles={story.id: story.title for story in rows if story.title},
        criteria={story.id: story.acceptance_criteria for story in rows if story.acceptance_criteria},
        needs=selection.needs,
        closes=selection.closes,
        done_ids=selection.done_ids,
        requested=tuple(options.stories),
        warnings=selection.warnings,
        generations=known.generations if known is not None else {},
        orders=known.orders if known is not None else (),
        started_at=clock.now(),
    )


def _same(record: SprintRecord, options: RunOptions, repo: Path) -> None:
    backlog = str(options.backlog.absolute())
    if record.backlog != backlog:
        raise ConfigError(f"sprint {record.sprint} was started with the backlog {record.backlog}; give it another id")
    if record.repo != str(repo):
        raise ConfigError(f"sprint {record.sprint} was started in the repository {record.repo}; give it another id")
    if options.stories and set(options.stories) != set(record.requested):
        asked = ", ".join(record.requested) or "all its rows"
        raise ConfigError(
            f"the selection of sprint {record.sprint} was frozen at its first start ({asked}); "
            f"leave --stories out to go on, or start another sprint"
        )


def find_sprints_elsewhere(environment: Environment, folder: StateFolder) -> frozenset[str]:
    """Sprints in the database of DATABASE_URL that this state folder knows nothing of. Blocks."""
    if environment.database_url is None:
        return frozenset()
    with open_log(environment, folder) as log:
        return frozenset(log.sprints() if log else ()) - {record.sprint for record in folder.records()}


def require_rows(chosen: Chosen, histories: Mapping[str, StoryHistory]) -> None:
    """Raises BacklogError when a story that still has work before it has no row in the backlog any more."""
    gone = [
        story for story, history in histories.items() if history.outcome is None and chosen.content.story(story) is None
    ]
    if gone:
        sprint, names = chosen.record.sprint, ", ".join(gone)
        raise BacklogError(
            f"{chosen.record.backlog} has no row {names} any more, which sprint {sprint} is about; "
            f"put it back, `cancel` it, or start another sprint with --sprint"
        )
