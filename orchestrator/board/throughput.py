"""The page of all sprints: what each came to, and how they go over time."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from threading import Lock
from typing import Any, NamedTuple

from orchestrator.board.templates import money, number
from orchestrator.core.event import Event
from orchestrator.core.finding import Finding, decisive
from orchestrator.core.history import FINISHED
from orchestrator.core.sprint import SprintRecord, SprintReport, StoryStatus
from orchestrator.records.histories import read_saved_report
from orchestrator.records.sprint_reader import Reader, SprintView
from orchestrator.storage.event_reader import EventReader

KINDS = {
    "answer_healed": "read without a guess",
    "answer_repaired_by_model": "repaired by a model",
    "breakdown_completed": "rest came on request",
    "delivery_completed": "rest came on request",
    "plan_mended": "plan mended",
}
"""Event about a healed answer → its kind."""
SENT_BACK, FLAKY = "answer_sent_back", "test.flaky"
MOST_DAYS, MOST_SPRINTS, MOST_FLAKY = 60, 60, 20
"""What charts and the list of flaky tests show: the latest."""
NARROW = 24
"""Columns that a chart has room for at least: few sprints make no bars of the width of the page."""


@dataclass(frozen=True, kw_only=True)
class SprintFigures:
    """What one sprint has come to."""

    record: SprintRecord
    ended_at: datetime | None
    """None while a story has no outcome, and where the log of a pruned sprint is gone."""
    counts: Counter[str]
    """Status → stories."""
    calls: int
    tokens: int
    usd: float
    """The part of the cost that is known."""
    unpriced: int
    """Stories with calls whose price is unknown."""
    done_on: Counter[date]
    """Day in UTC → stories that were done."""
    healed: Counter[str]
    """Kind → answers."""
    sent_back: int
    flaky: tuple[tuple[str, str], ...]
    """(story, what was found)."""
    failures: Counter[str]
    """Code of the finding that says best why a story was not done → stories."""
    paused: str

    @property
    def is_over(self) -> bool:
        """Returns whether every story has its outcome."""
        return all(StoryStatus(status).final for status in self.counts)

    @property
    def done(self) -> int:
        """Returns how many stories are done."""
        return self.counts[StoryStatus.DONE.value]


class _Story(NamedTuple):
    """What is counted of a story, from its report or from the log."""

    id: str
    status: StoryStatus
    calls: int
    tokens: int
    usd: float | None
    noted: Iterable[str]
    """Names of the events about its answers."""
    findings: Sequence[Finding]
    finished: datetime | None


def fold(record: SprintRecord, stories: Iterable[_Story], paused: str = "") -> SprintFigures:
    """Adds the stories of a sprint up."""
    stories = [*stories]
    noted = Counter(name for story in stories for name in story.noted)
    ends = [story.finished for story in stories if story.finished is not None]
    done = [story for story in stories if story.status is StoryStatus.DONE]
    lost = [story for story in stories if story.status.final and story.status is not StoryStatus.DONE]
    healed: Counter[str] = Counter()
    for name, kind in KINDS.items():
        healed[kind] += noted[name]
    why = (decisive(story.findings) for story in lost)
    return SprintFigures(
        record=record,
        ended_at=max(ends, default=None) if all(story.status.final for story in stories) else None,
        counts=Counter(story.status.value for story in stories),
        calls=sum(story.calls for story in stories),
        tokens=sum(story.tokens for story in stories),
        usd=sum(story.usd or 0.0 for story in stories),
        unpriced=sum(story.usd is None for story in stories),
        # A pruned log does not say when its stories were done.
        done_on=Counter((story.finished or record.started_at).date() for story in done),
        healed=+healed,
        sent_back=noted[SENT_BACK],
        flaky=tuple((story.id, one.message) for story in stories for one in story.findings if one.code == FLAKY),
        failures=Counter(one.code if one else "no finding" for one in why),
        paused=paused,
    )


def fold_report(record: SprintRecord, report: SprintReport, ends: Mapping[str, datetime]) -> SprintFigures:
    """Returns the figures of a sprint that is over; `ends`: when each story ended, as far as that is known."""
    return fold(
        record,
        (
            _Story(
                id=story.id,
                status=story.status,
                calls=story.calls,
                tokens=story.tokens.input + story.tokens.output,
                usd=story.cost_usd,
                noted=(one.event for one in story.healings),
                findings=story.findings,
                finished=ends.get(story.id),
            )
            for story in report.stories
        ),
    )


def fold_view(view: SprintView) -> SprintFigures:
    """Returns the figures of a sprint as the log has it now."""
    return fold(
        view.record,
        (
            _Story(
                id=story,
                status=history.status,
                calls=history.calls,
                tokens=history.tokens.input + history.tokens.output,
                usd=history.cost_usd,
                noted=(event.name for event in history.select({*KINDS, SENT_BACK})),
                findings=history.outcome.findings if history.outcome else (),
                finished=history.finished,
            )
            for story, history in view.histories.items()
        ),
        view.paused,
    )


class Throughput:
    """Figures of all sprints; each sprint is folded again only after its log or its record has changed.

    A sprint that is over is folded from its report, and its log is not read. Blocks; from any thread.
    """

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
                records = self._reader.records()
                self._known = {one.sprint: self._current(one, heads.get(one.sprint, 0), log) for one in records}
            finally:
                if log is not None:
                    log.close()
            return [figures for _, _, figures in self._known.values()]

    def values(self) -> dict[str, Any]:
        """Returns what sprints.html shows."""
        place = self._reader.head()  # first: what is recorded meanwhile changes the page once more
        figures = self.figures()
        open_ones = [one.record.sprint for one in figures if not one.is_over]
        running = {sprint for sprint in open_ones if self._reader.is_running(sprint)}
        return {"place": place, **page(figures, running)}

    def _current(
        self, record: SprintRecord, head: int, log: EventReader | None
    ) -> tuple[SprintRecord, int, SprintFigures]:
        known = self._known.get(record.sprint)
        if known is not None and known[:2] == (record, head):
            return known
        return record, head, self._reported(record, log) or fold_view(self._look(record.sprint))

    def _reported(self, record: SprintRecord, log: EventReader | None) -> SprintFigures | None:
        """Returns the figures by the sprint's report; None where there is none, or stories were run again since."""
        ended = {event.id: event for event in (log.endings(record.sprint) if log is not None else ())}
        own = {story: ended.get(f"{record.workflow_id(story)}:{FINISHED}") for story in record.story_ids}
        if record.pruned is None and None in own.values():
            return None
        report = read_saved_report(self._reader.folder, record.sprint)
        if report is None:
            return None
        ends = {story: event for story, event in own.items() if event is not None}
        is_current = all(_is_told(event, report) for event in ends.values())
        return fold_report(record, report, {story: one.time for story, one in ends.items()}) if is_current else None


