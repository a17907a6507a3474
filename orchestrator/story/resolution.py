"""Has the developer resolve a refused merge: shows both sides, judges the answer, merges it into the story's branch."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from orchestrator.checks.delivery import check_resolution
from orchestrator.checks.kept_tests import joined
from orchestrator.checks.lost_exports import lost_exports
from orchestrator.contract.enforce import check_delivery, without_question
from orchestrator.contract.freeze import rebased, widened, worth_freezing
from orchestrator.core.breakdown import Breakdown, Task
from orchestrator.core.calls.exchange import MergeBrief, TaskBrief
from orchestrator.core.command import Loop, Verdict
from orchestrator.core.contract import ArchitectureContract, Surface
from orchestrator.core.delivery import Delivery, FileChange, Sides, is_lock
from orchestrator.core.event import Level
from orchestrator.core.finding import Finding, blocking, minor
from orchestrator.core.paths import RepoPath, is_test_file
from orchestrator.story.commands import lock_left, merged_locks
from orchestrator.story.commit_message import unlike
from orchestrator.story.context import Progress, Stage, done_tasks
from orchestrator.story.gate import COMMENT
from orchestrator.story.project_scan import around_of, read_users, scan_tree

# Header of a file in a diff.
_CHANGED = re.compile(r"^\+\+\+ b/(.+)$", re.MULTILINE)
LABELS = ("merged meanwhile", "your story")
"""Labels at git's conflict markers, in place of two commits."""
_BEGAN = re.compile(r"^\|{7} [0-9a-f]{7,64}$", re.MULTILINE)


def joined_tests(stage: Stage, sides: Sides) -> dict[str, str]:
    """Returns the test files in conflict that both sides only added to, with the additions of both."""
    tests = [one for one in sides.conflicts if is_test_file(one.path)]
    return {one.path: text for one in tests if (text := joined(one)) is not None}


def out_of_reach(stage: Stage, sides: Sides, contract: ArchitectureContract) -> str:
    """Returns why the developer cannot be asked about this merge, or ""."""
    if sides.unreadable:
        return f"{', '.join(sides.unreadable)} cannot be shown as two texts"
    known = joined_tests(stage, sides)
    tests = [one.path for one in sides.conflicts if is_test_file(one.path) and one.path not in known]
    if tests:
        return f"{', '.join(tests)} belongs to the tester"
    return "" if contract.declared_files else "no task of the plan has a file"


