"""How far a call of a model is while it is under way. Who makes it sets it; terminals show it.

It is found in the context of the task that asks, because a provider does not know for whom it works.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from orchestrator.core.calls.exchange import TurnKey


@dataclass(eq=False)
class CallProgress:
    """One request to a model, with the calls that it takes. Times are seconds of `time.monotonic`."""

    key: TurnKey
    began: float
    """When it was first wanted."""
    sent: float | None = None
    """When the call under way was sent; None while it waits: for a slot, the service's limits, the next try."""
    first: float | None = None
    """When the first piece of the answer came; None before, and for an answer that comes in one piece."""
    tokens: int = 0
    """Of the answer so far, estimated."""
    waits_for: str = "its turn"
    """What a call that is not sent waits for."""
    may_begin: Callable[[], bool] = lambda: True
    """Returns whether a call may still be sent once its service's limits let it."""

    @contextmanager
    def calling(self, now: float) -> Iterator[None]:
        """A call is under way in the block."""
        self.sent = now
        try:
            yield
        finally:
            self.sent, self.first, self.tokens = None, None, 0

    def wrote(self, tokens: int, now: float) -> None:
        """So much of the answer has come."""
        self.tokens = tokens
        if self.first is None:
            self.first = now

    def per_s(self, now: float) -> int:
        """Returns the tokens of a second since the first came."""
        return round(self.tokens / max(1.0, now - self.first)) if self.first is not None else 0

    def told(self, now: float) -> str:
        """Returns where it is, for people."""
        persona, what = self.key.persona, self.key.what
        if self.sent is None:
            return f"{persona} waits for {self.waits_for}: {what}"
        if self.first is None:
            return f"{persona} is asked: {what}"
        return f"{persona} answers: {what}, ~{self.tokens} tokens, {self.per_s(now)}/s"


_current: ContextVar[CallProgress] = ContextVar("call")


@contextmanager
def following(progress: CallProgress) -> Iterator[None]:
    """Has calls in the block tell of themselves in `progress`."""
    token = _current.set(progress)
    try:
        yield
    finally:
        _current.reset(token)


def call_progress(key: TurnKey, now: float) -> CallProgress:
    """Returns the progress that a provider sets; of a call that nobody follows, one that nobody sees."""
    return _current.get(None) or CallProgress(key, now)
