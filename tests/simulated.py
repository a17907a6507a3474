"""The `Step`, `SuiteRunner` and `EventSink` ports without an engine, processes or a database.

For tests of the loops and for benchmarks, together with the scripted provider and the memory workspace."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from orchestrator.core.calls.exchange import Prompt, Reply, TurnKey
from orchestrator.core.calls.side_by_side import step_awaited
from orchestrator.core.command import NOBODY, Choice, Gate, GateAnswer
from orchestrator.core.contract import InstalledPackages
from orchestrator.core.delivery import FileChange, LockFiles, is_lock
from orchestrator.core.event import Event, Level
from orchestrator.core.ports import Clock, EventSink, Provider
from orchestrator.core.suite import CaseResult, CommandResult, NewPackages, ReportedCase, RunProblem, TestReport
from orchestrator.files.process import SystemClock

T = TypeVar("T")


class MemorySink:
    """`ports.EventSink` that keeps events in a list; the first of each id stays."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._ids: set[str] = set()

    async def emit(self, event: Event) -> bool:
        """See the port."""
        if event.id in self._ids:
            return False
        self._ids.add(event.id)
        self.events.append(event)
        return True

    async def find(self, ids: Sequence[str]) -> Mapping[str, Event]:
        """See the port."""
        return {event.id: event for event in self.events if event.id in ids}

    def named(self, name: str) -> list[Event]:
        """Returns the events of one name, in order."""
        return [event for event in self.events if event.name == name]


class SimulatedStep:
    """`ports.Step` that does everything at once and remembers nothing beyond this object.

    Results go through the same JSON form as in the engine, so that what would not survive a crash fails here too.
    `prompts` has every prompt that was sent, with its turn. `person` answers gates; without one they time out.
    """

    def __init__(
        self,
        provider: Provider,
        sink: EventSink,
        *,
        sprint: str = "SP-001",
        story: str,
        clock: Clock | None = None,
        person: Callable[[Gate], GateAnswer] | None = None,
    ) -> None:
        self._person = person
        self._provider, self._sink = provider, sink
        self._sprint, self._story = sprint, story
        self._clock = clock or SystemClock()
        self._turns: Counter[TurnKey] = Counter()
        self._steps = self._events = self._gates = 0
        self.prompts: list[Prompt] = []

    @property
    def workflow_id(self) -> str:
        """See the port."""
        return f"{self._sprint}/{self._story}"

    async def step(self, name: str, work: Callable[[str], Awaitable[T]], returns: Any) -> T:
        """See the port; errors of `work` pass through."""
        self._steps += 1
        adapter: TypeAdapter[T] = TypeAdapter(returns)
        value = await work(f"{self.workflow_id}/{self._steps}")
        return adapter.validate_python(adapter.dump_python(value, mode="json"))

    async def turn(self, prompt: Prompt) -> Reply:
        """See the port, without transport retries: the provider's errors pass through."""
        self._turns[prompt.key] += 1
        numbered = prompt.model_copy(update={"turn": self._turns[prompt.key]})
        self.prompts.append(numbered)
        async with step_awaited():
            return await self._provider.complete(numbered)

    async def open_gate(self, gate: Gate, timeout_s: float | None) -> Gate:
        """See the port."""
        self._gates += 1
        now = self._clock.now()
        deadline = None if timeout_s is None else now + timedelta(seconds=timeout_s)
        return gate.model_copy(update={"number": self._gates, "opened_at": now, "deadline": deadline})

    async def answer(self, gate: Gate) -> GateAnswer:
        """See the port; nothing is waited for."""
        if self._person is None:
            return GateAnswer(number=gate.number, choice=Choice.TIME_OUT, by=NOBODY)
        return self._person(gate)

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
        """See the port."""
        self._events += 1
        await self._sink.emit(
            Event(
                id=f"{self.workflow_id}:{self._events}",
                time=self._clock.now(),
                level=level,
                name=name,
                message=message,
                sprint=self._sprint,
                story=self._story,
                task=task,
                persona=persona,
                data=data,
            )
        )


