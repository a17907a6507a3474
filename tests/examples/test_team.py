"""The scripted team is what its sources make, it agrees with the backlog, and its mistakes are mistakes."""

import json

import pytest

from orchestrator.core.calls.exchange import Purpose, StopReason
from tests.examples.demo_team import (
    FOLDER,
    builder,
    entries,
    of,
)

pytestmark = pytest.mark.docs


def test_the_committed_script_is_what_the_sources_make() -> None:
    made = "".join(builder().lines(FOLDER / "team"))
    assert (FOLDER / "team.jsonl").read_text(encoding="utf-8") == made
    assert builder().main(["--check"]) == 0


def test_turns_of_a_key_count_up() -> None:
    turns: dict[tuple[object, ...], list[int]] = {}
    for entry in entries():
        turns.setdefault(entry.lookup[:-1], []).append(entry.turn)
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in turns.values())


def test_broken_and_cut_plans_are_no_json() -> None:
    for story in ("US-003", "US-004"):
        text = of(story, Purpose.BREAKDOWN)[0].text
        body = text[text.index("{") : text.rindex("}") + 1]
        for candidate in (text, body):
            with pytest.raises(json.JSONDecodeError):
                json.loads(candidate)
    broken = of("US-004", Purpose.BREAKDOWN)[0].text
    assert all(slip in broken for slip in (r"\'", r"\`", r"\$", ",]", ",\n    }", ":\n\t- ", 'option "here" leaves'))
    assert of("US-003", Purpose.BREAKDOWN)[0].stop_reason is StopReason.MAX_TOKENS
