"""One task: a delivery that takes files away, and where its checks run."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import pytest

from orchestrator.contract.freeze import freeze
from orchestrator.core.breakdown import Breakdown
from orchestrator.core.calls.exchange import Delivered, StoryBrief, TaskBrief
from orchestrator.core.contract import Surface
from orchestrator.core.delivery import Delivery, FileChange
from orchestrator.core.finding import Finding, blocking
from orchestrator.core.sprint import TaskStatus
from orchestrator.core.story import Story
from orchestrator.settings import Policies
from orchestrator.story.context import Progress, Stage
from orchestrator.story.task import Order, TaskRun
from tests.memory_workspace import MemoryWorkspace
from tests.simulated import MemorySink, SimulatedRunner, SimulatedStep
from tests.support import breakdown, task

BASE = {"old.py": "X = 1\n", "README.md": "hello\n"}
PLAN = Breakdown.model_validate(breakdown("A", task("A", 1, ["old.py", "new.py"], "true")))
CONTRACT = freeze(breakdown=PLAN, base_commit="", files=tuple(BASE), manifests={})


class Delivers:
    """A developer with one delivery, whatever is said of it."""

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery
        self.said: Sequence[Finding] = ()

    async def deliver(
        self, brief: TaskBrief, judge: Callable[[Delivery], Awaitable[Sequence[Finding]]], look: object
    ) -> Delivered:
        self.said = await judge(self._delivery)
        return Delivered(delivery=self._delivery, accepted=not blocking(self.said), findings=tuple(self.said))


async def settled(delivery: Delivery) -> tuple[TaskStatus, MemoryWorkspace, MemorySink]:
    workspace, sink = MemoryWorkspace(base_files=BASE), MemorySink()
    unused = cast(Any, None)
    stage = Stage(
        brief=StoryBrief(story=Story(id="A", title="A"), sprint="sprint"),
        policies=Policies(),
        step=SimulatedStep(unused, sink, sprint="sprint", story="A"),
        architect=unused,
        developer=Delivers(delivery),
        tester=unused,
        workspace=workspace,
        runner=SimulatedRunner(),
        older=unused,
    )
    progress = Progress(branch=await workspace.open("A"), surface=Surface(commit="", files=tuple(BASE)))
    progress.tasks["T-A-01"] = TaskStatus.PENDING
    run = TaskRun(stage, progress, PLAN, CONTRACT)
    return await run.run(Order(task=PLAN.tasks[0])), workspace, sink


async def test_what_is_taken_away_is_committed_and_told() -> None:
    files = (FileChange(path="new.py", content="X = 1\n"),)
    status, workspace, sink = await settled(Delivery(story_id="A", task_id="T-A-01", files=files, removed=("old.py",)))
    assert status is TaskStatus.DONE
    assert await workspace.files("A") == ("README.md", "new.py")
    (told,) = [event for event in sink.events if event.name == "task_committed"]
    assert (told.data["files"], told.data["removed"]) == (["new.py"], ["old.py"])
    assert "old.py (removed)" in told.message


@pytest.mark.parametrize("files", [(), (FileChange(path="new.py", content="X = (\n"),)])
async def test_of_a_delivery_that_is_not_accepted_nothing_is_committed(files: tuple[FileChange, ...]) -> None:
    status, workspace, _ = await settled(Delivery(story_id="A", task_id="T-A-01", files=files, removed=("old.py",)))
    assert status is TaskStatus.FAILED
    assert await workspace.files("A") == ("README.md", "old.py")
