"""Never a false done, never a false no: what decides whether a story is merged, and what is paid until then."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orchestrator.core.breakdown import Breakdown
from orchestrator.core.calls.exchange import Analysed
from orchestrator.core.command import Choice, Gate, GateAnswer
from orchestrator.core.sprint import StoryStatus
from orchestrator.core.suite import CommandResult, FailureInstruction
from orchestrator.story.suite_loop import orders
from orchestrator.testing.simulated import report
from tests.story.test_story import A, Stand, codes, good, provider, statuses
from tests.support import breakdown, delivery, reviewed, suite_text, task
from tests.world.case import Case, table

BAD_COMMAND = CommandResult(argv=("sh",), exit_code=2, output="no such thing")
FIRST = {"first.py": "ONE = 1\n"}
BROKEN = {"us_1.py": "def value(:\n"}


@table(
    Case(
        name="files that never compile",
        given=(task(A, 2, ["us_1.py"]), [BROKEN] * 3, []),
        right=["delivery 1", "delivery 1", "delivery 2", "delivery 3"],
        seen="half of a delivery was kept, then suite, runs and analyses were paid for a story that could not merge",
    ),
    Case(
        name="a file that never comes",
        given=(task(A, 2, ["us_1.py", "more.py"]), [good()] * 3, []),
        right=["delivery 1", "delivery 1", "delivery 2", "delivery 3"],
        seen="us_1.py alone was committed as partial work",
    ),
    Case(
        name="a command that fails each time",
        given=(task(A, 2, ["us_1.py"], "check it"), [good()] * 3, [BAD_COMMAND] * 3),
        right=["delivery 1", "delivery 1", "delivery 2", "delivery 3"],
        seen="limits of a task's command",
    ),
    Case(
        name="a task of a command alone",
        given=(task(A, 2, [], "make it"), [], [BAD_COMMAND]),
        right=["delivery 1"],
        seen="a plan whose last task runs a generator that is not installed",
    ),
    Case(
        name="nothing that can be read",
        given=(task(A, 2, ["us_1.py"]), ["I cannot say."] * 3, []),
        right=["delivery 1", "delivery 1", "repair 1", "delivery 2", "delivery 3"],
        seen="small models",
    ),
)
async def test_a_task_that_is_not_accepted_ends_its_story_before_more_is_paid(case: Case, tmp_path: Path) -> None:
    second, answers, commands = case.given
    stand = Stand(tmp_path, commands=commands)
    waits = task(A, 3, ["later.py"], dependencies=[second["task_id"]])
    stand.team.plan(A, task(A, 1, [*FIRST]), second, waits, task(A, 4, ["free.py"], dependencies=[]))
    stand.team.deliver(A, 1, FIRST)
    for answer in answers:
        text = answer if isinstance(answer, str) else delivery(A, 2, answer)
        stand.team.say("alex", A, "delivery", text, task=2)
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.NEEDS_ATTENTION
    assert stand.asked == ["breakdown 1", *case.right]
    assert list(statuses(outcome).values()) == ["done", "failed", "pending", "pending"]
    assert (outcome.attempts, stand.runner.ran) == (0, [])
    assert "story.unfinished" in codes(outcome)
    assert await stand.workspace.files(A) == ("first.py",), "what was accepted stays, and nothing of the rest"


NO = reviewed("No", "[us_1.py:2] It returns nothing useful")
PIPELINE = ".github/workflows/test.yml"
JOBS = "on: [push]\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n      - run: pytest\n"


@table(
    Case(name="nothing else stops it", given=("Yes", []), right=[Choice.CANCEL], seen="a plan that adds a pipeline"),
    Case(name="a task is not approved", given=("No", []), right=[], seen="approved by a person, and not merged anyway"),
    Case(
        name="the tests are red",
        given=("Yes", [report(failed=["test_us_1"])]),
        right=[],
        seen="a question about a story that could not be merged",
    ),
)
async def test_a_person_is_asked_only_about_a_story_that_nothing_else_stops(case: Case, tmp_path: Path) -> None:
    ready, runs = case.given
    stand, answered = Stand(tmp_path, stories=runs), list[Choice]()

    def answers(gate: Gate) -> GateAnswer:
        answered.append(Choice.CANCEL)
        return GateAnswer(number=gate.number, choice=Choice.CANCEL, by="ada")

    stand.person = answers
    stand.team.plan(A, ["us_1.py", PIPELINE])
    stand.team.deliver(A, 1, {**good(), PIPELINE: JOBS})
    stand.team.review(A, 1, NO if ready == "No" else reviewed("Yes"))
    stand.team.suite(A, suite_text(A))
    policies: dict[str, Any] = {"review": {"enabled": True, "max_iterations": 1}, "test": {"max_attempts": 1}}
    policies |= {"gate": {"mode": "escalations"}, "pushed": True}
    outcome = await stand.run(await provider(stand.team, tmp_path), **policies)
    assert outcome.status is StoryStatus.NEEDS_ATTENTION
    assert answered == case.right, outcome.findings


def asked_again(tasks: Sequence[Sequence[str]], said: Sequence[str], output: str = "") -> list[tuple[str, list[str]]]:
    """Tasks that a red run sends back to the developer, each with the files that it is asked about."""
    plan = Breakdown.model_validate(breakdown(A, *(task(A, n, files) for n, files in enumerate(tasks, start=1))))
    told = Analysed(instructions=tuple(FailureInstruction(file=path, issue="wrong", fix="right") for path in said))
    red = report(failed=["test_us_1"], message=output)
    owned = {one.task_id: one.files_to_create for one in plan.tasks}
    found = orders(plan, owned, told, red)
    return [(one.task.task_id[-2:], [i.file for i in one.instructions] or [*one.task.files_to_create]) for one in found]


@table(
    Case(
        name="an instruction for a file of two tasks",
        given=([["a.py"], ["a.py", "b.py"]], ["a.py"], ""),
        right=[("02", ["a.py"])],
        seen="two paid deliveries of the same file per red run, the second over the first",
    ),
    Case(
        name="each its own",
        given=([["a.py", "shared.py"], ["b.py", "shared.py"]], ["a.py", "shared.py", "b.py"], ""),
        right=[("01", ["a.py"]), ("02", ["shared.py", "b.py"])],
        seen="an index file that every task adds to",
    ),
    Case(
        name="two instructions for one file",
        given=([["a.py"], ["a.py"], ["b.py"]], ["a.py", "a.py"], ""),
        right=[("02", ["a.py", "a.py"])],
        seen="one function each",
    ),
    Case(
        name="without an analysis, by the output",
        given=([["a.py"], ["a.py"], ["b.py"]], [], "a.py: assert 1 == 2"),
        right=[("02", ["a.py"])],
        seen="an analysis that could not be read",
    ),
    Case(
        name="without an analysis, all",
        given=([["a.py", "c.py"], ["a.py"], []], [], "assert 1 == 2"),
        right=[("01", ["c.py"]), ("02", ["a.py"])],
        seen="an analysis that could not be read",
    ),
)
def test_a_file_of_two_tasks_is_delivered_once_for_a_red_run(case: Case) -> None:
    assert asked_again(*case.given) == case.right
