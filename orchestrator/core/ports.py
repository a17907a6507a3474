"""The Protocols between the loops and the world: durable steps, models, personas, commands, tests, git, the backlog."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar

from orchestrator.core.calls.exchange import (
    Amended,
    AmendmentBrief,
    Analysed,
    Delivered,
    FailedCall,
    FailureBrief,
    MergeBrief,
    Planned,
    Prompt,
    Reply,
    SuiteBrief,
    TaskBrief,
    TurnKey,
    Written,
)
from orchestrator.core.calls.spending import Amount
from orchestrator.core.command import Gate, GateAnswer
from orchestrator.core.contract import InstalledPackages, Surface
from orchestrator.core.delivery import (
    Branch,
    CommitNote,
    Delivery,
    DiffEntry,
    FileChange,
    KeptRefs,
    LockFiles,
    MergeResult,
    ObjectPack,
    ReviewBrief,
    Reviewed,
    Sides,
)
from orchestrator.core.event import Event, Level
from orchestrator.core.finding import Finding
from orchestrator.core.sprint import Replan
from orchestrator.core.story import BacklogContent, CellUpdate
from orchestrator.core.suite import Access, CommandResult, NewPackages, ReportedCase, TestReport, TestSuite

T = TypeVar("T")


class Clock(Protocol):
    """Where times come from."""

    def now(self) -> datetime:
        """Aware UTC."""


class EventSink(Protocol):
    """The append-only record."""

    async def find(self, ids: Sequence[str]) -> Mapping[str, Event]:
        """Those of the events that are recorded, by id; also what other processes recorded."""

    async def emit(self, event: Event) -> bool:
        """Store the event durably; False when its id was there already (then nothing is printed either)."""


class Step(Protocol):
    """Durable execution of one story, as the product's loops see it (docs/development/decisions.md#engine).

    The same calls in the same order after a crash return the recorded results without doing the work again.
    """

    @property
    def workflow_id(self) -> str:
        """`<sprint>/<story>`, with `@N` behind it after a reset."""

    async def step(self, name: str, work: Callable[[str], Awaitable[T]], returns: Any) -> T:
        """Run `work(step_id)` once and record what it returns; `returns` is its type, for storing it as JSON.

        An OrchestratorError raised by `work` is recorded and raised again as the same class, also on replay; any other
        error is a defect: it is not recorded, and must end the story. `work` takes no steps of its own.
        """

    async def turn(self, prompt: Prompt) -> Reply:
        """One persona turn: fills in `turn`, retries transport errors under their policy, journals every ended call.

        Raises ProviderError (also BudgetExceeded), deterministically on replay.
        """

    async def open_gate(self, gate: Gate, timeout_s: float | None) -> Gate:
        """The gate with its number among the story's gates and the times that are recorded for it, once and for all."""

    async def answer(self, gate: Gate) -> GateAnswer:
        """Wait for the one answer that counts to an opened gate, durably, for as long as it takes.

        The story holds no slot meanwhile. Past the gate's deadline the answer is `Choice.TIME_OUT` by NOBODY, recorded
        like a person's: a later answer is refused.
        """

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
        """Record an event with the next deterministic id of this workflow.

        It is stored before the next turn begins and before the workflow's result is recorded.
        """


class TurnJournal(Protocol):
    """The ended calls of one workflow, written down the moment they end (decisions.md#paid-replies)."""

    @property
    def spent(self) -> Amount:
        """What all ended calls of the story that the workflow is for took, replies and errors."""

    def reply(self, step: int) -> Reply | None:
        """The journalled reply of this step, if its call ended with one."""

    def failures(self, step: int) -> tuple[FailedCall, ...]:
        """Calls of this step that ended with an error, in turn order."""

    def next_turn(self, key: TurnKey) -> int:
        """1 + the calls of this key that ended, with a reply or an error."""

    def keep_prompt(self, step: int, prompt: Prompt) -> None:
        """Keep the prompt beside its reply. Blocks."""

    def record_reply(self, step: int, prompt: Prompt, reply: Reply) -> None:
        """Write a reply down, synchronously and at once."""

    def record_failure(self, step: int, prompt: Prompt, failure: FailedCall) -> None:
        """Write down that a call ended with an error, synchronously and at once."""

    def begin_reading(self, step: int) -> int:
        """Notes, at once, that the story begins to work on the result of this step; returns how often it has begun."""

    def end_reading(self, step: int) -> None:
        """Notes that it has gone on from there, or that its process ends in good order."""

    @property
    def is_shared(self) -> bool:
        """Whether machines share a database for it."""

    def share(self) -> None:
        """Takes what was written down to the database that machines share, if there is one. Blocks."""


