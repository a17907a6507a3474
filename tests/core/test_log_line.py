"""A log line is one line of JSON, of a bounded size, whatever an event holds."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from orchestrator.core.event import LONGEST_LINE, Event, json_line

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def event(**fields: Any) -> Event:
    return Event(**{"id": "1", "time": NOON, "name": "x", "message": "m", "sprint": "S", **fields})


def nested(depth: int) -> list[Any]:
    value: list[Any] = ["x"]
    for _ in range(depth):
        value = [value]
    return value


HUGE = {
    "a long list": {"a": ["x" * 1900] * 5000},
    "a deep one": {"a": nested(300)},
    "many names": {f"k{number}": "v" for number in range(20000)},
    "many numbers": {"a": list(range(100_000))},
    "long texts everywhere": {"d": {str(number): {"x": "y" * 3000} for number in range(200)}},
    "a long name": {"k" * 50_000: "v"},
}


@pytest.mark.parametrize("data", HUGE.values(), ids=HUGE)
def test_a_line_is_never_longer_than_collectors_take(data: dict[str, Any]) -> None:
    text = json_line(event(data=data, message="é" * 9000, story="😀" * 5000), 2000, seq=7)
    assert len(text.encode()) < LONGEST_LINE
    read = json.loads(text)
    assert (read["event"], read["seq"], read["sprint"]) == ("x", 7, "S")
    assert read["message"].startswith("é" * 60)


def test_what_was_left_out_is_said() -> None:
    findings = [{"n": number, "t": "t" * 999} for number in range(100)]
    read = json.loads(json_line(event(data={"findings": findings}), 500))
    assert read["findings"][-1] == "… (80 more)"
    assert read["findings"][0] == {"n": 0, "t": "t" * 500 + "… (499 more characters)"}
    large = json.loads(json_line(event(data={"findings": findings}, message="m" * 999), 999))
    assert (large["cut"], large["message"], "findings" in large) == (True, "m" * 200 + "… (799 more characters)", False)
    small = json.loads(json_line(event(data={"findings": [{"n": 1}], "flag": True, "none": None}), 999))
    assert "cut" not in small
    assert (small["findings"], small["flag"]) == ([{"n": 1}], True)


def test_nothing_ends_a_line_or_steers_a_terminal() -> None:
    foul = "a\ud800b\u2028c\x9bd\x85e\nf\u202eg\r\x1b[2J\x7f"
    text = json_line(event(message=foul, data={"n": float("nan"), "i": float("-inf")}), 2000)
    assert len(text.splitlines()) == 1
    assert text.isprintable()
    read = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert read["message"] == foul
    assert text.encode()


def test_what_stands_first_is_replaced_by_nothing() -> None:
    fake = {"level": "error", "event": "fake", "seq": 1, "timestamp": "now", "replica_id": "mine"}
    read = json.loads(json_line(event(data=fake, sprint=""), 2000, seq=7, more={"replica_id": "r1", "service": "s"}))
    assert (read["level"], read["event"], read["seq"], read["timestamp"]) == ("info", "x", 7, "2026-01-02T12:00:00Z")
    assert (read["replica_id"], read["service"]) == ("mine", "s")
    assert "sprint" not in read


def test_known_secrets_are_taken_out_without_a_shape() -> None:
    assert "correct horse" not in json_line(event(data={"a": ["say correct horse"]}), 2000, known=["correct horse"])
