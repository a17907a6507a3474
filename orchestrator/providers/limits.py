"""What a service still takes, ahead of its refusals, and whether it is there: shared by all calls with one key to one
model.

Two things tell it. Headers of both vendors say how many requests and tokens are left and when all of them are there
again; between two answers that is reckoned on. A refusal for too many requests, or an overload, closes the door for all
calls for the time that the server asks for, and halves how many may be under way; each answer opens it a little again
(additive increase, multiplicative decrease, as in TCP). When nobody is answered any more, a circuit opens: calls are
turned away before they begin, but for one at a time that tries whether the service is back.
"""

import asyncio
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime

from orchestrator.core.errors import PermanentProviderError, ServiceAway, TransientProviderError
from orchestrator.providers.refusals import seconds_to

KINDS = ("requests", "tokens", "input-tokens", "output-tokens")
"""What services count; a call is one request and so many tokens."""
_ANTHROPIC, _OPENAI = "anthropic-ratelimit-{kind}-{what}", "x-ratelimit-{what}-{kind}"
_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
PAUSE_S = 1.0
LEAST_PAUSE_S = 0.01
LONGEST_PAUSE_S = 60.0
"""Of all calls together: a server's longer wish is kept by the call that got it."""
OPEN_AFTER = 3
"""Failures in a row, with no answer to any call between them, after which a service counts as away; one that asks for
more than the longest pause says so at once."""
LONGEST_WISH_S = 300.0
"""Longest Retry-After of a service that is away after which it is tried; a longer one is cut to this."""


@dataclass(frozen=True)
class Need:
    """What a call is expected to take."""

    input: int
    output: int

    def of(self, kind: str) -> int:
        """Returns how much of `kind` that is."""
        by_kind = {"requests": 1, "input-tokens": self.input, "output-tokens": self.output}
        return by_kind.get(kind, self.input + self.output)


@dataclass
class Allowance:
    """One of a service's limits as it was last told."""

    limit: float
    left: float
    told_at: float
    per_s: float
    """How fast it fills again."""

    def at(self, now: float) -> float:
        """Returns how much is there."""
        return min(self.limit, self.left + (now - self.told_at) * self.per_s)


@dataclass(eq=False)
class Call:
    """A call under way: itself, whatever others of the same size there are."""

    need: Need
    counted: bool = False
    """Whether the service has told what is left since it began."""


