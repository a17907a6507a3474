"""A sprint as a recording: what its journal, its log and its repository hold of it, without secrets."""

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import yaml

from orchestrator import __version__
from orchestrator.app.briefs import WIREFRAME_SUFFIXES, read_product_text
from orchestrator.app.secrets import backlog_secrets, find_secrets, known_secrets, mask_backlog, masks_of
from orchestrator.app.sprints import workspace_of
from orchestrator.app.trust import give_trust
from orchestrator.backlogs.files import open_backlog
from orchestrator.core.calls.exchange import ErrorKind, ScriptEntry, TurnKey, Usage
from orchestrator.core.command import GATE_ANSWERED, GateAnswer
from orchestrator.core.errors import BacklogError, ConfigError, concerns_all
from orchestrator.core.event import Event
from orchestrator.core.secrets import redact, redacted, secrets_of
from orchestrator.core.sprint import SprintRecord
from orchestrator.core.story import Story
from orchestrator.core.value import counted
from orchestrator.git.bundles import bundle_tree, tree_id
from orchestrator.records.sprint_reader import Reader
from orchestrator.settings import Environment, Settings
from orchestrator.storage.recordings import (
    BACKLOG,
    BASE,
    CONFIG,
    PLANS,
    README,
    RECORDING,
    TEAM,
    VISION,
    WIREFRAMES,
    Recording,
    expect_place,
    write_recording,
)
from orchestrator.storage.reply_journal import JournalEntry, ReplyJournal
from orchestrator.storage.state_folder import StateFolder

MISSING = "script.missing"
"""Code of a call that the script has no entry for."""
_KEPT_SETTINGS = {
    *("provider", "personas", "models", "wire", "answer", "look", "plan", "gate", "build", "amendment", "contract"),
    *("review", "test", "budget", "environment", "prompts"),
}
"""Sections that decide what happens to a story; the others are about a machine."""
_OF_THE_MACHINE: Any = {
    "provider": {"script": True, "base_url": True, "fallback": {"__all__": {"base_url"}}},
    "models": {"cheap": {"base_url"}, "strong": {"base_url"}},
    "personas": {"__all__": {"base_url": True, "stronger": {"base_url"}}},
    "prompts": {"dir"},
}


@dataclass(frozen=True, kw_only=True)
class Call:
    """One ended call of a sprint."""

    entry: ScriptEntry
    beyond: bool = False
    """Whether a script had no entry for it."""


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """What is kept of a sprint."""

    recording: Recording
    calls: tuple[Call, ...]


async def save_recording(
    folder: Path,
    sprint: str,
    settings: Settings,
    environment: Environment,
    *,
    warn: Callable[[str], object],
    provider: str | None = None,
    whole_base: bool = False,
) -> None:
    """Writes what is kept of a sprint to `folder`, in place of a recording that is there; `provider`: see Recording.

    A base that holds secrets is left out, and told, unless `whole_base`. Raises UserError, WorkspaceError.
    """
    await asyncio.to_thread(expect_place, folder)
    state = StateFolder.of(environment)
    record = (await asyncio.to_thread(Reader(environment).sprint, sprint)).record
    secrets = await asyncio.to_thread(known_secrets, environment, Path(record.repo))
    secrets = (*secrets, *secrets_of(settings.environment.env))
    found: list[str] = []
    base = b""
    mirror = state.mirror(Path(record.repo))
    if not await asyncio.to_thread(mirror.exists):
        raise ConfigError(f"the commits of sprint {sprint} are not on this machine")
    if record.base:
        secrets = await find_secrets(workspace_of(state, record), secrets, found.append)
        if whole_base or not found:
            base = await bundle_tree(mirror, record.base)
        else:
            told = "the repository holds secrets and is not part of the recording"
            warn(f"{told}: `orchestrator replay {sprint}` runs it again here, `run --replay` with the repository")
    kept = await read_recorded(environment, sprint, secrets)
    kept = replace(kept, recording=kept.recording.model_copy(update={"provider": provider}))
    files = await asyncio.to_thread(lambda: [*_files(record, settings, environment, secrets), *_texts(kept)])
    if base:
        files.append((BASE, base))
    await asyncio.to_thread(write_recording, folder, kept.recording, files)
    with suppress(ConfigError):  # no home folder: the user is asked for it should git ever track the file
        await asyncio.to_thread(give_trust, folder / CONFIG, environment.variables)


