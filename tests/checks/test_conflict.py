"""A conflict is a claim: what contradicts itself or the tree is doubted, what names a reason is not."""

import pytest

from orchestrator.checks.breakdown import doubts
from orchestrator.core.breakdown import Breakdown
from tests.support import breakdown, task

REAL = {
    "current_architecture": "Prices are stored in cents, see app/prices.py.",
    "story_requirement": "Prices as floats.",
    "conflict_reason": "The record locks integers for money; a float column would break app/totals.py.",
    "recommended_action": "Keep cents and format them where they are shown.",
}
FILES = ("app/prices.py", "app/totals.py")


def plan(tasks: int = 0, **texts: str) -> Breakdown:
    conflict = {"detected": True, **REAL, **texts}
    whole = breakdown("US-1", *[task("US-1", n + 1, [f"{n}.py"]) for n in range(tasks)])
    return Breakdown.model_validate(whole | {"architectural_conflict": conflict, "task_count": tasks})


@pytest.mark.parametrize(
    ("texts", "files", "told"),
    [
        # What a small model said of one function in an empty repository.
        ({"current_architecture": "No conflicts"}, (), '`current_architecture` says "No conflicts"'),
        ({"recommended_action": "No action is required."}, FILES, "`recommended_action` says"),
        ({"conflict_reason": "The code already exists."}, (), "the repository is empty"),
        ({"conflict_reason": "lib/words.py already exists."}, FILES, "`lib/words.py`, which the repository does not"),
        ({"conflict_reason": "app/prices.py does not exist."}, FILES, "`app/prices.py`, which the repository has"),
        ({"conflict_reason": "None"}, FILES, "names none"),
    ],
)
def test_what_contradicts_itself_or_the_tree_is_doubted(
    texts: dict[str, str], files: tuple[str, ...], told: str
) -> None:
    assert told in " ".join(one.message for one in doubts(plan(**texts), files))


def test_a_conflict_beside_tasks_is_doubted() -> None:
    assert [one.message for one in doubts(plan(2), FILES)] == [
        "the conflict is doubtful: `detected` is true, and the plan has 2 tasks for the story all the same"
    ]


@pytest.mark.parametrize(
    "texts",
    [
        {},
        {"conflict_reason": "A table of that name already exists in app/prices.py with other columns."},
        {"conflict_reason": "prices.py already has a float, and the record forbids it."},
        {"conflict_reason": "The record asks for a cache, which is missing; the story needs app/cache.py without one."},
        {"recommended_action": "Without a change to the record no price can be a float."},
        {"current_architecture": "There is one database, SQLite; no migrations exist."},
    ],
)
def test_a_conflict_with_its_reason_stands(texts: dict[str, str]) -> None:
    assert doubts(plan(**texts), FILES) == []
