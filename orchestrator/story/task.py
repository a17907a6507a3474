"""Runs one task: requests it, judges it before anything is written, runs its commands, and commits it once."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from orchestrator.checks.breakdown import unwritten_files
from orchestrator.checks.content import check_content, check_whole
from orchestrator.checks.lost_exports import lost_exports
from orchestrator.contract.enforce import check_delivery
from orchestrator.core.breakdown import Breakdown, Task
from orchestrator.core.calls.exchange import PastAttempt, TaskBrief
from orchestrator.core.command import Loop, Verdict
from orchestrator.core.contract import ArchitectureContract, InstalledPackages
from orchestrator.core.delivery import Answer, Delivery, FileChange, LockFiles, Reviewed
from orchestrator.core.errors import ProviderError
from orchestrator.core.event import Level
from orchestrator.core.finding import Finding, Severity, Where, blocking, minor, questions
from orchestrator.core.sprint import StoryStatus, TaskStatus
from orchestrator.core.suite import FailureInstruction
from orchestrator.story.amendment import Amendments
from orchestrator.story.commands import Commanded, check_shell, follow_locks, lock_left, run_commands
from orchestrator.story.commit_message import fitted, subject_of, unlike
from orchestrator.story.context import Progress, Stage, StoryStopped, TaskReviews, done_tasks
from orchestrator.story.project_map import file_outline, near_paths, nearby, parts_of
from orchestrator.story.project_scan import around_of, read_users
from orchestrator.story.review import review_task, unsettled

UNSAFE_PATH = "delivery.unsafe_path"
"""Counts as a contract violation, because no contract allows it."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """One request to the developer."""

    task: Task
    instructions: tuple[FailureInstruction, ...] = ()
    failure_output: str = ""
    analysed: str = ""
    """What else the tester says of the failure."""
    attempt: int = 1
    """Number of the suite's run that it is built for."""
    history: tuple[PastAttempt, ...] = ()
    repeated: str = ""
    """The recurring failure, when another approach is wanted."""