async def read_recorded(environment: Environment, sprint: str, secrets: Sequence[str] = ()) -> Recorded:
    """Returns what is kept of a sprint, without secrets. Raises ConfigError."""
    view = await asyncio.to_thread(Reader(environment).sprint, sprint)
    record, state = view.record, StateFolder.of(environment)
    mirror = state.mirror(Path(record.repo))
    result = f"refs/heads/orchestrator/{sprint}/result"
    recording = Recording(
        version=__version__,
        sprint=sprint,
        base=record.base,
        tree=await tree_id(mirror, result) if await asyncio.to_thread(mirror.exists) else "",
        report=view.report,
        answers={story: answers for story, one in view.histories.items() if (answers := _answers(one.events))},
    )
    plain = redacted(recording.model_dump(mode="json"), secrets)
    calls = await asyncio.to_thread(lambda: tuple(_calls(record, state, secrets)))
    return Recorded(recording=Recording.model_validate(plain), calls=calls)


def _answers(events: Sequence[Event]) -> tuple[GateAnswer, ...]:
    return tuple(GateAnswer.model_validate(event.data["answer"]) for event in events if event.name == GATE_ANSWERED)


def _calls(record: SprintRecord, state: StateFolder, secrets: Sequence[str]) -> Iterator[Call]:
    journal = ReplyJournal(state.replies, state.shared)
    journal.stories()  # brings what other machines have kept
    for story in record.story_ids:
        turns: defaultdict[TurnKey, int] = defaultdict(int)
        _, _, name = record.workflow_id(story).partition("/")
        for one in journal.entries(record.sprint, name):
            # A key or a model's name that was put right: the call that counted came after it.
            if one.failure is None or not concerns_all(one.failure.kind):
                turns[one.key] += 1
                entry = _entry(one, turns[one.key], secrets)
                beyond = one.failure.code == MISSING if one.failure else not (one.reply and one.reply.paid)
                yield Call(entry=entry, beyond=beyond)


def _entry(one: JournalEntry, turn: int, secrets: Sequence[str]) -> ScriptEntry:
    reply, failure = one.reply, one.failure
    said: dict[str, Any] = {}
    if reply is not None:
        said = {"text": reply.text, "stop_reason": reply.stop_reason, "model": reply.model, "paid": reply.paid}
    elif failure is not None:
        kind = failure.kind if failure.kind in get_args(ErrorKind) else "bad_request"
        said = {"text": failure.original_message or failure.message, "error": kind}
    usage, cost = (reply.usage, reply.cost_usd) if reply else (Usage(), 0.0)
    return ScriptEntry.model_construct(  # a text may hold half a surrogate pair, which validation refuses
        **one.key.model_dump(),
        **said | {"text": redact(str(said.get("text", "")), secrets)},
        turn=turn,
        input_tokens=usage.input,
        cached_tokens=usage.cached,
        output_tokens=usage.output,
        cost_usd=cost,
        prompt=one.prompt,
        prompt_version=one.prompt_version,
        prompt_hash=one.prompt_hash,
    )


def _texts(kept: Recorded) -> Iterator[tuple[str, bytes]]:
    """Yields the script, and what the folder is."""
    lines = [
        call.entry.model_dump(mode="json", exclude_defaults=True)
        for call in kept.calls
        if not (call.beyond and call.entry.error)
    ]
    yield TEAM, "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    yield README, _readme(kept).encode()


