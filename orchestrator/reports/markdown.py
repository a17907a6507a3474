"""report.md: the report for people, from the same outcomes and events as report.json (pure)."""

import difflib
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from orchestrator.core.calls.spending import BudgetState, PersonaSpending
from orchestrator.core.delivery import ReviewIssue
from orchestrator.core.event import Event
from orchestrator.core.finding import Finding, closing_notes
from orchestrator.core.history import CONFLICT, StoryHistory
from orchestrator.core.sprint import (
    CaseOutcome,
    Healing,
    PromptUsed,
    SprintReport,
    StageTime,
    StoryReport,
    StoryStatus,
    TaskOutcome,
    TestRewritten,
    Tokens,
)
from orchestrator.core.suite import BaseTrial, SandboxFacts
from orchestrator.core.value import counted, told_calls

BAR = 30
"""Characters of the longest bar."""
LEAST_S = 0.05
"""Seconds that are shown as something."""
MAX_CELL, MAX_FINDING, MAX_HEALINGS, MAX_FINDINGS = 300, 1500, 40, 60
"""Characters of a cell and of a finding (a conflict is told in four texts); lines of a list."""


class Places(NamedTuple):
    """Places of the things that a report mentions."""

    backlog: str
    repo: str
    mirror: str
    """The bare repository that holds every branch of the sprint."""
    replies: Mapping[str, str]
    """Story → link to the folder with its prompts and answers, for stories that have one."""


def render_report(report: SprintReport, histories: Mapping[str, StoryHistory], places: Places) -> str:
    """Returns the whole document."""
    whole = (*_personas(report), *_base(report), *_sandbox(report), _looking(places))
    parts = [f"# Sprint {report.sprint}", _totals(report), _overview(report), *whole]
    for story in report.stories:
        events = histories[story.id].events if story.id in histories else []
        parts += [part for part in _story(story, events, places.replies.get(story.id)) if part]
    return "\n\n".join(parts) + "\n"


def _sandbox(report: SprintReport) -> Iterator[str]:
    """Renders the sandbox in which model-written code ran."""
    told = report.totals.get("sandbox")
    if told is not None:
        facts = SandboxFacts.model_validate(told)
        parts = {"Held": facts.holds, "Missing": facts.missing, "Not tested": facts.untested}
        words = [f"{name}: {', '.join(held)}." for name, held in parts.items() if held]
        yield f"Commands ran in the sandbox tier `{facts.tier}`. {' '.join([*words, _cell(facts.note)])}".strip()


def _base(report: SprintReport) -> Iterator[str]:
    """Renders the test results at the base commit."""
    told = report.totals.get("base")
    if told is not None:
        trial = BaseTrial.model_validate(told)
        failing = f" Failing there: {', '.join(_code(one) for one in trial.failing)}." if trial.failing else ""
        yield f"{_cell(trial.told)}.{failing}"


def _looking(places: Places) -> str:
    """Renders commands for branches and files, which are in a bare repository and cannot be linked."""
    fetch = shlex.join(["git", "-C", places.repo, "fetch", places.mirror])
    show = shlex.join(["git", "--git-dir", places.mirror, "show"])
    lines = (
        f"Backlog {_code(places.backlog)}, repository {_code(places.repo)}",
        f"A branch named below: {_code(f'{fetch} BRANCH')}, then `git log -p FETCH_HEAD`",
        f"A file of it: {_code(f'{show} BRANCH:FILE')}",
    )
    return "\n".join(f"- {line}" for line in lines)


def _cell(text: str, most: int = MAX_CELL) -> str:
    """Text in a table: on one line, no column broken, not too long."""
    flat = " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
    return flat if len(flat) <= most else f"{flat[:most].rstrip(chr(92))}…"


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


def _spent(calls: object, looks: object, tokens: Tokens) -> str:
    cached = f" ({tokens.cached} of them cached)" if tokens.cached else ""
    return f"{told_calls(int(str(calls)), int(str(looks)))}, {tokens.input} tokens in{cached}, {tokens.output} out"


def _totals(report: SprintReport) -> str:
    totals = report.totals
    counts = [f"{totals[status.value]} {status.value}" for status in StoryStatus if totals.get(status.value)]
    tokens = Tokens.model_validate(totals["tokens"])
    spent = _spent(totals["calls"], totals.get("looks", 0), tokens)
    told = totals.get("budgets")
    budgets = [BudgetState.model_validate(one) for one in told] if isinstance(told, list) else []
    limited = ", ".join(str(one) for one in budgets if one.limit is not None)
    of_budgets = f" Of the budgets: {limited}." if limited else ""
    return f"{', '.join(counts)}. {spent}; cost {_cost(totals['cost_usd'])}.{of_budgets}"