def _is_told(event: Event, report: SprintReport) -> bool:
    outcome = event.data["outcome"]
    return any(
        (story.id, story.status.value, story.commit) == (outcome["id"], outcome["status"], outcome["commit"])
        for story in report.stories
    )


# ---- the page


def page(figures: Sequence[SprintFigures], running: Set[str]) -> dict[str, Any]:
    """Returns what sprints.html shows; `running`: the sprints that a process works on."""
    usd, done = sum(one.usd for one in figures), sum(one.done for one in figures)
    flaky = [
        {"sprint": one.record.sprint, "story": story, "message": message}
        for one in reversed(figures)
        for story, message in one.flaky
    ]
    return {
        "sprints": [_row(one, running) for one in reversed(figures)],
        "totals": {
            "sprints": len(figures),
            "stories": sum(one.counts.total() for one in figures),
            "done": done,
            "calls": sum(one.calls for one in figures),
            "tokens": sum(one.tokens for one in figures),
            "usd": usd,
            "unpriced": sum(one.unpriced for one in figures),
        },
        "charts": _charts(figures),
        "failures": _failures(figures),
        "flaky": flaky[:MOST_FLAKY],
        "flaky_more": max(0, len(flaky) - MOST_FLAKY),
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
        "pruned": record.pruned is not None,
        "counts": {status.value: one.counts[status.value] for status in StoryStatus if one.counts[status.value]},
        "total": one.counts.total(),
        "done": one.done,
        "started_at": record.started_at.isoformat(),
        "lasted_s": (one.ended_at - record.started_at).total_seconds() if one.ended_at else None,
        "calls": one.calls,
        "tokens": one.tokens,
        "usd": one.usd,
        "unpriced": one.unpriced,
        "branch": record.result_branch if one.done else "",
    }


