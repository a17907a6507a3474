from orchestrator.core.story import BacklogContent, IdIndex, Story, parse_dependencies
from orchestrator.settings import Settings
from orchestrator.sprint.dry_run import JudgedTasks, dry_run, expected_calls


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


def test_expected_calls_are_those_of_right_answers_and_the_maximum_is_the_budget_of_the_stories() -> None:
    assert expected_calls(Settings(), 3) == 8
    assert expected_calls(settings(review={"enabled": False}), 3) == 5
    assert expected_calls(settings(review={"reviewers": ["a", "b"]}), 4) == 14
    tight = dry_run(backlog(("A", "")), stories=None, settings=settings(budget={"calls_per_story": 3}))
    assert (tight.calls.expected, tight.calls.maximal) == (3, 3), "a story is ended there, whatever it still needs"
    rows = backlog(("A", ""), ("B", ""))
    both = dry_run(rows, stories=None, settings=Settings(), plans={"A": JudgedTasks(count=2)})
    assert (both.calls.expected, both.calls.maximal) == (6 + 8, 2 * 200), "a person's plan has two tasks"