def _personas(report: SprintReport) -> Iterator[str]:
    """Renders what each persona's calls took, and how much of their input came from the provider's cache."""
    told = report.totals.get("personas")
    spent = [PersonaSpending.model_validate(one) for one in told] if isinstance(told, list) else []
    if any(one.tokens.input for one in spent):  # a script's answers have no tokens
        rows = (
            (
                *(_cell(one.persona), str(one.calls), str(one.tokens.input)),
                f"{one.tokens.cached / one.tokens.input:.0%}" if one.tokens.input else "—",
                *(str(one.tokens.output), _cost(one.cost_usd)),
            )
            for one in spent
        )
        yield _table(("Persona", "Calls", "Tokens in", "From the cache", "Tokens out", "Cost"), rows)


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


def _story(story: StoryReport, events: Sequence[Event], replies: str | None) -> Iterator[str]:
    yield f"## {_cell(story.id)}{f': {_cell(story.title)}' if story.title else ''}"
    spent = f"{_spent(story.calls, story.looks, story.tokens)}; cost {_cost(story.cost_usd)}{_earlier(story)}"
    notes = "".join(f"; {_cell(note)}" for note in closing_notes(story.findings))
    yield f"**{story.status.value}**{notes}. {spent}."
    yield _where(story, events, replies)
    yield _conflict(story, events)
    yield _criteria(story)
    yield _reviews(story.tasks)
    yield _findings(story.findings)
    yield rewritten_tests(story.rewritten)
    yield _healings(story.healings)
    yield _stages(story.stages)
    yield _prompts(story.prompts)


def _earlier(story: StoryReport) -> str:
    return (
        f"; {counted(story.earlier_calls, 'call')} of it before the story was begun again"
        if story.earlier_calls
        else ""
    )


def _where(story: StoryReport, events: Sequence[Event], replies: str | None) -> str:
    lines = []
    if story.branch:
        merged = " (merged)" if story.status is StoryStatus.DONE else ""
        at = f" at {_code(story.commit[:12])}{merged}" if story.commit else ""
        lines.append(f"- Branch {_code(story.branch)}{at}")
    if story.tasks:
        lines.append(f"- Tasks: {', '.join(f'{task.id} ({task.status.value})' for task in story.tasks)}")
    files = _files(story, events)
    if files:
        lines.append(f"- Files: {', '.join(files)}")
    planned = _tests_to_change(events)
    if planned:
        lines.append(f"- Older tests that the plan changes: {'; '.join(planned)}")
    if replies:
        lines.append(f"- [Prompts and answers](<{replies}>)")
    return "\n".join(lines)


def _files(story: StoryReport, events: Sequence[Event]) -> list[str]:
    """Returns what the story's diff changes; of one without an outcome what it has committed so far."""
    if story.changed is not None:
        told = {"A": " (new)", "D": " (removed)"}
        return [f"{_code(path)}{told.get(status, '')}" for path, status in story.changed.items()]
    there: dict[str, None] = {}
    for event in events:
        if "commit" in event.data:  # not what was only shown
            there.update(dict.fromkeys(event.data.get("files", ())))
            for path in event.data.get("removed", ()):
                there.pop(path, None)
    return [_code(path) for path in there]


def _tests_to_change(events: Sequence[Event]) -> list[str]:
    """Returns the older test files that the last plan changes, with the reasons."""
    plans = [event.data["plan"] for event in events if event.data.get("plan") and event.name.startswith("plan_")]
    listed = plans[-1].get("tests_to_change") or () if plans and isinstance(plans[-1], Mapping) else ()
    return [
        f"{_code(str(one.get('file', '')))} ({_cell(str(one.get('reason') or 'no reason given'))})" for one in listed
    ]


def _conflict(story: StoryReport, events: Sequence[Event]) -> str:
    """Returns the four texts that a person decides by."""
    told = [event.data["conflict"] for event in events if event.name == CONFLICT]
    if story.status is not StoryStatus.CONFLICTED or not told:
        return ""
    texts = ((name.replace("_", " "), text) for name, text in told[-1].items() if name != "detected")
    return "### Conflict\n\n" + "\n".join(f"- {name}: {_cell(text, MAX_FINDING)}" for name, text in texts)


def _criteria(story: StoryReport) -> str:
    rows = []
    for number, row in enumerate(story.criteria, start=1):
        if not row.tests:
            rows.append((str(number), _cell(row.criterion), "—", "not covered", "—"))
        rows += [(str(number), *cells) for cells in _results(row.criterion, row.tests)]
    shown = {case.name for row in story.criteria for case in row.tests}
    others = [case for case in story.tests.cases if case.name not in shown]
    for criterion in dict.fromkeys(case.criterion for case in others):
        rows += [("—", *cells) for cells in _results(criterion, [c for c in others if c.criterion == criterion])]
    table = _table(("No", "Criterion", "Test", "Result", "Shown by"), rows)
    return f"### Acceptance criteria\n\n{table}" if rows else ""