def _readme(kept: Recorded) -> str:
    """Returns what the folder is, for people."""
    models = Counter(call.entry.model for call in kept.calls if call.entry.error is None and not call.beyond)
    told = ", ".join(f"{model or 'unknown'} ({count})" for model, count in sorted(models.items()))
    recording = kept.recording
    count = counted(len(recording.report.stories), "story", "stories")
    forced = f" --provider {recording.provider}" if recording.provider else ""
    return f"""# Sprint {recording.sprint}, recorded

{count}. Answers by model: {told or "none"}; `scripted` is a script, no model.
Written by version {recording.version} of the orchestrator.

    orchestrator replay .          # runs it again without a model; exit code 1 when a story ends otherwise
    orchestrator run {BACKLOG} --config {CONFIG} --repo app --replay .{forced}

`{TEAM}` holds the answers, a script of the scripted team; `{BACKLOG}`, `{CONFIG}`
and, unless the sprint began from nothing, `{BASE}` (`git clone {BASE} app`) what it began with;
`{RECORDING}` what came of it.
"""


def _files(
    record: SprintRecord, settings: Settings, environment: Environment, secrets: Sequence[str]
) -> Iterator[tuple[str, bytes]]:
    """Yields what the sprint was given: backlog, people's plans, texts about the product, settings."""
    state = StateFolder.of(environment)
    content = open_backlog(Path(record.backlog), settings, state).read()
    masks = masks_of(state, (*secrets, *backlog_secrets(content)))
    rows = _rows(record, mask_backlog(content, masks).stories)
    yield BACKLOG, f"{json.dumps([_row(row, record) for row in rows], indent=1)}\n".encode()
    for story, plan in record.plans.items():
        yield f"{PLANS}/{story}.md", redact(plan.text, secrets).encode()
    project: dict[str, str] = {}
    if settings.project.vision and (text := read_product_text(environment.base_dir / settings.project.vision)):
        project["vision"] = VISION
        yield VISION, masks.masked(text).encode()
    if settings.project.wireframes:
        for name in {f"{row.wireframe_ref.strip()}{suffix}" for row in rows for suffix in WIREFRAME_SUFFIXES}:
            text = None if "/" in name else read_product_text(environment.base_dir / settings.project.wireframes / name)
            if text:
                project["wireframes"] = WIREFRAMES
                yield f"{WIREFRAMES}/{name}", masks.masked(text).encode()
    chosen = settings.model_dump(mode="json", include=_KEPT_SETTINGS, exclude=_OF_THE_MACHINE, exclude_defaults=True)
    told = redacted({"project": project, **chosen}, secrets)
    yield CONFIG, yaml.safe_dump({name: value for name, value in told.items() if value}, sort_keys=False).encode()


def _rows(record: SprintRecord, stories: Sequence[Story]) -> list[Story]:
    """Returns the sprint's rows as it began with them, what is closed with them, and what they depend on.

    Raises BacklogError for a row that the backlog has lost.
    """
    by_id = {story.id: story for story in stories}
    if gone := [story for story in record.story_ids if story not in by_id]:
        raise BacklogError(
            f"{record.backlog} has no row {', '.join(gone)} any more, which sprint {record.sprint} is about"
        )
    own = [*record.story_ids, *(row for rows in record.closes.values() for row in rows if row in by_id)]
    needed = [need for story in own for need in by_id[story].dependencies if need in by_id]
    kept = set(own) | set(needed)
    frozen = {
        story: {"title": record.titles.get(story, ""), "acceptance_criteria": record.criteria.get(story, ())}
        for story in record.story_ids
        if record.titles
    }
    return [row.model_copy(update=frozen.get(row.id, {})) for row in stories if row.id in kept]


_SAME = (
    *("title", "user_story", "functional_requirements", "non_functional_requirements", "integrations", "constraints"),
    *("vision_ref", "wireframe_ref", "notes"),
)


def _row(row: Story, record: SprintRecord) -> dict[str, Any]:
    """Returns a row of a backlog in JSON; what is not of the sprint counts as done."""
    own = {*record.story_ids, *(name for rows in record.closes.values() for name in rows)}
    inside = row.id in own
    told: dict[str, Any] = {
        "story_id": row.id,
        **{name: getattr(row, name) for name in _SAME},
        "dependencies": row.dependency_note if inside else "",
        "acceptance_criteria": list(row.acceptance_criteria),
        "priority": row.priority.name.title(),
        "foundation": "yes" if row.foundation else "",
        "closes": list(record.closes.get(row.id, ())),
        "execution_status": "" if inside else "completed",
    }
    return {name: value for name, value in told.items() if value}
