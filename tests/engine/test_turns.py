"""One turn: the journal first, transport retries with the server's wish, the budget of a story."""

import asyncio
import errno
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from orchestrator.core.calls.exchange import FailedCall, Prompt, Purpose, Reply, Segment, TurnKey, Usage
from orchestrator.core.calls.progress import CallProgress, following
from orchestrator.core.errors import (
    BudgetExceeded,
    PermanentProviderError,
    ServiceAway,
    TransientProviderError,
)
from orchestrator.core.event import Event
from orchestrator.core.ports import Provider
from orchestrator.engine.dispatcher import Switchboard, Ticket
from orchestrator.engine.turns import TurnTaker
from orchestrator.providers.anthropic import AnthropicProvider
from orchestrator.providers.base import ModelAccess
from orchestrator.providers.limits import Limiter
from orchestrator.settings import BudgetSettings, Settings
from orchestrator.sprint.state import Board
from orchestrator.storage.reply_journal import WorkflowJournal
from tests.providers.http_server import Answer, message, model_server
from tests.providers.test_limits import SimulatedTime, simulated

KEY = TurnKey(persona="mike", story="A", purpose=Purpose.BREAKDOWN)
PROMPT = Prompt(key=KEY, segments=(Segment(name="role", text="Plan."),))


class Answers:
    """A provider that raises or replies in order."""

    name = "double"

    def __init__(self, *answers: Exception | str, **fields: Any) -> None:
        self.left, self._fields = list(answers), fields
        self.turns: list[int] = []
        self.at_once = self.most = 0

    async def complete(self, prompt: Prompt) -> Reply:
        self.turns.append(prompt.turn)
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await asyncio.sleep(0.01)
        self.at_once -= 1
        answer = self.left.pop(0) if self.left else "more"
        if isinstance(answer, Exception):
            raise answer
        return Reply(key=prompt.key, turn=prompt.turn, text=answer, **self._fields)


def busy(**fields: Any) -> TransientProviderError:
    return TransientProviderError("busy", kind="rate_limit", **fields)


def taker(provider: Provider, *, slots: int = 8, **changes: Any) -> TurnTaker:
    policy = {"wait_initial_s": 0, "wait_max_s": 0, **changes}
    budget = {name: policy.pop(name) for name in [*policy] if name in BudgetSettings.model_fields}
    settings = Settings.model_validate({"provider": policy, "budget": budget})
    return TurnTaker(provider, settings, asyncio.Semaphore(slots))


@pytest.fixture
def journal(tmp_path: Path) -> WorkflowJournal:
    return WorkflowJournal(tmp_path / "SP-001" / "A")


async def test_a_reply_is_journalled_and_never_asked_for_again(journal: WorkflowJournal, tmp_path: Path) -> None:
    provider = Answers("one")
    first = await taker(provider).take(journal, 3, PROMPT)
    again = await asyncio.to_thread(WorkflowJournal, tmp_path / "SP-001" / "A")
    assert await taker(provider).take(again, 3, PROMPT) == first
    assert provider.turns == [1]
    assert (await taker(provider).take(again, 4, PROMPT)).turn == 2
    kept = await asyncio.to_thread((tmp_path / "SP-001" / "A" / "3.prompt.md").read_text)
    assert kept == "Plan."


async def test_a_transport_retry_takes_the_next_turn_and_is_told_before_it(journal: WorkflowJournal) -> None:
    provider = Answers(busy(), busy(), "at last")
    told: list[tuple[int, int]] = []

    async def retried(failures: Sequence[FailedCall]) -> None:
        told.append((len(failures), len(provider.turns)))

    reply = await taker(provider).take(journal, 1, PROMPT, retried=retried)
    assert told == [(1, 1), (2, 2)]
    assert reply.turn == 3
    assert [failure.turn for failure in reply.failed_calls] == [1, 2]
    assert journal.spent.calls == 3


@pytest.mark.parametrize("answers", [[busy() for _ in range(3)], [PermanentProviderError("no", kind="bad_request")]])
async def test_a_turn_that_had_failed_for_good_before_a_crash_fails_the_same_way(
    journal: WorkflowJournal, tmp_path: Path, answers: list[Exception]
) -> None:
    provider = Answers(*answers)
    with pytest.raises(PermanentProviderError) as first:
        await taker(provider, max_attempts=3).take(journal, 1, PROMPT)
    calls = list(provider.turns)
    again = await asyncio.to_thread(WorkflowJournal, tmp_path / "SP-001" / "A")
    with pytest.raises(PermanentProviderError) as second:
        await taker(provider, max_attempts=3).take(again, 1, PROMPT)
    assert provider.turns == calls
    assert (second.value.message, second.value.kind, second.value.code) == (
        first.value.message,
        first.value.kind,
        first.value.code,
    )