class Provider(Protocol):
    """One way to get a reply from a model."""

    name: str

    async def complete(self, prompt: Prompt) -> Reply:
        """One call, no retry: transport is this method's matter, content is not.

        Returns whatever a model answered, for it is paid for: a refusal, a call of a tool or nothing at all is a reply
        with the text there is ("" if none) and its stop reason; a part of an answer that has an unknown shape is left
        out. The answer loop says what such a reply lacks and raises SchemaValidationError, for every provider alike.
        Raises TransientProviderError or PermanentProviderError when no answer of a model came, also where a success
        status brings something else.
        """


JudgeDelivery = Callable[[Delivery], Awaitable[Sequence[Finding]]]
Look = Callable[[Sequence[str]], Awaitable[Mapping[str, str]]]  # paths → texts of those that are UTF-8 files there


class Architect(Protocol):
    """Plans a story. Bound to one story and its Step."""

    async def breakdown(self, surface: Surface, feedback: str, said: Replan | None) -> Planned:
        """One plan, with the answer loop's retries inside.

        `feedback` is empty or a rendered revision request; `said` is what a person said when it was restarted.
        """

    def revision(self, planned: Planned, findings: Sequence[Finding]) -> str:
        """The feedback for the next plan."""

    async def amendment(self, brief: AmendmentBrief) -> Amended:
        """Which of the files and packages asked for are allowed after all. One request, without a retry."""


class Developer(Protocol):
    """Delivers one task's files. Bound to one story and its Step."""

    async def deliver(self, brief: TaskBrief, judge: JudgeDelivery, look: Look) -> Delivered:
        """Ask until `judge` finds nothing major or the budget is used up; `judge` sees every well-formed delivery."""

    async def merge(self, brief: MergeBrief, judge: JudgeDelivery, look: Look) -> Delivered:
        """Bring both sides of a merge together. One request, without a retry; `judge` sees a well-formed answer."""


class Reviewer(Protocol):
    """Reads one task's change. Bound to one story and its Step."""

    async def review(self, brief: ReviewBrief) -> Reviewed:
        """A verdict; without one in the answers, and for a change that was not seen whole, it does not approve."""


class Tester(Protocol):
    """Writes a story's suite and reads its failures. Bound to one story and its Step."""

    async def suite(self, brief: SuiteBrief, judge: Callable[[TestSuite], Awaitable[Sequence[Finding]]]) -> Written:
        """A suite that satisfies the checks and about which `judge` says nothing major, or None."""

    async def analyse(self, brief: FailureBrief) -> Analysed:
        """Instructions for the files of the tasks."""


class CommandRunner(Protocol):
    """Runs one hostile command in limits and leaves no process behind (decisions.md#hostile-commands)."""

    async def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        scratch: Path | None = None,
        access: Access | None = None,
    ) -> CommandResult:
        """Run `argv` in `cwd` with an environment made of PATH, HOME, TMPDIR, LANG, CI and `env`.

        `timeout_s` replaces the configured limit. `scratch` is an existing folder for HOME and TMPDIR; a fresh one is
        made and removed when absent. `access` says what else it may reach; without, `cwd` is all it may change.
        Never raises for what the command does; a missing program is exit code 127.
        """


