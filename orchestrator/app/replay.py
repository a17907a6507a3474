"""A recording run once more, by this version and with any settings, and what comes out otherwise."""

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from orchestrator import __version__
from orchestrator.app.recordings import Call, Recorded, read_recorded
from orchestrator.app.run import Run
from orchestrator.core.calls.exchange import ScriptEntry
from orchestrator.core.calls.spending import UNITS
from orchestrator.core.command import GATE_ANSWERED, GateAnswer, answer_id
from orchestrator.core.errors import ConfigError
from orchestrator.core.event import Event
from orchestrator.core.sprint import StoryReport, StoryStatus
from orchestrator.core.value import Value
from orchestrator.files.process import SystemClock
from orchestrator.git.bundles import clone_bundle
from orchestrator.providers.scripted import load_script
from orchestrator.records.histories import event_url
from orchestrator.settings import Environment, Settings
from orchestrator.settings.model import BacklogSettings
from orchestrator.settings.options import RunOptions
from orchestrator.storage.event_store import EventStore
from orchestrator.storage.recordings import BACKLOG, BASE, PLANS, TEAM, Recording, read_recording
from orchestrator.storage.state_folder import StateFolder

ANSWER_S = 1.0
"""How long a question waits that nobody had been asked when it was recorded."""


class CallName(Value):
    """Names one call of a story."""

    persona: str
    task: str | None
    purpose: str
    turn: int

    @classmethod
    def of(cls, entry: ScriptEntry) -> "CallName":
        """Returns the name of a recorded call."""
        return cls(persona=entry.persona, task=entry.task, purpose=entry.purpose, turn=entry.turn)

    def __str__(self) -> str:
        task = f" {self.task}" if self.task else ""
        return f"{self.persona} {self.purpose}{task} {self.turn}"


class StoryChange(Value):
    """One story, as it was recorded and as it comes out now."""

    id: str
    before: StoryStatus
    after: StoryStatus
    beyond: tuple[CallName, ...]
    """Calls that are made now and that the recording has no answer for: what follows them is not known."""
    omitted: tuple[CallName, ...]
    """Recorded calls that are not made any more."""


class Replay(Value):
    """What a replay came to."""

    sprint: str
    recorded_by: str
    """Version of the orchestrator."""
    replayed_by: str
    stories: tuple[StoryChange, ...]
    same_tree: bool
    paused: str = ""

    @property
    def as_recorded(self) -> bool:
        """Whether every story ends as it was recorded, with the same files, and all calls have an answer."""
        same = all(story.before is story.after and not story.beyond for story in self.stories)
        return same and self.same_tree


async def replay(
    folder: Path, settings: Settings, environment: Environment, *, listen: Callable[[Event], None] = lambda _: None
) -> Replay:
    """Runs a recording in a temporary place, without a model, and compares. Raises UserError."""
    folder = await asyncio.to_thread(folder.absolute)
    before = await asyncio.to_thread(_read, folder)
    place = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="orchestrator-replay-"))
    try:
        own = await asyncio.to_thread(_environment, environment, place / "state")
        options = await asyncio.to_thread(_options, folder, before.recording, place / "repo")
        if await asyncio.to_thread((folder / BASE).exists):
            await clone_bundle(folder / BASE, place / "repo")
        await _answer(own, before.recording)
        run = Run(options, _settings(settings), own, tell=lambda _: None, listen=listen)
        result = await run.go()
        after = await read_recorded(own, before.recording.sprint)
        return compare(before, after, result.paused or "")
    finally:
        await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)


def _options(folder: Path, recording: Recording, repo: Path) -> RunOptions:
    stories = tuple(story.id for story in recording.report.stories)
    plans = {story: folder / PLANS / f"{story}.md" for story in stories}
    return RunOptions(
        backlog=folder / BACKLOG,
        repo=repo,
        sprint=recording.sprint,
        stories=stories,
        provider=recording.provider,
        replay=folder,
        plans=tuple(f"{story}={plan}" for story, plan in plans.items() if plan.exists()),
    )


def _read(folder: Path) -> Recorded:
    """Returns a recording with its calls. Raises ConfigError."""
    calls = tuple(Call(entry=entry, beyond=not entry.paid) for entry in load_script(folder / TEAM).values())
    recording = read_recording(folder)
    if recording.base and not (folder / BASE).exists():
        raise ConfigError(
            f"{folder} has no {BASE}: the repository held secrets. Where it was recorded, "
            f"`orchestrator replay {recording.sprint}` needs none; else use `orchestrator run --replay {folder}` "
            f"with a repository at {recording.base}"
        )
    return Recorded(recording=recording, calls=calls)


def _environment(environment: Environment, home: Path) -> Environment:
    """Returns the environment with a state folder of its own, in which secrets have the same names. Blocks."""
    home.mkdir(mode=0o700)
    key = environment.home / "mask.key"
    if key.exists():
        (home / "mask.key").write_bytes(key.read_bytes())
    return environment.model_copy(update={"home": home, "database_url": None})


def _settings(settings: Settings) -> Settings:
    """Returns the settings without what waits, stops early, or belongs to another backlog or machine."""
    return settings.model_copy(
        update={
            "backlog": BacklogSettings(foundation=""),
            "budget": settings.budget.model_copy(update={f"{unit}_per_day": None for unit in UNITS}),
            "gate": settings.gate.model_copy(update={"timeout_s": ANSWER_S}),
            "provider": settings.provider.model_copy(update={"wait_initial_s": 0.0, "wait_max_s": 0.0}),
            "sprint": settings.sprint.model_copy(update={"stop_after_failures": 0}),
        }
    )


async def _answer(environment: Environment, recording: Recording) -> None:
    """Writes people's answers into the log before anybody is asked: the first one recorded counts."""
    async with EventStore(event_url(environment, StateFolder.of(environment))) as log:
        for story, answers in recording.answers.items():
            for event in (_event(recording.sprint, story, answer) for answer in answers):
                await log.emit(event)


def _event(sprint: str, story: str, answer: GateAnswer) -> Event:
    return Event(
        id=answer_id(f"{sprint}/{story}", answer.number),
        time=SystemClock().now(),
        name=GATE_ANSWERED,
        message=f"{story}: {answer.choice} as recorded",
        sprint=sprint,
        story=story,
        data={"answer": answer.model_dump(mode="json")},
    )


def compare(before: Recorded, after: Recorded, paused: str = "") -> Replay:
    """Returns what differs."""
    now = {story.id: story for story in after.recording.report.stories}
    return Replay(
        sprint=before.recording.sprint,
        recorded_by=before.recording.version,
        replayed_by=__version__,
        stories=tuple(_story(old, now[old.id], before, after) for old in before.recording.report.stories),
        same_tree=before.recording.tree == after.recording.tree,
        paused=paused,
    )


def _story(old: StoryReport, new: StoryReport, before: Recorded, after: Recorded) -> StoryChange:
    was, now = (
        {CallName.of(call.entry): call for call in kept.calls if call.entry.story == old.id} for kept in (before, after)
    )
    return StoryChange(
        id=old.id,
        before=old.status,
        after=new.status,
        beyond=tuple(name for name, call in now.items() if call.beyond and not (name in was and was[name].beyond)),
        omitted=tuple(name for name in was if name not in now),
    )
