"""A sprint whose developer and tester answer with action plans: read, edit, move, delete, run; and one in JSON."""

import subprocess

import pytest

from orchestrator.core.action_plan import Action, ActionPlan, Create, Delete, Edit, Execute, Move, Pair, Read
from tests.answers.action_plan_text import render_plan
from tests.support import Played, Team, make_repo, module_of, play, suite_text, write_backlog

CRLF = "def value():\r\n    return 0\r\n"
WHOLE = "def value():\n    return 1\n"
BASE = {
    "edits.py": CRLF,
    "kept.py": "KEPT = 1\n",
    "moves_old.py": WHOLE,
    "gone.py": "X = 1\n",
    "mends_old.py": "def value():\n    return 2\n",
}


def plan(*actions: Action, **lists: tuple[str, ...]) -> str:
    return render_plan(ActionPlan(title="The task", rationale="As asked.", lists=lists, actions=actions))


def says(team: Team, story: str, *actions: Action) -> None:
    team.say("alex", story, "delivery", plan(*actions), task=1)


def suite_of(team: Team, story: str) -> None:
    """The story's usual suite, as a plan."""
    module = module_of(story)
    case = (f"`test_{module}`: it is there",)
    team.say(
        "jordan",
        story,
        "suite",
        render_plan(
            ActionPlan(
                title="Tests",
                rationale="One.",
                lists={"test cases": case},
                actions=(Create(path=f"tests/test_{module}.py", content=suite_text(story)),),
            )
        ),
    )


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    folder = tmp_path_factory.mktemp("plans")
    team = Team()
    team.plan("EDITS", ["edits.py"])
    says(team, "EDITS", Read(resource="kept.py"))
    says(team, "EDITS", Edit(path="edits.py", pairs=(Pair(find="return 2\n", replace="return 1\n"),)))
    says(team, "EDITS", Edit(path="edits.py", pairs=(Pair(find="    return 0\n", replace="    return 1\n"),)))
    team.plan("MOVES", ["moves.py", "moves_old.py", "gone.py"])
    says(team, "MOVES", Move(path="moves_old.py", target="moves.py"), Delete(path="gone.py"))
    team.plan("MENDS", ["mends.py", "mends_old.py"])
    says(team, "MENDS", Move(path="mends_old.py", target="mends.py"))
    team.analyse("MENDS", ("mends.py", "return 1"))
    says(team, "MENDS", Edit(path="mends.py", pairs=(Pair(find="    return 2\n", replace="    return 1\n"),)))
    team.plan("RUNS", ["runs.py"])
    check = Execute(command="python -c 'import runs' && python -c 'import runs; assert runs.value() == 1'")
    says(team, "RUNS", Create(path="runs.py", content="def value():\n    return 2\n"), check)
    says(team, "RUNS", Create(path="runs.py", content=WHOLE), Execute(command="false", allow_failure=True), check)
    team.plan("INSTALLS", ["installs.py"])
    for _ in range(3):
        says(team, "INSTALLS", Create(path="installs.py", content=WHOLE), Execute(command="pip install evil-pkg"))
    nothing = {"files": [], "dependencies": {}, "reason": "the story needs no package"}
    team.say("mike", "INSTALLS", "amendment", nothing)
    team.plan("TAKES", ["takes.py"])
    says(team, "TAKES", Read(resource="kept.py"))
    for _ in range(2):
        says(team, "TAKES", Create(path="takes.py", content=WHOLE), Delete(path="kept.py"))
    team.good("PLAIN")
    for story in ("EDITS", "MOVES", "MENDS", "RUNS"):
        suite_of(team, story)
    backlog = write_backlog(folder / "backlog.csv", "EDITS", "MOVES", "MENDS", "RUNS", "INSTALLS", "TAKES", "PLAIN")
    return play(folder, team, backlog, repo=make_repo(folder / "repo", BASE))


def test_a_file_is_read_first_and_edited_then(played: Played) -> None:
    assert played.status("EDITS") == "done", played.story("EDITS").findings
    assert played.asked("EDITS", "alex") == ["delivery 1", "delivery 2", "delivery 3"]
    assert played.told_of("EDITS", "files_shown")[0].data["files"] == ["kept.py"]
    assert played.sent_back("EDITS") == ["plan.not_found"]
    assert (
        "the nearest text is at line 2" in played.told_of("EDITS", "answer_sent_back")[0].data["findings"][0]["message"]
    )
    assert [case.name for case in played.story("EDITS").tests.cases] == ["test_edits"]
    assert [row.criterion for row in played.story("EDITS").tests.cases] == ["it is there"]


def test_files_move_and_go(played: Played) -> None:
    assert played.status("MOVES") == "done", played.story("MOVES").findings
    assert played.tree("MOVES") == ["edits.py", "kept.py", "mends_old.py", "moves.py", "tests/test_moves.py"]
    assert played.told_of("MOVES", "task_committed")[0].data["removed"] == ["moves_old.py", "gone.py"]


def test_a_file_that_was_moved_away_is_not_asked_for_when_its_task_is_mended(played: Played) -> None:
    assert played.status("MENDS") == "done", played.story("MENDS").findings
    assert played.asked("MENDS", "alex") == ["delivery 1", "delivery 2"]
    assert played.sent_back("MENDS") == []


def test_a_command_of_the_plan_is_run_and_its_failing_step_is_a_lesson(played: Played) -> None:
    assert played.status("RUNS") == "done", played.story("RUNS").findings
    assert played.sent_back("RUNS") == ["command.failed"]
    said = played.told_of("RUNS", "answer_sent_back")[0].data["findings"][0]["message"]
    assert said.startswith("`python -c 'import runs; assert runs.value() == 1'` ended with exit code 1")
    finished = [event.message for event in played.told_of("RUNS", "command_finished")]
    assert [("(may fail)" in message) for message in finished] == [False, True, False]


def test_a_command_that_installs_what_the_plan_does_not_name_is_never_run(played: Played) -> None:
    assert played.status("INSTALLS") == "failed"
    assert played.asked("INSTALLS") == ["breakdown 1", "delivery 1", "amendment 1", "delivery 2", "delivery 3"]
    assert "contract.dependency" in played.codes("INSTALLS")
    assert played.told_of("INSTALLS", "command_finished") == []


def test_the_closed_world_holds_for_plans(played: Played) -> None:
    assert played.status("TAKES") == "failed"
    assert played.codes("TAKES") >= {"contract.deletion"}
    assert played.text("result", "kept.py") == "KEPT = 1"


def test_the_report_says_which_form_was_read_how_well(played: Played) -> None:
    told = played.result.report.totals["forms"]
    assert isinstance(told, list)
    forms = {form["form"]: form for form in told}
    assert forms["json"]["answers"] == forms["json"]["whole"] == 2
    assert (forms["plan"]["answers"], forms["plan"]["unreadable"]) == (18, 0)
    assert played.status("PLAIN") == "done"


def test_the_files_own_line_ends_are_kept(played: Played) -> None:
    blob = ["git", "--git-dir", str(played.mirror), "show", f"{played.ref('result')}:edits.py"]
    assert subprocess.run(blob, capture_output=True, check=True).stdout == CRLF.replace("0", "1").encode()
