"""The page of all sprints: what each came to, and what they cost and how long they took."""

from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Any

from orchestrator.board.templates import money, seconds
from orchestrator.core.sprint import SprintRecord, StoryStatus
from orchestrator.records.sprint_reader import Reader, SprintView

MOST_SPRINTS, NARROW = 60, 24
"""The latest sprints that a chart shows; columns that it has room for at least."""


@dataclass(frozen=True, kw_only=True)
class SprintFigures:
    """What one sprint has come to."""

    record: SprintRecord
    ended_at: datetime | None
    """None while a story has no outcome."""
    counts: Counter[str]
    """Status → stories."""
    calls: int
    tokens: int
    usd: float
    """The part of the cost that is known."""
    unpriced: int
    """Stories with calls whose price is unknown."""
    paused: str

    @property
    def is_over(self) -> bool:
        """Returns whether every story has its outcome."""
        return all(StoryStatus(status).final for status in self.counts)

    @property
    def done(self) -> int:
        """Returns how many stories are done."""
        return self.counts[StoryStatus.DONE.value]

    @property
    def lasted_s(self) -> float | None:
        """Returns the seconds from its start to its end; None before that."""
        return (self.ended_at - self.record.started_at).total_seconds() if self.ended_at else None


def fold_view(view: SprintView) -> SprintFigures:
    """Returns the figures of a sprint as the log has it now."""
    stories = [*view.histories.values()]
    ends = [history.finished for history in stories if history.finished is not None]
    return SprintFigures(
        record=view.record,
        ended_at=max(ends, default=None) if all(history.status.final for history in stories) else None,
        counts=Counter(history.status.value for history in stories),
        calls=sum(history.calls for history in stories),
        tokens=sum(history.tokens.input + history.tokens.output for history in stories),
        usd=sum(history.cost_usd or 0.0 for history in stories),
        unpriced=sum(history.cost_usd is None for history in stories),
        paused=view.paused,
    )


class Throughput:
    """Figures of all sprints, each folded again only after its log or record has changed. Blocks; from any thread."""

    def __init__(self, reader: Reader, look: Callable[[str], SprintView]) -> None:
        """`look` returns a sprint as it is now."""
        self._reader, self._look, self._lock = reader, look, Lock()
        self._known: dict[str, tuple[SprintRecord, int, SprintFigures]] = {}

    def figures(self) -> list[SprintFigures]:
        """Returns those of every sprint, oldest first."""
        with self._lock:
            log = self._reader.log()
            try:
                heads = log.heads() if log is not None else {}
            finally:
                if log is not None:
                    log.close()
            records = self._reader.records()
            self._known = {one.sprint: self._current(one, heads.get(one.sprint, 0)) for one in records}
            return [figures for _, _, figures in self._known.values()]

    def values(self) -> dict[str, Any]:
        """Returns what sprints.html shows."""
        place = self._reader.head()  # first: what is recorded meanwhile changes the page once more
        figures = self.figures()
        open_ones = [one.record.sprint for one in figures if not one.is_over]
        running = {sprint for sprint in open_ones if self._reader.is_running(sprint)}
        return {"place": place, **page(figures, running)}

    def _current(self, record: SprintRecord, head: int) -> tuple[SprintRecord, int, SprintFigures]:
        known = self._known.get(record.sprint)
        if known is not None and known[:2] == (record, head):
            return known
        return record, head, fold_view(self._look(record.sprint))


def page(figures: Sequence[SprintFigures], running: Set[str]) -> dict[str, Any]:
    """Returns what sprints.html shows; `running`: the sprints that a process works on."""
    shown = figures[-MOST_SPRINTS:]
    costs = [(one.record.sprint, one.usd) for one in shown if not one.unpriced]
    times = [(one.record.sprint, one.lasted_s) for one in shown if one.lasted_s is not None]
    return {
        "sprints": [_row(one, running) for one in reversed(figures)],
        "totals": {
            "sprints": len(figures),
            "stories": sum(one.counts.total() for one in figures),
            "done": sum(one.done for one in figures),
            "calls": sum(one.calls for one in figures),
            "tokens": sum(one.tokens for one in figures),
            "usd": sum(one.usd for one in figures),
            "unpriced": sum(one.unpriced for one in figures),
        },
        "charts": [draw_bars("Cost per sprint", costs, money), draw_bars("Time per sprint", times, seconds)],
    }


def _row(one: SprintFigures, running: Set[str]) -> dict[str, Any]:
    record = one.record
    state = (
        "ended" if one.is_over else "running" if record.sprint in running else "paused" if one.paused else "not running"
    )
    return {
        "sprint": record.sprint,
        "backlog": record.backlog.rsplit("/", 1)[-1],
        "state": state,
        "counts": {status.value: one.counts[status.value] for status in StoryStatus if one.counts[status.value]},
        "total": one.counts.total(),
        "done": one.done,
        "started_at": record.started_at.isoformat(),
        "lasted_s": one.lasted_s,
        "calls": one.calls,
        "tokens": one.tokens,
        "usd": one.usd,
        "unpriced": one.unpriced,
        "branch": record.result_branch if one.done else "",
    }


def draw_bars(title: str, columns: Sequence[tuple[str, float]], form: Callable[[float], str]) -> dict[str, Any]:
    """Returns a chart of a bar per sprint, 10 units wide and at most 100 high; the page stretches it."""
    top = max((value for _, value in columns), default=0) or 1
    bars = [
        {
            "x": 10 * place + 1,
            "y": round(100 - 100 * value / top, 2),
            "height": round(100 * value / top, 2),
            "told": f"{sprint}: {form(value)}",
        }
        for place, (sprint, value) in enumerate(columns)
    ]
    return {"title": title, "bars": bars, "width": 10 * max(len(columns), NARROW), "top": form(top)}
