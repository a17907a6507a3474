"""The Protocols between the product's loops and the world. Adapters and personas implement them; wiring binds them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar

from orchestrator.domain.delivery import Delivery, FileChange
from orchestrator.domain.events import Event, Level
from orchestrator.domain.exchange import FailedCall, Prompt, Reply, TurnKey
from orchestrator.domain.findings import Finding
from orchestrator.domain.gitfacts import Branch, CommitNote, DiffEntry, MergeResult
from orchestrator.domain.stages import (
    Amended,
    AmendmentBrief,
    Analysed,
    Delivered,
    FailureBrief,
    Planned,
    SuiteBrief,
    TaskBrief,
    Written,
)
from orchestrator.domain.story import BacklogContent, CellUpdate
from orchestrator.domain.surface import Surface
from orchestrator.domain.testing import CommandResult, TestReport, TestSuite

T = TypeVar("T")
JudgeDelivery = Callable[[Delivery], Awaitable[Sequence[Finding]]]
Look = Callable[[Sequence[str]], Awaitable[Mapping[str, str]]]  # paths → texts of those that are UTF-8 files there


class Clock(Protocol):
    """Where times come from."""

    def now(self) -> datetime:
        """Aware UTC."""
        ...


class Provider(Protocol):
    """One way to get a reply from a model."""

    name: str

    async def complete(self, prompt: Prompt) -> Reply:
        """One call, no retry. Raises TransientProviderError, PermanentProviderError."""
        ...


class Step(Protocol):
    """Durable execution of one story, as the product's loops see it (DESIGN 5.1).

    The same calls in the same order after a crash return the recorded results without doing the work again.
    """

    @property
    def workflow_id(self) -> str:
        """`<sprint>/<story>`, with `@N` behind it after a reset."""
        ...

    async def step(self, name: str, work: Callable[[str], Awaitable[T]], returns: Any) -> T:
        """Run `work(step_id)` once and record what it returns; `returns` is its type, for storing it as JSON.

        An OrchestratorError raised by `work` is recorded and raised again as the same class, also on replay.
        """
        ...

    async def turn(self, prompt: Prompt) -> Reply:
        """One persona turn: fills in `turn`, retries transport errors under their policy, journals every ended call.

        Raises ProviderError (also BudgetExceeded), deterministically on replay.
        """
        ...

    async def emit(
        self,
        name: str,
        message: str,
        *,
        level: Level = Level.INFO,
        task: str | None = None,
        persona: str | None = None,
        **data: Any,
    ) -> None:
        """Record an event with the next deterministic id of this workflow."""
        ...


class EventSink(Protocol):
    """The append-only record."""

    async def emit(self, event: Event) -> bool:
        """Store the event durably; False when its id was there already (then nothing is printed either)."""
        ...


class CommandRunner(Protocol):
    """Runs one hostile command in limits and leaves no process behind (DESIGN 5.10)."""

    async def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        scratch: Path | None = None,
    ) -> CommandResult:
        """Run `argv` in `cwd` with an environment made of PATH, HOME, TMPDIR, LANG, CI and `env`.

        `timeout_s` replaces the configured limit. `scratch` is an existing folder for HOME and TMPDIR; a fresh one is
        made and removed when absent. Never raises for what the command does; a missing program is exit code 127.
        """
        ...


class SuiteRunner(Protocol):
    """Runs tests of one tree and reads the runner's report file (spec 1 C3, C6)."""

    async def run(
        self,
        root: Path,
        *,
        files: Sequence[str] | None = None,
        expected_names: Sequence[str] = (),
        stack: Sequence[str] = (),
        key: str,
    ) -> TestReport:
        """Run `files` (None: the whole suite) below `root`; names in `expected_names` must be in the report.

        `stack` is what is recorded about the project's tech stack, the most telling text first, for choosing a runner.
        `key` names the dependency environment to use (one per story), `[A-Za-z0-9._-]+`. Installs what a manifest asks
        for first. Never raises for what tests do.
        """
        ...

    async def command(self, root: Path, command: str, *, key: str, timeout_s: float | None = None) -> CommandResult:
        """Run a shell command below `root`, the environment of `key` first on PATH; `timeout_s` replaces the limit."""
        ...