class TaskRun:
    """Runs the tasks of a planned story in order, on its branch; an amendment extends `contract`."""

    def __init__(self, stage: Stage, progress: Progress, plan: Breakdown, contract: ArchitectureContract) -> None:
        self._stage, self._progress = stage, progress
        self._plan, self.contract = plan, contract
        self.amendments = Amendments(stage, progress, plan)
        self._last = Commanded()
        """Results of the last delivery's commands."""
        self._declaring: tuple[FileChange, ...] = ()
        """The last delivery's manifests with amended packages."""
        self._locks = LockFiles()
        """Lock files regenerated from those manifests."""
        self.refused: dict[str, tuple[Finding, ...]] = {}
        """Why a task's last delivery was not accepted, by its id."""
        self._installed: dict[frozenset[str], InstalledPackages] = {}
        """Installed packages by the set of allowed packages."""

    async def run(self, order: Order) -> TaskStatus:
        """Delivers, runs commands, commits and reviews the task; repeats while reviewers request it within the budget.

        Raises StoryStopped when a contract violation survives the retries.
        """
        task = order.task
        if not self._own(task):
            return await self._command_only(order)
        self._progress.reviews.setdefault(task.task_id, TaskReviews(since=self._progress.head))
        reviewing = self._stage.policies.loop(Loop.REVIEW, lambda status: status is None)
        status: TaskStatus = await reviewing(self._reviewed, order)
        return status

    async def _reviewed(self, order: Order) -> TaskStatus | None:
        """Requests one delivery and its review; returns None when the task goes back to the developer."""
        task, before = order.task, self._progress.tasks.get(order.task.task_id)
        accepted, findings = await self._delivered(order)
        if not accepted:
            # What an earlier delivery made is on the branch, whole.
            whole = before in {TaskStatus.DONE, TaskStatus.UNAPPROVED}
            return await self._ended(order, before if before and whole else TaskStatus.FAILED, findings)
        if not self._stage.reviewers:
            return await self._ended(order, TaskStatus.DONE, findings)
        # Holds until approval, also if a reviewer cannot be reached.
        self._progress.tasks[task.task_id] = TaskStatus.UNAPPROVED
        route = await review_task(self._stage, self._progress, self.contract, self._plan, task)
        if route is not Verdict.SENT_BACK:
            status = TaskStatus.DONE if route is Verdict.APPROVED else TaskStatus.UNAPPROVED
            return await self._ended(order, status, findings)
        said = (f"{one.issue} {one.fix}" for review in self._unsettled(task) for one in review.comments)
        self.contract = await self.amendments.for_texts(self.contract, task, said)
        return None

    async def _delivered(self, order: Order) -> tuple[bool, Sequence[Finding]]:
        """Requests a delivery and commits it if it is accepted; returns whether it is, and the remaining findings."""
        task = order.task
        own, about = self._own(task), self._about(order)
        near = self._near(task, about)
        texts = await self._stage.read((*own, *near))
        before = {path: texts[path] for path in own if path in texts}
        brief = self._brief(order, before, nearby(near, texts, about))

        async def judge(delivery: Delivery) -> Sequence[Finding]:
            return await self._judge(order, delivery, before)

        self._last, self._declaring, self._locks = Commanded(), (), LockFiles()
        delivered = await self._stage.developer.deliver(brief, judge, self._look)
        self._note_answer(order, delivered.delivery)
        blocked = blocking(delivered.findings)
        self.refused[task.task_id] = () if delivered.accepted else tuple(blocked)
        if not delivered.accepted or delivered.delivery is None:
            if violations := [finding for finding in blocked if _violates(finding)]:
                await self._ended(order, TaskStatus.FAILED, violations)
                raise StoryStopped(StoryStatus.FAILED, violations)
            self._progress.note_findings(delivered.findings)
            return False, blocked
        self._progress.note_findings(delivered.findings)
        kept = with_made(delivered.delivery, self._last.made)
        if kept.files or kept.removed:
            await self._commit(task, kept, self._answers(order))
        return True, blocked

    def _own(self, task: Task) -> tuple[str, ...]:
        """Returns the task's files in the contract's spelling."""
        return self.contract.task_files.get(task.task_id, ())

    async def _look(self, paths: Sequence[str]) -> Mapping[str, str]:
        """Returns the texts of files that the developer requests."""
        return await self._stage.read(paths, "look")

    def _files(self, task: Task, before: Mapping[str, str]) -> tuple[str, ...]:
        """Returns the existing files: scanned ones, and those written since."""
        done = (
            path
            for other, status in self._progress.tasks.items()
            if status in {TaskStatus.DONE, TaskStatus.UNAPPROVED}
            for path in self.contract.task_files.get(other, ())
        )
        there = {*self._progress.surface.files, *done} - self._progress.removed
        return tuple(sorted((there - set(self._own(task))) | set(before)))

    def _wanted(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Returns a task's files without removed ones, which need not be delivered again."""
        return tuple(path for path in paths if path not in self._progress.removed)

    def _about(self, order: Order) -> str:
        """Returns what the developer is asked for in a request, in words."""
        instructed = (f"{one.file} {one.function} {one.issue} {one.fix}" for one in order.instructions)
        reviewed = (
            f"{one.title} {one.issue} {one.fix}" for said in self._unsettled(order.task) for one in said.comments
        )
        return "\n".join((order.task.description, *instructed, *reviewed))

    def _near(self, task: Task, about: str) -> tuple[str, ...]:
        """Returns the files around a task's own; those that finished tasks wrote are told with these."""
        surface, own = self._progress.surface, self._own(task)
        near = near_paths(about, own, surface.files, surface.exports, surface.imports)
        told = f"\n{surface.map}"
        gone = self._progress.written | self._progress.removed
        return tuple(path for path in near if path not in gone and f"\n{path}:\n" not in told)

    def _brief(self, order: Order, before: dict[str, str], around: str) -> TaskBrief:
        plan, about = self._plan.dependencies, self._about(order)
        return TaskBrief(
            task=order.task.model_copy(update={"files_to_create": self._wanted(order.task.files_to_create)}),
            breakdown=self._plan,
            surface=self._progress.surface,
            allowed_dependencies=tuple(sorted(self.contract.allowed_dependencies)),
            modified_files=before,
            parts=parts_of(before, about, self._progress.surface.map),
            nearby=around,
            versions={**self._progress.surface.versions, **plan.devDependencies, **plan.dependencies},
            files=self._files(order.task, before),
            done_tasks=done_tasks(self._progress, self._plan, without=order.task.task_id),
            instructions=order.instructions,
            failure_output=order.failure_output,
            analysed=order.analysed,
            refused=self.refused.get(order.task.task_id, ()),
            history=order.history,
            repeated=order.repeated,
            reviews=self._unsettled(order.task),
        )

    def _note_answer(self, order: Order, delivery: Delivery | None) -> None:
        """Keeps what the next review is told of the delivery."""
        # Comments that are open are what it was asked for, whatever tests said before.
        failed = () if self._unsettled(order.task) else order.instructions
        texts = (delivery.title, delivery.rationale) if delivery is not None else ()
        self._progress.reviews[order.task.task_id].answer = Answer(
            failures=tuple(f"{one.file}: {one.issue}" for one in failed), text="\n\n".join(filter(None, texts))
        )

    def _unsettled(self, task: Task) -> tuple[Reviewed, ...]:
        """Returns the last reviews unless all reviewers approved."""
        return unsettled(self._progress.reviews.get(task.task_id))

    async def _content(self, order: Order, delivery: Delivery, before: dict[str, str]) -> list[Finding]:
        """Checks the contents; reads the users of lost names only if there are any."""
        about = self._about(order)
        around = around_of(self._stage, self._progress, self._plan, self.contract, about)
        lost = await asyncio.to_thread(lost_exports, delivery, before, about)
        if lost:
            read = partial(self._stage.workspace.read, self._stage.story_id)
            around = around.model_copy(update={"others": await read_users(self._stage, lost, None, read)})
        return await asyncio.to_thread(check_content, delivery, before, around, lost)

    async def _judge(self, order: Order, delivery: Delivery, before: dict[str, str]) -> list[Finding]:
        task = order.task
        held = await self._held(order, delivery, before)
        self._declaring = await self.amendments.manifests(self.contract, delivery.paths, delivery.files)
        declared = with_made(delivery, self._declaring)
        obstacles = await self._stage.workspace.obstacles(self._stage.story_id, delivery.paths)
        findings = [*unwritten_files(delivery, obstacles), *await self._content(order, delivery, before), *held]
        if blocking(findings):
            return [*findings, *check_whole(declared, self._wanted(self._own(task)), before)]
        self._locks = await follow_locks(self._stage, declared, self._own(task))
        with_locks = with_made(declared, self._locks.files)
        lacking = check_whole(with_locks, self._wanted(self._own(task)), before)
        if lacking and not (task.command or delivery.commands):
            return [*findings, *lacking]
        findings += await check_shell(self._stage, delivery)
        if blocking(findings):
            return [*findings, *lacking]
        commanded = await self._commanded(order, delivery)
        # A command may have made files that were not delivered.
        whole = with_made(with_locks, commanded.made)
        lacking = check_whole(whole, self._wanted(self._own(task)), before)
        if commanded.lacks is not None:
            if lacking:
                # Only the command makes these files, and it cannot run here, so another answer would not help.
                raise StoryStopped(StoryStatus.NEEDS_ATTENTION, [commanded.lacks])
            findings.append(commanded.lacks.model_copy(update={"severity": Severity.MINOR}))
        findings += lacking
        ours = (*self._declaring, *self._locks.files)
        if made := [change for change in commanded.made if change not in ours]:
            findings += await self._held(order, with_made(delivery, made), before)
        findings += [lock_left(told, task.task_id) for told in self._locks.told]
        return [*dict.fromkeys((*findings, *commanded.findings))]

    async def _held(self, order: Order, delivery: Delivery, before: dict[str, str]) -> list[Finding]:
        """Returns violations of the contract, after asking the architect about files and packages."""
        findings = await self._checked(delivery, before)
        contract, near = self.contract, delivery.paths
        try:
            self.contract = await self.amendments.answer(contract, order.task, findings, near)
        except ProviderError:
            await self._ended(order, TaskStatus.FAILED, questions(findings))
            raise
        if self.contract is not contract:
            before.update(await self._stage.read(self._own(order.task)))
            findings = await self._checked(delivery, before)
        return self.amendments.refuse(findings, self.contract)

    async def _checked(self, delivery: Delivery, before: Mapping[str, str]) -> list[Finding]:
        """Checks imports by name, and by the installed packages if names are not sufficient."""
        findings = await asyncio.to_thread(check_delivery, self.contract, delivery, before)
        if not any(finding.code == "contract.import" for finding in questions(findings)):
            return findings
        return await asyncio.to_thread(check_delivery, self.contract, delivery, before, await self.installed())

    async def installed(self) -> InstalledPackages:
        """Returns the packages of the story's environment: the project's, the plan's and the granted ones."""
        stage, packages = self._stage, self._plan.dependencies
        wanted = {**packages.devDependencies, **packages.dependencies, **self.contract.granted_packages}
        files = self.contract.declared_files

        key = frozenset(wanted)
        if key not in self._installed:
            root = stage.workspace.root(stage.story_id)
            found = await stage.do("installed", InstalledPackages, stage.runner.installed, root, wanted, files)
            self._installed[key] = found
        self._progress.installed = self._installed[key]
        return self._installed[key]

    async def declare(self) -> bool:
        """Commits manifests for packages granted outside a delivery; returns whether there were any."""
        last = self._plan.tasks[-1]
        changes = await self.amendments.manifests(self.contract, tuple(self.contract.declared_files))
        if changes:
            delivery = Delivery(story_id=self._stage.story_id, task_id=last.task_id, files=changes)
            self._locks = await follow_locks(self._stage, delivery, self._own(last))
            named = ", ".join(sorted(self.contract.granted_packages))
            delivery = with_made(delivery, self._locks.files).model_copy(update={"title": f"Declare {named}"})
            await self._commit(last, delivery)
        return bool(changes)

    async def _commanded(self, order: Order, delivery: Delivery | None) -> Commanded:
        own = self._wanted(self._own(order.task))
        ours = (*self._declaring, *self._locks.files)
        commanded = await run_commands(self._stage, order.task, delivery, order.attempt, own, ours)
        made = {change.path: change for change in (*ours, *commanded.made)}
        self._last = commanded = commanded._replace(made=tuple(made.values()))
        return commanded

    async def _command_only(self, order: Order) -> TaskStatus:
        self._declaring, self._locks = (), LockFiles()
        commanded = await self._commanded(order, None)
        findings = (*([commanded.lacks] if commanded.lacks else []), *commanded.findings)
        self._progress.note_findings(findings)
        if blocked := blocking(findings):
            self.refused[order.task.task_id] = tuple(blocked)
            return await self._ended(order, TaskStatus.FAILED, findings)
        return await self._ended(order, TaskStatus.DONE, findings)

    def _answers(self, order: Order) -> list[str]:
        """Returns what the delivery answers, as subjects for a commit whose own would be one that the story has."""
        told = [f"Correct {one.file}: {one.issue}" for one in order.instructions]
        comments = (one for review in self._unsettled(order.task) for one in review.comments)
        return [*told, *(f"Address review: {one.title}" for one in comments)]

    async def _commit(self, task: Task, delivery: Delivery, answers: Sequence[str] = ()) -> None:
        """Commits the delivery without ignored files."""
        ignored = self._progress.ignored
        files = tuple(change for change in delivery.files if change.path not in ignored)
        kept = delivery.model_copy(update={"files": files})
        left_out = [path for path in delivery.paths if path in ignored]
        self._progress.note_findings([_ignored(task, path) for path in left_out])
        if not (kept.files or kept.removed):
            return

        own = subject_of(delivery.title) or subject_of(task.description)
        said = unlike(own or fitted(f"Change {', '.join(kept.paths)}"), self._progress.subjects, answers)
        body = _body(delivery, task, answers)

        async def work(step_id: str) -> str:
            note = self._stage.note(said, step_id, task.task_id, body)
            return await self._stage.workspace.commit(self._stage.story_id, kept.files, note, kept.removed)

        before, commit = self._progress.head, await self._stage.step.step("commit", work, str)
        self._progress.head = commit
        self._progress.note_committed(kept.paths, kept.removed)
        self._progress.made.pop(task.task_id, None)
        self._progress.made[task.task_id] = await asyncio.to_thread(_made, kept)
        self._progress.locks |= {change.path: change.content for change in self._locks.files}
        if task.task_id in self._progress.reviews:
            followed = {change.path for change in self._locks.files}  # long, and not the developer's work
            self._progress.reviews[task.task_id].paths |= {*kept.paths, *kept.removed} - followed
        if commit == before:
            nothing = f"{task.task_id} changes nothing: {', '.join(kept.paths)} as before"
            await self._stage.step.emit("task_unchanged", nothing, task=task.task_id, files=list(kept.paths))
            return
        self._progress.subjects.append(said)
        more: dict[str, Any] = {"removed": list(kept.removed)} if kept.removed else {}
        told = [*kept.paths, *(f"{path} (removed)" for path in kept.removed)]
        await self._stage.step.emit(
            "task_committed",
            f"{task.task_id} committed: {', '.join(told)}",
            task=task.task_id,
            commit=commit,
            files=list(kept.paths),
            **more,
        )

    async def _ended(self, order: Order, status: TaskStatus, findings: Sequence[Finding]) -> TaskStatus:
        """Records the task's end; `findings` remain open, also if the task is done despite them."""
        task, left = order.task, self._stage.policies.test.max_attempts - order.attempt
        self._progress.tasks[task.task_id] = status
        await self._stage.decide(
            "task_finished", f"{task.task_id} is {status}", Loop.BUILD, status,
            findings=findings, attempt=order.attempt, left=left, task=task.task_id, status=status,
            level=Level.INFO if status is TaskStatus.DONE else Level.WARN,
        )  # fmt: skip
        return status


def _made(delivery: Delivery) -> str:
    """Returns what a committed delivery defines, file by file."""
    told = [file_outline(change.path, change.content) or change.path for change in delivery.files]
    return "\n".join([*told, *(f"{path} (removed)" for path in delivery.removed)])


def with_made(delivery: Delivery, made: Sequence[FileChange]) -> Delivery:
    """Returns the delivery with its files as changed by commands."""
    files = {change.path: change for change in (*delivery.files, *made)}
    return delivery.model_copy(update={"files": tuple(files.values())})


def _ignored(task: Task, path: str) -> Finding:
    return minor(
        "delivery.ignored_file",
        f"`{path}` was delivered and not committed: the repository's .gitignore leaves it out",
        where=Where(file=path, task=task.task_id),
        fix="Have environment.build make it, or take it out of .gitignore.",
    )


def _body(delivery: Delivery, task: Task, answers: Sequence[str]) -> str:
    """Returns why the change was made, in the developer's words, or the task's."""
    return delivery.rationale or "\n\n".join(answers or [task.description])


def _violates(finding: Finding) -> bool:
    """Returns whether the finding is a contract violation; an unreadable source may just be broken."""
    beyond = finding.code.startswith("contract.") and finding.severity is Severity.CRITICAL
    return beyond or finding.code == UNSAFE_PATH
