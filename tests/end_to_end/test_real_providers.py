"""A story through the real SDKs: two servers on loopback play the team."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.app.run import Run
from orchestrator.core.event import Event
from orchestrator.records.sprint_reader import RunResult
from orchestrator.settings import load
from orchestrator.settings.options import RunOptions
from tests.providers.http_server import Answer, Asked, completion, message, model_server
from tests.support import (
    ALL_PASS,
    APPROVED,
    breakdown,
    delivery,
    git,
    plain_environment,
    run_cli,
    suite,
    suite_text,
    write_backlog,
)

KEYS = {"ANTHROPIC_API_KEY": "sk-ant-0123456789abcdefghij", "OPENAI_API_KEY": "sk-oai-0123456789abcdefghij"}
ANSWERS: dict[str, Any] = {
    "You are Mike": breakdown("A", ["a.py"]),
    "You are Alex": delivery("A", 1, {"a.py": "import os\n\nSEEN = {**os.environ}\n\n\ndef value():\n    return 1\n"}),
    "You are Jordan": suite("A", suite_text("A") + "\n\ndef test_no_key():\n    import a\n    print(a.SEEN)\n"
                            "    assert not [name for name in a.SEEN if 'KEY' in name]\n"),
    "You are a senior code reviewer": APPROVED,
}  # fmt: skip


def answer_to(asked: Asked) -> str:
    text = json.dumps(asked.body)
    answer = next(answer for name, answer in ANSWERS.items() if name in text)
    return answer if isinstance(answer, str) else f"Here it is:\n{json.dumps(answer)}"


def claude(asked: Asked) -> Answer:
    return Answer(body=message(answer_to(asked)))


def gpt(asked: Asked) -> Answer:
    return Answer(body=completion(answer_to(asked)))


def settled(
    folder: Path, *overrides: str, rows: tuple[str, ...] = ("A",), **variables: str
) -> tuple[RunResult, list[Event], list[str]]:
    environ = plain_environment(ORCHESTRATOR_HOME=str(folder / "state"), **KEYS, **variables)
    configured, environment = load(None, ("provider.wait_initial_s=0.01", ALL_PASS, *overrides), environ, folder)
    backlog = folder / "b.csv"
    if not backlog.exists():
        write_backlog(backlog, *rows)
    options = RunOptions(backlog=backlog, repo=folder / "repo", push_to="result")
    events: list[Event] = []
    told: list[str] = []
    run = Run(options, configured, environment, tell=told.append, listen=events.append)
    return asyncio.run(run.go()), events, told


def everything_kept(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_a_story_is_merged_that_two_services_worked_on(tmp_path: Path) -> None:
    busy = Answer(status=529, body={"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})
    limited = Answer(status=429, body={"error": {"message": "slow down"}}, headers={"retry-after-ms": "20"})
    with model_server(busy, claude) as anthropic, model_server(limited, gpt) as openai:
        result, events, _ = settled(
            tmp_path,
            "provider.name=anthropic",
            "provider.model=claude-m",
            f"personas.alex={{provider: openai, model: gpt-m, base_url: '{openai.url}/v1'}}",
            "prices={claude-told: {input: 1, output: 1}, gpt-told: {input: 2, output: 2}}",
            "test.custom=null",  # its test looks for keys
            ANTHROPIC_BASE_URL=anthropic.url,
        )
    (story,) = result.report.stories
    assert (story.status.value, story.findings) == ("done", ())
    assert story.cost_usd == pytest.approx((3 * 25 + 25 * 2) / 1_000_000)
    assert result.report.totals["tokens"] == {"input": 80, "cached": 28, "output": 20}
    assert [len(server.asked) for server in (anthropic, openai)] == [4, 2]
    assert "def value" in git(tmp_path / "repo", "show", "result:a.py")
    started = next(event for event in events if event.name == "sprint_started")
    assert started.message.endswith("provider anthropic claude-m, alex: openai gpt-m")
    assert [event.data["kind"] for event in events if event.name == "call_retried"] == ["overloaded", "rate_limit"]
    assert [event.data["reasoning_tokens"] for event in events if event.name == "turn_finished"] == [3] * 4
    kept = everything_kept(tmp_path)
    assert b"claude-told" in kept
    assert not any(key.encode() in kept for key in KEYS.values())


def told(events: list[Event], name: str) -> list[str]:
    """Codes that the events of one name begin with, in order."""
    return [event.data["findings"][0]["code"] for event in events if event.name == name]


def test_a_refused_key_pauses_the_sprint_ends_no_story_and_stays_secret(tmp_path: Path) -> None:
    key = KEYS["OPENAI_API_KEY"]
    refused = Answer(status=401, body={"error": {"message": f"Incorrect API key provided: {key}."}})
    with model_server(gpt, gpt, refused, gpt) as server:
        ask = ("provider.name=openai", "provider.model=m", f"provider.base_url={server.url}/v1")
        result, events, _ = settled(tmp_path, *ask)
        told = "openai answered 401: Incorrect API key provided: [redacted]; put a valid key into OPENAI_API_KEY"
        (story,) = result.report.stories
        assert (result.paused, story.status.value, story.calls) == (told, "executing", 2)
        assert [one.message for one in story.findings] == [f"not finished: the sprint paused: {told}"]
        pauses = [event.message for event in events if event.name == "sprint_paused"]
        assert pauses == [f"the sprint pauses: {told}; then the same command goes on"]
        assert len(server.asked) == 3
        assert "failed" not in (tmp_path / "b.csv").read_text()
        result, events, said = settled(tmp_path, *ask)  # the key has been put right
    assert said[1].endswith("goes on")
    (story,) = result.report.stories
    assert (story.status.value, result.paused, story.calls) == ("done", None, 4)
    assert story.findings == (), "nothing of the pause is left"
    assert len(server.asked) == 5, "what was answered is not asked again"
    assert key.encode() not in everything_kept(tmp_path)


def test_a_missing_key_is_exit_2_and_nothing_is_begun(tmp_path: Path) -> None:
    write_backlog(tmp_path / "b.csv", "A")
    args = ("run", "b.csv", "--provider", "anthropic", "--set", "provider.model=m")
    done = run_cli(args, tmp_path)
    assert (done.returncode, done.stdout) == (2, "settings: the packaged ones\n")
    assert done.stderr.strip().endswith("put it into the environment variable ANTHROPIC_API_KEY")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.csv"]
