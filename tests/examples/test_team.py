"""The scripted team is what its sources make, it agrees with the backlog, and its mistakes are mistakes."""

import ast
import json
import re
from itertools import combinations, pairwise

import pytest

from orchestrator.answers.review import parse_review
from orchestrator.core.calls.exchange import Purpose, StopReason
from orchestrator.core.paths import unsafe_reason
from orchestrator.core.story import waves
from orchestrator.settings import load
from tests.examples.demo_team import (
    FOLDER,
    answer,
    builder,
    criteria,
    deliveries,
    entries,
    needs,
    of,
    rows,
    suite,
)

pytestmark = pytest.mark.docs

STORIES = list(rows())
LONGEST_WAIT_MS = 10_000


def plan(story: str) -> dict[str, list[str]]:
    """Task → files, of the plan that a story ends with."""
    if story == "US-004":
        text = of(story, Purpose.BREAKDOWN)[0].text
        found = re.findall(r'"task_id": "([^"]+)".*?"files_to_create": \[(.*?)\]', text, re.DOTALL)
        return {task: re.findall(r'"([^"]+)"', files) for task, files in found}
    tasks = [task for entry in of(story, Purpose.BREAKDOWN_MISSING) for task in answer(entry)["tasks"]]
    last = of(story, Purpose.BREAKDOWN)[-1]
    if last.stop_reason is StopReason.MAX_TOKENS:
        first = json.loads(
            last.text[last.text.index('    {\n      "task_id"') : last.text.index("    },\n    {")] + "}"
        )
        tasks = [first, *tasks]
    else:
        tasks = answer(last)["tasks"]
    # The ids of US-001 are set while its plan is read.
    ids = (re.sub(r"^TASK-(\d)$", rf"T-{story}-0\1", task["task_id"]) for task in tasks)
    return dict(zip(ids, (task["files_to_create"] for task in tasks), strict=True))


def test_the_committed_script_is_what_the_sources_make() -> None:
    made = "".join(builder().lines(FOLDER / "team"))
    assert (FOLDER / "team.jsonl").read_text(encoding="utf-8") == made
    assert builder().main(["--check"]) == 0


def test_every_source_is_used() -> None:
    used = {FOLDER / "team" / turn["story"] / turn["source"] for turn in builder().read_turns(FOLDER / "team")}
    assert {path for path in (FOLDER / "team").glob("*/*")} <= used


def test_turns_of_a_key_count_up() -> None:
    turns: dict[tuple[object, ...], list[int]] = {}
    for entry in entries():
        turns.setdefault(entry.lookup[:-1], []).append(entry.turn)
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in turns.values())


def test_settings_of_the_example_load() -> None:
    settings, environment = load(FOLDER / "config.yaml", variables={})
    assert settings.provider.name == "scripted"
    for name in (settings.project.vision, settings.provider.script):
        assert (environment.base_dir / str(name)).is_file()


def test_backlog_has_the_original_shape() -> None:
    raw = (FOLDER / "backlog.csv").read_bytes()
    assert raw.count(b"\n") == raw.count(b"\r\n") == len(STORIES) + 1
    assert raw.startswith(
        b"Story_ID,Title,User_Story,Functional_Requirements,Non_Functional_Requirements,Integrations,"
    )
    assert len(next(iter(rows().values()))) == 20
    layers, stuck = waves(STORIES, {story: needs(story) for story in STORIES})
    assert layers == (("NFR-001",), ("US-001",), ("US-002", "US-003"), ("US-004",), ("US-005", "US-006"), ("US-007",))
    assert not stuck