async def test_retries_before_a_crash_count(journal: WorkflowJournal, tmp_path: Path) -> None:
    before = asyncio.create_task(taker(Hanging(busy(), busy()), max_attempts=3).take(journal, 1, PROMPT))
    while journal.spent.calls < 2:
        await asyncio.sleep(0.01)
    before.cancel()
    again = await asyncio.to_thread(WorkflowJournal, tmp_path / "SP-001" / "A")
    provider = Answers(busy(), "too late")
    with pytest.raises(PermanentProviderError, match="after 3 calls"):
        await taker(provider, max_attempts=3).take(again, 1, PROMPT)
    assert provider.turns == [3]


class Hanging(Answers):
    """Never answers once its answers are used up."""

    async def complete(self, prompt: Prompt) -> Reply:
        if not self.left:
            await asyncio.Event().wait()
        return await super().complete(prompt)


async def test_retry_after_is_honoured_up_to_its_limit(journal: WorkflowJournal) -> None:
    started = time.monotonic()
    await taker(Answers(busy(retry_after_s=0.2), "ok"), wait_initial_s=9, wait_max_s=9).take(journal, 1, PROMPT)
    assert 0.2 <= time.monotonic() - started < 3
    provider = Answers(busy(retry_after_s=99), "never")
    with pytest.raises(PermanentProviderError, match="retry_after_max_s"):
        await taker(provider, retry_after_max_s=50).take(journal, 2, PROMPT)
    assert len(provider.turns) == 1


async def returned() -> None:
    await asyncio.sleep(0.01)


def gone(message: str = "away", row: str = "r1", *, begun: bool = True) -> ServiceAway:
    return ServiceAway(message, begun=begun, until=returned, row=row, kind="overloaded")


async def test_an_outage_costs_one_attempt_at_most(journal: WorkflowJournal) -> None:
    told: list[str] = []

    async def away(what: str) -> None:
        told.append(what)

    provider = Answers(busy(row="r1"), busy(row="r1"), *(gone(f"away {number}") for number in range(9)), "back")
    reply = await taker(provider, max_attempts=2, calls_per_story=2).take(journal, 1, PROMPT, away=away)
    assert (reply.text, told, journal.spent.calls) == ("back", ["away 0"], 2)
    waiting = Answers(*(gone(begun=False) for _ in range(9)), "begun at last")
    assert (await taker(waiting, max_attempts=1).take(journal, 2, PROMPT)).failed_calls == ()


async def test_a_request_that_fails_while_others_are_answered_is_given_up(journal: WorkflowJournal) -> None:
    rows = [gone(row=row) for row in ("r1", "r1", "r2", "r2", "r3")]
    with pytest.raises(PermanentProviderError, match="gave up after 3 calls"):
        await taker(Answers(*rows, "never"), max_attempts=3).take(journal, 1, PROMPT)


async def test_kills_in_an_outage_cost_no_attempts(journal: WorkflowJournal, tmp_path: Path) -> None:
    provider = Answers(*(busy(row="") for _ in range(9)), "back")
    for killed_at in (2, 4, 6, None):
        again = await asyncio.to_thread(WorkflowJournal, tmp_path / "SP-001" / "A")
        taking = asyncio.create_task(taker(provider, max_attempts=2).take(again, 1, PROMPT))
        while killed_at is not None and len(provider.turns) < killed_at:
            await asyncio.sleep(0.001)
        if killed_at is not None:
            taking.cancel()
    assert (await taking).text == "back"


async def test_past_the_patience_the_sprint_is_held_and_the_call_made_again(journal: WorkflowJournal) -> None:
    held: list[tuple[str, bool]] = []

    class Held(Ticket):
        def hold(self, reason: str, *, again: bool = False) -> bool:
            held.append((reason, again))
            return True

    provider = Answers(gone("503"), gone("503"), "back", busy(retry_after_s=99), "later")
    ticket = Held(None, "", "", "")
    assert (await taker(provider, outage_s=0).take(journal, 1, PROMPT, ticket)).text == "back"
    assert held == [("503; nobody has been answered for 0 s: wait until it is back", True)] * 2
    assert (await taker(provider, retry_after_max_s=50).take(journal, 2, PROMPT, ticket)).text == "later"
    assert held[-1] == ("busy; it asks to wait 99 s, more than provider.retry_after_max_s: wait so long", True)
    with pytest.raises(PermanentProviderError) as caught:  # the reading of a plan cannot be held
        await taker(Answers(gone("503")), outage_s=0).take(journal, 3, PROMPT)
    assert (caught.value.code, caught.value.concerns_all) == ("provider.outage", True)


