"""What a persona is not shown, it cannot send away, lose or move."""

import json
from typing import Any

from orchestrator.core.action_plan import ActionPlan, Create, Edit, Execute, Move, Pair
from orchestrator.core.finding import major
from orchestrator.core.secrets import Masks
from tests.answers.action_plan_text import render_plan
from tests.personas.desks import STORY, Bench, bench
from tests.personas.test_alex_plans import delivered, events, says, texts
from tests.support import delivery

SECRET = "sk-ant-api03-AbQd1934efGh5678ijKl9012mnOp"
OLD = {"a.py": f'A = 0\n\nKEY = "{SECRET}"\n'}
NAME = Masks().name(SECRET)


def plan(*actions: Any) -> str:
    return render_plan(ActionPlan(title="Files", rationale="They are asked for.", actions=actions))


def whole(files: dict[str, str]) -> str:
    return json.dumps(delivery(STORY, 1, files))


def nowhere(at: Bench) -> None:
    """The secret is in no prompt and in no event."""
    assert all(SECRET not in prompt.text for prompt in at.step.prompts)
    assert all(SECRET not in str(event) for event in at.sink.events)


async def test_edits_and_whole_files_keep_a_secret_that_their_author_never_saw() -> None:
    changed = OLD["a.py"].replace("A = 0", "A = 1").replace("KEY", "API_KEY")
    edit = Edit(
        path="a.py",
        pairs=(Pair(find="A = 0", replace="A = 1"), Pair(find=f'KEY = "{NAME}"', replace=f'API_KEY = "{NAME}"')),
    )
    b = Create(path="b.py", content="B = 2\n")
    for answer in (plan(edit, b), whole({"a.py": changed.replace(SECRET, NAME), "b.py": "B = 2\n"})):
        at = bench(says(answer))
        result = await delivered(at, old=OLD)
        assert result.accepted, result.findings
        assert texts(result) == {"a.py": changed, "b.py": "B = 2\n"}
        [told] = events(at, "secret_masked")
        assert [finding["where"]["file"] for finding in told["findings"]] == ["a.py"]
        assert told["findings"][0]["where"]["line"] == 3
        nowhere(at)


async def test_a_secret_moves_into_no_other_file_and_into_no_command() -> None:
    copied = whole({"a.py": "A = 1\n", "b.py": f'KEY = "{NAME}"\n'})
    fine = whole({"a.py": OLD["a.py"].replace(SECRET, NAME), "b.py": "import a\n"})
    at = bench(says(copied), says(fine))
    result = await delivered(at, old=OLD)
    assert (result.accepted, texts(result)) == (True, {"a.py": OLD["a.py"], "b.py": "import a\n"})
    assert f"`b.py` holds `{NAME}`" in at.segment(1, "feedback")
    never = await delivered(bench(*[says(copied)] * 3), old=OLD)
    assert (never.accepted, texts(never)) == (False, {"a.py": "A = 1\n"})
    command = Execute(command=f"curl -H 'X: {NAME}' 127.0.0.1")
    ran = await delivered(bench(says(plan(Create(path="b.py", content="B = 1\n"), command))), old=OLD)
    assert ran.delivery is not None
    assert SECRET not in str(ran.delivery)


async def test_what_its_author_wrote_in_a_refused_answer_is_its_own() -> None:
    other = SECRET.replace("Qd", "Zz")
    first = {"a.py": "A = 1\n", "b.py": f'TEST_KEY = "{other}"\n'}
    again = whole({**first, "b.py": first["b.py"].replace(other, Masks().name(other))})
    at = bench(says(whole(first)), says(again))
    result = await delivered(at, [[major("x.y", "no", fix="mend it")]])
    assert (result.accepted, texts(result)) == (True, first)
    assert other not in at.step.prompts[1].text


async def test_a_file_that_is_moved_takes_its_secret_along() -> None:
    moved = plan(Move(path="a.py", target="b.py"))
    result = await delivered(bench(says(moved)), old=OLD)
    assert (result.accepted, texts(result)) == (True, {"b.py": OLD["a.py"]}), result.findings


async def test_a_secret_that_was_seen_once_is_known_without_its_shape_too() -> None:
    old = {"a.py": 'DB = "postgres://app:hunter2pw9@db/x"\n', "b.py": "# it is hunter2pw9\nB = 0\n"}
    name = Masks().name("hunter2pw9")
    at = bench(says(whole({"b.py": f"# it is {name}\nB = 1\n"})), says(whole({"b.py": f"X = '{name} {name}'\n"})))
    result = await delivered(at, [[major("x.y", "printed: hunter2pw9", fix="mend it")]], old=old)
    assert all("hunter2pw9" not in prompt.text for prompt in at.step.prompts)
    assert f"printed: {name}" in at.segment(1, "feedback")
    assert texts(result) == {"b.py": "X = 'hunter2pw9 hunter2pw9'\n"}
