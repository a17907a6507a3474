"""`replay`: a recorded sprint run once more without a model, and what comes out otherwise."""

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from orchestrator.app.trust import load_settings
from orchestrator.cli.common import Context, Exit, command, command_group, fail, plain_line, print_json, safe, say
from orchestrator.cli.run import run_interruptible
from orchestrator.cli.sprint_lines import status_word
from orchestrator.core.errors import ConfigError, UnknownName
from orchestrator.core.event import Event
from orchestrator.core.history import FINISHED
from orchestrator.core.value import counted, listed
from orchestrator.settings import Environment, ProviderName, Settings
from orchestrator.storage.recordings import CONFIG, RECORDING, is_recording

if TYPE_CHECKING:
    from orchestrator.app.replay import Replay, StoryChange

app = command_group()
LISTED = 5
"""Calls of a kind that are named; of more only the number is."""

WhatArgument = Annotated[str, typer.Argument(metavar="SPRINT|DIR", help="A sprint's id, or a recording's folder.")]
SaveOption = Annotated[
    Path | None, typer.Option("--save", metavar="DIR", help="Write the sprint's recording there, and run nothing.")
]
ProviderOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help=f"What `run --provider` named, if it did: {', '.join(get_args(ProviderName))}."),
]


@command(app, "replay", "url")
def replay_command(
    context: Context,
    what: WhatArgument,
    save: SaveOption = None,
    provider: ProviderOption = None,
) -> int:
    """Run a recorded sprint again without a model and show what changed; exit 1 if a story ends otherwise.

    This version works through the sprint's backlog in a temporary place, with the settings of this command; the
    recording answers. Tests are really run. With --save the sprint becomes a recording: a scripted team, and a test.

    Example: orchestrator replay SP-001 --set review.max_iterations=1

    Example: orchestrator replay SP-001 --provider anthropic --save tests/recordings/shelf
    """
    if is_recording(Path(what)):
        if save is not None:
            fail(f"{what} is a recording already; copy the folder")
        if provider is not None:
            fail(f"{what} is a recording, which knows who answered; --provider is for a sprint")
        return _replay(context, Path(what), *_loaded(context, Path(what)))
    if save is not None:
        _save(context, save, what, provider)
        if context.as_json:
            print_json({"recording": str(save)})
        else:
            print(f"Recorded in {save}; `orchestrator replay {save}` is its test, and `run --replay {save}` its team")
        return Exit.GOOD
    with tempfile.TemporaryDirectory(prefix="orchestrator-recording-") as folder:
        recording = Path(folder) / "recording"
        _save(context, recording, what, provider, whole_base=True)
        return _replay(context, recording, context.settings, context.environment)


def _save(context: Context, folder: Path, sprint: str, provider: str | None, *, whole_base: bool = False) -> None:
    # Imported here: the engine takes a second to import, and --help must not.
    from orchestrator.app.recordings import save_recording
    from orchestrator.providers.seats import default_seat

    settings, environment = context.settings, context.environment
    default_seat(settings, provider)  # raises ConfigError for a name that no provider has
    saved = save_recording(folder, sprint, settings, environment, warn=_warn, provider=provider, whole_base=whole_base)
    try:
        asyncio.run(saved)
    except UnknownName as error:
        if "/" in sprint or Path(sprint).is_dir():
            raise ConfigError(f"{sprint} holds no recording: it has no {RECORDING}") from error
        raise


def _loaded(context: Context, folder: Path) -> tuple[Settings, Environment]:
    """Returns the settings that were recorded, unless the command names others."""
    return load_settings(context.config, context.overrides, found=folder / CONFIG)


def _warn(text: str) -> None:
    say(f"warning: {text}")


def _replay(context: Context, folder: Path, settings: Settings, environment: Environment) -> int:
    from orchestrator.app.replay import replay

    def listen(event: Event) -> None:
        if event.name == FINISHED:
            say(plain_line(event))

    done = run_interruptible(replay(folder, settings, environment, listen=listen))
    if done is None:
        return Exit.INTERRUPTED
    if context.as_json:
        print_json({**done.model_dump(mode="json"), "as_recorded": done.as_recorded})
    else:
        for line in _lines(done):
            print(safe(line))
    return Exit.GOOD if done.as_recorded else Exit.NOT_DONE


def _lines(done: "Replay") -> Iterator[str]:
    yield f"Sprint {done.sprint}, recorded with version {done.recorded_by}, replayed with {done.replayed_by}"
    for story in done.stories:
        yield from _story_lines(story)
    ended = sum(story.before is story.after and not story.beyond for story in done.stories)
    yield f"{ended} of {counted(len(done.stories), 'story', 'stories')} as recorded, {_tree(done)}"
    if done.paused:
        yield f"Paused: {done.paused}"


def _tree(done: "Replay") -> str:
    return "the same files in the result" if done.same_tree else "other files in the result"


def _story_lines(story: "StoryChange") -> Iterator[str]:
    now = status_word(story.after)
    ends = f"{now}, as recorded" if story.before is story.after else f"{status_word(story.before)} → {now}"
    yield f"  {story.id:<12} {ends}"
    if story.beyond:
        calls = listed([str(call) for call in story.beyond], LISTED)
        yield f"      goes on beyond the recording: it has no answer for {calls}"
    if story.omitted:
        yield f"      not asked any more: {listed([str(call) for call in story.omitted], LISTED)}"
