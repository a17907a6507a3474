"""Alex by action plans: read first, then change; after one that cannot be read JSON is asked for."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.core.action_plan import Action, ActionPlan, Create, Delete, Edit, Execute, Move, Pair, Prune, Read
from orchestrator.core.breakdown import Breakdown
from orchestrator.core.calls.exchange import Delivered, MergeBrief, TaskBrief
from orchestrator.core.delivery import Conflict, Delivery
from orchestrator.core.finding import Finding
from orchestrator.personas.alex import Alex
from orchestrator.settings import Policies
from orchestrator.settings.model import BuildSettings
from tests.answers.action_plan_text import render_plan
from tests.personas.desks import STORY, SURFACE, Bench, bench, brief
from tests.support import breakdown, delivery, task

PLAN = Breakdown.model_validate(breakdown(STORY, task(STORY, 1, ["a.py", "b.py"])))
OLD = {"a.py": "A = 0\nB = 0\n"}
TREE = {"app.py": "def name():\n    return 'app'\n", "b.bin": None}
A, B = Create(path="a.py", content="A = 1\n"), Create(path="b.py", content="B = 2\n")
JSON = json.dumps(delivery(STORY, 1, {"a.py": "A = 1\n", "b.py": "B = 2\n"}))


def plan(*actions: Action) -> str:
    return render_plan(ActionPlan(title="Two files", rationale="They are asked for.", actions=actions))


def says(text: str, purpose: str = "delivery", **more: Any) -> dict[str, Any]:
    return {"persona": "alex", "purpose": purpose, "task": "T-US-1-01", "text": text, **more}


async def delivered(
    at: Bench, verdicts: Sequence[list[Finding]] = (), old: Mapping[str, str] | None = None, **more: Any
) -> Delivered:
    left = list(verdicts)
    given = TaskBrief(
        task=PLAN.tasks[0],
        breakdown=PLAN,
        surface=SURFACE,
        allowed_dependencies=(),
        modified_files=dict(old or {}),
        files=tuple(sorted({*TREE, *(old or {})})),
        **more,
    )

    async def judge(_delivery: Delivery) -> list[Finding]:
        return left.pop(0) if left else []

    async def look(paths: Sequence[str]) -> dict[str, str]:
        return {path: text for path, text in TREE.items() if path in paths and text is not None}

    return await Alex(at.desk, brief()).deliver(given, judge, look)


def texts(result: Delivered) -> dict[str, str]:
    assert result.delivery is not None
    return {change.path: change.content for change in result.delivery.files}


def events(at: Bench, name: str) -> list[dict[str, Any]]:
    return [event.data for event in at.sink.events if event.name == name]


async def test_a_plan_is_asked_for_and_gives_the_delivery_that_json_gives() -> None:
    by_plan, by_json = (
        bench(says(plan(A, B))),
        bench(says(json.dumps(delivery(STORY, 1, {"a.py": "A = 1\n", "b.py": "B = 2\n"})))),
    )
    first, second = await delivered(by_plan), await delivered(by_json)
    assert first.accepted
    assert first.delivery is not None
    untold = first.delivery.model_copy(update={"title": "", "rationale": ""})  # the words of its commit
    assert first.model_copy(update={"delivery": untold}) == second
    assert "### `CREATE`" in by_plan.segment(0, "rules")
    assert by_plan.segment(0, "contract") == ""


async def test_read_then_edit() -> None:
    edit = Edit(path="a.py", pairs=(Pair(find="A = 0\n", replace="A = 1\n"),))
    at = bench(says(plan(Read(resource="app.py"))), says(plan(edit, B)))
    result = await delivered(at, old=OLD)
    assert result.accepted
    assert texts(result) == {"a.py": "A = 1\nB = 0\n", "b.py": "B = 2\n"}
    assert at.asked == ["delivery 1", "delivery 2"]
    assert "return 'app'" not in at.segment(0, "task")
    assert "return 'app'" in at.segment(1, "task")
    assert at.segment(1, "feedback") == "", "to read is no mistake"
    assert [one["files"] for one in events(at, "files_shown")] == [["app.py"]]


async def test_what_cannot_be_shown_is_said_and_pruned_files_are_gone() -> None:
    wanted = (Read(resource="b.bin"), Read(resource="https://example.org/x"), Read(resource="app.py"))
    at = bench(says(plan(*wanted)), says(plan(Prune(resource="app.py"), Prune(resource="a.py"))), says(plan(A, B)))
    result = await delivered(at, old=OLD)
    assert "`b.bin` is not shown: it is no text file" in at.segment(1, "task")
    assert "pages are not fetched" in at.segment(1, "task")
    assert "return 'app'" in at.segment(1, "task")
    assert "return 'app'" not in at.segment(2, "task")
    assert "A = 0" not in at.segment(2, "task")
    assert not result.accepted, "a.py exists and was put out of sight: nobody may write over it"
    assert {finding.code for finding in result.findings} == {"answer.invalid", "plan.exists"}


async def test_a_plan_that_cannot_be_read_is_followed_by_whole_files_and_those_by_json() -> None:
    broken = plan(A, B).replace(
        "### `CREATE`", "### `EDIT`\n\n- **File Path:** [a.py](/a.py)\n\n#### FIND:\n\n---\n", 1
    )
    at = bench(says(broken), says("I cannot."), says(JSON), policies=Policies(build=BuildSettings(max_attempts=3)))
    assert (await delivered(at)).accepted
    assert at.asked == ["delivery 1", "delivery 2", "delivery 3"], "no repair request: it repairs JSON"
    assert "a block is missing" in at.segment(1, "feedback")
    assert "FIND" not in at.segment(1, "feedback").split("Fix:")[1].split("###")[0], "a fix is for the form asked for"
    assert "Answer with files and nothing else" in at.segment(1, "rules")
    assert at.segment(1, "contract") == ""
    assert "JSON Schema" in at.segment(2, "contract")


async def test_a_cut_plan_keeps_its_whole_actions_and_asks_for_the_rest() -> None:
    text = plan(A, B)
    cut = text[: text.index("B = 2") + 3]
    at = bench(says(cut, stop_reason="max_tokens"), says(plan(B), "continuation"))
    result = await delivered(at)
    assert result.accepted
    assert texts(result) == {"a.py": "A = 1\n", "b.py": "B = 2\n"}
    assert at.asked == ["delivery 1", "continuation 1"]
    assert "A = 1" in at.segment(1, "feedback")
    assert "- b.py" in at.segment(1, "feedback")


async def test_commands_of_a_cut_plan_are_kept_and_one_that_was_cut_is_asked_for() -> None:
    first, last = Execute(command="python a.py"), Execute(command="python b.py")
    text = plan(A, first, B, last)
    for end, more in (
        (text.index("B = 2") + 3, plan(B, last)),
        (text.index("python b.py") + 8, plan(last)),
        (text.index("python b.py") + 8, text),
    ):
        at = bench(says(text[:end], stop_reason="max_tokens"), says(more, "continuation"))
        result = await delivered(at)
        assert result.accepted, result.findings
        assert result.delivery is not None
        assert texts(result) == {"a.py": "A = 1\n", "b.py": "B = 2\n"}
        assert [command.command for command in result.delivery.commands] == ["python a.py", "python b.py"]
    assert "- the `EXECUTE` that the plan ended in" in at.segment(1, "feedback")


async def test_a_plan_cut_anywhere_is_whole_with_the_rest_of_its_text() -> None:
    text = plan(A, B)
    for end in range(20, text.index("B = 2") + 6):
        at = bench(says(text[:end], stop_reason="max_tokens"), says(text[end:], "continuation"))
        result = await delivered(at)
        assert result.accepted, (text[:end][-30:], result.findings)
        assert texts(result) == {"a.py": "A = 1\n", "b.py": "B = 2\n"}, text[:end][-30:]


async def test_files_go_and_move_and_commands_travel_with_the_delivery() -> None:
    text = plan(Move(path="a.py", target="b.py"), Execute(command="python b.py", timeout_s=5))
    result = await delivered(bench(says(text)), old=OLD)
    assert result.delivery is not None
    assert texts(result) == {"b.py": OLD["a.py"]}
    assert result.delivery.removed == ("a.py",)
    assert [command.command for command in result.delivery.commands] == ["python b.py"]
    alone = await delivered(bench(says(plan(Delete(path="a.py")))), old=OLD)
    assert alone.delivery is not None
    assert alone.delivery.removed == ("a.py",)
    assert alone.delivery.files == ()


PART = {"a.py": "a.py has 2 lines; these are parts of it."}


async def test_a_file_that_is_shown_in_part_is_edited_as_it_is_and_can_be_read_whole() -> None:
    edit = Edit(path="a.py", pairs=(Pair(find="B = 0\n", replace="B = 1\n"),))
    at = bench(says(plan(edit, B)))
    result = await delivered(at, old=OLD, parts=PART)
    assert (result.accepted, texts(result)["a.py"]) == (True, "A = 0\nB = 1\n")
    assert PART["a.py"] in at.segment(0, "task")
    assert "B = 0" not in at.segment(0, "task")
    TREE["a.py"] = OLD["a.py"]
    at = bench(says(plan(Read(resource="a.py"))), says(plan(edit, B)))
    try:
        assert (await delivered(at, old=OLD, parts=PART)).accepted
    finally:
        del TREE["a.py"]
    assert at.segment(1, "task").count("B = 0") == 1
    assert PART["a.py"] not in at.segment(1, "task")


async def test_the_same_unreadable_answer_changes_form_model_and_temperature() -> None:
    policies = Policies.model_validate({"stronger": ["alex"], "answer": {"repair_requests": 0}})
    at = bench(*[says("No idea, sorry.")] * 3, policies=policies)
    assert not (await delivered(at)).accepted
    signs = {"plan": "### `CREATE`", "json": "Answer with one JSON object", "whole": "whole file"}
    forms = [next(form for form, sign in signs.items() if sign in at.segment(n, "rules")) for n in range(3)]
    assert forms == ["plan", "whole", "json"]
    assert [one.temperature for one in at.step.prompts] == [None, None, 1.0]
    assert [one.stronger for one in at.step.prompts] == [False, False, True]


async def test_a_conflict_in_a_long_file_is_resolved_by_an_edit_of_what_was_shown() -> None:
    lines = [f"line_{number} = {number}\n" for number in range(1600)]
    sides = ["".join([*lines[:800], middle, *lines[801:]]) for middle in ("old()\n", "theirs()\n", "mine()\n")]
    marked = (
        "<<<<<<< merged meanwhile\ntheirs()\n||||||| where both began\nold()\n=======\nmine()\n>>>>>>> your story\n"
    )
    merged = "".join([*lines[:800], marked, *lines[801:]])
    work = TaskBrief(
        task=PLAN.tasks[0],
        breakdown=PLAN,
        surface=SURFACE,
        allowed_dependencies=(),
        modified_files={"a.py": merged},
        files=("a.py",),
    )
    conflict = Conflict(path="a.py", base=sides[0], result=sides[1], story=sides[2])
    edit = Edit(path="a.py", pairs=(Pair(find=marked, replace="theirs()\nmine()\n"),))
    at = bench(says(plan(edit), "merge"))

    async def judge(_delivery: Delivery) -> list[Finding]:
        return []

    async def nothing(_paths: Sequence[str]) -> dict[str, str]:
        return {}

    resolved = await Alex(at.desk, brief()).merge(MergeBrief(work=work, conflicts=(conflict,)), judge, nothing)
    assert resolved.accepted, resolved.findings
    assert texts(resolved) == {"a.py": "".join([*lines[:800], "theirs()\nmine()\n", *lines[801:]])}
    asked = at.step.prompts[0].text
    assert asked.count("old()\n=======\nmine()") == 1
    assert asked.count("line_795 = 795") == 1
    assert "line_5 = 5\n" not in asked


async def test_what_a_cut_may_have_taken_is_asked_for_too() -> None:
    old = {"a.py": "A = 0\n", "b.py": "B = 0\n"}
    edits = [
        Edit(path=f"{name.lower()}.py", pairs=(Pair(find=f"{name} = 0\n", replace=f"{name} = 1\n"),)) for name in "AB"
    ]
    text = plan(*edits)
    for end, unknown in ((text.index("A = 1") + 2, "- a.py\n- b.py"), (text.index("---") + 4, "- b.py")):
        at = bench(says(text[:end], stop_reason="max_tokens"), says(plan(edits[1]), "continuation"), says(text))
        result = await delivered(at, old=old)
        assert at.segment(1, "feedback").endswith(unknown), at.segment(1, "feedback")
        assert result.accepted
        assert texts(result) == {"a.py": "A = 1\n", "b.py": "B = 1\n"}