def _results(criterion: str, cases: Sequence[CaseOutcome]) -> Iterator[tuple[str, str, str, str]]:
    """Yields a row per test and result, with what shows that the test can fail. Parametrized tests are counted."""
    rows = Counter((case.name, case.result, case.shown_by) for case in cases)
    for (name, result, shown_by), count in rows.items():
        yield _cell(criterion), _code(name), result + (f" ({count} times)" if count > 1 else ""), shown_by or "—"


def _reviews(tasks: Sequence[TaskOutcome]) -> str:
    """Renders each reviewer's result, and open comments."""
    rows = [
        (
            *(_cell(task.id), str(one.iteration), _cell(one.by), one.verdict.value.replace("_", " ")),
            *(f"{one.issues}, {one.severity.value}" if one.issues else "none", "yes" if one.approved else "no"),
        )
        for task in tasks
        for one in task.reviews
    ]
    left = [f"- {_cell(task.id)}, open: {_comment(one)}" for task in tasks for one in task.comments]
    table = _table(("Task", "Review", "By", "Ready", "Issues", "Approved"), rows)
    open_ones = "\n".join(_with_rest(left[:MAX_FINDINGS], len(left)))
    return f"### Reviews\n\n{table}" + (f"\n\n{open_ones}" if left else "") if rows else ""


def _comment(issue: ReviewIssue) -> str:
    place = f"{issue.file}{f':{issue.line}' if issue.line is not None else ''}"
    fix = f" → {_cell(issue.fix)}" if issue.fix else ""
    told = f"{issue.title}: {issue.issue}" if issue.issue else issue.title
    return f"{issue.severity.value} {f'{_code(place)} ' if place else ''}{_cell(told, MAX_FINDING)}{fix}"


def _findings(findings: Sequence[Finding]) -> str:
    lines = []
    for finding in findings[:MAX_FINDINGS]:
        place = f" ({_code(str(finding.where))})" if str(finding.where) else ""
        fix = f" → {_cell(finding.fix)}" if finding.fix else ""
        lines.append(
            f"- {finding.severity.value} {_code(finding.code)}{place}: {_cell(finding.message, MAX_FINDING)}{fix}"
        )
    return "### Findings\n\n" + "\n".join(_with_rest(lines, len(findings))) if lines else ""


def _healings(told: Sequence[Healing]) -> str:
    lines = [f"- {_cell(one.message)}{f' ({one.task})' if one.task else ''}" for one in told[:MAX_HEALINGS]]
    return "### What was not right and how it went on\n\n" + "\n".join(_with_rest(lines, len(told))) if lines else ""


def _prompts(used: Sequence[PromptUsed]) -> str:
    return f"Prompts: {', '.join(f'{_code(one.name)} {one.version}' for one in used)}." if used else ""


def _with_rest(lines: list[str], count: int) -> list[str]:
    return [*lines, f"- … and {count - len(lines)} more"] if count > len(lines) else lines


def _stages(stages: Sequence[StageTime]) -> str:
    """Time per stage as bars; what takes no time that can be seen is left out."""
    spent = {time.stage: time.duration_s for time in stages if time.duration_s >= LEAST_S}
    if not spent:
        return ""
    longest, width = max(spent.values()), max(map(len, spent))
    lines = [
        f"{stage:<{width}}  {'█' * max(1, round(BAR * seconds / longest)):<{BAR}}  {seconds:.1f} s"
        for stage, seconds in spent.items()
    ]
    return "### Time per stage\n\n```text\n" + "\n".join(lines) + "\n```"


MOST_LINES = 200
"""Of one file's differences; report.json has both versions whole."""


def rewritten_tests(rewritten: Sequence[TestRewritten]) -> str:
    """Returns a section with what was taken away and what was added, per file and with its reason; "" for none."""
    return "\n\n".join(["### Tests that were changed", *map(_one, rewritten)]) if rewritten else ""


def _one(test: TestRewritten) -> str:
    reason = " ".join(test.reason.split()).replace("<", "&lt;") or "no reason given"
    lines = [
        *difflib.unified_diff(test.before.splitlines(), test.after.splitlines(), "before", "after", lineterm="", n=3)
    ]
    left = len(lines) - MOST_LINES
    shown = [*lines[:MOST_LINES], *([f"... and {left} more lines: report.json has both versions"] if left > 0 else [])]
    text = "\n".join(shown)
    bar = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"`{test.file}`: {reason}\n\n{bar}diff\n{text}\n{bar}"
