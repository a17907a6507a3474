import time

import pytest

from orchestrator.core.story import BacklogContent, IdIndex, Story, parse_dependencies
from orchestrator.settings import Settings
from orchestrator.sprint.dry_run import JudgedTasks, capped, dry_run, expected_calls, explained, most_calls


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
    assert [problem["code"] for problem in seen["problems"]] == ["backlog.dependency_note", "backlog.no_criteria"]
    assert seen["calls"] == {"expected": 40, "maximal": 250}


def test_what_can_be_ordered_is_shown_beside_problems() -> None:
    seen = dry_run(
        backlog(("A", "B"), ("B", "A"), ("C", ""), ("C", "C"), ("D", "C")), stories=None, settings=Settings()
    )
    assert seen.waves == (("C",), ("D",))
    assert seen.stories == 5
    assert {f.code for f in seen.problems} == {"backlog.cycle", "backlog.duplicate_id", "backlog.no_criteria"}


def test_what_is_completed_is_in_no_wave_and_the_foundation_comes_before_what_needs_it() -> None:
    rows = [
        Story(id="OLD", title="t", execution_status="Completed"),
        Story(id="A", title="t", dependencies=("OLD",)),
        Story(id="BASE", title="t", foundation=True, dependencies=("NFR",)),
        Story(id="NFR", title="t"),
        Story(id="B", title="t", dependencies=("A",)),
    ]
    content = BacklogContent(source="b.csv", stories=tuple(rows))
    seen = dry_run(content, stories=None, settings=Settings())
    assert (seen.stories, seen.waves) == (4, (("NFR",), ("BASE",), ("A",), ("B",)))
    done = rows[2].model_copy(update={"execution_status": "completed"})
    content = BacklogContent(source="b.csv", stories=(*rows[:2], done, *rows[3:]))
    assert dry_run(content, stories=None, settings=Settings()).waves == (("A", "NFR"), ("B",))


LAVISH = {"calls_per_story": 10_000}


@pytest.mark.parametrize(
    ("changes", "maximal"),
    [
        ({}, 200),
        ({"budget": {"calls_per_story": 7}}, 7),
        # three plans of 35, 3 looks of 5 included, 3 tasks of 3 deliveries of 35, 3 suites and 2 analyses of 35,
        # 4 single requests of 4*5
        ({"budget": LAVISH, "review": {"enabled": False}}, 105 + 3 * 105 + 5 * 35 + 80),
        # with reviews a task is 3 + 4 deliveries and 5 reviews of (2+3)*5
        ({"budget": LAVISH}, 105 + 3 * (245 + 125) + 5 * 35 + 80),
        (
            {"budget": LAVISH, "review": {"reviewers": ["a", "b", "c"], "max_iterations": 1}},
            105 + 3 * (105 + 75) + 5 * 35 + 80,
        ),
        (
            {
                "budget": LAVISH,
                "review": {"reviewers": ["a", "b"]},
                "personas": {"mike": {"max_iterations": 1}, "a": {"max_iterations": 1}, "b": {"max_iterations": 2}},
            },
            35 + 3 * (4 * 35 + 2 * 50) + 5 * 35 + 80,
        ),
        (
            {
                "provider": {"max_attempts": 1},
                "answer": {"max_attempts": 0, "repair_requests": 0},
                "plan": {"max_iterations": 1, "expected_tasks": 1},
                "build": {"max_attempts": 1},
                "look": {"max_per_turn": 1},
                "test": {"max_attempts": 1},
                "review": {"max_iterations": 1},
            },
            2 + (2 + 3) + 2 * 2 + 4 * 2,
        ),
    ],
)
def test_maximal_calls_are_the_product_of_the_policies(changes: dict[str, dict[str, object]], maximal: int) -> None:
    chosen = settings(**changes)
    assert capped(most_calls(chosen), chosen) == maximal
    assert dry_run(backlog(("A", "")), stories=None, settings=chosen).calls.maximal == maximal


def test_expected_calls() -> None:
    assert expected_calls(Settings()).total == 8
    assert expected_calls(settings(review={"enabled": False})).total == 5
    assert expected_calls(settings(plan={"expected_tasks": 4}, review={"reviewers": ["a", "b"]})).total == 14
    tight = dry_run(backlog(("A", "")), stories=None, settings=settings(budget={"calls_per_story": 3}))
    assert (tight.calls.expected, tight.calls.maximal) == (3, 3), "a story is ended there, whatever it still needs"


def test_a_persons_plan_is_read_in_place_of_the_architects_and_its_tasks_are_counted() -> None:
    chosen = settings(budget=LAVISH)
    assert expected_calls(chosen, 2).total == 1 + 2 * 2 + 1
    assert most_calls(chosen, 2).total == 20 + 2 * (245 + 125) + 5 * 35 + 80
    both = dry_run(backlog(("A", ""), ("B", "")), stories=None, settings=chosen, plans={"A": JudgedTasks(count=2)})
    assert (both.calls.expected, both.calls.maximal) == (6 + 8, 1015 + 1470)


def test_the_two_numbers_are_explained_in_a_line_each() -> None:
    about, most = explained(Settings(), [None, None])
    assert about.endswith(": 8 (1 plan, 3 deliveries, 3 reviews, 1 suite)")
    assert "1470 (105 plans, 735 deliveries, 375 reviews, 105 suites, 70 analyses, 80 amendments and merge)" in most
    assert most.endswith("budget.calls_per_story ends it at 200")
    about, _ = explained(settings(review={"enabled": False}), [2])
    assert about.endswith(": 4 (1 reading of a plan, 2 deliveries, 1 suite)")


def test_ten_thousand_stories() -> None:
    content = backlog(*((f"S-{n}", f"S-{n - 1}, S-{n // 2}" if n > 1 else "") for n in range(10_000)))
    start = time.process_time()
    seen = dry_run(content, stories=None, settings=Settings())
    assert time.process_time() - start < 10
    assert len(seen.waves) == 9_999