class Resolution:
    """One request to the developer about a refused merge; `red` is the test output on the merged tree."""

    def __init__(
        self, stage: Stage, progress: Progress, plan: Breakdown, contract: ArchitectureContract, sides: Sides, red: str
    ) -> None:
        self._stage, self._progress, self._plan = stage, progress, plan
        self._before, self._red = contract, red
        self._locks = [one.path for one in sides.conflicts if is_lock(one.path)]
        self._joined = joined_tests(stage, sides)
        conflicts = tuple(one for one in sides.conflicts if one.path not in {*self._locks, *self._joined})
        self._sides = sides.model_copy(update={"conflicts": conflicts})
        self._paths = [one.path for one in conflicts]
        theirs = _CHANGED.findall(sides.result_diff) if red else []
        theirs = [path for path in theirs if not is_test_file(path) and not is_lock(path)]
        named = [path for path in theirs if path.rpartition("/")[2] in red]
        self._theirs = named or theirs
        """Files of stories merged meanwhile that may cause a red run: shown, and editable by the answer."""

    async def ask(
        self, said: Sequence[Finding], *, attempt: int, left: int
    ) -> ArchitectureContract | tuple[Finding, ...]:
        """Asks, judges, and merges an accepted answer into the branch together with the result it was made for.

        Returns the story's contract on that result, or why the answer was refused. Raises ProviderError as the turn
        does. `attempt` and `left` count the merge's tries, for the record.
        """
        stage, tree = self._stage, self._sides.tree
        files = await stage.do("files", tuple[str, ...], stage.workspace.files_at, tree)
        contract = await self._rebased()
        task = self._owner(contract)
        # Only lock files, and test files that both only added to, are in conflict.
        if (self._locks or self._joined) and not self._paths:
            await self._take_in(task, Delivery(story_id=stage.story_id, task_id=task.task_id, files=()))
            self._progress.surface = await self._scan(self._sides.onto)
            return contract
        own = sorted({*contract.declared_files, *self._paths, *self._theirs} & set(files))
        texts = await self._texts(own)
        brief = await self._brief(task, files, texts, contract, said)
        wider = widened(contract, task.task_id, [*self._paths, *self._theirs])

        async def judge(delivery: Delivery) -> Sequence[Finding]:
            return await self._judge(delivery, wider, texts, files, said)

        async def look(paths: Sequence[str]) -> Mapping[str, str]:
            return await stage.do("look", dict[str, str], stage.workspace.read_at, tree, paths)

        delivered = await stage.developer.merge(brief, judge, look)
        counts: dict[str, Any] = {"attempt": attempt, "left": left, "task": task.task_id}
        if not delivered.accepted or delivered.delivery is None:
            return await self._refused(blocking(delivered.findings), counts)
        self._progress.note_findings(delivered.findings)
        commit = await self._take_in(task, delivered.delivery)
        self._progress.surface = await self._scan(self._sides.onto)
        paths = delivered.delivery.paths
        stories = ", ".join(one.story for one in self._sides.merged if one.story)
        what = f"brought {', '.join(paths)} together" + (f" with what {stories} changed" if stories else "")
        await stage.decide(
            "merge_resolved",
            f"{delivered.by} {what}; tested again",
            Loop.MERGE,
            Verdict.RESOLVED,
            findings=delivered.findings,
            files=list(paths),
            by=delivered.by,
            commit=commit,
            onto=self._sides.onto,
            contract=contract.model_dump(mode="json"),
            **counts,
        )
        return contract

    async def _refused(self, blocked: tuple[Finding, ...], counts: Mapping[str, Any]) -> tuple[Finding, ...]:
        """Records that the last answer was refused. Returns why."""
        found = _unresolved(blocked[0].message if blocked else "no answer could be read")
        self._progress.note_findings([found])
        await self._stage.decide(
            "merge_unresolved", found.message, Loop.MERGE, Verdict.REFUSED, findings=blocked, level=Level.WARN, **counts
        )
        return blocked

    async def _rebased(self) -> ArchitectureContract:
        """Returns the story's contract on the result, with the files and packages that were merged before."""

        async def work(_step_id: str) -> ArchitectureContract:
            workspace, onto = self._stage.workspace, self._sides.onto
            files = await workspace.files_at(onto)
            manifests = await workspace.read_at(onto, [path for path in files if worth_freezing(path)])
            return rebased(self._before, base_commit=onto, files=files, manifests=manifests)

        return await self._stage.step.step("rebase", work, ArchitectureContract)

    def _owner(self, contract: ArchitectureContract) -> Task:
        """Returns the task of the first file in conflict or in the failing tests, else the last one with files."""
        owned = [(task, contract.task_files.get(task.task_id, ())) for task in self._plan.tasks]
        for path in self._paths:
            owners = [task for task, files in owned if path in files]
            if owners:
                return owners[0]
        with_files = [(task, files) for task, files in owned if files]
        named = [task for task, files in with_files if any(path in self._red for path in files)]
        return named[0] if named else with_files[-1][0]

    async def _texts(self, paths: Sequence[str]) -> dict[str, str]:
        """Returns the story's merged files; conflict markers name the sides."""
        read_at = self._stage.workspace.read_at
        texts = await self._stage.do("read", dict[str, str], read_at, self._sides.tree, paths)
        return {path: self._labelled(text) if path in self._paths else text for path, text in texts.items()}

    def _labelled(self, text: str) -> str:
        for sign, commit, label in zip("<>", (self._sides.onto, self._sides.head), LABELS, strict=True):
            text = text.replace(f"{sign * 7} {commit}", f"{sign * 7} {label}")
        return _BEGAN.sub("||||||| where both began", text)

    async def _brief(
        self,
        task: Task,
        files: tuple[str, ...],
        texts: dict[str, str],
        contract: ArchitectureContract,
        said: Sequence[Finding],
    ) -> MergeBrief:
        work = TaskBrief(
            task=task.model_copy(update={"files_to_create": tuple(RepoPath(path) for path in texts)}),
            breakdown=self._plan,
            surface=await self._scan(self._sides.tree),
            allowed_dependencies=tuple(sorted(contract.allowed_dependencies)),
            modified_files=texts,
            files=files,
            done_tasks=done_tasks(self._progress, self._plan),
        )
        return MergeBrief(
            work=work,
            merged=self._sides.merged,
            conflicts=self._sides.conflicts,
            red=self._red,
            result_diff=self._sides.result_diff,
            story_diff=self._sides.story_diff,
            said=tuple(said),
        )

    async def _scan(self, tree: str) -> Surface:
        workspace = self._stage.workspace
        return await scan_tree(self._stage, partial(workspace.files_at, tree), partial(workspace.read_at, tree))

    async def _judge(
        self,
        delivery: Delivery,
        contract: ArchitectureContract,
        texts: Mapping[str, str],
        files: tuple[str, ...],
        said: Sequence[Finding],
    ) -> list[Finding]:
        """Returns findings on the answer. Runs no commands: the suites run later, on the committed tree."""
        results = {one.path: one.result for one in self._sides.conflicts}
        # Naming a loss in an earlier refusal does not permit the same loss again.
        about = "\n".join(finding.message for finding in said if finding.code == COMMENT)
        around = around_of(self._stage, self._progress, self._plan, contract, about)
        # Losses in a file that was in conflict are judged against both sides.
        others = {path: text for path, text in texts.items() if path not in self._paths}
        lost = await asyncio.to_thread(lost_exports, delivery, others, about)
        if lost:
            read = partial(self._stage.workspace.read_at, self._sides.tree)
            around = around.model_copy(update={"others": await read_users(self._stage, lost, files, read)})
        silent = delivery.model_copy(update={"commands": ()})
        held = await asyncio.to_thread(check_delivery, contract, silent, {**texts, **results}, self._progress.installed)
        found = await asyncio.to_thread(check_resolution, delivery, self._sides.conflicts, texts, around)
        return [*found, *map(without_question, held)]

    async def _take_in(self, task: Task, delivery: Delivery) -> str:
        """Commits the answer; regenerates lock files in conflict from the merged manifests."""
        tests = (FileChange(path=RepoPath(path), content=text) for path, text in self._joined.items())
        files = (*delivery.files, *tests)
        if self._locks:
            texts: dict[str, str] = {change.path: change.content for change in files}
            made = await merged_locks(self._stage, self._sides.tree, self._sides.onto, texts, self._locks)
            self._progress.note_findings([lock_left(told, task.task_id) for told in made.told])
            self._progress.locks |= {change.path: change.content for change in made.files}
            files = (*files, *made.files)

        said = unlike(f"Merge the result branch into {self._stage.story_id}", self._progress.subjects)

        async def work(step_id: str) -> str:
            note = self._stage.note(said, step_id, task.task_id, delivery.rationale)
            return await self._stage.workspace.take_in(self._stage.story_id, self._sides.onto, files, note)

        commit = await self._stage.step.step("take_in", work, str)
        self._progress.head = commit
        self._progress.subjects.append(said)
        return commit


def _unresolved(why: str) -> Finding:
    return minor(
        "merge.unresolved",
        f"the developer was asked to bring both sides together, and the answer was refused: {why}",
        fix="look at the answer in the story's record; a comment to the gate's question asks once more",
    )
