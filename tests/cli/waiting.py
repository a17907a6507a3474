"""A sprint whose stories wait for a person, made without a run: record, log, and a branch where one is needed."""

import asyncio
import os
import pty
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from click.testing import Result
from typer.testing import CliRunner

from orchestrator.checks.breakdown import read_breakdown
from orchestrator.cli.main import app
from orchestrator.core.breakdown import Breakdown, PlanValidationResult
from orchestrator.core.command import GATE_ANSWERED, GATE_OPENED, Gate, GateAnswer
from orchestrator.core.contract import ArchitectureContract
from orchestrator.core.event import Event
from orchestrator.core.finding import Finding
from orchestrator.core.history import FINISHED, STARTED
from orchestrator.core.sprint import SprintRecord, StoryOutcome, StoryStatus
from orchestrator.git.workspace import GitWorkspace
from orchestrator.storage.event_file import sqlite_url
from orchestrator.storage.event_reader import EventReader
from orchestrator.storage.event_store import EventStore
from orchestrator.storage.state_folder import StateFolder
from orchestrator.story.gate import conflict_gate, plan_gate
from tests.support import breakdown, git, make_repo, plain_environment
from tests.zygote import zygote

SPRINT = "S1"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
CONFLICT = {
    "detected": True,
    "current_architecture": "one file per shelf",
    "story_requirement": "shelves shared by several machines",
    "conflict_reason": "a local file cannot be shared",
    "recommended_action": "decide on a database first",
}


def plan(story: str, *tasks: Any, **fields: Any) -> Breakdown:
    """A plan as the checks build it."""
    found, _ = read_breakdown(breakdown(story, *tasks or (["app.py"],), **fields), story)
    assert found is not None
    return found


def about_plan(story: str, *issues: Finding, **more: Any) -> Gate:
    """A question about a plan."""
    fields = {"iteration": 1, "plan_file": "", **more}
    made = fields.pop("plan", None) or plan(story)
    return plan_gate(made, PlanValidationResult.of(issues), **fields)


def about_conflict(story: str) -> Gate:
    """A question about a conflict."""
    return conflict_gate(plan(story, architectural_conflict=CONFLICT), iteration=1, plan_file="")


class Waiting:
    """The sprint's state folder and what may be done to it."""

    def __init__(self, folder: Path, stories: Iterable[str] = ("US-1", "US-2", "US-3")) -> None:
        self.folder, self.state = folder, StateFolder(folder / "state")
        names = tuple(stories)
        self.record = SprintRecord(
            sprint=SPRINT,
            backlog=str(folder / "b.csv"),
            repo=str(folder / "repo"),
            base="",
            story_ids=names,
            titles={name: f"Story {name}" for name in names},
            criteria={names[0]: ("it works",)},
            started_at=NOON,
        )
        self.state.make()
        self.state.save(self.record)
        self._numbers: dict[str, int] = {}

    def open_branch(self, story: str, files: Mapping[str, str]) -> None:
        """Give the sprint a repository with `files`, and the story its branch."""
        repo = make_repo(Path(self.record.repo), files)
        base = git(repo, "rev-parse", "HEAD")
        self.record = self.record.model_copy(update={"base": base})
        self.state.save(self.record)

        async def work() -> None:
            space = GitWorkspace(
                mirror=self.state.mirror(repo), folder=self.state.worktrees(SPRINT), sprint=SPRINT, base=base
            )
            await space.prepare(repo)
            await space.open(story)
            space.close()

        asyncio.run(work())

    def ask(self, story: str, gate: Gate | None = None, *, deadline: datetime | None = None) -> Gate:
        """The story begins, if it has not, and asks."""
        number = self._numbers[story] = self._numbers.get(story, 0) + 1
        update = {"number": number, "opened_at": NOON, "deadline": deadline}
        asked = (gate or about_plan(story)).model_copy(update=update)
        started = self._event(story, STARTED, f"{story} starts", {"criteria": self.record.criteria.get(story, [])})
        self.emit(
            started, self._event(story, GATE_OPENED, "asks", {"gate": asked.model_dump(mode="json")}, str(number))
        )
        return asked

    def judge(self, story: str, written: Breakdown, *found: Finding) -> None:
        """The architect's plan is judged."""
        data = {"plan": written.model_dump(mode="json"), "findings": [one.model_dump(mode="json") for one in found]}
        self.emit(self._event(story, "plan_judged", "plan 3 with 2 tasks: escalate", data))

    def freeze(self, story: str, contract: ArchitectureContract) -> None:
        """The story's plan is accepted."""
        self.emit(self._event(story, "contract_frozen", "", {"contract": contract.model_dump(mode="json")}))

    def finish(self, story: str, status: StoryStatus) -> None:
        """The story ends."""
        outcome = StoryOutcome(id=story, status=status, blocked_by=("US-1",) if status is StoryStatus.BLOCKED else ())
        data = {"outcome": outcome.model_dump(mode="json"), "status": status}
        self.emit(self._event(story, FINISHED, f"{story} is {status}", data))

    def emit(self, *events: Event) -> None:
        """Record events as a run does."""

        async def work() -> None:
            async with EventStore(sqlite_url(self.state.event_database)) as store:
                for event in events:
                    await store.emit(event)

        asyncio.run(work())

    def _event(self, story: str, name: str, message: str, data: dict[str, Any], tail: str = "") -> Event:
        return Event(
            id=f"{self.record.workflow_id(story)}:{tail or name}", time=NOON, name=name, message=message,
            sprint=SPRINT, story=story, data=data,
        )  # fmt: skip

    def answers(self, story: str = "US-1") -> list[GateAnswer]:
        """What was recorded as answers to the story's questions."""
        reader = EventReader(sqlite_url(self.state.event_database))
        try:
            found = [event for _, event in reader.read() if event.name == GATE_ANSWERED and event.story == story]
        finally:
            reader.close()
        return [GateAnswer.model_validate(event.data["answer"]) for event in found]

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of a command."""
        return plain_environment(ORCHESTRATOR_HOME=str(self.state.home), **{"LOGNAME": "anna", **more})

    def cli(self, *args: str, text: str | bytes | None = None, **more: str) -> Result:
        """A command in this process; a defect of ours is raised."""
        env = {name: None for name in os.environ} | self.environment(**more)
        result = CliRunner().invoke(app, list(args), env=env, input=text)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    def on_a_terminal(self, *words: str, typed: str = "", **variables: str) -> tuple[int, str]:
        """A command with a terminal of its own; its exit code and all that it printed."""
        ours, its = pty.openpty()
        with os.fdopen(its, "wb") as terminal:
            process = zygote().start(
                "tests.cli.terminal", words, cwd=self.folder, env=self.environment(TERM="dumb", **variables),
                log=terminal,
            )  # fmt: skip
        os.write(ours, typed.encode())
        printed = b""
        while True:
            try:
                printed += os.read(ours, 4096)
            except OSError:  # the other side was closed
                break
        os.close(ours)
        return process.wait(), printed.decode()
