import time

import pytest

from orchestrator.domain.backlog_text import IdIndex, parse_dependencies
from orchestrator.domain.story import BacklogContent, Story
from orchestrator.settings import Settings
from orchestrator.sprint.dry_run import dry_run, expected_calls, maximal_calls


def backlog(*rows: tuple[str, str]) -> BacklogContent:
    index = IdIndex(story_id for story_id, _ in rows)
    stories = tuple(
        Story(id=i, title="t", dependency_note=d, dependencies=parse_dependencies(d, index).ids, line=n)
        for n, (i, d) in enumerate(rows, 2)
    )
    return BacklogContent(source="b.csv", stories=stories)


def settings(**sections: dict[str, object]) -> Settings:
    return Settings.model_validate(sections)


def test_the_printed_object() -> None:
    content = backlog(("A", "C"), ("B", ""), ("C", ""), ("D", "A, B"), ("E", "prose"))
    seen = dry_run(content, stories=None, settings=settings(budget={"calls_per_story": 50})).as_json()
    assert list(seen) == ["stories", "waves", "problems", "calls"]
    assert seen["stories"] == 5
    assert seen["waves"] == [["B", "C", "E"], ["A"], ["D"]]
    assert [problem["code"] for problem in seen["problems"]] == ["backlog.dependency_note"]
    assert seen["calls"] == {"expected": 40, "maximal": 250}


def test_a_selection_counts_only_its_rows() -> None:
    content = backlog(("A", ""), ("B", "A"), ("C", "B"))
    seen = dry_run(content, stories=content.stories[1:], settings=Settings())
    assert (seen.stories, seen.waves) == (2, (("B",), ("C",)))
    assert [(f.code, f.severity.value) for f in seen.problems] == [("backlog.dependency_outside", "minor")]
    strict = dry_run(content, stories=content.stories[1:], settings=Settings(), strict=True)
    assert [f.severity.value for f in strict.problems] == ["major"]


def test_what_can_be_ordered_is_shown_beside_problems() -> None:
    seen = dry_run(
        backlog(("A", "B"), ("B", "A"), ("C", ""), ("C", "C"), ("D", "C")), stories=None, settings=Settings()
    )
    assert seen.waves == (("C",), ("D",))
    assert seen.stories == 5
    assert {f.code for f in seen.problems} == {"backlog.cycle", "backlog.duplicate_id"}


@pytest.mark.parametrize(
    ("changes", "maximal"),
    [
        ({}, 200),
        ({"budget": {"calls_per_story": 7}}, 7),
        # plan 3*20, 3 tasks of 3 deliveries of 20, three attempts of suite and analysis 2*20, 2*5 single requests
        ({"budget": {"calls_per_story": 10_000}, "review": {"enabled": False}}, 60 + 3 * 60 + 3 * 40 + 10),
        # with reviews a task is 3 deliveries, 5 reviews of 2*5 with 4 deliveries between them
        ({"budget": {"calls_per_story": 10_000}}, 60 + 3 * (60 + 50 + 80) + 3 * 40 + 10),
        (
            {"budget": {"calls_per_story": 10_000}, "review": {"reviewers": ["a", "b", "c"], "max_iterations": 1}},
            60 + 3 * (60 + 30) + 3 * 40 + 10,
        ),
        (
            {
                "provider": {"max_attempts": 1},
                "answer": {"max_attempts": 0, "repair_requests": 0},
                "plan": {"max_iterations": 1, "expected_tasks": 1},
                "build": {"max_attempts": 1},
                "test": {"max_attempts": 1},
                "review": {"max_iterations": 1},
            },
            1 + (1 + 2 + 2) + 2,
        ),
    ],
)
def test_maximal_calls_are_the_product_of_the_policies(changes: dict[str, dict[str, object]], maximal: int) -> None:
    assert maximal_calls(settings(**changes)) == maximal


def test_expected_calls() -> None:
    assert expected_calls(Settings()) == 8
    assert expected_calls(settings(review={"enabled": False})) == 5
    assert expected_calls(settings(plan={"expected_tasks": 4}, review={"reviewers": ["a", "b"]})) == 14


def test_ten_thousand_stories() -> None:
    content = backlog(*((f"S-{n}", f"S-{n - 1}, S-{n // 2}" if n > 1 else "") for n in range(10_000)))
    start = time.process_time()
    seen = dry_run(content, stories=None, settings=Settings())
    assert time.process_time() - start < 10
    assert len(seen.waves) == 9_999
