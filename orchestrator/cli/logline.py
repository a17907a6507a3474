"""Events as lines for people; the JSON form stands in `domain.log_line`."""

from collections.abc import Mapping

from orchestrator.domain.events import Event
from orchestrator.domain.redaction import redact
from orchestrator.domain.words import printable

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


def plain_line(event: Event, width: int = 400) -> str:
    """The event for people: time, story, what happened, with its healing named."""
    healing = HEALINGS.get(event.name)
    story = event.story or event.sprint
    text = cut(safe(event.message), width)
    return f"{event.time:%H:%M:%S}  {story:<10}  {f'[{healing}] ' if healing else ''}{text}"