class SuiteRunner(Protocol):
    """Runs tests of one tree and reads the runner's report file."""

    async def run(
        self,
        root: Path,
        *,
        files: Sequence[str] | None = None,
        expected_names: Sequence[str] = (),
        only: Sequence[ReportedCase] = (),
        key: str,
        timeout_s: float | None = None,
    ) -> TestReport:
        """Run `files` (None: the whole suite) below `root`; names in `expected_names` must be in the report.

        With `only`, cases of an earlier report, nothing but these is run and reported, as far as they are found again.
        Files that were changed while they ran show nothing.

        `key` names the dependency environment to use (one per story), `[A-Za-z0-9._-]+`. Installs what a manifest asks
        for first. `timeout_s` replaces the configured limit. Never raises for what tests do.
        """

    async def collect(self, root: Path, *, key: str) -> int:
        """How many tests below `root` can be found and loaded, without running any; 0 also where none can be."""

    async def new_packages(self, root: Path, packages: Mapping[str, str], files: Sequence[str]) -> NewPackages:
        """Whether `packages` (name → version, as in package.json) can be had beside those of the project below `root`.

        `files` are those that come beside the ones that are there: their manifests say what kind of packages they are.
        Nothing is installed.
        """

    async def follow_locks(self, texts: Mapping[str, str], locks: Sequence[str]) -> LockFiles:
        """`locks` as the manifests among `texts` (by path, with settings and the present lock files) want them."""

    async def installed(self, root: Path, packages: Mapping[str, str], files: Sequence[str]) -> InstalledPackages:
        """Returns what an environment holds of the project below `root` and these `packages`; arguments as above.

        They are installed for it. Nothing is known of a project whose packages cannot be installed.
        """

    async def command(
        self, root: Path, command: str, *, key: str, timeout_s: float | None = None, own: Sequence[str] | None = None
    ) -> CommandResult:
        """Run a shell command below `root`, the environment of `key` first on PATH; `timeout_s` replaces the limit.

        `own` are the files that it may make: the result has what became of them, and which others it left.
        """


CheckMerge = Callable[[Path], Awaitable[str]]
TestMerge = Callable[[Path, str], Coroutine[Any, Any, T]]


class Workspace(Protocol):
    """The git side of one sprint: branches, worktrees, commits, merges (docs/development/decisions.md#git)."""

    async def open(self, story_id: str) -> Branch:
        """Create the story's branch at the result branch, and its worktree; or find both, mending what is half-made."""

    def root(self, story_id: str) -> Path:
        """Folder of the story's worktree."""

    async def reset(self, story_id: str) -> None:
        """Make the worktree equal to its branch: tracked files restored, everything else removed."""

    async def leave(self, story_id: str) -> None:
        """Remove the worktree, if there is one; the branch stays, and `open` writes the worktree again."""

    async def files(self, story_id: str) -> tuple[str, ...]:
        """Paths of all tracked files of the branch, sorted."""

    async def read(self, story_id: str, paths: Sequence[str]) -> dict[str, str]:
        """Text of those `paths` that exist on the branch as regular UTF-8 files, read from the branch's tree."""

    async def obstacles(self, story_id: str, paths: Sequence[str]) -> dict[str, str]:
        """Why no text can be written at those of `paths` that are on the branch, or lie below what is: `is a link`,
        `is no text of UTF-8 (byte 0xe9 in line 3)`, `lies below `lib`, which is a submodule`."""

    async def read_base(self, story_id: str, paths: Sequence[str]) -> dict[str, str]:
        """Like `read`, at the commit that `diff` starts from."""

    async def files_at(self, tree: str) -> tuple[str, ...]:
        """Like `files`, of a commit or of the tree of `sides`."""

    async def read_at(self, tree: str, paths: Sequence[str]) -> dict[str, str]:
        """Like `read`, from a commit or the tree of `sides`."""

    async def head(self, story_id: str) -> str:
        """Commit at the tip of the story's branch."""

    async def write(self, story_id: str, changes: Sequence[FileChange], removed: Sequence[str] = ()) -> None:
        """Write all files into the worktree and take those of `removed` away, or do nothing; never through a link.

        Raises WorkspaceError, also for a file to be removed that is not there.
        """

    async def ignored(self, story_id: str, paths: Sequence[str]) -> tuple[str, ...]:
        """Those of `paths` that the rules in the worktree's .gitignore files ignore, and that the branch does not have.

        They are in no commit.
        """

    async def commit(
        self, story_id: str, changes: Sequence[FileChange], note: CommitNote, removed: Sequence[str] = ()
    ) -> str:
        """Commit exactly these contents of these paths, without those of `removed`; returns the commit id.

        Finds its own earlier commit by the step trailer. No change to the tree: the branch's head, no new commit,
        unless the note records commands.
        """

    async def diff(self, story_id: str) -> tuple[DiffEntry, ...]:
        """Raw diff of the branch against the result as it last took it in, or against its base: its own work only."""

    async def patch(self, story_id: str, since: str, paths: Sequence[str]) -> str:
        """Returns the changes of these `paths` from `since` to the branch's head, as a unified git diff.

        Per file, without renames; a file that is no text is named and not shown. "" when nothing differs.
        """

    async def diff_stat(self, story_id: str) -> str:
        """The same as `git diff --stat` tells it, for people."""

    async def sides(self, story_id: str, onto: str) -> Sides:
        """The branch and a commit of the result branch brought together as far as git can; nothing moves."""

    async def take_in(self, story_id: str, onto: str, changes: Sequence[FileChange], note: CommitNote) -> str:
        """Merge a commit of the result branch into the story's branch, with the contents of `changes` on top.

        Returns the commit, which has both as parents; a branch that has `onto` already gets an ordinary one. `changes`
        hold every path in conflict, else WorkspaceError. Idempotent by the step trailer.
        """

    async def test_merge(self, story_id: str, note: CommitNote, test: TestMerge[bool]) -> bool:
        """Test the merge on top of those before it, as `merge` does, and keep the story's place among them.

        Returns what `test` returned; False for a conflict. Only with True the place is kept, for half a minute, until
        `merge` or `leave`; both calls have the same `note`.
        """

    async def merge(
        self, story_id: str, note: CommitNote, check: CheckMerge, test: TestMerge[None] | None = None
    ) -> MergeResult:
        """Merge the branch into the result branch, behind the stories whose merges were asked for before.

        `test(folder, commit)` sees the merge on top of those before it, which are tested at the same time; it is
        cancelled and called again when that is not what it will be merged into. Once all before it are merged or turned
        down, `check(folder)` returns why this one is turned down, or "". A branch that was merged as it is stays so.
        """

    async def result_head(self) -> str:
        """Commit at the tip of the result branch."""

    async def content_of(self, commit: str) -> str:
        """Id of what a checkout of the commit holds: two with the same one are the same to tests."""

    async def result_tree(self, work: Callable[[Path], Awaitable[T]]) -> T:
        """Run `work(folder)` on a detached checkout of the result branch as it is; also from within a merge's check."""

    async def start_tree(self, story_id: str, changes: Sequence[FileChange], work: Callable[[Path], Awaitable[T]]) -> T:
        """Run `work(folder)` on a detached checkout of the commit that `diff` starts from, with `changes` written."""

    async def story_tree(self, story_id: str, changes: Sequence[FileChange], work: Callable[[Path], Awaitable[T]]) -> T:
        """Run `work(folder)` on a detached checkout of the story's branch as it is, with `changes` written."""

    async def base_tree(self, work: Callable[[Path], Awaitable[T]]) -> T:
        """Run `work(folder)` on a detached checkout of the sprint's base commit."""


