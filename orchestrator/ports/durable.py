"""The ports of durable work: time, events, steps and the journal of turns."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar

from orchestrator.domain.events import Event, Level
from orchestrator.domain.exchange import FailedCall, Prompt, Reply, TurnKey
from orchestrator.domain.gate import Gate, GateAnswer

T = TypeVar("T")


class Clock(Protocol):
    """Where times come from."""

    def now(self) -> datetime:
        """Aware UTC."""
        ...


class EventSink(Protocol):
    """The append-only record."""

    async def find(self, ids: Sequence[str]) -> Mapping[str, Event]:
        """Those of the events that are recorded, by id; also what other processes recorded."""
        ...

    async def emit(self, event: Event) -> bool:
        """Store the event durably; False when its id was there already (then nothing is printed either)."""
        ...


class Step(Protocol):
    """Durable execution of one story, as the product's loops see it (docs/development/decisions.md#engine).

    The same calls in the same order after a crash return the recorded results without doing the work again.
    """

    @property
    def workflow_id(self) -> str:
        """`<sprint>/<story>`, with `@N` behind it after a reset."""
        ...

    async def step(self, name: str, work: Callable[[str], Awaitable[T]], returns: Any) -> T:
        """Run `work(step_id)` once and record what it returns; `returns` is its type, for storing it as JSON.

        An OrchestratorError raised by `work` is recorded and raised again as the same class, also on replay.
        """
        ...

    async def turn(self, prompt: Prompt) -> Reply:
        """One persona turn: fills in `turn`, retries transport errors under their policy, journals every ended call.

        Raises ProviderError (also BudgetExceeded), deterministically on replay.
        """
        ...

    async def open_gate(self, gate: Gate, timeout_s: float | None) -> Gate:
        """The gate with its number among the story's gates and the times that are recorded for it, once and for all."""
        ...

    async def answer(self, gate: Gate) -> GateAnswer:
        """Wait for the one answer that counts to an opened gate, durably, for as long as it takes.

        The story holds no slot meanwhile. Past the gate's deadline the answer is `Choice.TIME_OUT` by NOBODY, recorded
        like a person's: whoever comes later is told so.
        """
        ...

    async def emit(
        self,
        name: str,
        message: str,
        *,
        level: Level = Level.INFO,
        task: str | None = None,
        persona: str | None = None,
        **data: Any,
    ) -> None:
        """Record an event with the next deterministic id of this workflow."""
        ...


class TurnJournal(Protocol):
    """The ended calls of one workflow, written down the moment they end (decisions.md#paid-replies)."""

    @property
    def calls(self) -> int:
        """All ended calls of the story that the workflow is for, replies and errors."""
        ...

    def reply(self, step: int) -> Reply | None:
        """The journalled reply of this step, if its call ended with one."""
        ...

    def failures(self, step: int) -> tuple[FailedCall, ...]:
        """Calls of this step that ended with an error, in turn order."""
        ...

    def next_turn(self, key: TurnKey) -> int:
        """1 + the calls of this key that ended, with a reply or an error."""
        ...

    def keep_prompt(self, step: int, prompt: Prompt) -> None:
        """Keep the prompt beside its reply. Blocks."""
        ...

    def record_reply(self, step: int, prompt: Prompt, reply: Reply) -> None:
        """Write a reply down, synchronously and at once."""
        ...

    def record_failure(self, step: int, prompt: Prompt, failure: FailedCall) -> None:
        """Write down that a call ended with an error, synchronously and at once."""
        ...
