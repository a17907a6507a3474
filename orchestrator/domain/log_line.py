"""Events as JSON log lines, for collectors and whoever follows a run (DESIGN 7)."""

import json
from typing import Any

from orchestrator.domain.events import Event
from orchestrator.domain.redaction import redact

HEAVY = frozenset({"plan", "contract", "outcome", "criteria", "gate", "answer"})
"""Data that `show` prints and a log line leaves out."""


def json_line(event: Event, cap: int) -> str:
    """The event as one JSON object; texts beyond `cap` characters are cut and say so."""
    return json.dumps(log_fields(event, cap), ensure_ascii=False, default=str)


def log_fields(event: Event, cap: int) -> dict[str, Any]:
    """What a log line holds of an event, without what looks like a secret."""
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
    return line


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
