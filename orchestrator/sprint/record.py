"""What a merged story adds to the architecture record: read from its plan and from what its branch changed."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from orchestrator.domain.breakdown import Breakdown
from orchestrator.domain.record import STACK, Contribution, Todo
from orchestrator.domain.surface import Endpoint, Surface, Table
from orchestrator.sprint.context import Stage

EVENT = "record_updated"
MAX_LINES, MAX_LINE = 40, 300
"""Of one free field of a plan: what a model writes must not fill every later prompt."""


async def tell_record(stage: Stage, plan: Breakdown, before: Surface, after: Surface, commit: str | None) -> None:
    """Record the contribution of a story that was just merged as `commit`, once."""
    part = contribution(plan, before, after, foundation=stage.brief.story.foundation)
    await stage.step.emit(
        EVENT, f"architecture record: {_summary(part)}", commit=commit, contribution=part.model_dump(mode="json")
    )


def contribution(plan: Breakdown, before: Surface, after: Surface, *, foundation: bool) -> Contribution:
    """`before` is the project as the story found it, `after` as it left it (pure)."""
    tables, tables_gone = _changed(before.tables, after.tables)
    endpoints, endpoints_gone = _changed(before.endpoints, after.endpoints)
    design = [
        *(() if tables else _labelled("database", plan.database_design)),
        *(() if endpoints else _labelled("interface", plan.api_design)),
    ]
    texts = [text for entry in plan.todos.add if (text := _short(entry))][:MAX_LINES]
    conventions = [*_labelled(STACK, plan.tech_stack), *lines_of(plan.conventions)] if foundation else []
    return Contribution(
        story=plan.story_id,
        conventions=tuple(dict.fromkeys(conventions)),
        tables=tuple(table for table in tables if isinstance(table, Table)),
        endpoints=tuple(entry for entry in endpoints if isinstance(entry, Endpoint)),
        tables_gone=tuple(table for table in tables_gone if isinstance(table, Table)),
        endpoints_gone=tuple(entry for entry in endpoints_gone if isinstance(entry, Endpoint)),
        design=tuple(design),
        todos=tuple(Todo(id=f"TODO-{plan.story_id}-{n:02d}", text=text) for n, text in enumerate(texts, start=1)),
        todos_done=tuple(dict.fromkeys(done for entry in plan.todos.remove if (done := _todo_id(entry)))),
    )


def recorded_stack(settled: Sequence[str], plan: Breakdown) -> tuple[str, ...]:
    """What is said of the tech stack: by the record, which locks it (`settled`), then by the story's own plan."""
    return tuple("\n".join(lines) for lines in (settled, lines_of(plan.tech_stack)) if lines)


def lines_of(value: Any) -> list[str]:
    """A free field of an answer as short lines: of a text its lines, of a list its items, of a mapping its pairs."""
    if value is None:
        return []
    if isinstance(value, str):
        parts: Sequence[str] = value.splitlines()
    elif isinstance(value, list):
        parts = [_text(item) for item in value]
    elif isinstance(value, dict):
        parts = [f"{key}: {_text(item)}" for key, item in value.items()]
    else:
        parts = [_text(value)]
    return [text for part in parts if (text := _short(part))][:MAX_LINES]


def _labelled(label: str, value: Any) -> Iterator[str]:
    return (f"{label}: {line}" for line in lines_of(value))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _short(text: str) -> str:
    return " ".join(text.split()).removeprefix("- ")[:MAX_LINE]


def _todo_id(entry: str) -> str:
    """The id at the beginning of an entry such as `TODO-US-001-01: done with this story`."""
    return (entry.split() or [""])[0].rstrip(":;,.")


def _changed(
    before: Sequence[Table] | Sequence[Endpoint], after: Sequence[Table] | Sequence[Endpoint]
) -> tuple[list[Table | Endpoint], list[Table | Endpoint]]:
    """(there now and not before, there before and not now); what changed is in both."""
    then, now = frozenset(before), frozenset(after)
    return [entry for entry in after if entry not in then], [entry for entry in before if entry not in now]


def _summary(part: Contribution) -> str:
    counts = (
        (len(part.conventions), "locked convention"),
        (len(part.tables), "table"),
        (len(part.endpoints), "endpoint"),
        (len(part.todos), "open TODO"),
    )
    told = [f"{count} {what}{'s' * (count > 1)}" for count, what in counts if count]
    done = f"; settles {', '.join(part.todos_done)}" if part.todos_done else ""
    return f"{part.story} adds {', '.join(told) or 'nothing'}{done}"
