"""How a run ended, for people; the last line says where the result is."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from orchestrator.domain.findings import blocking
from orchestrator.domain.outcome import StoryReport
from orchestrator.domain.status import StoryStatus
from orchestrator.domain.words import counted

if TYPE_CHECKING:
    from orchestrator.wiring.reports import RunResult


def summary_lines(result: "RunResult") -> Iterator[str]:
    """A line per story, the totals, what to do about open stories, and where the result is."""
    report = result.report
    yield ""
    yield f"Sprint {report.sprint}"
    for story in report.stories:
        yield from _story_lines(story)
    yield _totals_line(result)
    yield from _next_step(report.stories)
    if result.paused:
        still_open = any(not story.status.final for story in report.stories)
        goes_on = " The same command goes on with the stories that are open." if still_open else ""
        yield f"Paused: {result.paused}.{goes_on}"
    yield f"Report: {result.report_path.with_suffix('.md')} (and report.json beside it)"
    if not result.pushed:
        yield f"{result.repo} is as it was; in it, the last line and then `git merge FETCH_HEAD` take the result over"
    if result.unpushed:
        yield f"Not pushed: {result.unpushed}"
    if result.pushed:
        yield f"Result: branch {result.pushed} of {result.repo}"
    else:
        yield f"Result: {result.fetch_command}"


def _story_lines(story: StoryReport) -> Iterator[str]:
    tests = f"{story.tests.passed}/{story.tests.run} tests" if story.tests.run else "no tests run"
    yield (
        f"  {story.id:<12} {story.status.value:<16} {counted(len(story.tasks), 'task')}, {tests}, "
        f"{counted(story.calls, 'call')}, {story.duration_s:.1f} s"
    )
    if story.status is StoryStatus.DONE:
        return
    serious = blocking(story.findings)
    for finding in serious[-3:] or story.findings[-1:]:
        place = f" ({finding.where.file})" if finding.where.file else ""
        yield f"      {finding.code}{place}: {finding.message.splitlines()[0][:200]}"


def _next_step(stories: Sequence[StoryReport]) -> Iterator[str]:
    """What to do about stories that ended otherwise than done; a blocked one only waits for another."""
    ended = [s for s in stories if s.status.final and s.status not in {StoryStatus.DONE, StoryStatus.BLOCKED}]
    if ended:
        name = ended[0].id
        yield f"Why: `orchestrator show {name}`. To try again: `orchestrator reset {name}`, then the same command"


def _totals_line(result: "RunResult") -> str:
    totals = result.report.totals
    counts = [f"{totals[status.value]} {status.value}" for status in StoryStatus if totals[status.value]]
    tokens = totals["tokens"]
    assert isinstance(tokens, dict)
    cost = totals["cost_usd"]
    return (
        f"{', '.join(counts)}; {counted(int(str(totals['calls'])), 'call')}, "
        f"{tokens['input']} tokens in, {tokens['output']} out, "
        + (f"{cost:.2f} USD" if isinstance(cost, float | int) else "cost unknown")
    )
