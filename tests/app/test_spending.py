"""What a run may cost, by what the project's last sprints took."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.app.spending import with_spending
from orchestrator.core.sprint import SprintRecord, SprintReport, StoryReport, StoryStatus, TestsOutcome, Tokens
from orchestrator.core.story import BacklogContent, Story
from orchestrator.settings import load
from orchestrator.sprint.dry_run import SpendingEstimate, dry_run
from orchestrator.storage.state_folder import StateFolder
from tests.support import plain_environment

CONTENT = BacklogContent(source="b.csv", stories=(Story(id="N1", title="One"), Story(id="N2", title="Two")))
PRICES = "prices={m: {input: 1, cached: 0.5, output: 10}, own: {input: 2, output: 20}}"


def story(name: str, calls: int, tokens: Tokens, status: StoryStatus = StoryStatus.DONE) -> StoryReport:
    return StoryReport(
        id=name, status=status, attempts=1, tasks=(), tests=TestsOutcome(), findings=(), tokens=tokens,
        cost_usd=0.0, calls=calls, duration_s=1, branch=None, commit=None,
    )  # fmt: skip


def keep(home: Path, sprint: str, *stories: StoryReport) -> None:
    folder, ids = StateFolder(home), tuple(one.id for one in stories)
    folder.save(
        SprintRecord(sprint=sprint, backlog="/b.csv", repo="/r", base="", story_ids=ids, started_at=datetime.now(UTC))
    )
    folder.save_report(sprint, SprintReport(sprint=sprint, stories=stories, totals={}).model_dump_json(), "")


def test_the_calls_of_each_persona_cost_what_a_call_of_the_last_three_sprints_took(tmp_path: Path) -> None:
    settings, environment = load(
        None, ("provider.name=openai", "provider.model=m", "personas.alex={model: own}", PRICES),
        plain_environment(ORCHESTRATOR_HOME=str(tmp_path / "state")), tmp_path,
    )  # fmt: skip
    made = dry_run(CONTENT, stories=None, settings=settings)
    assert (made.stories, made.tasks) == (2, 6)

    def told() -> SpendingEstimate:
        spending = with_spending(made, settings, environment).spending
        assert spending is not None
        return spending

    assert (told().measured, told().input_tokens) == (False, 16 * 7000)
    keep(tmp_path / "state", "S0", story("A", 1, Tokens(input=9, output=9)))
    keep(tmp_path / "state", "S1", story("A", 10, Tokens(input=1000, output=100)), story("B", 9, Tokens()))
    keep(tmp_path / "state", "S2", story("A", 10, Tokens(input=3000, output=300)))
    keep(tmp_path / "state", "S3", story("A", 1, Tokens()))
    keep(tmp_path / "state", "S4", story("A", 20, Tokens(input=4000, cached=2000, output=400)))
    assert told().measured
    assert (told().input_tokens, told().output_tokens) == (16 * 200, 16 * 20), "a script's stories took nothing"
    plain = 10 * (150 * 1 + 50 * 0.5 + 20 * 10) + 6 * (200 * 2 + 20 * 20)
    assert told().usd == pytest.approx(plain / 1e6, abs=1e-4)
    keep(tmp_path / "state", "S5", story("A", 1, Tokens(input=10, output=1)))
    assert told().input_tokens == 16 * round((3000 + 4000 + 10) / 31), "S1 is the fourth"
