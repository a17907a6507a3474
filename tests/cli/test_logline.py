"""Log lines: their fields, texts capped, secrets gone."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from orchestrator.cli.common import HEALINGS, plain_line
from orchestrator.core.event import Event, Level, json_line
from orchestrator.core.secrets import redact


def event(**fields: Any) -> Event:
    given = {"id": "SP-001/A:1", "name": "turn_finished", "message": "mike answered", "sprint": "SP-001", "story": "A"}
    return Event(time=datetime(2026, 1, 2, 3, 4, 5, 600000, tzinfo=UTC), **{**given, **fields})


def line(cap: int = 2000, **fields: Any) -> dict[str, Any]:
    text = json_line(event(**fields), cap)
    assert "\n" not in text
    read: dict[str, Any] = json.loads(text)
    return read


def test_the_fields_stand_in_their_order_and_absent_ones_are_left_out() -> None:
    read = line(task="T-A-01", persona="mike", level=Level.WARN, data={"turn": 2, "duration_ms": 7, "cost_usd": None})
    assert list(read) == [
        "timestamp", "level", "message", "event", "sprint", "story", "task", "persona", "turn", "duration_ms",
    ]  # fmt: skip
    assert read["timestamp"] == "2026-01-02T03:04:05.600000Z"
    assert (read["level"], read["event"], read["turn"]) == ("warn", "turn_finished", 2)
    assert set(line(story=None)) == {"timestamp", "level", "message", "event", "sprint"}


def test_heavy_data_is_left_out_and_long_texts_are_capped_everywhere() -> None:
    deep = {"findings": [{"message": "x" * 500}], "plan": {"tasks": []}, "outcome": {}, "contract": {}, "n": 1}
    read = line(100, message="m" * 500, data=deep)
    assert set(read) & {"plan", "outcome", "contract"} == set()
    assert read["message"] == "m" * 100 + "… (400 more characters)"
    assert read["findings"][0]["message"].endswith("… (400 more characters)")
    assert read["n"] == 1


SECRETS = [
    "sk-ant-api03-abcdefghij_klmnopqrst",
    "ghp_" + "a" * 36,
    "AKIA" + "A" * 16,
    "xoxb-1234567890-abc",
    "Authorization: Bearer abcdefghijklmnop.qrst",
    "https://user:pa55word@example.org/repo.git",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_secrets_are_taken_out_wherever_they_stand(secret: str) -> None:
    hidden = secret.split()[-1].split("@")[0].removeprefix("https")
    assert hidden not in redact(f"see {secret} there")
    read = json.dumps(line(message=secret, data={"output": [secret], "deep": {"text": secret}}))
    assert hidden not in read
    assert read.count("[redacted]") == 3
    assert hidden not in plain_line(event(message=secret))


@pytest.mark.parametrize("text", ["task-sk-1", "skill", "a://b", "https://example.org/x@y", "bearer of news"])
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text


def test_a_secret_at_the_edge_of_the_cap_is_not_shown_in_part() -> None:
    assert "sk-ant" not in json_line(event(message="x" * 90 + SECRETS[0]), 100)


def test_plain_lines_are_one_line_with_the_healing_named() -> None:
    text = plain_line(event(name="answer_healed", message="healed: trailing_comma x1\nmore"))
    assert text == "03:04:05  A           [healed] healed: trailing_comma x1"
    assert plain_line(event(story=None, message="m" * 900)).endswith("m" * 10 + "…")
    assert "answer_sent_back" in HEALINGS
