"""What tests of whole analyses share: a small application, answers of stages, one `analyse` in this process."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.analysis.files import Written, is_whole
from orchestrator.analysis.run import Analysis
from orchestrator.core.event import Event
from orchestrator.settings import load
from orchestrator.settings.options import AnalyseOptions
from tests.event_table import untrue
from tests.support import Team, make_repo, plain_environment

PRD = "# Shelf\n\nShelf is a small library. It finds books by their words.\n"
APP = {
    "README.md": "# Shelf\n",
    "shelf/words.py": "def find_words(text):\n    return text.split()\n",
    "shelf/cli.py": "from shelf.words import find_words\n\n\ndef main():\n    print(find_words('a b'))\n",
}


def answer(*tasks: Any, summary: str = "Two sentences. They are short.", **more: Any) -> dict[str, Any]:
    """A stage's answer; a task is `TITLE`, `TITLE|priority`, or a mapping."""
    held = []
    for one in tasks:
        if isinstance(one, str):
            title, _, priority = one.partition("|")
            one = {"title": title, "description": f"{title}: see shelf/words.py", "priority": priority or "medium"}
        held.append(one)
    return {"summary": summary, "recommendations": ["One.", "Two.", "Three."], "tasks": held, **more}


@dataclass
class Analysed:
    """An analysis in this process and what it left."""

    written: Written
    events: list[Event]
    told: list[str]
    folder: Path
    calls: list[dict[str, Any]] = field(default_factory=list)

    @property
    def asked(self) -> list[str]:
        """`story purpose turn` of the paid calls."""
        return [f"{call['story']} {call['purpose']} {call['turn']}" for call in self.calls]

    @property
    def statuses(self) -> dict[str, str]:
        """Stage → how it ended."""
        return {stage.id: stage.status.value for stage in self.written.plan.stages}

    @property
    def whole(self) -> bool:
        """Whether every stage answered as asked."""
        return is_whole(self.written.plan)

    @property
    def titles(self) -> list[str]:
        """Titles of the plan's tasks."""
        return [task.title for task in self.written.plan.tasks]

    def prompts(self, stage: str) -> list[str]:
        """Every prompt that was sent for a stage, in order."""
        found = (self.folder / "state" / "replies").glob(f"*/{stage}*/*.prompt.md")
        return [path.read_text() for path in sorted(found, key=lambda path: int(path.name.split(".")[0]))]

    def told_of(self, name: str) -> list[Event]:
        """Events of one name."""
        return [event for event in self.events if event.name == name]


def application(folder: Path, files: Mapping[str, str] | None = None) -> Path:
    """The repository, once."""
    return folder / "app" if (folder / "app").exists() else make_repo(folder / "app", files or APP)


def analysis(
    folder: Path, team: Team | None, *settings: str, repo: Path | None = None, **options: Any
) -> tuple[Analysis, list[Event], list[str]]:
    """An analysis that has not started, and where its events and sentences go."""
    (folder / "PRD.md").write_text(PRD)
    overrides = ("provider.wait_initial_s=0.01", *settings)
    configured, environment = load(None, overrides, plain_environment(ORCHESTRATOR_HOME=str(folder / "state")), folder)
    held = {"prd": folder / "PRD.md", "out": folder / "out", "call_log": folder / "calls.jsonl", **options}
    script = team.write(folder / "team.jsonl") if team is not None else held.pop("script", None)
    chosen = AnalyseOptions(repo=repo or application(folder), script=script, **held)
    events: list[Event] = []
    told: list[str] = []
    return Analysis(chosen, configured, environment, tell=told.append, listen=events.append), events, told


def analyse(folder: Path, team: Team | None, *settings: str, repo: Path | None = None, **options: Any) -> Analysed:
    """One `analyse`. Raises what it raises."""
    work, events, told = analysis(folder, team, *settings, repo=repo, **options)
    written = asyncio.run(work.go())
    log = folder / "calls.jsonl"
    calls = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    assert untrue(events) == []
    return Analysed(written=written, events=events, told=told, folder=folder, calls=calls)


def team_of(answers: Mapping[str, Any | Sequence[Any]]) -> Team:
    """A scripted analyst: stage → its answer, or its answers in the order of turns."""
    team = Team()
    for stage, held in answers.items():
        for one in held if isinstance(held, list) else [held]:
            team.say("analyst", stage, "stage", one, input_tokens=1000, output_tokens=100)
    return team
