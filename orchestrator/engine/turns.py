"""One persona turn: the journal first, then the provider under the transport policy (decisions.md#paid-replies).

While the disk is full a paid reply is held in memory until it can be written.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import Any, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type
from tenacity.wait import wait_exponential

from orchestrator.core.calls.exchange import FailedCall, Prompt, Reply
from orchestrator.core.calls.progress import call_progress
from orchestrator.core.calls.spending import Amount, amount_of
from orchestrator.core.command import Loop
from orchestrator.core.errors import (
    BudgetExceeded,
    CallWithdrawn,
    OrchestratorError,
    PermanentProviderError,
    ProviderError,
    ServiceAway,
    TransientProviderError,
    concerns_all,
    says_full,
)
from orchestrator.core.finding import Finding, critical, minor
from orchestrator.core.ports import Provider, TurnJournal
from orchestrator.engine.dispatcher import Ticket
from orchestrator.settings import Settings
from orchestrator.sprint.budgets import Budgets

T = TypeVar("T")
PATIENCE_S = 3600.0
"""Limit of the wait: a person has to notice and free disk space."""
PAUSE_S = 1.0
_NOBODY_HOLDS = Ticket(None, "", "", "")


Retried = Callable[[Sequence[FailedCall]], Awaitable[None]]
Away = Callable[[str], Awaitable[None]]
"""Is told what a service that is away says, once it does."""


async def nobody_told(_what: object) -> None:
    """Ignores the report."""


async def nothing_expected() -> None:
    """For a story that no other process can take."""


async def kept(write: Callable[[], object]) -> None:
    """Writes into the journal, again and again while the disk is full: what is written was paid for.

    The first try is made at once. Raises OSError after `PATIENCE_S`, and at once for anything but a full disk.
    """
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            write()
            return
        except OSError as error:
            if not says_full(error) or time.monotonic() >= until:
                raise
        await asyncio.sleep(PAUSE_S)


class TurnTaker:
    """Takes turns for all workflows of a process; each call in flight holds one of `slots`."""

    def __init__(
        self,
        provider: Provider,
        settings: Settings,
        slots: AbstractAsyncContextManager[object],
        budgets: Budgets | None = None,
    ) -> None:
        """`budgets` are those of the process; None: of the settings, for workflows of no sprint."""
        self._slots, self._budgets = slots, budgets or Budgets(settings.budget)
        self._provider = provider
        self._policy = settings.provider
        self._backoff = wait_exponential(
            multiplier=self._policy.wait_initial_s, min=self._policy.wait_initial_s, max=self._policy.wait_max_s
        )

    @property
    def max_attempts(self) -> int:
        """Calls that one request may take."""
        return self._policy.max_attempts

    async def take(
        self,
        journal: TurnJournal,
        step: int,
        prompt: Prompt,
        ticket: Ticket = _NOBODY_HOLDS,
        retried: Retried = nobody_told,
        away: Away = nobody_told,
        expect_held: Callable[[], Awaitable[None]] = nothing_expected,
    ) -> Reply:
        """Returns the journalled reply of this step, or a new one; no call starts before the `ticket` is clear.

        Reports failed calls to `retried` before each retry.
        Waits while its service is away, and reports why to `away`.
        `expect_held` is awaited before each call and raises where the story is no longer this process's.

        Raises PermanentProviderError (also when the transport policy is used up) and BudgetExceeded.
        """
        known = journal.reply(step)
        if known is not None:
            return known
        await asyncio.to_thread(journal.keep_prompt, step, prompt)
        failures = _counting(journal, step)
        if failures and (failures[-1].permanent or len(failures) >= self._policy.max_attempts):
            # The turn had ended before the step that holds it was recorded.
            raise self._final(failures)

        async def tell(_state: RetryCallState) -> None:
            call_progress(prompt.key, time.monotonic()).waits_for = "its next try"
            await retried(journal.failures(step))

        retrying = AsyncRetrying(
            name=Loop.TRANSPORT,
            retry=retry_if_exception_type(TransientProviderError),
            stop=lambda _state: len(_counting(journal, step)) >= self._policy.max_attempts,
            wait=self._wait,
            before_sleep=tell,
            reraise=True,
        )
        try:
            return await retrying(self._call, journal, step, prompt, ticket, away, expect_held)
        except TransientProviderError as error:
            raise self._final(_counting(journal, step)) from error

    def _final(self, failures: Sequence[FailedCall]) -> PermanentProviderError:
        """Returns the error of a turn whose last call was its last chance; the same before and after a crash."""
        last = failures[-1]
        message = last.message if last.permanent else f"{last.message} (gave up after {len(failures)} calls)"
        return PermanentProviderError(
            message,
            kind=last.kind,
            code=last.code,
            provider_name=last.provider_name,
            original_message=last.original_message,
        )

    async def _call(
        self,
        journal: TurnJournal,
        step: int,
        prompt: Prompt,
        ticket: Ticket,
        away: Away,
        expect_held: Callable[[], Awaitable[None]],
    ) -> Reply:
        since: float | None = None
        progress = call_progress(prompt.key, time.monotonic())
        progress.may_begin = partial(ticket.is_clear, paid=True)
        while True:
            if not ticket.is_clear(paid=True):
                progress.waits_for = "the end of a pause"
                await ticket.clear(paid=True)
                since = None  # people, or a daemon, want it to be tried again
            progress.waits_for = "a slot"
            async with self._slots:
                # A budget may be used up, or the story may have been paused while this call waited for its slot.
                self._expect_budget(journal.spent, self._budgets.expected(prompt), ticket)
                if not ticket.is_clear(paid=True):
                    continue
                try:
                    async with ticket.at_work():
                        await expect_held()
                        return await self._ask(journal, step, prompt, ticket)
                except CallWithdrawn:
                    continue
                except ServiceAway as error:
                    if len(_counting(journal, step)) >= self._policy.max_attempts:
                        raise
                    gone = error
                except PermanentProviderError as error:
                    # A wrong key or model is no failure of the story: the same call is made once it is put right.
                    if not (error.concerns_all and ticket.hold(error.message, again=error.kind == "outage")):
                        raise
                    continue
            if since is None:
                since = time.monotonic()
                await away(gone.message)
            progress.waits_for = "a service that is away"
            # Without a slot: it is for calls that another service takes.
            await self._wait_for_service(gone, since, ticket)

    async def _wait_for_service(self, gone: ServiceAway, since: float, ticket: Ticket) -> None:
        """Until the next call may be tried. Past the patience the sprint is held; without one the error is raised."""
        left = since + self._policy.outage_s - time.monotonic()
        with suppress(TimeoutError):
            async with asyncio.timeout(left):
                await gone.until()
                return
        if ticket.is_clear(paid=True):
            told = f"{gone.message}; nobody has been answered for {self._policy.outage_s:g} s: wait until it is back"
            error = _outage(gone, told)
            if not ticket.hold(error.message, again=True):
                raise error from gone

    def _expect_budget(self, spent: Amount, need: Amount, ticket: Ticket) -> None:
        """Raises BudgetExceeded where the story's budgets are used up, or those of what cannot wait; and for a call
        that alone is larger than a budget: its story ends, and not the sprint."""
        unit, message = self._budgets.over_in_story(spent, need) or ("", "")
        code = "budget.tokens" if unit == "tokens" else "budget.usd" if unit == "usd" else "budget.calls"
        if not message:
            message = self._budgets.over(ticket.sprint)
            if message and ticket.can_wait:
                return
        if not message:
            message, code = self._budgets.over(ticket.sprint, need), "budget.large_call"
        if message:
            raise BudgetExceeded(message, provider_name=self._provider.name, code=code)

    async def _ask(self, journal: TurnJournal, step: int, prompt: Prompt, ticket: Ticket) -> Reply:
        numbered = prompt.model_copy(update={"turn": journal.next_turn(prompt.key)})
        try:
            reply = await self._provider.complete(numbered)
        except ProviderError as error:
            wish = error.retry_after_s if isinstance(error, TransientProviderError) else None
            if wish is not None and wish > self._policy.retry_after_max_s:
                told = f"it asks to wait {wish:.0f} s, more than provider.retry_after_max_s: wait so long"
                raise _outage(error, f"{error.message}; {told}") from error
            if _costs_nothing(error, _counting(journal, step)):
                raise
            failure = FailedCall(
                turn=numbered.turn,
                kind=error.kind,
                message=error.message,
                code=error.code,
                permanent=not isinstance(error, TransientProviderError),
                row=error.row if isinstance(error, TransientProviderError) else None,
                provider_name=error.provider_name,
                original_message=error.original_message,
            )
            await kept(partial(journal.record_failure, step, numbered, failure))
            await _share(journal)
            raise
        return await self._record(journal, step, numbered, reply, ticket)

    async def _record(self, journal: TurnJournal, step: int, numbered: Prompt, reply: Reply, ticket: Ticket) -> Reply:
        """Nothing is waited for between the provider's return and the first try to write: the reply is paid for."""
        self._budgets.took(ticket.workflow_id, ticket.sprint, amount_of(reply))
        reply = reply.model_copy(update={"failed_calls": journal.failures(step)})
        await kept(partial(journal.record_reply, step, numbered, reply))
        await _share(journal)
        return reply

    def _wait(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        if not isinstance(error, TransientProviderError) or error.retry_after_s is None:
            return self._backoff(state)
        return error.retry_after_s


def _outage(error: ProviderError, told: str) -> PermanentProviderError:
    """Returns the error that pauses the sprint until a service is back."""
    name, said = error.provider_name, error.original_message
    return PermanentProviderError(told, kind="outage", provider_name=name, original_message=said)


def _counting(journal: TurnJournal, step: int) -> tuple[FailedCall, ...]:
    """Returns the failed calls that count: a key or a model's name may have been put right since."""
    return tuple(failure for failure in journal.failures(step) if not concerns_all(failure.kind))


def _costs_nothing(error: ProviderError, failures: Sequence[FailedCall]) -> bool:
    """Returns whether a call that failed is no attempt.

    It is none where it was not begun, and none but the first in a row in which nobody was answered: whether the request
    or its service is at fault shows by whether others are.
    """
    if isinstance(error, CallWithdrawn) or (isinstance(error, ServiceAway) and not error.begun):
        return True
    row = error.row if isinstance(error, TransientProviderError) else None
    return row is not None and bool(failures) and row in {"", failures[-1].row}


async def _share(journal: TurnJournal) -> None:
    if journal.is_shared:
        await asyncio.to_thread(journal.share)


def spent(reply: Reply) -> dict[str, Any]:
    """Returns tokens and money of a turn's answer."""
    return {
        "input_tokens": reply.usage.input,
        "cached_tokens": reply.usage.cached,
        "output_tokens": reply.usage.output,
        "reasoning_tokens": reply.usage.reasoning,
        "cost_usd": reply.cost_usd,
    }


def passing(failure: FailedCall) -> Finding:
    """Returns what is said of a failed call that was followed by another."""
    code = failure.code or f"provider.{failure.kind}"
    return minor(code, failure.message, fix="nothing: the same request was sent again")


def final(error: OrchestratorError) -> Finding:
    """Returns what is said of the call that was the last."""
    code = error.code if isinstance(error, ProviderError) else "story.workspaceerror"
    return critical(code, error.message, fix="remove the cause, then reset the story so that it can be run again")
