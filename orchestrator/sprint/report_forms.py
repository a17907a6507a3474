"""Which form of files each model did well in, from the events (pure)."""

from collections import Counter
from collections.abc import Iterable

from orchestrator.domain.events import Event
from orchestrator.domain.outcome import FormOutcome

READ = "answer_read"
"""Event about an answer that brings files."""
_COUNTED = {"ok": "whole", "repaired": "mended", "truncated": "cut_off", "refused": "unreadable"}


def forms(events: Iterable[Event]) -> tuple[FormOutcome, ...]:
    """One entry per model and form that it answered in, by name; an answer nobody could read counts as asked for."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for event in events:
        if event.name != READ:
            continue
        key = (str(event.data.get("model") or ""), str(event.data.get("given") or ""))
        counts.setdefault(key, Counter())[_COUNTED.get(str(event.data.get("status")), "unreadable")] += 1
    return tuple(
        FormOutcome(model=model, form=form, answers=found.total(), **found)
        for (model, form), found in sorted(counts.items())
    )
