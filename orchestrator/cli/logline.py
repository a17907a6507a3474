"""Events as log lines: the JSON form for collectors and the plain one for people (DESIGN 7)."""

import json
from collections.abc import Mapping
from typing import Any

from orchestrator.domain.events import Event
from orchestrator.domain.redaction import redact
from orchestrator.domain.words import printable

HEAVY = frozenset({"plan", "contract", "outcome", "criteria", "gate", "answer"})
"""Data that `show` prints and a log line leaves out."""
HEALINGS: Mapping[str, str] = {
    "answer_healed": "healed",
    "answer_repaired_by_model": "healed",
    "breakdown_completed": "healed",
    "delivery_completed": "healed",
    "plan_mended": "healed",
    "answer_sent_back": "sent back",
    "answer_given_up": "given up",
    "call_retried": "retried",
    "failure_analysed": "analysed",
}
"""Event name → the word that tells a healing in the plain output."""


def safe(text: str) -> str:
    """A foreign text for people: without secrets, and without what a terminal would take as an order."""
    return printable(redact(text))


def cut(text: str, most: int = 100) -> str:
    """The first line of a foreign text, not longer than `most` characters."""
    line = text.split("\n", 1)[0]
    return line if len(line) <= most else f"{line[:most]}…"


def json_line(event: Event, cap: int) -> str:
    """The event as one JSON object; texts beyond `cap` characters are cut and say so."""
    line: dict[str, Any] = {
        "timestamp": event.time.isoformat().replace("+00:00", "Z"),
        "level": event.level.value,
        "message": _capped(event.message, cap),
        "event": event.name,
        "sprint": event.sprint,
    }
    named = {"story": event.story, "task": event.task, "persona": event.persona}
    line |= {name: value for name, value in named.items() if value is not None}
    line |= {name: _light(value, cap) for name, value in event.data.items() if name not in HEAVY and value is not None}
    return json.dumps(line, ensure_ascii=False, default=str)


def _light(value: Any, cap: int) -> Any:
    if isinstance(value, str):
        return _capped(value, cap)
    if isinstance(value, list):
        return [_light(entry, cap) for entry in value]
    if isinstance(value, dict):
        return {name: _light(entry, cap) for name, entry in value.items()}
    return value


def _capped(text: str, cap: int) -> str:
    text = redact(text)
    return text if len(text) <= cap else f"{text[:cap]}… ({len(text) - cap} more characters)"


def plain_line(event: Event, width: int = 400) -> str:
    """The event for people: time, story, what happened, with its healing named."""
    healing = HEALINGS.get(event.name)
    story = event.story or event.sprint
    text = cut(safe(event.message), width)
    return f"{event.time:%H:%M:%S}  {story:<10}  {f'[{healing}] ' if healing else ''}{text}"