def _failures(figures: Sequence[SprintFigures]) -> list[dict[str, Any]]:
    counts: Counter[str] = Counter()
    latest: dict[str, str] = {}
    for one in figures:
        counts.update(one.failures)
        latest |= dict.fromkeys(one.failures, one.record.sprint)
    most = max(counts.values(), default=1)
    return [
        {"code": code, "stories": count, "sprint": latest[code], "width": round(100 * count / most, 1)}
        for code, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    ]


def _charts(figures: Sequence[SprintFigures]) -> list[dict[str, Any]]:
    shown = figures[-MOST_SPRINTS:]
    done: Counter[date] = Counter()
    for one in figures:
        done.update(one.done_on)
    priced = [one for one in shown if not one.unpriced]
    kinds = tuple(dict.fromkeys(KINDS.values()))

    def by_sprint(sprints: Iterable[SprintFigures], value: Callable[[SprintFigures], float]) -> list["Column"]:
        return [Column(one.record.sprint, (value(one),), one.record.sprint) for one in sprints]

    days = [Column(day.isoformat(), (done[day],)) for day in _days(done)]
    healed = [Column(one.record.sprint, tuple(one.healed[kind] for kind in kinds), one.record.sprint) for one in shown]
    per_story = by_sprint([one for one in priced if one.done], lambda one: one.usd / one.done)
    return [
        draw_bars("Stories done per day", "Day (UTC)", days),
        draw_bars("Cost per sprint", "Sprint", by_sprint(priced, lambda one: one.usd), form=money),
        draw_bars("Cost per story that is done", "Sprint", per_story, form=money),
        draw_bars("Healed answers by kind", "Sprint", healed, series=kinds),
        draw_bars("Answers sent back", "Sprint", by_sprint(shown, lambda one: one.sent_back)),
        draw_bars("Stories with flaky tests", "Sprint", by_sprint(shown, lambda one: len(one.flaky))),
    ]


def _days(done: Mapping[date, int]) -> list[date]:
    """Returns every day from the first to the last, also those without a story; of many the last."""
    if not done:
        return []
    last = max(done)
    count = min((last - min(done)).days + 1, MOST_DAYS)
    return [last - timedelta(days=back) for back in reversed(range(count))]


class Column(NamedTuple):
    """One place on the axis of a chart."""

    label: str
    values: tuple[float, ...]
    """One per series."""
    sprint: str = ""
    """Where it leads to."""


HIGH, WIDE = 100, 10
"""Units of a chart's drawing: its height, and the width of a column. The page stretches it."""


def draw_bars(
    title: str,
    axis: str,
    columns: Sequence[Column],
    *,
    series: tuple[str, ...] = ("",),
    form: Callable[[float], str] = number,
) -> dict[str, Any]:
    """Returns a chart of stacked bars: rectangles from the bottom up, and the same as rows of a table."""
    top = max((sum(column.values) for column in columns), default=0)
    rectangles = []
    for place, column in enumerate(columns):
        under = 0.0
        for number_of_series, value in enumerate(column.values):
            if not value:
                continue
            height, name = HIGH * value / top, series[number_of_series]
            under += height
            told = f"{column.label}: {form(value)}{f' {name}' if name else ''}"
            rectangle = {"x": place * WIDE + 1, "width": WIDE - 2, "y": round(HIGH - under, 2)}
            rectangles.append(rectangle | {"height": round(height, 2), "series": number_of_series, "told": told})
    return {
        "title": title,
        "axis": axis,
        "series": list(series),
        "top": form(top),
        "is_empty": not top,
        "width": max(len(columns), NARROW) * WIDE,
        "height": HIGH,
        "rectangles": rectangles,
        "first": columns[0].label if columns else "",
        "last": columns[-1].label if len(columns) > 1 else "",
        "is_sparse": len(columns) < NARROW,
        "rows": [
            {"label": one.label, "sprint": one.sprint, "values": [form(value) for value in one.values]}
            for one in reversed(columns)
        ],
    }