@pytest.mark.parametrize("story", STORIES)
def test_suite_has_one_test_per_criterion(story: str) -> None:
    answered = suite(story)
    functions = [
        node
        for node in ast.parse(answered["test_content"]).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    assert [case["criterion"] for case in answered["test_cases"]] == list(criteria(story))
    assert [case["name"] for case in answered["test_cases"]] == [function.name for function in functions]
    assert answered["test_file"] == f"tests/test_{story.lower().replace('-', '_')}.py"


@pytest.mark.parametrize("story", STORIES)
def test_architect_and_backlog_name_the_same_criteria(story: str) -> None:
    texts = [entry.text for entry in of(story, Purpose.BREAKDOWN)]
    for text in texts:
        named = re.findall(r'"criterion": "([^"]+)"', text)
        assert named == ([] if story == "NFR-001" else list(criteria(story)))


@pytest.mark.parametrize("story", STORIES)
def test_last_deliveries_write_exactly_what_is_planned(story: str) -> None:
    planned = plan(story)
    assert list(planned) == [f"T-{story}-{number:02}" for number in range(1, len(planned) + 1)]
    delivered = {task: list(files) for task, files in deliveries(story).items()}
    assert {task: sorted(files) for task, files in planned.items() if files} == delivered
    for path in (path for files in planned.values() for path in files):
        assert unsafe_reason(path) is None
        assert not path.startswith("tests/")
    assert all(len(files) <= 3 for files in planned.values())


def test_parallel_stories_change_different_files() -> None:
    for one, other in combinations(STORIES, 2):
        if one not in needs(other) and other not in needs(one):
            mine, theirs = ({p for files in deliveries(s).values() for p in files} for s in (one, other))
            assert not mine & theirs, f"{one} and {other} would meet in {mine & theirs}"


def test_scripted_waiting_is_short() -> None:
    total = {s: sum(entry.latency_ms for entry in entries() if entry.story == s) for s in STORIES}
    ends: dict[str, int] = {}
    for story in STORIES:
        ends[story] = total[story] + max((ends[need] for need in needs(story)), default=0)
    assert max(ends.values()) < LONGEST_WAIT_MS
    assert all(150 <= entry.latency_ms <= 600 for entry in entries())


def test_broken_and_cut_plans_are_no_json() -> None:
    for story in ("US-003", "US-004"):
        text = of(story, Purpose.BREAKDOWN)[0].text
        body = text[text.index("{") : text.rindex("}") + 1]
        for candidate in (text, body):
            with pytest.raises(json.JSONDecodeError):
                json.loads(candidate)
    broken = of("US-004", Purpose.BREAKDOWN)[0].text
    assert all(slip in broken for slip in (r"\'", r"\`", r"\$", ",]", ",\n    }", ":\n\t- ", 'option "here" leaves'))
    assert of("US-003", Purpose.BREAKDOWN)[0].stop_reason is StopReason.MAX_TOKENS


def test_refused_delivery_leaves_the_plan() -> None:
    first = set(deliveries("US-002", last=False)["T-US-002-01"])
    assert first - {path for story in STORIES for files in plan(story).values() for path in files} == {
        "requirements.txt",
        "shelf/addresses.py",
    }


def test_every_delivery_that_is_kept_is_reviewed_and_the_issues_point_at_lines_of_it() -> None:
    turns = [turn for turn in builder().read_turns(FOLDER / "team") if turn["persona"] in {"alex", "reviewer"}]
    for before, turn in pairwise(turns):
        if turn["persona"] == "alex":
            continue
        assert (before["persona"], before["task"]) == ("alex", turn["task"])
        review, _ = parse_review((FOLDER / "team" / turn["story"] / turn["source"]).read_text(encoding="utf-8"))
        for issue in review.issues:
            delivered = FOLDER / "team" / turn["story"] / before["source"] / issue.file
            assert issue.line is not None
            assert delivered.read_text(encoding="utf-8").splitlines()[issue.line - 1].strip(), issue
    kept = [turn for turn in turns if turn["persona"] == "alex" and not turn["source"].endswith(("-refused", ".md"))]
    assert len(kept) == sum(turn["persona"] == "reviewer" for turn in turns)
    fixes = [one for story in STORIES for one in of(story, Purpose.REVIEW) if not parse_review(one.text)[0].approved]
    assert [(one.task, one.turn) for one in fixes] == [("T-US-007-02", 1)]


def test_analysis_names_a_file_of_the_task_that_is_asked_again() -> None:
    (entry,) = of("US-005", Purpose.ANALYSIS)
    (again,) = of("US-005", Purpose.DELIVERY, turn=2)
    assert {i["file"] for i in answer(entry)["failure_analysis"]} == set(plan("US-005")[str(again.task)])