class CommitStore(Protocol):
    """Keeps the commits that sprints stand on outside of this machine (docs/development/decisions.md#kept-commits).

    All methods block, and raise EventLogAway while the store cannot be reached.
    """

    def read(self, sprint: str, repository: str) -> KeptRefs:
        """Returns what was kept last."""

    def keep(
        self,
        sprint: str,
        repository: str,
        refs: Mapping[str, str],
        packs: Sequence[tuple[ObjectPack, IO[bytes]]],
        *,
        known: KeptRefs,
    ) -> bool:
        """Keeps what differs between the refs `known` and `refs`, together with these packs, all or nothing; other
        machines' refs of the sprint stay as they are.

        Returns False, and keeps nothing, when one of those is not kept as it was known: the packs may lack something
        then. `packs` may hold one with a `base` only if `known` has no refs. With the last ref everything of the sprint
        goes. Called again after a failure it keeps nothing twice.
        """

    def packs(self, sprint: str) -> tuple[ObjectPack, ...]:
        """Returns the packs that the sprint's commits need, in the order in which they are to be read."""

    def load(self, pack: ObjectPack, file: IO[bytes]) -> None:
        """Writes the content of a pack to `file`."""

    def delete(self, sprint: str) -> None:
        """Deletes all packs and refs of a sprint, and the bases of its repository when no other sprint needs them."""


class Backlog(Protocol):
    """One backlog file: read, and written by one task only (docs/development/decisions.md#backlog-writer)."""

    def read(self) -> BacklogContent:
        """Read and validate; problems are findings. Raises BacklogError when nothing can be read."""

    def write(self, updates: Sequence[CellUpdate]) -> str | None:
        """Change cells by id, atomically; a warning for people when it went to the sidecar instead, else None."""
