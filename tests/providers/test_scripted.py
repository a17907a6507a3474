"""The scripted team: the file, the lookup, errors, latency, the call log."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from orchestrator.core.calls.exchange import Prompt, Purpose, Reply, Segment, StopReason, TurnKey, Usage
from orchestrator.core.errors import ConfigError, PermanentProviderError
from orchestrator.files.process import SystemClock
from orchestrator.providers.scripted import CallLog, ScriptedProvider, load_script

ENTRY = {"persona": "mike", "story": "A", "task": None, "purpose": "breakdown", "turn": 1, "text": "plan"}


def script(path: Path, *entries: dict[str, Any] | str) -> Path:
    lines = [entry if isinstance(entry, str) else json.dumps({**ENTRY, **entry}) for entry in entries]
    path.write_text("\ufeff" + "\r\n\n".join(lines), encoding="utf-8")
    return path


def prompt(turn: int = 1, purpose: str = "breakdown", **key: Any) -> Prompt:
    named = TurnKey(persona="mike", story="A", purpose=Purpose(purpose), **key)
    return Prompt(key=named, turn=turn, segments=(Segment(name="role", text="x"),))


def test_a_file_from_anywhere_is_read(tmp_path: Path) -> None:
    read = load_script(script(tmp_path / "s", {"text": "line\u2028one\n", "unknown": 1, "stop_reason": "odd"}))
    (entry,) = read.values()
    assert entry.text == "line\u2028one\n"
    assert entry.stop_reason is StopReason.UNKNOWN
    for word in (["odd"], None, 7):
        (entry,) = load_script(script(tmp_path / "s", {"text": "", "stop_reason": word})).values()
        assert entry.stop_reason is StopReason.UNKNOWN


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["{}", "no JSON"], r"s:1: .*persona"),
        ([{"turn": 1}, "no JSON"], r"s:3: not JSON"),
        ([{"purpose": "chat"}], "s:1: purpose"),
        ([{"turn": 0}], "s:1: turn"),
        ([{"error": "boom"}], "s:1: error"),
        ([{"latency_ms": -1}], "s:1: latency_ms"),
        (["[]"], "s:1: "),
        ([{}, {"text": "other"}], "s:3: the same key stands in line 1 already"),
    ],
)
def test_what_is_wrong_is_named_by_line(tmp_path: Path, lines: list[Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        load_script(script(tmp_path / "s", *lines))


def test_a_missing_or_binary_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read the script"):
        load_script(tmp_path / "none")
    (tmp_path / "bin").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_script(tmp_path / "bin")


async def complete(folder: Path, asked: Prompt, *entries: dict[str, Any], log: Path | None = None) -> Reply:
    read = await asyncio.to_thread(load_script, script(folder / "s", *entries))
    return await ScriptedProvider(read, CallLog(log, SystemClock()) if log else None).complete(asked)


async def test_a_reply_has_what_its_entry_says_after_its_latency(tmp_path: Path) -> None:
    numbers = {"input_tokens": 7, "cached_tokens": 5, "output_tokens": 3, "latency_ms": 120}
    started = time.monotonic()
    reply = await complete(tmp_path, prompt(), {**numbers, "stop_reason": "max_tokens"})
    assert time.monotonic() - started >= 0.12
    assert (reply.text, reply.turn, reply.stop_reason) == ("plan", 1, StopReason.MAX_TOKENS)
    assert reply.usage == Usage(input=7, cached=5, output=3)
    assert reply.duration_ms >= 120


@pytest.mark.parametrize("asked", [prompt(2), prompt(task="T-A-01"), prompt(purpose="suite")])
async def test_a_missing_key_is_permanent_and_printed(tmp_path: Path, asked: Prompt) -> None:
    with pytest.raises(PermanentProviderError) as caught:
        await complete(tmp_path, asked, {})
    assert caught.value.code == "script.missing"
    assert f"{asked.key} turn={asked.turn}" in caught.value.message


@pytest.mark.parametrize("purpose", ["repair", "breakdown_missing", "continuation"])
async def test_optional_purposes_give_an_unusable_reply_that_is_not_paid(tmp_path: Path, purpose: str) -> None:
    log = tmp_path / "log"
    reply = await complete(tmp_path, prompt(purpose=purpose), {}, log=log)
    assert (reply.text, reply.paid) == ("", False)
    assert not log.exists()


async def test_the_call_log_has_a_line_per_paid_reply_and_only_when_it_is_handed_over(tmp_path: Path) -> None:
    log = tmp_path / "log"
    read = await asyncio.to_thread(
        load_script, script(tmp_path / "s", {"latency_ms": 2000}, *({"turn": n} for n in range(2, 40)))
    )
    provider = ScriptedProvider(read, CallLog(log, SystemClock()))
    cut = asyncio.create_task(provider.complete(prompt()))
    await asyncio.gather(*(provider.complete(prompt(turn)) for turn in range(2, 40)))
    cut.cancel()
    lines = [json.loads(line) for line in (await asyncio.to_thread(log.read_text)).splitlines()]
    assert [line["turn"] for line in lines] == list(range(2, 40))
    assert {"persona", "story", "task", "purpose", "turn", "time"} == set(lines[0])
    assert lines[0]["time"].endswith("+00:00")