class SimulatedRunner:
    """`ports.SuiteRunner` that returns what it was given, in order, and is green when that is used up.

    `stories` are the reports of runs of named files, `wholes` those of whole suites (a merge, its base when that
    is red, what was there before when that held tests), `befores` those of named files without the story's change and
    `hollows` with functions that return nothing (no tests run there when that is used up), `commands` those of
    commands, `packages` what is found about new packages, `installed` what an
    environment holds. `latency_s` is really waited.
    """

    def __init__(
        self,
        *,
        stories: Sequence[TestReport] = (),
        wholes: Sequence[TestReport] = (),
        befores: Sequence[TestReport] = (),
        hollows: Sequence[TestReport] = (),
        commands: Sequence[CommandResult] = (),
        packages: Sequence[NewPackages] = (),
        installed: InstalledPackages | None = None,
        latency_s: float = 0.0,
    ) -> None:
        self._stories, self._wholes, self._commands = list(stories), list(wholes), list(commands)
        self._elsewhere = {"base": list(befores), "hollow": list(hollows)}
        self._packages = list(packages)
        self._latency_s, self._installed = latency_s, installed or InstalledPackages()
        self.ran: list[tuple[str, ...] | None] = []
        """The files of each run; None for a whole suite. Runs on other trees are left out."""
        self.alone: list[tuple[ReportedCase, ...]] = []
        """The tests that each run was limited to; () for all."""
        self.commanded: list[str] = []
        self.resolved: list[dict[str, str]] = []
        """The new packages of each plan."""

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
        """See the port."""
        await asyncio.sleep(self._latency_s)
        place = key.rpartition("-")[2]
        if files is not None and place in self._elsewhere:
            there = self._elsewhere[place]
            return there.pop(0) if there else TestReport(problem=RunProblem.NO_TESTS)
        self.alone.append(tuple(only))
        self.ran.append(None if files is None else tuple(files))
        waiting = self._wholes if files is None else self._stories
        passed = (*expected_names, "test_all") if files is None else expected_names
        return waiting.pop(0) if waiting else report(passed=passed)

    async def collect(self, root: Path, *, key: str) -> int:
        """See the port; nothing is there that could be loaded."""
        return 0

    async def new_packages(self, root: Path, packages: Mapping[str, str], files: Sequence[str]) -> NewPackages:
        """See the port."""
        self.resolved.append(dict(packages))
        return self._packages.pop(0) if self._packages else NewPackages()

    async def follow_locks(self, texts: Mapping[str, str], locks: Sequence[str]) -> LockFiles:
        """See the port; a lock file holds its manifests here."""
        manifests = "".join(texts[path] for path in sorted(texts) if not is_lock(path))
        return LockFiles(files=tuple(FileChange(path=lock, content=manifests) for lock in locks))

    async def installed(self, root: Path, packages: Mapping[str, str], files: Sequence[str]) -> InstalledPackages:
        """See the port."""
        return self._installed

    async def command(
        self, root: Path, command: str, *, key: str, timeout_s: float | None = None, own: Sequence[str] | None = None
    ) -> CommandResult:
        """See the port."""
        await asyncio.sleep(self._latency_s)
        self.commanded.append(command)
        if self._commands:
            return self._commands.pop(0)
        return CommandResult(argv=("sh", "-c", command), exit_code=0, output="")


def report(*, passed: Sequence[str] = (), failed: Sequence[str] = (), message: str = "assert False") -> TestReport:
    """Returns a trustworthy report of these test names."""
    good = [ReportedCase(name=name, id=f"suite::{name}", result=CaseResult.PASSED) for name in passed]
    bad = [ReportedCase(name=name, id=f"suite::{name}", result=CaseResult.FAILED, message=message) for name in failed]
    return TestReport(cases=(*good, *bad), exit_code=1 if failed else 0)
