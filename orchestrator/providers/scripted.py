"""The scripted team: replies read from JSON lines, a shipped double of the provider port."""

import asyncio
import json
import os
import time
from pathlib import Path

from pydantic import ValidationError

from orchestrator.core.calls.exchange import OPTIONAL_PURPOSES, TRANSIENT_KINDS, Prompt, Reply, ScriptEntry, Usage
from orchestrator.core.calls.progress import call_progress
from orchestrator.core.errors import ConfigError, PermanentProviderError, TransientProviderError
from orchestrator.core.ports import Clock
from orchestrator.prompts.render import read_given

Script = dict[tuple[str, str, str | None, str, int], ScriptEntry]


def load_script(path: Path) -> Script:
    """Read a script. Raises ConfigError naming file and line for anything that is not a usable entry."""
    lines = read_given(path, "the script").split("\n")
    script: Script = {}
    where: dict[tuple[str, str, str | None, str, int], int] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        entry = _entry(line, f"{path}:{number}")
        if entry.lookup in script:
            raise ConfigError(f"{path}:{number}: the same key stands in line {where[entry.lookup]} already")
        script[entry.lookup] = entry
        where[entry.lookup] = number
    return script


def _entry(line: str, place: str) -> ScriptEntry:
    try:
        return ScriptEntry.model_validate(json.loads(line))
    except json.JSONDecodeError as error:
        raise ConfigError(f"{place}: not JSON ({error.msg} at column {error.colno})") from error
    except ValidationError as error:
        detail = error.errors()[0]
        field = ".".join(map(str, detail["loc"]))
        if not field:
            raise ConfigError(f"{place}: a line holds one JSON object with persona, story, purpose …") from error
        raise ConfigError(f"{place}: {field}: {detail['msg']}") from error


class CallLog:
    """Appends one JSON line per paid reply, flushed to the kernel before the reply is handed over."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock

    def check(self) -> None:
        """Make the file if it is absent. Raises ConfigError when it cannot be appended to."""
        try:
            os.close(self._open())
        except OSError as error:
            raise ConfigError(f"cannot write the call log {self._path}: {error.strerror}") from error

    def write(self, prompt: Prompt) -> None:
        """Append the line of this call in one system call, so that lines of parallel calls never mix."""
        line = {**prompt.key.model_dump(mode="json"), "turn": prompt.turn, "time": self._clock.now().isoformat()}
        descriptor = self._open()
        try:
            os.write(descriptor, (json.dumps(line) + "\n").encode())
        finally:
            os.close(descriptor)

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)


class ScriptedProvider:
    """`ports.Provider` that answers from a script and really waits its latencies."""

    name = "scripted"

    def __init__(self, script: Script, call_log: CallLog | None = None) -> None:
        self._script = script
        self._call_log = call_log

    async def complete(self, prompt: Prompt) -> Reply:
        """Returns the scripted reply. Raises what the entry's `error` says, or `script.missing` for a missing key."""
        started = time.monotonic()
        key = prompt.key
        entry = self._script.get((key.persona, key.story, key.task, key.purpose, prompt.turn))
        if entry is None:
            return self._missing(prompt)
        if entry.latency_ms:
            with call_progress(key, started).calling(started):
                await asyncio.sleep(entry.latency_ms / 1000)
        if entry.error is not None:
            self._fail(entry)
        reply = Reply(
            key=key,
            turn=prompt.turn,
            text=entry.text,
            stop_reason=entry.stop_reason,
            usage=_usage(entry),
            cost_usd=entry.cost_usd,
            model=entry.model,
            provider=self.name,
            duration_ms=round((time.monotonic() - started) * 1000),
            paid=entry.paid,
        )
        if self._call_log is not None and entry.paid:
            self._call_log.write(prompt)
        return reply

    def _missing(self, prompt: Prompt) -> Reply:
        if prompt.key.purpose in OPTIONAL_PURPOSES:
            return Reply(key=prompt.key, turn=prompt.turn, text="", model="scripted", provider=self.name, paid=False)
        raise PermanentProviderError(
            f"the script has no entry for {prompt.key} turn={prompt.turn}",
            kind="bad_request",
            code="script.missing",
            provider_name=self.name,
        )

    def _fail(self, entry: ScriptEntry) -> None:
        kind = entry.error or ""
        message = f"scripted error {kind} in turn {entry.turn} of {entry.purpose}"
        if kind in TRANSIENT_KINDS:
            raise TransientProviderError(
                message,
                kind=kind,
                provider_name=self.name,
                original_message=entry.text,
                retry_after_s=entry.retry_after_s,
            )
        raise PermanentProviderError(message, kind=kind, provider_name=self.name, original_message=entry.text)


def _usage(entry: ScriptEntry) -> Usage:
    return Usage(input=entry.input_tokens, cached=entry.cached_tokens, output=entry.output_tokens)
