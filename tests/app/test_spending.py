"""What a run may cost, by what the project's last sprints took."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.app.spending import with_spending
from orchestrator.core.calls.spending import PersonaSpending
from orchestrator.core.sprint import SprintRecord, SprintReport, StoryReport, StoryStatus, TestsOutcome, Tokens
from orchestrator.core.story import BacklogContent, Story
from orchestrator.settings import load
from orchestrator.sprint.dry_run import dry_run
from orchestrator.storage.state_folder import StateFolder
from tests.support import plain_environment

CONTENT = BacklogContent(source="b.csv", stories=(Story(id="N1", title="One"), Story(id="N2", title="Two")))
PRICES = "prices={m: {input: 1, cached: 0.5, output: 10}, own: {input: 2, output: 20}}"


def story(name: str, calls: int, tokens: Tokens, status: StoryStatus = StoryStatus.DONE) -> StoryReport:
    return StoryReport(
        id=name, status=status, attempts=1, tasks=(), tests=TestsOutcome(), findings=(), tokens=tokens,
        cost_usd=0.0, calls=calls, duration_s=1, branch=None, commit=None,
    )  # fmt: skip


def keep(home: Path, sprint: str, *stories: StoryReport, personas: tuple[PersonaSpending, ...] = ()) -> None:
    folder, ids = StateFolder(home), tuple(one.id for one in stories)
    folder.save(
        SprintRecord(sprint=sprint, backlog="/b.csv", repo="/r", base="", story_ids=ids, started_at=datetime.now(UTC))
    )
    totals: dict[str, object] = {"personas": [one.model_dump() for one in personas]} if personas else {}
    report = SprintReport(sprint=sprint, stories=stories, totals=totals)
    folder.save_report(sprint, report.model_dump_json(), "")


def test_each_persona_s_own_calls_count_and_the_range_is_that_of_past_stories(tmp_path: Path) -> None:
    settings, environment = load(
        None, ("provider.name=openai", "provider.model=m", "personas.alex={model: own}", PRICES),
        plain_environment(ORCHESTRATOR_HOME=str(tmp_path / "state")), tmp_path,
    )  # fmt: skip
    made = dry_run(CONTENT, stories=None, settings=settings)
    usual = made.usual.model_dump()
    assert (usual["plans"], usual["builds"], usual["reviews"], usual["suites"]) == (2, 6, 6, 2)
    # Of a release that told nothing of personas, and of the script's answers, which have no tokens.
    begun = story("X", 1, Tokens(input=100, output=10), StoryStatus.EXECUTING)  # no measure of a whole story
    keep(tmp_path / "state", "S1", story("A", 10, Tokens(input=1000, output=100)), story("B", 9, Tokens()), begun)
    told = with_spending(made, settings, environment).spending
    assert told is not None
    assert (told.input_tokens, told.output_tokens) == (16 * 100, 16 * 10)
    assert told.usd == pytest.approx((10 * (100 * 1 + 10 * 10) + 6 * (100 * 2 + 10 * 20)) / 1e6, abs=1e-4)
    before = told.as_before
    assert before is not None
    assert (before.stories, before.calls, before.input_tokens) == (1, (20, 20), (2000, 2000))

    large = [story(f"C{number}", 10 * number, Tokens(input=1000 * number, output=0)) for number in range(1, 5)]
    alex = PersonaSpending(persona="alex", calls=2, tokens=Tokens(input=4000, cached=1000, output=600))
    keep(tmp_path / "state", "S2", *large, personas=(alex,))
    told = with_spending(made, settings, environment).spending
    assert told is not None
    assert told.output_tokens == 6 * 300 + 10 * 1, "110 tokens in 111 calls of anybody"
    before = told.as_before
    assert before is not None
    assert (before.stories, before.calls, before.input_tokens) == (5, (20, 60), (2000, 6000))
    mixed = (10 * 1 + 6 * 2) / 16  # of ten calls to one model and six to the other
    dear_a = 1000 * mixed + 100 * 10 * mixed
    assert before.usd == pytest.approx((2 * dear_a / 1e6, 2 * 3000 * mixed / 1e6), abs=1e-4)
