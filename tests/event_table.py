"""docs/events.md as a value: which events there are, and the keys of their data. Whole runs are held against it."""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from orchestrator.core.command import KEYS, Loop
from orchestrator.core.event import Event

TABLE = Path(__file__).parent.parent / "docs" / "events.md"
ROW = re.compile(r"^\| `(\w+)`( ●)? \| [^|]* \| [^|]* \| ([^|]*) \|$", re.MULTILINE)


@cache
def documented() -> dict[str, set[str]]:
    """Returns what the table says: event → all keys that its data may hold; decisions (●) have their five."""
    rows = ROW.findall(TABLE.read_text(encoding="utf-8"))
    return {name: {*re.findall(r"`(\w+)`", data), *(KEYS if decides else ())} for name, decides, data in rows}


def untrue(events: Iterable[Event]) -> list[str]:
    """Returns what these events have that the table does not tell, and what decisions among them lack."""
    wrong = []
    for event in events:
        keys = documented().get(event.name)
        if keys is None:
            wrong.append(f"{event.name} is in no table")
            continue
        wrong += [f"{event.name} tells {key}, the table does not" for key in event.data if key not in keys]
        if keys >= set(KEYS):
            wrong += [f"{event.name} lacks {key}" for key in KEYS if key not in event.data]
            attempt, left = event.data.get("attempt", 1), event.data.get("budget_left", 0)
            stage, verdict = event.data.get("stage"), str(event.data.get("verdict"))
            if attempt < 1 or left < 0 or stage not in set(Loop) or not verdict.isidentifier():
                wrong.append(f"{event.name}: {stage} {verdict} {attempt} {left}")
    return wrong
