"""A recording run once more, by this version and with any settings, and what comes out otherwise."""

import asyncio
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from difflib import unified_diff
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
from orchestrator.core.value import Value, counted
from orchestrator.files.process import SystemClock
from orchestrator.git.bundles import clone_bundle
from orchestrator.providers.scripted import load_script
from orchestrator.records.histories import event_url
from orchestrator.settings import Environment, Settings
from orchestrator.settings.model import BacklogSettings
from orchestrator.settings.options import RunOptions
from orchestrator.settings.prices import find_price
from orchestrator.storage.event_store import EventStore
from orchestrator.storage.recordings import BACKLOG, BASE, PLANS, PROMPTS, TEAM, Recording, read_recording
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


class PromptChange(Value):
    """A prompt that is another one now."""

    call: CallName
    prompt: str
    """Name of its file."""
    file_changed: bool
    """Whether the file's text is another one; else only what was filled in."""
    diff: str
    """Unified; "" where one of the two is not kept."""


class Spent(Value):
    """Calls, tokens and money."""

    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None

    def __str__(self) -> str:
        cost = "cost unknown" if self.cost_usd is None else f"{self.cost_usd:.4f} USD"
        return f"{counted(self.calls, 'call')}, {self.input_tokens} tokens in, {self.output_tokens} out, {cost}"

    @classmethod
    def sum(cls, parts: Iterable["Spent"]) -> "Spent":
        """Returns all together."""
        every = [*parts]
        costs = [one.cost_usd for one in every]
        known = [cost for cost in costs if cost is not None]
        return cls(
            calls=sum(one.calls for one in every),
            input_tokens=sum(one.input_tokens for one in every),
            output_tokens=sum(one.output_tokens for one in every),
            cost_usd=sum(known) if len(known) == len(costs) else None,
        )


class StoryChange(Value):
    """One story, as it was recorded and as it comes out now."""

    id: str
    before: StoryStatus
    after: StoryStatus
    beyond: tuple[CallName, ...]
    """Calls that are made now and that the recording has no answer for: what follows them is not known."""
    omitted: tuple[CallName, ...]
    """Recorded calls that are not made any more."""
    checks: dict[str, tuple[int, int]]
    """Code of a finding → how often it decided something, where that differs."""
    tests: tuple[int, int]
    """How many passed."""
    prompts: tuple[PromptChange, ...]
    spent_before: Spent
    spent_after: Spent
    """Estimated for prompts that are longer or shorter now; of a story that goes beyond the recording, up to there."""


class Replay(Value):
    """What a replay came to."""

    sprint: str
    recorded_by: str
    """Version of the orchestrator."""
    replayed_by: str
    stories: tuple[StoryChange, ...]
    same_tree: bool
    spent_before: Spent
    spent_after: Spent
    """See StoryChange."""
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
        return await asyncio.to_thread(compare, before, after, settings, result.paused or "")
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
    calls = []
    for entry in load_script(folder / TEAM).values():
        path = folder / PROMPTS / f"{entry.prompt_hash}.md"
        text = path.read_text(encoding="utf-8", errors="surrogatepass") if path.is_file() else ""
        calls.append(Call(entry=entry, prompt=text, beyond=not entry.paid))
    recording = read_recording(folder)
    if recording.base and not (folder / BASE).exists():
        raise ConfigError(
            f"{folder} has no {BASE}: the repository held secrets. Where it was recorded, "
            f"`orchestrator replay {recording.sprint}` needs none; else use `orchestrator run --replay {folder}` "
            f"with a repository at {recording.base}"
        )
    return Recorded(recording=recording, calls=tuple(calls))


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


def compare(before: Recorded, after: Recorded, settings: Settings, paused: str = "") -> Replay:
    """Returns what differs. Blocks."""
    now = {story.id: story for story in after.recording.report.stories}
    stories = tuple(_story(old, now[old.id], before, after, settings) for old in before.recording.report.stories)
    return Replay(
        sprint=before.recording.sprint,
        recorded_by=before.recording.version,
        replayed_by=__version__,
        stories=stories,
        same_tree=before.recording.tree == after.recording.tree,
        spent_before=Spent.sum(story.spent_before for story in stories),
        spent_after=Spent.sum(story.spent_after for story in stories),
        paused=paused,
    )


def _story(old: StoryReport, new: StoryReport, before: Recorded, after: Recorded, settings: Settings) -> StoryChange:
    was = {CallName.of(call.entry): call for call in before.calls if call.entry.story == old.id}
    now = {CallName.of(call.entry): call for call in after.calls if call.entry.story == old.id}
    both = [(name, was[name], call) for name, call in now.items() if name in was]
    changed = [one for one in both if _differs(one[1], one[2])]
    return StoryChange(
        id=old.id,
        before=old.status,
        after=new.status,
        beyond=tuple(name for name, call in now.items() if call.beyond and not (name in was and was[name].beyond)),
        omitted=tuple(name for name in was if name not in now),
        checks=_differing(before.recording.checks.get(old.id, {}), after.recording.checks.get(old.id, {})),
        tests=(old.tests.passed, new.tests.passed),
        prompts=tuple(_prompt(*one) for one in changed),
        spent_before=_spent(old),
        spent_after=_estimated(_spent(new), [(one[1], one[2]) for one in changed], settings),
    )


# What tests print of one process: addresses, names of temporary folders, seconds.
_OF_A_PROCESS = re.compile(r"\b0x[0-9a-f]{6,}|(?<=/orchestrator-)\d+-\w{8}|\b\d+(?:\.\d+)? ?s\b")


def _differs(old: Call, new: Call) -> bool:
    """Returns whether a prompt is another one, whatever the tests of both runs say of their processes."""
    if old.entry.prompt_hash == new.entry.prompt_hash:
        return False
    texts = [_OF_A_PROCESS.sub("…", call.prompt) for call in (old, new)]
    return not all(texts) or texts[0] != texts[1]


def _differing(old: Mapping[str, int], new: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    pairs = {code: (old.get(code, 0), new.get(code, 0)) for code in sorted({*old, *new})}
    return {code: pair for code, pair in pairs.items() if pair[0] != pair[1]}


def _prompt(name: CallName, old: Call, new: Call) -> PromptChange:
    lines = ""
    if old.prompt and new.prompt:
        both = (old.prompt.splitlines(), new.prompt.splitlines())
        lines = "\n".join(unified_diff(*both, "recorded", "now", lineterm="", n=2))
    changed = old.entry.prompt_version != new.entry.prompt_version
    return PromptChange(call=name, prompt=new.entry.prompt, file_changed=changed, diff=lines)


def _spent(story: StoryReport) -> Spent:
    tokens = story.tokens
    return Spent(calls=story.calls, input_tokens=tokens.input, output_tokens=tokens.output, cost_usd=story.cost_usd)


def _estimated(spent: Spent, changed: list[tuple[Call, Call]], settings: Settings) -> Spent:
    """Returns it with the input of changed prompts in proportion to their lengths, at the price of uncached input."""
    more, cost = 0, spent.cost_usd
    for old, new in changed:
        if not old.prompt or not new.prompt or old.entry.error is not None:
            continue
        own = round(old.entry.input_tokens * (len(new.prompt) / len(old.prompt) - 1))
        more += own
        price = find_price(settings.prices, old.entry.model)
        if price is not None and cost is not None:
            cost += own * price.input / 1_000_000
    return spent.model_copy(update={"input_tokens": spent.input_tokens + more, "cost_usd": cost})