def test_a_sprint_that_was_held_for_an_outage_tries_again_after_minutes_and_one_without_a_key_does_not() -> None:
    async def work(loop: SimulatedTime) -> None:
        switchboard, board = Switchboard(NoOrders(), lambda _: nullcontext()), Board("SP-001")
        with switchboard.following(board):
            ticket = switchboard.ticket("SP-001/A", "SP-001", "A")
            assert ticket.hold("503: wait", again=True)
            assert not ticket.is_clear(paid=True)
            await ticket.clear(paid=True)
            assert loop.time() == pytest.approx(300)
            assert ticket.hold("503: wait", again=True)
            assert ticket.hold("wrong key")
            await asyncio.sleep(9999)
            assert board.refused == "wrong key"

    simulated(work)


async def test_a_call_that_waits_for_limits_is_not_sent_once_its_sprint_is_paused(journal: WorkflowJournal) -> None:
    limiter, board = Limiter(), Board("SP-001")
    switchboard = Switchboard(NoOrders(), lambda _: nullcontext())
    with model_server(Answer(body=message("paid for"))) as server, switchboard.following(board):
        access = ModelAccess(model="m", api_key="k", base_url=server.url, timeout_s=20, max_output_tokens=9)
        provider = await asyncio.to_thread(AnthropicProvider, access, price={}.get, limiter=limiter)
        async with limiter.admitted(1) as other:
            limiter.refused(other, {}, 0.2)
        with following(CallProgress(KEY, 0)):
            ticket = switchboard.ticket("SP-001/A", "SP-001", "A")
            taking = asyncio.create_task(taker(provider).take(journal, 1, PROMPT, ticket))
        await asyncio.sleep(0.05)
        assert switchboard.at_work == 1, "it waits"
        board.refuse("paused")
        while switchboard.at_work:
            await asyncio.sleep(0.01)
        assert server.asked == []
        board.allow()
        reply = await taking
        await provider.close()
    assert (reply.text, reply.failed_calls, len(server.asked)) == ("paid for", (), 1)


class NoOrders:
    async def since(self, after_seq: int, *, mark: str) -> list[tuple[int, Event]]:
        return []


async def test_permanent_errors_are_not_retried(journal: WorkflowJournal) -> None:
    provider = Answers(PermanentProviderError("no", kind="bad_request", code="script.missing"))
    with pytest.raises(PermanentProviderError) as caught:
        await taker(provider).take(journal, 1, PROMPT)
    assert caught.value.code == "script.missing"
    assert provider.turns == [1]


async def test_the_budget_counts_every_call_of_the_story(journal: WorkflowJournal) -> None:
    provider = Answers(busy(), "one")
    turns = taker(provider, calls_per_story=2)
    await turns.take(journal, 1, PROMPT)
    with pytest.raises(BudgetExceeded) as caught:
        await turns.take(journal, 2, PROMPT)
    assert caught.value.code == "budget.calls"
    assert caught.value.message == "budget.calls_per_story (2) is used up: 2"
    assert len(provider.turns) == 2


@pytest.mark.parametrize(("budget", "code"), [
    ({"tokens_per_story": 1100}, "budget.tokens"),
    ({"usd_per_story": 0.5}, "budget.usd"),
    ({"calls_per_day": 0}, "budget.calls"),
])  # fmt: skip
async def test_no_call_begins_once_a_budget_is_used_up(
    journal: WorkflowJournal, tmp_path: Path, budget: dict[str, Any], code: str
) -> None:
    provider = Answers("first", "never asked for", usage=Usage(input=100, output=1000), cost_usd=0.5)
    turns = taker(provider, **budget)
    if "calls_per_day" not in budget:
        await turns.take(journal, 1, PROMPT)
    with pytest.raises(BudgetExceeded) as caught:
        await turns.take(journal, 2, PROMPT)
    assert caught.value.code == code
    assert len(provider.turns) == (0 if "calls_per_day" in budget else 1)
    again = await asyncio.to_thread(WorkflowJournal, tmp_path / "SP-001" / "A")
    assert again.spent == journal.spent
    assert again.spent.tokens == 1100 * len(provider.turns), "also after a crash"


async def test_slots_bound_the_calls_in_flight(tmp_path: Path) -> None:
    provider = Answers()
    turns = taker(provider, slots=2)
    journals = [await asyncio.to_thread(WorkflowJournal, tmp_path / str(number)) for number in range(6)]
    await asyncio.gather(*(turns.take(journal, 1, PROMPT) for journal in journals))
    assert provider.most == 2


class Full(WorkflowJournal):
    """A journal on a disk that is full for its first writes."""

    left: Iterator[int]

    def _record(self, step: int, prompt: Prompt, **more: Any) -> None:
        if next(self.left, None) is not None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super()._record(step, prompt, **more)


async def test_a_paid_reply_waits_for_room_in_the_journal(tmp_path: Path) -> None:
    journal, provider = await asyncio.to_thread(Full, tmp_path), Answers(busy(), "paid")
    journal.left = iter(range(1))
    assert (await taker(provider).take(journal, 1, PROMPT)).text == "paid"
    assert [path.name for path in sorted(tmp_path.glob("1-*"))] == ["1-1.json", "1-2.json"]
