"""What passes ends no story: every kind of failure that services are known for, for longer than the attempts last."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.end_to_end.test_real_providers import KEYS, claude, gpt, settled
from tests.providers.http_server import (
    EVENTS,
    Answer,
    Asked,
    completion,
    completion_stream,
    message_stream,
    model_server,
)
from tests.support import ALL_PASS, plain_environment, write_backlog
from tests.zygote import Forked, zygote

TIMES = 6
"""More than `provider.max_attempts`."""
QUICK = ("provider.wait_initial_s=0.01", "provider.wait_max_s=0.02")


def storm(stream: Callable[..., str]) -> Iterator[Answer]:
    """Every answer of the table in docs/calls.md that passes, each several times in a row."""
    busy = {"error": {"type": "overloaded_error", "message": "busy"}}
    page = "<!doctype html><title>Maintenance</title>"
    early = stream("", error={"type": "overloaded_error", "message": "busy"})
    kinds = [
        *(Answer(status=status, body=busy) for status in (408, 409, 425, 429, 500, 502, 503, 504, 529)),
        Answer(status=429, body=busy, headers={"retry-after-ms": "20"}),
        Answer(status=503, body=page, headers={"content-type": "text/html"}),
        Answer(body=page, headers={"content-type": "text/html"}),
        Answer(body="", headers={"content-type": "text/plain"}),
        Answer(body='{"id": "msg_1", "type": "mess'),
        Answer(body="x" * 100, cut=10),
        Answer(cut=0, body="x"),
        Answer(body=early, headers=EVENTS),
        Answer(body=early, headers=EVENTS, cut=20),
        Answer(body=page, headers=EVENTS),
    ]
    for kind in kinds:
        yield from [kind] * TIMES


@pytest.mark.parametrize(("name", "good", "stream"), [
    ("anthropic", claude, message_stream),
    # What each SDK makes of each of these is shown in tests/providers.
    pytest.param("openai", gpt, completion_stream, marks=pytest.mark.soak),
])  # fmt: skip
def test_no_story_fails_for_what_passes(
    tmp_path: Path, name: str, good: Callable[[Asked], Answer], stream: Callable[..., str]
) -> None:
    with model_server(good, *storm(stream), good) as server:
        result, events, _ = settled(
            tmp_path, f"provider.name={name}", "provider.model=m", f"provider.base_url={server.url}", *QUICK,
            "budget.calls_per_story=20",
        )  # fmt: skip
    (story,) = result.report.stories
    assert (story.status.value, story.calls, result.paused) == ("done", 4, None)
    assert len(server.asked) == 4 + len([*storm(stream)])
    (waits,) = [event for event in events if event.name == "service_away"]
    assert waits.message.startswith("alex waits, and asks again until it is answered: ")


def test_another_model_answers_in_an_outage_and_the_usual_one_again_when_it_is_back(tmp_path: Path) -> None:
    gone = Answer(status=529, body={"error": {"message": "busy"}})
    with (
        model_server(claude, gone, gone, gone, claude) as usual,
        model_server(Answer(body=completion("I would rather not.")), gpt) as other,
    ):
        fallback = f"[{{provider: openai, model: gpt-m, base_url: '{other.url}/v1'}}]"
        result, events, _ = settled(
            tmp_path, "provider.name=anthropic", "provider.model=claude-m", f"provider.base_url={usual.url}", *QUICK,
            f"provider.fallback={fallback}", "answer.repair_requests=0",
        )  # fmt: skip
    (story,) = result.report.stories
    assert (story.status.value, len(other.asked)) == ("done", 1)
    started = next(event for event in events if event.name == "sprint_started")
    assert started.message.endswith("provider anthropic claude-m, in an outage: openai gpt-m")
    why = "in place of its own: anthropic claude-m is away: anthropic answered 529: busy"
    told = [f"alex is answered by openai gpt-told {why}", "alex is answered by anthropic claude-told again"]
    switched = [event for event in events if event.name == "model_switched"]
    assert [event.message for event in switched] == told
    assert set(told) <= {one.message for one in story.healings}
    answered = [event.data["provider"] for event in events if event.name == "turn_finished"]
    assert answered.count("openai") == 1
    assert not [event for event in events if event.name == "service_away"]


def test_a_process_that_is_killed_in_outages_loses_nothing_and_pays_for_no_call_twice(tmp_path: Path) -> None:
    good, away = [0], threading.Event()

    def respond(asked: Asked) -> Answer:
        if good[0] == 2:
            away.set()
        if away.is_set():
            return Answer(status=503, body={"error": {"message": "down"}})
        good[0] += 1
        return gpt(asked)

    write_backlog(tmp_path / "b.csv", "A")
    with model_server(respond) as server:
        settings = ("provider.model=m", f"provider.base_url={server.url}/v1", "provider.wait_initial_s=0.05", ALL_PASS)
        command = ["run", "b.csv", "--repo", "repo", "--provider", "openai"]  # its SDK is imported in half the time
        command += [word for one in settings for word in ("--set", one)]
        env = plain_environment(ORCHESTRATOR_HOME=str(tmp_path / "state"), **KEYS)

        def begin() -> Forked:
            return zygote().start("orchestrator", command, cwd=tmp_path, env=env)

        for _ in range(2):
            before, run = len(server.asked), begin()
            try:
                while not (away.is_set() and len(server.asked) >= before + 4):
                    assert run.poll() is None
                    time.sleep(0.02)
            finally:
                os.killpg(run.pid, signal.SIGKILL)
                run.communicate()
        away.clear()
        good[0] += 100
        last = begin()
        last.communicate(timeout=60)
    assert last.returncode == 0
    assert good[0] == 104, "two answers before the outages, two behind them"
