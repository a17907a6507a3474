"""The report of a sprint as files: report.json and report.md in the state folder."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.adapters.git_workspace import GitWorkspace
from orchestrator.adapters.state_folder import StateFolder
from orchestrator.domain.base import Value
from orchestrator.domain.base_trial import BASE_TRIED, BaseTrial
from orchestrator.domain.events import Event
from orchestrator.domain.outcome import SprintReport
from orchestrator.domain.redaction import redact, redacted
from orchestrator.domain.sprint import SprintRecord
from orchestrator.domain.story import Story
from orchestrator.errors import RepositoryError, WorkspaceError
from orchestrator.sprint.history import StoryHistory
from orchestrator.sprint.report import build_report, with_facts
from orchestrator.sprint.report_markdown import Places, render_report
from orchestrator.wiring.sandboxes import sandbox_told


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """What a run leaves to tell."""

    report: SprintReport
    report_path: Path
    """report.json; report.md lies beside it."""
    fetch_command: str
    repo: Path
    """The user's repository."""
    pushed: str | None = None
    """The branch of the user's repository that holds the result now."""
    unpushed: str | None = None
    """Why `--push-to` could not be done at the end."""
    paused: str | None = None


async def push(workspace: GitWorkspace, repo: Path, branch: str | None) -> str | None:
    """Why the result could not be put onto the asked branch, or None. The report is written either way."""
    if branch is None:
        return None
    try:
        await workspace.push(repo, branch)
    except (RepositoryError, WorkspaceError) as error:
        return error.message
    return None


def save_report(
    folder: StateFolder,
    record: SprintRecord,
    histories: Mapping[str, StoryHistory],
    stories: Iterable[Story],
    paused: str | None = None,
    secrets: Sequence[str] = (),
    facts: Mapping[str, Value | None] | None = None,
) -> tuple[SprintReport, Path]:
    """Write both files; the report and the path of report.json. `stories` serve where an older record lacks words.

    `paused` is why no further story began. Neither file holds what looks like a secret, nor one of `secrets`.
    """
    rows = {story.id: story for story in stories}
    titles = {name: row.title for name, row in rows.items()} | record.titles
    criteria = {name: row.acceptance_criteria for name, row in rows.items()} | record.criteria
    told = build_report(record.model_copy(update={"criteria": criteria}), histories, titles, paused or "")
    told = with_facts(told, facts or {})
    # Of a thousand stories each form takes room: none is held longer than the next one needs it.
    plain = redacted(told.model_dump(mode="json"), secrets)
    del told
    report = SprintReport.model_validate(plain)
    text = json.dumps(plain, indent=2)
    del plain
    markdown = redact(render_report(report, histories, places_of(folder, record)), secrets)
    return report, folder.save_report(record.sprint, text, markdown)


def facts_told(events: Sequence[Event]) -> dict[str, Value | None]:
    """What `with_facts` takes, as the events of the sprint itself tell it; None for what none of them tells."""
    return {"sandbox": sandbox_told(events), "base": _base_told(events)}


def _base_told(events: Iterable[Event]) -> BaseTrial | None:
    """What came of the base, as the sprint's events tell it; None where it was not tried."""
    told = [event.data["base"] for event in events if event.name == BASE_TRIED]
    return BaseTrial.model_validate(told[-1]) if told else None


def places_of(folder: StateFolder, record: SprintRecord) -> Places:
    """Where what the report speaks of lies."""
    here = folder.report(record.sprint).parent
    replies = {story: folder.replies / record.workflow_id(story) for story in record.story_ids}
    return Places(
        backlog=record.backlog,
        repo=record.repo,
        mirror=str(folder.mirror(Path(record.repo)).absolute()),
        replies={story: os.path.relpath(kept, here) for story, kept in replies.items() if kept.is_dir()},
    )
