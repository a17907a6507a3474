"""The reply journal: every ended call is written down before anything else happens (decisions.md#paid-replies).

One file per ended call, `<folder>/<workflow>/<step>-<turn>.json`, written to a temporary name and renamed, without
fsync: safe against kill -9, not against power loss. The writes are synchronous on purpose: an await between the
provider's return and the journal would be a hole in which a paid reply could be lost. Where a database is shared,
the entry goes there next, so that another machine finds it."""

import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from orchestrator.core.calls.exchange import FailedCall, Prompt, Reply, TurnKey
from orchestrator.core.calls.spending import NOTHING, Amount, amount_of
from orchestrator.core.value import Value, draw_controls
from orchestrator.storage.shared_state import SharedState


class JournalEntry(Value):
    """One ended call."""

    step: int
    """Number of the durable step inside its workflow."""
    key: TurnKey
    turn: int
    ended: Literal["reply", "error"]
    reply: Reply | None = None
    failure: FailedCall | None = None
    prompt_hash: str = ""
    """Of the whole prompt that is kept beside it."""
    prompt: str = ""
    """Name of the prompt's file."""
    prompt_version: str = ""
    """Hash of that file's text, shared texts included."""
    schema_name: str | None = None
    """Stem of the schema the reply was asked to fit; None when it was to be no answer of its own."""


_PROMPT = "{step}.prompt.md"
_READING = "{step}.reading"
Share = Callable[[Sequence[Path]], None]
"""Takes files of the journal to a database that machines share."""


class WorkflowJournal:
    """The ended calls of one workflow."""

    def __init__(self, folder: Path, *, share: Share | None = None) -> None:
        """Read what is there; a file that a power cut left unreadable counts as never written. Blocks."""
        self._folder, self._share = folder, share
        self._unshared: list[Path] = []
        folder.mkdir(parents=True, exist_ok=True)
        self._entries: dict[tuple[int, int], JournalEntry] = {}
        for path in folder.glob("*-*.json"):
            entry = _read(path)
            if entry is not None:
                self._entries[(entry.step, entry.turn)] = entry

    def reply(self, step: int) -> Reply | None:
        """Returns the journalled reply of this step, if its call ended with one."""
        return next((e.reply for e in self._entries.values() if e.step == step and e.reply), None)

    def failures(self, step: int) -> tuple[FailedCall, ...]:
        """Calls of this step that ended with an error, in turn order."""
        mine = sorted((e for e in self._entries.values() if e.step == step), key=lambda e: e.turn)
        return tuple(e.failure for e in mine if e.failure)

    def next_turn(self, key: TurnKey) -> int:
        """1 + the calls of this key that ended, with a reply or an error."""
        return 1 + sum(entry.key == key for entry in self._entries.values())

    @property
    def spent(self) -> Amount:
        """Returns what all ended calls of the story took, replies and errors; each of them counts as one."""
        took = (NOTHING if one.reply is None else amount_of(one.reply) for one in self._entries.values())
        return sum((replace(one, calls=1) for one in took), NOTHING)

    def keep_prompt(self, step: int, prompt: Prompt) -> None:
        """Keep the whole prompt beside its reply, control characters drawn. Blocks: call it in a thread."""
        path = self._folder / _PROMPT.format(step=step)
        path.write_text(draw_controls(prompt.text), encoding="utf-8", errors="surrogatepass")

    def record_reply(self, step: int, prompt: Prompt, reply: Reply) -> None:
        """Write a reply down, synchronously."""
        self._record(step, prompt, ended="reply", reply=reply, schema_name=prompt.schema_name)

    def record_failure(self, step: int, prompt: Prompt, failure: FailedCall) -> None:
        """Write down that a call ended with an error, synchronously."""
        self._record(step, prompt, ended="error", failure=failure)

    def _record(self, step: int, prompt: Prompt, **more: Any) -> None:
        entry = JournalEntry(
            step=step,
            key=prompt.key,
            turn=prompt.turn,
            prompt_hash=prompt.hash,
            prompt=prompt.name,
            prompt_version=prompt.version,
            **more,
        )
        path = self._folder / f"{entry.step}-{entry.turn}.json"
        temporary = path.with_suffix(".tmp")
        data = memoryview(json.dumps(entry.model_dump(mode="json"), ensure_ascii=True).encode())
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            while data:  # a full disk takes a part and says so only when asked for the rest
                data = data[os.write(descriptor, data) :]
        finally:
            os.close(descriptor)
        os.rename(temporary, path)
        self._entries[(entry.step, entry.turn)] = entry
        self._unshared.append(path)

    def begin_reading(self, step: int) -> int:
        """Notes that the result of this step is read from now on; returns how often that was begun and never ended.

        One byte a time. Where nothing can be written, nothing is counted.
        """
        try:
            descriptor = os.open(
                self._folder / _READING.format(step=step), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
            )
            try:
                os.write(descriptor, b".")
                return os.fstat(descriptor).st_size
            finally:
                os.close(descriptor)
        except OSError:  # a full disk
            return 0

    def end_reading(self, step: int) -> None:
        """Notes that the story has gone on."""
        with suppress(OSError):
            os.unlink(self._folder / _READING.format(step=step))

    @property
    def is_shared(self) -> bool:
        """Returns whether there is a shared database."""
        return self._share is not None

    def share(self) -> None:
        """Takes what was written since the last time to the shared database, if there is one. Blocks."""
        if self._share is not None and self._unshared:
            self._share(self._unshared)
        self._unshared = []


