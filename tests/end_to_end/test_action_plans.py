"""A sprint whose developer and tester answer with action plans: read, edit, run."""

import pytest

from orchestrator.core.action_plan import Action, ActionPlan, Create, Edit, Execute, Pair, Read
from tests.answers.action_plan_text import render_plan
from tests.support import PLAIN_TESTS, Played, Team, make_repo, play, suite_text, write_backlog

CRLF = "def value():\r\n    return 0\r\n"
WHOLE = "def value():\n    return 1\n"
BASE = {"works.py": CRLF, "kept.py": "KEPT = 1\n"}


def plan(*actions: Action) -> str:
    return render_plan(ActionPlan(title="The task", rationale="As asked.", actions=actions))


def says(team: Team, story: str, *actions: Action, number: int = 1) -> None:
    team.say("alex", story, "delivery", plan(*actions), task=number)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """WORKS edits and runs in a task each; INSTALLS is refused."""
    folder = tmp_path_factory.mktemp("plans")
    team = Team()
    team.plan("WORKS", ["works.py"], ["runs.py"])
    says(team, "WORKS", Read(resource="kept.py"))
    says(team, "WORKS", Edit(path="works.py", pairs=(Pair(find="return 2\n", replace="return 1\n"),)))
    says(team, "WORKS", Edit(path="works.py", pairs=(Pair(find="    return 0\n", replace="    return 1\n"),)))
    check = Execute(command="python -c 'import runs' && python -c 'import runs; assert runs.value() == 1'")
    says(team, "WORKS", Create(path="runs.py", content="def value():\n    return 2\n"), check, number=2)
    may_fail = Execute(command="false", allow_failure=True)
    says(team, "WORKS", Create(path="runs.py", content=WHOLE), may_fail, check, number=2)
    case = ("`test_works`: it is there",)
    suite = ActionPlan(
        title="Tests",
        rationale="One.",
        lists={"test cases": case},
        actions=(Create(path="tests/test_works.py", content=suite_text("WORKS")),),
    )
    team.say("jordan", "WORKS", "suite", render_plan(suite))
    team.plan("INSTALLS", ["installs.py"])
    for _ in range(3):
        says(team, "INSTALLS", Create(path="installs.py", content=WHOLE), Execute(command="pip install evil-pkg"))
    nothing = {"files": [], "dependencies": {}, "reason": "the story needs no package"}
    team.say("mike", "INSTALLS", "amendment", nothing)
    backlog = write_backlog(folder / "backlog.csv", "WORKS", "INSTALLS")
    return play(folder, team, backlog, PLAIN_TESTS, repo=make_repo(folder / "repo", BASE))


def test_a_file_is_read_first_and_edited_then(played: Played) -> None:
    assert played.status("WORKS") == "done", played.story("WORKS").findings
    asked = [f"{call['task']} {call['turn']}" for call in played.calls if call["persona"] == "alex"]
    assert [one for one in asked if "WORKS-01" in one] == [f"T-WORKS-01 {turn}" for turn in (1, 2, 3)]
    assert played.told_of("WORKS", "files_shown")[0].data["files"] == ["kept.py"]
    assert played.sent_back("WORKS") == ["plan.not_found", "command.failed"]
    first = played.told_of("WORKS", "answer_sent_back")[0].data["findings"][0]
    assert "the nearest text is at line 2" in first["message"]
    assert [case.name for case in played.story("WORKS").tests.cases] == ["test_works"]
    assert [row.criterion for row in played.story("WORKS").tests.cases] == ["it is there"]


def test_a_command_of_the_plan_is_run_and_its_failing_step_is_a_lesson(played: Played) -> None:
    said = played.told_of("WORKS", "answer_sent_back")[1].data["findings"][0]["message"]
    assert said.startswith("`python -c 'import runs; assert runs.value() == 1'` ended with exit code 1")
    finished = [event.message for event in played.told_of("WORKS", "command_finished")]
    assert [("(may fail)" in message) for message in finished] == [False, True, False]


def test_a_command_that_installs_what_the_plan_does_not_name_is_never_run(played: Played) -> None:
    assert played.status("INSTALLS") == "failed"
    assert played.asked("INSTALLS") == ["breakdown 1", "delivery 1", "amendment 1", "delivery 2", "delivery 3"]
    assert "contract.dependency" in played.codes("INSTALLS")
    assert played.told_of("INSTALLS", "command_finished") == []