class Workspace(Protocol):
    """The git side of one sprint: branches, worktrees, commits, merges (DESIGN 5.8)."""

    async def open(self, story_id: str) -> Branch:
        """Create the story's branch at the result branch, and its worktree; or find both, mending what is half-made."""
        ...

    def root(self, story_id: str) -> Path:
        """Folder of the story's worktree."""
        ...

    async def reset(self, story_id: str) -> None:
        """Make the worktree equal to its branch: tracked files restored, everything else removed."""
        ...

    async def files(self, story_id: str) -> tuple[str, ...]:
        """Paths of all tracked files of the branch, sorted."""
        ...

    async def read(self, story_id: str, paths: Sequence[str]) -> dict[str, str]:
        """Text of those `paths` that exist on the branch as regular UTF-8 files, read from the branch's tree."""
        ...

    async def schemas(self, story_id: str, paths: Sequence[str]) -> dict[str, str]:
        """CREATE statements of those `paths` that are SQLite databases on the branch; others are left out."""
        ...

    async def read_base(self, story_id: str, paths: Sequence[str]) -> dict[str, str]:
        """Like `read`, at the story's recorded base commit."""
        ...

    async def head(self, story_id: str) -> str:
        """Commit at the tip of the story's branch."""
        ...

    async def write(self, story_id: str, changes: Sequence[FileChange], removed: Sequence[str] = ()) -> None:
        """Write all files into the worktree and take those of `removed` away, or do nothing; never through a link.

        Raises WorkspaceError, also for a file to be removed that is not there.
        """
        ...

    async def commit(
        self, story_id: str, changes: Sequence[FileChange], note: CommitNote, removed: Sequence[str] = ()
    ) -> str:
        """Commit exactly these contents of these paths, without those of `removed`; returns the commit id.

        Finds its own earlier commit by the step trailer. No change to the tree: the branch's head, no new commit.
        """
        ...

    async def diff(self, story_id: str) -> tuple[DiffEntry, ...]:
        """Raw diff of the branch against its base."""
        ...

    async def diff_stat(self, story_id: str) -> str:
        """`git diff --stat` of the branch against its base, for people."""
        ...

    async def merge(self, story_id: str, note: CommitNote, check: Callable[[Path], Awaitable[str]]) -> MergeResult:
        """Merge the branch into the result branch under the sprint's one merge lock.

        `check(folder)` sees the merged tree and returns why it is turned down, or "". Idempotent by the step trailer.
        """
        ...

    async def result_head(self) -> str:
        """Commit at the tip of the result branch."""
        ...

    async def result_tree(self, work: Callable[[Path], Awaitable[T]]) -> T:
        """Run `work(folder)` on a detached checkout of the result branch as it is; also from within a merge's check."""
        ...

    async def base_tree(self, work: Callable[[Path], Awaitable[T]]) -> T:
        """Run `work(folder)` on a detached checkout of the sprint's base commit."""
        ...


class Backlog(Protocol):
    """One backlog file: read, and written by one task only (DESIGN 5.9)."""

    def read(self) -> BacklogContent:
        """Read and validate; problems are findings. Raises BacklogError when nothing can be read."""
        ...

    def write(self, updates: Sequence[CellUpdate]) -> str | None:
        """Change cells by id, atomically; a warning for people when it went to the sidecar instead, else None."""
        ...


class Architect(Protocol):
    """Plans a story. Bound to one story and its Step."""

    async def breakdown(self, surface: Surface, feedback: str) -> Planned:
        """One plan, with the answer loop's retries inside. `feedback` is empty or a rendered revision request."""
        ...

    def revision(self, planned: Planned, findings: Sequence[Finding]) -> str:
        """The feedback for the next plan."""
        ...

    async def amendment(self, brief: AmendmentBrief) -> Amended:
        """Which of the files and packages asked for are allowed after all. One request, without a retry."""
        ...


class Developer(Protocol):
    """Delivers one task's files. Bound to one story and its Step."""

    async def deliver(self, brief: TaskBrief, judge: JudgeDelivery, look: Look) -> Delivered:
        """Ask until `judge` finds nothing major or the budget is used up; `judge` sees every well-formed delivery."""
        ...


class Tester(Protocol):
    """Writes a story's suite and reads its failures. Bound to one story and its Step."""

    async def suite(self, brief: SuiteBrief, judge: Callable[[TestSuite], Awaitable[Sequence[Finding]]]) -> Written:
        """A suite that satisfies the checks and about which `judge` says nothing major, or None."""
        ...

    async def analyse(self, brief: FailureBrief) -> Analysed:
        """Instructions for the files of the tasks."""
        ...


class TurnJournal(Protocol):
    """The ended calls of one workflow, written down the moment they end (DESIGN 5.2)."""

    @property
    def calls(self) -> int:
        """All ended calls, replies and errors."""
        ...

    def reply(self, step: int) -> Reply | None:
        """The journalled reply of this step, if its call ended with one."""
        ...

    def failures(self, step: int) -> tuple[FailedCall, ...]:
        """Calls of this step that ended with an error, in turn order."""
        ...

    def next_turn(self, key: TurnKey) -> int:
        """1 + the calls of this key that ended, with a reply or an error."""
        ...

    def keep_prompt(self, step: int, prompt: Prompt) -> None:
        """Keep the prompt beside its reply. Blocks."""
        ...

    def record_reply(self, step: int, prompt: Prompt, reply: Reply) -> None:
        """Write a reply down, synchronously and at once."""
        ...

    def record_failure(self, step: int, prompt: Prompt, failure: FailedCall) -> None:
        """Write down that a call ended with an error, synchronously and at once."""
        ...