class ReplyJournal:
    """All workflows' journals below one folder."""

    def __init__(self, folder: Path, shared: SharedState | None = None) -> None:
        self._folder, self._shared = folder, shared

    def workflow(self, workflow_id: str) -> WorkflowJournal:
        """Returns the journal of `<sprint>/<story>[@N]`. Blocks: call it in a thread."""
        sprint, _, name = workflow_id.partition("/")
        share = self._bring(sprint, name)
        return WorkflowJournal(self._folder / workflow_id, share=share)

    def _bring(self, sprint: str, name: str) -> Share | None:
        """Brings entries of other machines, and takes those there that a kill has left here alone."""
        shared = self._shared
        if shared is None:
            return None
        home = self._folder.parent
        shared.fetch(f"{self._folder.name}/{sprint}/{name}")

        def share(paths: Sequence[Path]) -> None:
            shared.keep([str(path.relative_to(home)) for path in paths], sprint=sprint)

        own = [str(path.relative_to(home)) for path in (self._folder / sprint / name).glob("*-*.json")]
        shared.keep(shared.missing(own), sprint=sprint)
        return share

    def stories(self) -> list[tuple[str, str]]:
        """(sprint, `<story>[@N]`) of every workflow that has a journal, in order. Blocks."""
        if self._shared is not None:
            self._shared.fetch(self._folder.name)
        found = (path for path in self._folder.glob("*/*") if path.is_dir())
        return sorted((path.parent.name, path.name) for path in found)

    def fetch(self, sprint: str, story: str) -> bool:
        """Brings what other machines have of a workflow; returns False where none can have anything. Blocks."""
        if self._shared is None:
            return False
        self._shared.fetch(f"{self._folder.name}/{sprint}/{story}/")
        return True

    def entries(self, sprint: str, story: str) -> list[JournalEntry]:
        """Returns every ended call of one workflow by step and turn. Blocks."""
        found = (_read(path) for path in (self._folder / sprint / story).glob("*-*.json"))
        return sorted((entry for entry in found if entry), key=lambda entry: (entry.step, entry.turn))

    def prompt(self, sprint: str, story: str, step: int) -> str:
        """Returns the prompt of one step as it is kept; "" where it is not on this machine. Blocks."""
        path = self._folder / sprint / story / _PROMPT.format(step=step)
        try:
            return path.read_text(encoding="utf-8", errors="surrogatepass")
        except OSError:
            return ""


def _read(path: Path) -> JournalEntry | None:
    try:
        # json.loads, because a model's text may hold half a surrogate pair, which pydantic's parser refuses.
        return JournalEntry.model_validate(json.loads(path.read_bytes()))
    except ValueError:  # half an entry left by a kill
        return None
