"""Files that git ignores are in no commit: the plan is told, and that the commands which make them leave nothing."""

from pathlib import Path

from orchestrator.core.sprint import StoryStatus
from orchestrator.core.suite import CommandResult
from tests.story.test_story import A, Stand, codes, good, provider
from tests.support import suite_text, task

BASE = {".gitignore": "made\n"}


async def test_a_plan_that_lists_one_is_told_once_and_its_text_is_left_out(tmp_path: Path) -> None:
    stand = Stand(tmp_path, base=BASE)
    for _ in range(2):
        stand.team.plan(A, ["us_1.py", "made/table.txt"])
    stand.team.deliver(A, 1, {**good(), "made/table.txt": "1\n"})
    stand.team.suite(A, suite_text(A))
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.DONE, outcome.findings
    assert stand.asked == ["breakdown 1", "breakdown 2", "delivery 1", "suite 1"]
    assert "leaves `made/table.txt` out" in stand.step.prompts[1].text
    assert "delivery.ignored_file" in codes(outcome)
    assert {*stand.workspace.result} == {".gitignore", "us_1.py", "tests/test_us_1.py"}


async def test_what_a_command_makes_of_them_is_told_and_what_a_test_run_leaves_is_not(tmp_path: Path) -> None:
    left = CommandResult(argv=(), exit_code=0, output="", left=("made/table.txt", "made/run.log"))
    stand = Stand(tmp_path, base=BASE, commands=[left] * 3)
    tasks = [task(A, 2, ["made/table.txt"], "make table"), task(A, 3, [], "make more"), task(A, 4, [], "npm test")]
    for _ in range(2):
        stand.team.plan(A, task(A, 1, ["us_1.py"]), *tasks)
    stand.team.deliver(A, 1, good())
    stand.team.deliver(A, 2, {"made/table.txt": "by hand\n"})
    stand.team.suite(A, suite_text(A))
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.DONE, outcome.findings
    commits = [event for event in stand.sink.named("task_committed")]
    assert [event.message.partition(": ")[2] for event in commits] == ["us_1.py"]
    told = [finding.message for finding in outcome.findings if finding.code == "command.not_kept"]
    left = "made what no commit has and is not kept: made/table.txt"
    assert told == [f"`make {what}` {left}" for what in ("table", "more")]
    assert {*stand.workspace.result} == {".gitignore", "us_1.py", "tests/test_us_1.py"}
