"""No answer and no test run may hold or end the process that reads it: what is too large is refused by name."""

from collections.abc import Callable, Sequence
from typing import Any

from orchestrator.checks.action_plan import apply_plan
from orchestrator.checks.action_plan_files import PlanWorld
from orchestrator.checks.breakdown import merge_missing, read_breakdown
from orchestrator.checks.breakdown_rules import MAX_FILES, MAX_TASKS, mend
from orchestrator.checks.delivery import read_delivery
from orchestrator.core.action_plan import ActionPlan, Create, Delete
from orchestrator.core.finding import Finding
from tests.world.case import Case, table

STORY, TASK = "S1", "T-S1-01"


def plan_of(count: int, **more: Any) -> dict[str, Any]:
    tasks = [
        {"task_id": f"x{n}", "description": f"After x{n - 1}", "files_to_create": [f"src/a{n}.py"], **more}
        for n in range(count)
    ]
    return {"story_id": STORY, "architectural_conflict": {"detected": False}, "task_count": count, "tasks": tasks}


def files_of(count: int) -> list[dict[str, str]]:
    return [{"path": f"src/a{n}.py", "content": f"A = {n}\n"} for n in range(count)]


def planned(value: object) -> Sequence[Finding]:
    return read_breakdown(value, STORY, names=True)[1]


def added(value: object) -> Sequence[Finding]:
    whole, _ = read_breakdown(plan_of(1), STORY, names=True)
    assert whole is not None
    return merge_missing(whole, value)[1]


def delivered(value: object) -> Sequence[Finding]:
    return read_delivery(value, STORY, TASK)[1]


def applied(actions: Sequence[Create | Delete]) -> Sequence[Finding]:
    world = PlanWorld(paths=frozenset(f"lib/b{n}.py" for n in range(50)), texts={})
    return apply_plan(ActionPlan(title="", rationale="", actions=tuple(actions)), world).findings


@table(
    Case(name="tasks", given=(planned, plan_of(4500)), right={"breakdown.too_many_tasks": 1}, seen="a poison pill"),
    Case(
        name="missing tasks",
        given=(added, {"tasks": plan_of(4500)["tasks"]}),
        right={"breakdown.too_many_tasks": 1},
        seen="the second answer of the same plan",
    ),
    Case(
        name="dependencies",
        given=(planned, plan_of(1, dependencies=[f"x{n}" for n in range(MAX_TASKS + 1)])),
        right={"breakdown.dependency": 1},
        seen="a task that waits for everything",
    ),
    Case(
        name="files of tasks",
        given=(planned, plan_of(1, files_to_create=[f"a{n}.py" for n in range(20_000)])),
        right={"breakdown.tasks": 1},
        seen="one task that makes a whole project",
    ),
    Case(
        name="files as a list",
        given=(delivered, {"files": files_of(20_000)}),
        right={"delivery.too_many_files": 1},
        seen="a poison pill of 1.2 MB",
    ),
    Case(
        name="files by path",
        given=(delivered, {"created_files": {one["path"]: one["content"] for one in files_of(MAX_FILES + 1)}}),
        right={"delivery.too_many_files": 1},
        seen="the same in the other form",
    ),
    Case(
        name="actions",
        given=(applied, [Create(path=f"src/a{n}.py", content="A = 1\n") for n in range(MAX_FILES + 1)]),
        right={"plan.too_long": 1},
        seen="the same as an action plan",
    ),
    Case(
        name="wrong actions",
        given=(applied, [Delete(path=f"lib/c{n}.py") for n in range(900)]),
        right={"plan.missing": 20},
        seen="the nearest file is looked for once for each refusal",
    ),
)
def test_a_large_answer_is_refused_by_name(case: Case) -> None:
    read: Callable[[Any], Sequence[Finding]]
    read, value = case.given
    codes = [finding.code for finding in read(value) if finding.severity.blocks]
    assert {code: codes.count(code) for code in codes} == case.right


def test_an_answer_of_the_largest_size_is_taken() -> None:
    value = plan_of(MAX_TASKS)
    for number, task in enumerate(value["tasks"]):  # each waits for all others: one large tangle
        task["dependencies"] = [f"x{other}" for other in range(MAX_TASKS) if other != number]
    plan, _ = read_breakdown(value, STORY, names=True)
    assert plan is not None
    mended, _ = mend(plan, frozenset())
    assert [len(task.dependencies) for task in mended.tasks] == [*range(MAX_TASKS)]
    assert mended.tasks[1].description == "After T-S1-01"
    delivery, said = read_delivery({"files": files_of(MAX_FILES)}, STORY, TASK)
    assert delivery is not None
    assert (len(delivery.files), said) == (MAX_FILES, [])