class Circuit:
    """Open while a service answers nobody: then one call at a time tries it, with pauses between that grow."""

    def __init__(self, clock: Callable[[], float], pause_s: float, longest_s: float) -> None:
        self._clock = clock
        # Without any pause nobody would ever notice how long the service has been away.
        self._first_s, self._longest_s = max(pause_s, LEAST_PAUSE_S), max(longest_s, LEAST_PAUSE_S)
        self._failures = 0
        self._row = ""
        self._last: TransientProviderError | None = None
        self._probe: Call | None = None
        self._next_at = 0.0
        self._moved = asyncio.Event()

    @property
    def is_open(self) -> bool:
        """Returns whether the service counts as away."""
        return self._failures >= OPEN_AFTER

    def enter(self, call: Call) -> None:
        """Lets a call begin. Raises ServiceAway where it may not: the service is away and it is not the one to try."""
        if self.is_open and call is not self._probe:
            if self._wait_s() > 0:
                raise self._away(begun=False)
            self._probe = call

    def leave(self, call: Call) -> None:
        """A call has ended, however it did."""
        if call is self._probe:
            self._probe = None
            self._move()

    def answered(self, call: Call) -> None:
        """The service answers a call; one that had begun before the service was away does not show that it is back."""
        if not self.is_open or call is self._probe:
            if self._failures or not self._row:
                self._row = secrets.token_hex(4)
            self._failures = 0
            self._move()

    def failed(self, call: Call, error: TransientProviderError) -> TransientProviderError:
        """Returns what the end of a call means: its own failure, or one of a service that is away."""
        error.row, wish = self._row, error.retry_after_s or 0.0
        if self.is_open and call is not self._probe:  # begun before it opened
            return self._away(begun=True)
        self._failures, self._last = max(self._failures + 1, OPEN_AFTER if wish > LONGEST_PAUSE_S else 0), error
        if not self.is_open:
            return error
        pause = min(self._first_s * 2.0 ** min(self._failures - OPEN_AFTER, 16), self._longest_s)
        self._next_at = self._clock() + max(pause, min(wish, LONGEST_WISH_S))
        return self._away(begun=True)

    def _away(self, *, begun: bool) -> ServiceAway:
        assert self._last is not None
        return ServiceAway.after(self._last, self._last.message, begun=begun, until=self._until)

    def _wait_s(self) -> float:
        """Returns the seconds until the next call may try the service; while one does, its end wakes the others."""
        return LONGEST_PAUSE_S if self._probe is not None else max(0.0, self._next_at - self._clock())

    async def _until(self) -> None:
        """Waits until the next call may be tried, a minute at most: another service may take it by then."""
        until = self._clock() + LONGEST_PAUSE_S
        while self.is_open and (wait_s := min(self._wait_s(), until - self._clock())) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._moved.wait()

    def _move(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()


@dataclass
class Limiter:
    """Lets calls through one after the other, each as soon as the service is expected to take it."""

    clock: Callable[[], float] = time.monotonic
    pause_s: float = PAUSE_S
    """Seconds after a refusal that names no time, and before the first try of a service that is away."""
    longest_s: float = LONGEST_PAUSE_S
    """Most seconds between two tries of a service that is away."""
    allowances: dict[str, Allowance] = field(default_factory=dict)
    _open_at: float = 0.0
    _window: float | None = None
    """Calls that may be under way; None: any number."""
    _calls: list[Call] = field(default_factory=list)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _left: asyncio.Event = field(default_factory=asyncio.Event)
    _usual_output: float = 1000.0

    def __post_init__(self) -> None:
        self.circuit = Circuit(self.clock, self.pause_s, self.longest_s)

    @asynccontextmanager
    async def admitted(self, input_tokens: int) -> AsyncIterator[Call]:
        """A call may be made in the block; calls get in in their order.

        Raises ServiceAway in place of letting one begin, or of how it failed, while the service answers nobody.
        """
        call = Call(Need(input_tokens, round(self._usual_output)))
        self.circuit.enter(call)
        try:
            await self._get_in(call)
            try:
                yield call
                self.circuit.answered(call)
            except PermanentProviderError:
                self.circuit.answered(call)
                raise
            except TransientProviderError as error:
                raise self.circuit.failed(call, error) from error
            finally:
                self._calls.remove(call)
                self._left.set()
        finally:
            self.circuit.leave(call)

    async def _get_in(self, call: Call) -> None:
        async with self._turn:
            while (pause := self._pause(call.need)) > 0:
                self._left.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._left.wait()
            self.circuit.enter(call)  # the service may have gone away meanwhile
            self._calls.append(call)

    def answered(self, call: Call, headers: Mapping[str, str]) -> None:
        """An answer has begun to come."""
        call.counted = bool(self._read(headers))
        if self._window is not None:
            self._window += 1 / self._window
            if self._window > 2 * len(self._calls) + 8:  # nothing was refused for long
                self._window = None
        self._left.set()

    def finished(self, output_tokens: int) -> None:
        """An answer is there."""
        self._usual_output += (output_tokens - self._usual_output) / 8

    def refused(self, call: Call, headers: Mapping[str, str], wait_s: float | None) -> None:
        """The service refused a call for want of room, and asked for so many seconds."""
        call.counted = True
        now = self.clock()
        told = self._read(headers)
        if not told and now >= self._open_at:  # what was under way when the door closed does not halve it again
            self._window = max(1.0, len(self._calls) / 2)
        self._open_at = max(self._open_at, now + min(self.pause_s if wait_s is None else wait_s, LONGEST_PAUSE_S))

    def _pause(self, need: Need) -> float:
        """Returns the seconds until a call may begin as far as is known; 0: now."""
        now = self.clock()
        if now < self._open_at:
            return self._open_at - now
        if self._window is not None and len(self._calls) >= self._window:
            return LONGEST_PAUSE_S  # the end of another call is what is waited for
        unseen = [call.need for call in self._calls if not call.counted]
        pause = 0.0
        for kind, allowance in self.allowances.items():
            # A call that needs more than there ever is goes when all is there.
            wanted = min(need.of(kind) + sum(one.of(kind) for one in unseen), allowance.limit)
            lacking = wanted - allowance.at(now)
            if lacking > 0 and allowance.per_s > 0:
                pause = max(pause, lacking / allowance.per_s, LEAST_PAUSE_S)
        return pause

    def _read(self, headers: Mapping[str, str]) -> bool:
        """Takes in what the headers say; returns whether they say anything."""
        found = False
        for kind in KINDS:
            for name in (_ANTHROPIC, _OPENAI):
                limit = _number(headers.get(name.format(kind=kind, what="limit")))
                left = _number(headers.get(name.format(kind=kind, what="remaining")))
                full_in = seconds_until(headers.get(name.format(kind=kind, what="reset"), ""))
                if limit is None or left is None or limit <= 0:
                    continue
                found = True
                before = self.allowances.get(kind)
                # All of it is there again after the time that is told: so much a second; a minute's worth at least.
                per_s = (limit - left) / full_in if full_in and left < limit else limit / 60
                if before is not None and full_in is None:
                    per_s = before.per_s
                self.allowances[kind] = Allowance(limit, left, self.clock(), per_s)
        return found


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None


def seconds_until(text: str, now: datetime | None = None) -> float | None:
    """Returns the seconds that a header's time of reset is away: a date, or a duration as `6m0s` or `20ms`.

    None for anything else.
    """
    if not text:
        return None
    if (found := _DURATION.fullmatch(text)) is not None and any(found.groups()):
        hours, minutes, seconds, thousandths = (float(one or 0) for one in found.groups())
        return hours * 3600 + minutes * 60 + seconds + thousandths / 1000
    until = seconds_to(text, now)
    return None if until is None else max(0.0, until)
