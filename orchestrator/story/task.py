"""One task: asked for, judged before a byte is written, its command run, committed once."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from orchestrator.checks.content import check_content, check_whole
from orchestrator.checks.lost_exports import lost_exports
from orchestrator.contract.enforce import check_delivery
from orchestrator.core.breakdown import Breakdown, Task
from orchestrator.core.command import Loop
from orchestrator.core.contract import ArchitectureContract
from orchestrator.core.delivery import Delivery, FileChange, LockFiles, Reviewed
from orchestrator.core.errors import ProviderError
from orchestrator.core.event import Level
from orchestrator.core.exchange import Delivered, PastAttempt, TaskBrief
from orchestrator.core.finding import Finding, Severity, Where, blocking, minor, questions
from orchestrator.core.sprint import StoryStatus, TaskStatus
from orchestrator.core.suite import FailureInstruction, InstalledPackages
from orchestrator.story.amendment import Amendments
from orchestrator.story.commands import Commanded, check_shell, follow_locks, lock_left, run_commands
from orchestrator.story.context import Progress, Stage, StoryStopped, TaskReviews
from orchestrator.story.project_scan import around_of, read_users
from orchestrator.story.review import review_task, unsettled
from orchestrator.story.routing import ReviewRoute

UNSAFE_PATH = "delivery.unsafe_path"
"""No contract allows it, so it counts as a violation of every one."""
SUBJECT_CHARS = 60
"""Of a task's description in the subject of its commit."""
DONE_CHARS = 800
"""Of a finished task's description; a person's plan may hold all its code."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """What is asked of the developer this time."""

    task: Task
    instructions: tuple[FailureInstruction, ...] = ()
    failure_output: str = ""
    attempt: int = 1
    """Which run of the suite it is built for."""
    history: tuple[PastAttempt, ...] = ()
    repeated: str = ""
    """The failure that came back, when another way is wanted."""


class TaskRun:
    """Brings one task after the other of a planned story into its branch; `contract` grows with an amendment."""

    def __init__(self, stage: Stage, progress: Progress, plan: Breakdown, contract: ArchitectureContract) -> None:
        self._stage, self._progress = stage, progress
        self._plan, self.contract = plan, contract
        self.amendments = Amendments(stage, progress, plan)
        self._head = progress.branch.head
        self._last = Commanded()
        """What the commands of the last delivery made."""
        self._declaring: tuple[FileChange, ...] = ()
        """Its manifests with what was granted beside the plan."""
        self._locks = LockFiles()
        """Those that follow its manifests."""
        self._installed: dict[frozenset[str], InstalledPackages] = {}
        """By the packages that are allowed: what their environment holds."""

    async def run(self, order: Order) -> TaskStatus:
        """Deliver, command, commit, have it reviewed; again while reviewers ask for it and their budget lasts.

        Raises StoryStopped when a contract violation survives the retries.
        """
        task = order.task
        if not self._own(task):
            return await self._command_only(order)
        self._progress.reviews.setdefault(task.task_id, TaskReviews(since=self._head))
        reviewing = self._stage.policies.loop(Loop.REVIEW, lambda status: status is None)
        status: TaskStatus = await reviewing(self._reviewed, order)
        return status

    async def _reviewed(self, order: Order) -> TaskStatus | None:
        """Asks for one delivery and its review. Returns None when the task goes back to the developer."""
        task = order.task
        status, findings = await self._delivered(order)
        if status is not TaskStatus.DONE or not self._stage.reviewers:
            return await self._ended(order, status, findings)
        # Until it is approved, also when a reviewer cannot be reached.
        self._progress.tasks[task.task_id] = TaskStatus.UNAPPROVED
        route = await review_task(self._stage, self._progress, self.contract, task)
        if route is not ReviewRoute.DEVELOPER:
            return await self._ended(
                order, status if route is ReviewRoute.APPROVED else TaskStatus.UNAPPROVED, findings
            )
        said = (f"{one.issue} {one.fix}" for review in self._unsettled(task) for one in review.comments)
        self.contract = await self.amendments.for_texts(self.contract, task, said)
        return None

    async def _delivered(self, order: Order) -> tuple[TaskStatus, Sequence[Finding]]:
        """One delivery, committed as far as it can be; what it made of the task, and what is left against it."""
        task = order.task
        before = await self._stage.read(self._own(task))
        brief = self._brief(order, before)

        async def judge(delivery: Delivery) -> Sequence[Finding]:
            return await self._judge(order, delivery, before)

        self._last, self._declaring, self._locks = Commanded(), (), LockFiles()
        delivered = await self._stage.developer.deliver(brief, judge, self._look)
        kept, status = await self._settle(order, delivered, before)
        if kept is not None and (kept.files or kept.removed):
            await self._commit(task, kept, self._last)
        return status, blocking(delivered.findings)

    def _own(self, task: Task) -> tuple[str, ...]:
        """Returns the task's files as the contract spells them."""
        return self.contract.task_files.get(task.task_id, ())

    async def _look(self, paths: Sequence[str]) -> Mapping[str, str]:
        """Returns the texts of files that the developer asks to see."""
        return await self._stage.read(paths, "look")

    def _files(self, task: Task, before: Mapping[str, str]) -> tuple[str, ...]:
        """Returns the files there are: the scan was before the first task. Of a partial task some may be."""
        done = (
            path
            for other, status in self._progress.tasks.items()
            if status in {TaskStatus.DONE, TaskStatus.PARTIAL, TaskStatus.UNAPPROVED}
            for path in self.contract.task_files.get(other, ())
        )
        there = {*self._progress.surface.files, *done} - self._progress.removed
        return tuple(sorted((there - set(self._own(task))) | set(before)))

    def _wanted(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Returns files of a task without those that were taken away: nobody has to bring them back."""
        return tuple(path for path in paths if path not in self._progress.removed)

    def _brief(self, order: Order, before: dict[str, str]) -> TaskBrief:
        done = [
            f"{task.task_id} ({status}): {textwrap.shorten(task.description, DONE_CHARS, placeholder=' …')}"
            for task in self._plan.tasks
            if (status := self._progress.tasks[task.task_id]) is not TaskStatus.PENDING
            and task.task_id != order.task.task_id
        ]
        return TaskBrief(
            task=order.task.model_copy(update={"files_to_create": self._wanted(order.task.files_to_create)}),
            breakdown=self._plan,
            surface=self._progress.surface,
            allowed_dependencies=tuple(sorted(self.contract.allowed_dependencies)),
            modified_files=before,
            files=self._files(order.task, before),
            done_tasks=tuple(done),
            instructions=order.instructions,
            failure_output=order.failure_output,
            history=order.history,
            repeated=order.repeated,
            reviews=self._unsettled(order.task),
        )

    def _unsettled(self, task: Task) -> tuple[Reviewed, ...]:
        """Returns what the reviewers said last, unless all of them approved."""
        return unsettled(self._progress.reviews.get(task.task_id))

    async def _content(self, order: Order, delivery: Delivery, before: dict[str, str]) -> list[Finding]:
        """Checks the contents. The users of what is lost are read only when something is."""
        instructed = (f"{one.issue} {one.fix}" for one in order.instructions)
        reviewed = (
            f"{one.title} {one.issue} {one.fix}" for said in self._unsettled(order.task) for one in said.comments
        )
        about = "\n".join((order.task.description, *instructed, *reviewed))
        around = around_of(self._stage, self._progress, self._plan, self.contract, about)
        lost = lost_exports(delivery, before, about)
        if any(not one.route for one in lost):
            read = partial(self._stage.workspace.read, self._stage.story_id)
            around = around.model_copy(update={"others": await read_users(self._stage, lost, None, read)})
        return check_content(delivery, before, around, lost)

    async def _judge(self, order: Order, delivery: Delivery, before: dict[str, str]) -> list[Finding]:
        task = order.task
        held = await self._held(order, delivery, before)
        self._declaring = await self.amendments.manifests(self.contract, delivery.paths, delivery.files)
        declared = with_made(delivery, self._declaring)
        findings = [*await self._content(order, delivery, before), *held]
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
        # A command may have made what was not delivered.
        whole = with_made(with_locks, commanded.made)
        lacking = check_whole(whole, self._wanted(self._own(task)), before)
        if commanded.lacks is not None:
            if lacking:
                # Only the command makes these files, and it cannot run here: no answer mends that.
                raise StoryStopped(StoryStatus.NEEDS_ATTENTION, [commanded.lacks])
            findings.append(commanded.lacks.model_copy(update={"severity": Severity.MINOR}))
        findings += lacking
        ours = (*self._declaring, *self._locks.files)
        if made := [change for change in commanded.made if change not in ours]:
            findings += await self._held(order, with_made(delivery, made), before)
        findings += [lock_left(told, task.task_id) for told in self._locks.told]
        return [*dict.fromkeys((*findings, *commanded.findings))]

    async def _held(self, order: Order, delivery: Delivery, before: dict[str, str]) -> list[Finding]:
        """What the delivery does outside the contract, once the architect was asked about the files and packages."""
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
        """By names alone, and by the installed packages where names leave a question about an import."""
        findings = check_delivery(self.contract, delivery, before)
        if not any(finding.code == "contract.import" for finding in questions(findings)):
            return findings
        return check_delivery(self.contract, delivery, before, await self.installed())

    async def installed(self) -> InstalledPackages:
        """What the environment of the story holds: the project's packages, the plan's and those that were granted."""
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
        """Commit manifests that declare what was granted outside a delivery; whether there was something to declare."""
        last = self._plan.tasks[-1]
        changes = await self.amendments.manifests(self.contract, tuple(self.contract.declared_files))
        if changes:
            delivery = Delivery(story_id=self._stage.story_id, task_id=last.task_id, files=changes)
            self._locks = await follow_locks(self._stage, delivery, self._own(last))
            await self._commit(last, with_made(delivery, self._locks.files), Commanded())
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
        if commanded.again:
            nothing = Delivery(story_id=self._stage.story_id, task_id=order.task.task_id, files=())
            await self._commit(order.task, nothing, commanded)
        return await self._ended(order, TaskStatus.PARTIAL if blocking(findings) else TaskStatus.DONE, findings)

    async def _settle(
        self, order: Order, delivered: Delivered, before: dict[str, str]
    ) -> tuple[Delivery | None, TaskStatus]:
        """Returns what of the delivery is committed and what the task has become."""
        progress = self._progress
        if delivered.accepted and delivered.delivery is not None:
            progress.note_findings(delivered.findings)
            return with_made(delivered.delivery, self._last.made), TaskStatus.DONE
        blocked = blocking(delivered.findings)
        violations = [finding for finding in blocked if _violates(finding)]
        if violations:
            await self._ended(order, TaskStatus.FAILED, violations)
            raise StoryStopped(StoryStatus.FAILED, violations)
        progress.note_findings(delivered.findings)
        if delivered.delivery is None:
            return None, TaskStatus.PARTIAL
        faulty = {finding.where.file for finding in blocked}
        valid = tuple(change for change in delivered.delivery.files if change.path not in faulty)
        # What goes is kept only with all that comes: a file moved is not to vanish with its new half left out.
        removed = delivered.delivery.removed if len(valid) == len(delivered.delivery.files) else ()
        left_over = tuple(path for path in removed if path not in faulty)
        kept = delivered.delivery.model_copy(update={"files": valid, "removed": left_over})
        left = [*await self._checked(kept, before), *await self._content(order, kept, before)]
        return (None if blocking(left) else kept), TaskStatus.PARTIAL

    async def _commit(self, task: Task, delivery: Delivery, commanded: Commanded) -> None:
        """What git ignores of it is left out; the commands that make it are recorded instead."""
        ignored = {*commanded.ignored, *self._progress.ignored}
        files = tuple(change for change in delivery.files if change.path not in ignored)
        kept = delivery.model_copy(update={"files": files})
        left_out = [path for path in delivery.paths if path in ignored and path not in commanded.ignored]
        self._progress.note_findings([_ignored(task, path) for path in left_out])
        if not (kept.files or kept.removed or commanded.again):
            return

        async def work(step_id: str) -> str:
            note = self._stage.note(_subject(task), step_id, task.task_id)
            note = note.model_copy(update={"commands": commanded.again})
            return await self._stage.workspace.commit(self._stage.story_id, kept.files, note, kept.removed)

        self._head = commit = await self._stage.step.step("commit", work, str)
        self._progress.note_committed(kept.paths, kept.removed)
        self._progress.locks |= {change.path: change.content for change in self._locks.files}
        if task.task_id in self._progress.reviews:
            followed = {change.path for change in self._locks.files}  # long, and no developer's work
            self._progress.reviews[task.task_id].paths |= {*kept.paths, *kept.removed} - followed
        more: dict[str, Any] = {"removed": list(kept.removed)} if kept.removed else {}
        told = [*kept.paths, *(f"{path} (removed)" for path in kept.removed)]
        told += [f"{path} (made again by its command)" for path in commanded.ignored]
        await self._stage.step.emit(
            "task_committed",
            f"{task.task_id} committed: {', '.join(told)}",
            task=task.task_id,
            commit=commit,
            files=list(kept.paths),
            **more,
        )

    async def _ended(self, order: Order, status: TaskStatus, findings: Sequence[Finding]) -> TaskStatus:
        """`findings` are what is left against the task, also where it is done in spite of them."""
        task, left = order.task, self._stage.policies.test.max_attempts - order.attempt
        self._progress.tasks[task.task_id] = status
        await self._stage.decide(
            "task_finished", f"{task.task_id} is {status}", Loop.BUILD, status,
            findings=findings, attempt=order.attempt, left=left, task=task.task_id, status=status,
            level=Level.INFO if status is TaskStatus.DONE else Level.WARN,
        )  # fmt: skip
        return status


def with_made(delivery: Delivery, made: Sequence[FileChange]) -> Delivery:
    """Returns the delivery with files as its commands left them."""
    files = {change.path: change for change in (*delivery.files, *made)}
    return delivery.model_copy(update={"files": tuple(files.values())})


def _ignored(task: Task, path: str) -> Finding:
    return minor(
        "delivery.ignored_file",
        f"`{path}` was delivered and not committed: the repository's .gitignore leaves it out",
        where=Where(file=path, task=task.task_id),
        fix="Have a command make it, which is then run wherever it is needed, or take it out of .gitignore.",
    )


def _subject(task: Task) -> str:
    """First line of the commit message: cut at a word, and said so."""
    first = next(iter(task.description.splitlines()), "files")
    return f"{task.task_id}: {textwrap.shorten(first, SUBJECT_CHARS, placeholder=' …')}"


def _violates(finding: Finding) -> bool:
    """Returns whether the answer reached beyond the contract; a source that could not be read may just be broken."""
    beyond = finding.code.startswith("contract.") and finding.severity is Severity.CRITICAL
    return beyond or finding.code == UNSAFE_PATH
