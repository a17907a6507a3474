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
from tests.providers.http_server import EVENTS, Answer, Asked, completion, message, message_stream, model_server
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


def test_what_a_model_thought_is_in_the_journal_alone(tmp_path: Path) -> None:
    thought = f"Perhaps {KEYS['OPENAI_API_KEY']} helps.\nNo."

    def thinking(asked: Asked) -> Answer:
        parts = [{"type": "thinking", "thinking": thought}, {"type": "text", "text": answer_to(asked)}]
        return Answer(body=message(content=parts))

    with model_server(thinking) as server:
        settled(tmp_path, "provider.name=anthropic", "provider.model=m", ANTHROPIC_BASE_URL=server.url)
    holding = [path for path in tmp_path.rglob("*") if path.is_file() and b"Perhaps" in path.read_bytes()]
    assert {path.parent for path in holding} == {tmp_path / "state" / "replies" / "SP-001" / "A"}
    assert not any("Perhaps" in json.dumps(asked.body) for asked in server.asked)


def test_answers_that_break_off_end_no_story_and_what_had_come_is_in_the_report(tmp_path: Path) -> None:
    seen = set[str]()

    def flaky(asked: Asked) -> Answer:
        stream, request = message_stream(answer_to(asked), pieces=10), json.dumps(asked.body)
        first = request not in seen
        seen.add(request)
        return Answer(body=stream, headers=EVENTS, cut=stream.rindex("event: content_block_delta") if first else None)

    with model_server(flaky) as server:
        result, events, _ = settled(
            tmp_path, "provider.name=anthropic", "provider.model=m", "prices={claude-told: {input: 1, output: 1}}",
            ANTHROPIC_BASE_URL=server.url,
        )  # fmt: skip
    (story,) = result.report.stories
    assert (story.status.value, story.calls) == ("done", 4)
    retried = [event for event in events if event.name == "call_retried"]
    assert [event.data["kind"] for event in retried] == ["connection"] * 4
    assert "about" in retried[0].message
    tokens = result.report.totals["tokens"]
    assert (tokens["input"], tokens["cached"]) == (8 * 20, 8 * 7)
    assert tokens["output"] > 4 * 5 + sum(len(answer_to(asked)) // 8 for asked in server.asked[::2])
    assert story.cost_usd == pytest.approx((8 * 20 + tokens["output"]) / 1_000_000)


def test_a_schema_that_a_server_refuses_is_an_event_and_no_retry(tmp_path: Path) -> None:
    def local(asked: Asked) -> Answer:
        if "response_format" in asked.body:
            return Answer(status=400, body={"error": {"message": "response_format is not supported"}})
        if "You repair text" in json.dumps(asked.body):
            return Answer(body=completion(json.dumps(ANSWERS["You are Mike"])))
        return Answer(body=completion("I would begin with a file.")) if len(server.asked) == 2 else gpt(asked)

    with model_server(local) as server:
        ask = ("provider.name=openai", "provider.model=m", f"provider.base_url={server.url}/v1")
        result, events, _ = settled(tmp_path, *ask)
    (story,) = result.report.stories
    assert (story.status.value, story.calls, len(server.asked)) == ("done", 5, 7)
    left_out = [event for event in events if event.name == "schema_left_out"]
    assert [event.data["purpose"] for event in left_out] == ["breakdown", "repair"]
    assert "the schema of breakdown is not sent: " in left_out[1].message
    assert (left_out[1].persona, left_out[1].data["schema"]) == ("mike", "breakdown")
    assert not [event for event in events if event.name == "call_retried"]


def told(events: list[Event], name: str) -> list[str]:
    """Codes that the events of one name begin with, in order."""
    return [event.data["findings"][0]["code"] for event in events if event.name == name]


def gpt_names_no_model(asked: Asked) -> Answer:
    """As OpenAI and vLLM answer a model that is not there."""
    if asked.body["model"] == "gpt-right":
        return gpt(asked)
    told = f"The model `{asked.body['model']}` does not exist or you do not have access to it."
    return Answer(status=404, body={"error": {"message": told, "code": "model_not_found"}})


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


def test_a_model_that_is_not_there_pauses_at_once_and_names_the_setting(tmp_path: Path) -> None:
    with model_server(gpt_names_no_model) as server:
        ask = ("provider.name=openai", f"provider.base_url={server.url}/v1")
        result, _, _ = settled(tmp_path, *ask, "provider.model=gpt-9", rows=("A", "B"))
        (first, *_) = result.report.stories
        assert [story.status.value for story in result.report.stories] == ["executing", "executing"]
        assert result.paused == (
            "openai answered 404: The model `gpt-9` does not exist or you do not have access to it; "
            "set provider.model (now gpt-9) to a model of this service"
        )
        assert first.calls == 0
        assert len(server.asked) <= 2, "each story that was begun asked once at most"
        wrong = "personas.reviewer={model: gpt-9}"
        result, _, _ = settled(tmp_path, *ask, "provider.model=gpt-right", wrong, "budget.calls_per_story=9")
        assert "set personas.reviewer.model (now gpt-9)" in str(result.paused)
        result, _, _ = settled(tmp_path, *ask, "provider.model=gpt-right")
    assert result.report.stories[0].status.value == "done"


def test_a_missing_key_is_exit_2_and_nothing_is_begun(tmp_path: Path) -> None:
    write_backlog(tmp_path / "b.csv", "A")
    args = ("run", "b.csv", "--provider", "anthropic", "--set", "provider.model=m")
    done = run_cli(args, tmp_path)
    assert (done.returncode, done.stdout) == (2, "settings: the packaged ones\n")
    assert done.stderr.strip().endswith("put it into the environment variable ANTHROPIC_API_KEY")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.csv"]
