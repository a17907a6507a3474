"""Stories of a sprint whose events were pruned, as its report tells them."""

from orchestrator.domain.outcome import SprintReport, StoryOutcome, StoryReport
from orchestrator.domain.retention import Pruning
from orchestrator.domain.sprint import SprintRecord
from orchestrator.domain.status import StoryStatus
from orchestrator.errors import ConfigError
from orchestrator.sprint.history import StoryHistory


def expect_kept(record: SprintRecord) -> None:
    """Raises ConfigError for a sprint that was pruned, of which only record, report and result branch are left."""
    if record.pruned is not None:
        raise ConfigError(
            f"sprint {record.sprint} is over and was pruned on {record.pruned.at:%Y-%m-%d}: its report "
            f"(reports/{record.sprint}/report.md in the state folder) and its result branch are left; "
            "`orchestrator reset STORY` frees a row of it for another sprint"
        )


def kept_histories(record: SprintRecord, pruning: Pruning, report: SprintReport | None) -> dict[str, StoryHistory]:
    """Story id → its outcome and what it cost, without events or times; without a report how it had ended."""
    told = {story.id: story for story in report.stories} if report else {}
    said = f"pruned on {pruning.at:%Y-%m-%d}; its report is kept"
    return {story: _history(story, told.get(story), pruning, said) for story in record.story_ids}


def _history(story: str, told: StoryReport | None, pruning: Pruning, said: str) -> StoryHistory:
    if told is None:
        status = pruning.statuses.get(story, StoryStatus.FAILED)
        return StoryHistory(outcome=StoryOutcome(id=story, status=status), last_message=said)
    outcome = StoryOutcome(
        id=story,
        status=told.status,
        attempts=told.attempts,
        tasks=told.tasks,
        tests=told.tests,
        findings=told.findings,
        branch=told.branch,
        commit=told.commit,
    )
    return StoryHistory(
        outcome=outcome, calls=told.calls, tokens=told.tokens, cost_usd=told.cost_usd, last_message=said
    )
