"""Events: facts with deterministic ids, the only record of a run (decisions.md#event-log), and their JSON log lines.

Also what a step does while it lasts (installing, testing, waiting), told to whom records or shows it: installers,
runners and the workspace do not know for whom they work. Who began the work listens to it in its context, which tasks
and threads that it starts inherit.
"""

import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from datetime import datetime
from enum import StrEnum
from math import isfinite
from typing import Any

from pydantic import Field

from orchestrator.core.secrets import redact
from orchestrator.core.value import Value, escape_json


class Level(StrEnum):
    """Weight of an event for people, in rising order."""

    DEBUG = "debug"
    INFO = "info"
    WARN = "warn"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """0 for debug up to 3 for error."""
        return list(Level).index(self)


class Event(Value):
    """One fact. The same id stored twice adds nothing; the first recorded time stays."""

    id: str
    """Deterministic: workflow id plus the number of the event in that workflow, or a name for once-only facts."""
    time: datetime
    """Aware, UTC."""
    level: Level = Level.INFO
    name: str
    """snake_case, from the table in docs/events.md."""
    message: str
    """One line for people."""
    sprint: str
    story: str | None = None
    task: str | None = None
    persona: str | None = None
    data: dict[str, Any] = Field(default_factory=dict)
    """Further JSON-able facts: stage, attempt, turn, duration_ms, input_tokens, cost_usd, findings …"""


ACTIVITY_BEGUN, ACTIVITY_ENDED = "activity_begun", "activity_ended"
Listener = Callable[[str], AbstractAsyncContextManager[None]]
"""What goes on → a context that lasts as long as it does."""


def _nobody(_what: str) -> AbstractAsyncContextManager[None]:
    return nullcontext()


_listener: ContextVar[Listener] = ContextVar("activity", default=_nobody)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Has `listener` told of every activity that begins inside the block."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


@asynccontextmanager
async def activity(what: str) -> AsyncIterator[None]:
    """Tells that `what` goes on inside the block: words such as `installing 3 packages`."""
    async with _listener.get()(what):
        yield


@asynccontextmanager
async def acquired(lock: AbstractAsyncContextManager[object], what: str) -> AsyncIterator[None]:
    """Holds `lock` inside the block; `what` goes on until it is free."""
    async with AsyncExitStack() as stack:
        async with activity(what):
            await stack.enter_async_context(lock)
        yield


HEAVY = frozenset({"plan", "contract", "outcome", "criteria", "gate", "answer"})
"""Data that `show` prints and a log line leaves out."""
LONGEST_LINE = 16 * 1024
"""Bytes that a line never exceeds, its end included: collectors cut or split what is longer."""
LONGEST_TEXT = 100_000
"""Characters of one text that are looked through for secrets; what comes behind them is never shown."""
_NAME = 200
"""Characters of a name, an id or a key, and of the message of a line that is too long with its data."""
_ENTRIES, _NAMES, _DEPTH = 20, 100, 20
"""Entries of a list, names of an object, and how deep they are shown."""


def json_line(
    event: Event, cap: int, *, seq: int | None = None, more: Mapping[str, Any] | None = None, known: Iterable[str] = ()
) -> str:
    """Returns the event as one JSON object in one line, without its end.

    Texts beyond `cap` characters and lists beyond 20 entries are cut and say so; all data of what is longer than
    `LONGEST_LINE` all the same is left out, with `"cut": true`. `seq` is the event's number in the log; `more` are
    names that stand at the end of each line and replace nothing; `known` secrets are taken out beside what looks like
    one.
    """
    secrets = tuple(known)
    named = {"sprint": event.sprint or None, "story": event.story, "task": event.task, "persona": event.persona}
    data = {name: value for name, value in event.data.items() if name not in HEAVY and value is not None}
    told: dict[str, Any] = {
        "timestamp": event.time.isoformat().replace("+00:00", "Z"),
        "level": event.level.value,
        "message": _text(event.message, cap, secrets),
        "event": event.name,
        **({} if seq is None else {"seq": seq}),
        **{name: _text(value, _NAME, secrets) for name, value in named.items() if value is not None},
    }
    shown = _cut(data, cap, secrets)
    line = line_of({**told, **shown, **(more or {}), **shown, **told})  # in this order, and the first counts
    if len(line.encode()) < LONGEST_LINE:
        return line
    return line_of({**told, "message": _text(event.message, min(cap, _NAME), secrets), "cut": True})


def _text(text: str, most: int, secrets: tuple[str, ...]) -> str:
    """Redacted first, so that no part of a secret stays at the edge."""
    hidden = len(text) - LONGEST_TEXT
    text = redact(text[:LONGEST_TEXT], secrets)
    beyond = len(text) - most + max(0, hidden)
    return text if beyond <= 0 else f"{text[:most]}… ({beyond} more characters)"


def _cut(value: Any, cap: int, secrets: tuple[str, ...], depth: int = 0) -> Any:
    """Returns a JSON-able value; lists and objects keep their first entries."""
    if isinstance(value, str):
        return _text(value, cap, secrets)
    entries = _ENTRIES if depth < _DEPTH else 0
    if isinstance(value, list | tuple):
        left = [f"… ({len(value) - entries} more)"] if len(value) > entries else []
        return [*(_cut(entry, cap, secrets, depth + 1) for entry in value[:entries]), *left]
    if isinstance(value, Mapping):
        shown = {_text(str(name), _NAME, secrets): value[name] for name in list(value)[: _NAMES if entries else 0]}
        return {name: _cut(one, cap, secrets, depth + 1) for name, one in shown.items()}
    return str(value) if isinstance(value, float) and not isfinite(value) else value


def line_of(told: Mapping[str, Any]) -> str:
    """Returns a JSON object as one line that a terminal and a collector can be given."""
    return escape_json(json.dumps(told, ensure_ascii=False, default=str))
