"""report.md: the report for people, from the same outcomes and events as report.json (pure)."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from orchestrator.domain.events import Event
from orchestrator.domain.findings import Finding
from orchestrator.domain.outcome import CaseOutcome, SprintReport, StoryReport, Tokens
from orchestrator.domain.status import StoryStatus
from orchestrator.sprint.coverage import coverage
from orchestrator.sprint.history import StoryHistory

HEALINGS = frozenset(
    {
        "answer_healed",
        "answer_repaired_by_model",
        "answer_repair_failed",
        "answer_truncated",
        "answer_refused",
        "answer_sent_back",
        "breakdown_completed",
        "breakdown_left_short",
        "delivery_completed",
        "delivery_left_short",
        "plan_mended",
        "failure_analysed",
        "call_retried",
    }
)
"""Events about something that was not right and what was done about it."""
BAR = 30
"""Characters of the longest bar."""
MAX_CELL, MAX_HEALINGS, MAX_FINDINGS = 300, 40, 60
_STAGES = {
    "breakdown": "planning",
    "breakdown_missing": "planning",
    "delivery": "building",
    "continuation": "building",
    "suite": "writing tests",
    "analysis": "analysing failures",
    "repair": "repairing answers",
}
_COMMAND, _TESTS, _REST = "commands", "running tests", "git, waiting and the rest"


def render_report(
    report: SprintReport, histories: Mapping[str, StoryHistory], criteria: Mapping[str, Sequence[str]]
) -> str:
    """The whole document. `criteria`: the acceptance criteria of each story, by id."""
    parts = [f"# Sprint {report.sprint}", _totals(report), _overview(report)]
    for story in report.stories:
        events = histories[story.id].events if story.id in histories else []
        parts += [part for part in _story(story, events, criteria.get(story.id, ())) if part]
    return "\n\n".join(parts) + "\n"


def _cell(text: str) -> str:
    """Text in a table: on one line, no column broken, not too long."""
    flat = " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
    return flat if len(flat) <= MAX_CELL else f"{flat[:MAX_CELL].rstrip(chr(92))}…"


def _code(text: str) -> str:
    """Text as code on one line, whatever backticks are in it."""
    flat = " ".join(text.split())
    bar = "`" * (1 + max((len(run) for run in re.findall("`+", flat)), default=0))
    edge = " " if "`" in flat else ""
    return f"{bar}{edge}{flat}{edge}{bar}" if flat else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cost(cost: Any) -> str:
    return f"{cost:.4f} USD" if isinstance(cost, float | int) else "unknown"


def _spent(tokens: Tokens) -> str:
    cached = f" ({tokens.cached} of them cached)" if tokens.cached else ""
    return f"{tokens.input} tokens in{cached}, {tokens.output} out"


def _totals(report: SprintReport) -> str:
    totals = report.totals
    counts = [f"{totals[status.value]} {status.value}" for status in StoryStatus if totals.get(status.value)]
    tokens = Tokens.model_validate(totals["tokens"])
    return f"{', '.join(counts)}. {totals['calls']} calls, {_spent(tokens)}; cost {_cost(totals['cost_usd'])}."


def _overview(report: SprintReport) -> str:
    rows = [
        (
            _cell(story.id),
            _cell(story.title),
            story.status.value,
            f"{story.tests.passed}/{story.tests.run}" if story.tests.run else "none run",
            str(story.attempts),
            str(story.calls),
            _cost(story.cost_usd),
            f"{story.duration_s:.1f} s",
        )
        for story in report.stories
    ]
    return _table(("Story", "Title", "Status", "Tests", "Attempts", "Calls", "Cost", "Time"), rows)


def _story(story: StoryReport, events: Sequence[Event], criteria: Sequence[str]) -> Iterator[str]:
    yield f"## {_cell(story.id)}{f': {_cell(story.title)}' if story.title else ''}"
    yield f"**{story.status.value}**. {story.calls} calls, {_spent(story.tokens)}; cost {_cost(story.cost_usd)}."
    yield _where(story, events)
    yield _criteria(story, criteria)
    yield _findings(story.findings)
    yield _healings(events)
    yield _stages(story, events)


def _where(story: StoryReport, events: Sequence[Event]) -> str:
    lines = []
    if story.branch:
        merged = " (merged)" if story.status is StoryStatus.DONE else ""
        at = f" at {_code(story.commit[:12])}{merged}" if story.commit else ""
        lines.append(f"- Branch {_code(story.branch)}{at}")
    if story.tasks:
        lines.append(f"- Tasks: {', '.join(f'{task.id} ({task.status.value})' for task in story.tasks)}")
    files = list(dict.fromkeys(path for event in events for path in event.data.get("files", ())))
    if files:
        lines.append(f"- Files: {', '.join(_code(path) for path in files)}")
    return "\n".join(lines)


def _criteria(story: StoryReport, criteria: Sequence[str]) -> str:
    covered, others = coverage(criteria, story.tests.cases)
    rows = []
    for number, row in enumerate(covered, start=1):
        if not row.cases:
            rows.append((str(number), _cell(row.criterion), "—", "not covered"))
        rows += [(str(number), *cells) for cells in _results(row.criterion, row.cases)]
    for criterion in dict.fromkeys(case.criterion for case in others):
        rows += [("—", *cells) for cells in _results(criterion, [c for c in others if c.criterion == criterion])]
    return "### Acceptance criteria\n\n" + _table(("No", "Criterion", "Test", "Result"), rows) if rows else ""


def _results(criterion: str, cases: Sequence[CaseOutcome]) -> Iterator[tuple[str, str, str]]:
    """A row per test and result; the runs of a parametrized test are counted."""
    for (name, result), count in Counter((case.name, case.result) for case in cases).items():
        yield _cell(criterion), _code(name), result + (f" ({count} times)" if count > 1 else "")


def _findings(findings: Sequence[Finding]) -> str:
    lines = []
    for finding in findings[:MAX_FINDINGS]:
        place = f" ({_code(str(finding.where))})" if str(finding.where) else ""
        fix = f" → {_cell(finding.fix)}" if finding.fix else ""
        lines.append(f"- {finding.severity.value} {_code(finding.code)}{place}: {_cell(finding.message)}{fix}")
    return "### Findings\n\n" + "\n".join(_with_rest(lines, len(findings))) if lines else ""


def _healings(events: Sequence[Event]) -> str:
    told = [event for event in events if event.name in HEALINGS]
    lines = [f"- {_cell(event.message)}{f' ({event.task})' if event.task else ''}" for event in told[:MAX_HEALINGS]]
    return "### What was not right and how it went on\n\n" + "\n".join(_with_rest(lines, len(told))) if lines else ""


def _with_rest(lines: list[str], count: int) -> list[str]:
    return [*lines, f"- … and {count - len(lines)} more"] if count > len(lines) else lines


def _stages(story: StoryReport, events: Sequence[Event]) -> str:
    """Time per stage as bars; the rest is what the recorded durations do not explain."""
    seconds: Counter[str] = Counter()
    for event in events:
        stage = _stage(event)
        if stage is not None:
            seconds[stage] += event.data.get("duration_ms") or 0
    spent = {stage: ms / 1000 for stage, ms in seconds.items() if ms}
    rest = story.duration_s - sum(spent.values())
    if rest >= 0.05:
        spent[_REST] = rest
    if not spent:
        return ""
    order = [*dict.fromkeys(_STAGES.values()), _COMMAND, _TESTS, _REST]
    longest, width = max(spent.values()), max(map(len, spent))
    lines = [
        f"{stage:<{width}}  {'█' * max(1, round(BAR * spent[stage] / longest)):<{BAR}}  {spent[stage]:.1f} s"
        for stage in order
        if stage in spent
    ]
    return "### Time per stage\n\n```text\n" + "\n".join(lines) + "\n```"


def _stage(event: Event) -> str | None:
    if event.name == "turn_finished":
        return _STAGES.get(str(event.data.get("purpose")))
    return {"command_finished": _COMMAND, "tests_finished": _TESTS}.get(event.name)
