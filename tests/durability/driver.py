"""Starts `run` as a process of its own, kills it at chosen moments, and reads what is left afterwards."""

import csv
import fcntl
import json
import os
import re
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import psycopg

from orchestrator.core.history import event_of
from orchestrator.storage.state_folder import StateFolder
from tests.durability.team import HEADER, OURS, STORIES, team, write_backlog
from tests.effort import is_quick
from tests.support import PLAIN_TESTS, Team
from tests.zygote import Forked, zygote

ROOT = Path(__file__).resolve().parents[2]
SPRINT = "S1"
TIMES = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")
HASHES = re.compile(r"\b[0-9a-f]{10,40}\b")


@dataclass(frozen=True)
class Ended:
    """How a process ended; a negative code is the signal."""

    code: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Aftermath:
    """Everything about a finished sprint that must not depend on whether and when it was killed."""

    code: int
    tree: str
    commits: Counter[str]
    calls: frozenset[str]
    report: Any
    cells: list[dict[str, str]]
    events: dict[str, list[str]]


@lru_cache(4096)
def _event(body: str) -> Any:
    """An event as it is stored; the same are read again at each look."""
    return event_of(body).model_dump(mode="json")


class Bench:
    """One folder with backlog, script, repository and state, and the processes that work on it."""

    def __init__(
        self,
        folder: Path,
        stories: Mapping[str, str] = STORIES,
        *,
        script: Team | None = None,
        settings: Sequence[str] = (),
        more: Sequence[str] = (),
        sprint: str = "",
        database: str | None = None,
    ) -> None:
        self.folder, self.database = folder, database
        self.settings, self.more = settings, more
        """`--set` of every command; further words of `run`."""
        self.runner: tuple[str, ...] = (PLAIN_TESTS,) if is_quick() else ()
        """The setting by which tests of stories are run; pytest in `make soak`."""
        self.source = ROOT
        """The sources that commands run; a test may name another release's."""
        self.patience_s = 60.0
        """How long a command may take to its end."""
        self.state = folder / ".orchestrator"
        self.variables: dict[str, str] = {}
        """Of every command, beside those that each needs."""
        self.loader: dict[str, str] = {}
        """Variables for the loader of every command: see `zygote`."""
        self.is_one_clock = True
        """False where times in the backlog may come from clocks that differ."""
        self.mirror_folder = self.state / "mirrors"
        self.calls_file = folder / "calls.jsonl"
        self.backlog = folder / "backlog.csv"
        self.output: list[str] = []
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tmp").mkdir(exist_ok=True)
        write_backlog(self.backlog, stories, sprint)
        (script or team()).write(folder / "team.jsonl")
        self.original = self.rows()

    def start(self, *, die_at: int | None = None, named: bool = True) -> Forked:
        """Start the one command of this bench, in its own session."""
        return self._spawn(self._words(named=named), die_at)

    def _words(self, *, named: bool = True) -> list[str]:
        words = ["run", "backlog.csv", "--repo", "repo", "--provider", "scripted"]
        words += ["--sprint", SPRINT] if named else []
        words += ["--script", "team.jsonl", "--call-log", "calls.jsonl", *self.more]
        for setting in ("provider.wait_initial_s=0.2", *self.runner, *self.settings):
            words += ["--set", setting]
        return words

    def command(self, *words: str) -> Ended:
        """Run another command beside it, to its end."""
        return self.ended(self._spawn(list(words), None))

    def finish(self, *, named: bool = True) -> Ended:
        """The command, to its end; with or without naming the sprint."""
        return self.ended(self.start(named=named))

    def _spawn(self, words: list[str], die_at: int | None) -> Forked:
        if die_at is not None:
            return self.spawn("tests.durability.dying", [str(die_at), *words])
        return self.spawn("orchestrator", words)

    def spawn(self, module: str, words: Sequence[str]) -> Forked:
        """`python -m MODULE WORDS...` in the folder, with its environment."""
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(self.folder), "TMPDIR": str(self.folder / "tmp"),
            "DEEDS": str(self.folder / "deeds.txt"),
        }  # fmt: skip
        if self.database:
            environment["DATABASE_URL"] = self.database
        environment |= self.variables
        return zygote(self.source, self.loader).start(module, words, cwd=self.folder, env=environment)

    def ended(self, process: Forked) -> Ended:
        """Wait for the end of a process of this bench."""
        try:
            out, err = process.communicate(timeout=self.patience_s)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"the run did not end:\n{out}\n{err}") from None
        self.output.append(f"{out}\n{err}")
        assert "Traceback" not in err, err
        return Ended(process.returncode, out, err)

    def kill_when(self, moment: Callable[[], bool], *, number: int = signal.SIGKILL, timeout: float = 90) -> Ended:
        """Start the command and signal its main process, no other, as soon as `moment` holds."""
        process = self.start()
        self.wait_for(moment, process, timeout=timeout)
        self._hold_between_calls(process)
        process.send_signal(number)
        process.send_signal(signal.SIGCONT)
        ended = self.ended(process)
        assert ended.code == (-number if number == signal.SIGKILL else 130), ended
        return ended

    def _hold_between_calls(self, process: Forked) -> bool:
        """Stop the process where every logged call is in the journal: a kill between the two may repeat that one.

        Returns whether there was such a moment; else it goes on.
        """
        for _ in range(200):
            process.send_signal(signal.SIGSTOP)
            stories = (self.state / "replies" / SPRINT).glob("*")
            if len(self.calls()) == sum(self.journalled(story.name) for story in stories):
                return True
            process.send_signal(signal.SIGCONT)
            time.sleep(0.002)
        return False

    def die_at(self, deed: int) -> Ended:
        """The command, killed by itself at its `deed`-th deed; it may end before."""
        return self.ended(self.start(die_at=deed))

    def die_at_boundary(self, point: str, number: int) -> Ended:
        """The command, killed by itself at a boundary (see boundaries.py); it may end before."""
        return self.ended(self.spawn("tests.durability.boundaries", [point, str(number), *self._words()]))

    def wait_for(self, moment: Callable[[], bool], process: Forked | None = None, *, timeout: float = 90) -> None:
        """Until `moment` holds; an error when the process ends or time passes first."""
        deadline, looked = time.monotonic() + timeout, time.monotonic()
        while not moment():
            ended = process is not None and process.poll() is not None
            if ended or time.monotonic() > deadline:
                if process is not None:
                    process.kill()
                    print(*process.communicate(), *self.output, sep="\n")
                raise AssertionError("the moment never came")
            # A look at a database takes milliseconds, of its server too: four fifths of the time are left to the run.
            time.sleep(max(0.0005, 4 * (time.monotonic() - looked)))
            looked = time.monotonic()

    # ---- what can be seen from outside while it runs

    def calls(self) -> list[str]:
        """Keys of the call log, in order."""
        try:
            lines = self.calls_file.read_text().splitlines()
        except FileNotFoundError:
            return []
        keys = [json.loads(line) for line in lines]
        return [f"{k['persona']} {k['story']} {k['task']} {k['purpose']} {k['turn']}" for k in keys]

    def journalled(self, story: str, ended: str = "reply") -> int:
        """Entries of a story's journal that ended so."""
        found = (self.state / "replies" / SPRINT / story).glob("*-*.json")
        return sum(json.loads(path.read_bytes())["ended"] == ended for path in found)

    def finished(self) -> int:
        """Stories that have an outcome in the event log."""
        return sum(event["id"].endswith(":story_finished") for event in self.log())

    def told(self, name: str) -> dict[str, int]:
        """Story → how many events of this name the log has."""
        return dict(Counter(event["story"] for event in self.log() if event["name"] == name))

    def log(self) -> list[Any]:
        """The event log as it is now; empty while there is none, or its database is away."""
        query = "SELECT body FROM orchestrator_events ORDER BY seq"
        try:
            if self.database:
                with psycopg.connect(self.database) as server:
                    return [_event(body) for (body,) in server.execute(query)]
            with closing(sqlite3.connect(f"file:{self.state}/events.sqlite?mode=ro", uri=True)) as connection:
                return [_event(body) for (body,) in connection.execute(query)]
        except (sqlite3.OperationalError, psycopg.errors.UndefinedTable, psycopg.OperationalError):
            return []

    @contextmanager
    def cells_held_up(self) -> Iterator[None]:
        """Until the end of the context no cell is written into the backlog: its writer's lock is ours."""
        sidecar = StateFolder(self.state).sidecar(self.backlog)
        sidecar.parent.mkdir(parents=True)
        with sidecar.with_name(f"{sidecar.name}.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def ref(self, name: str) -> str:
        """The commit that a branch of the sprint stands at, "" when there is none."""
        found = list(self.mirror_folder.glob(f"*.git/refs/heads/orchestrator/{SPRINT}/{name}"))
        try:
            return found[0].read_text().strip() if found else ""
        except OSError:
            return ""

    def ref_moves(self, name: str) -> Callable[[], bool]:
        """A moment: the branch exists and stands elsewhere than it first did."""
        first = self.ref(name)

        def moved() -> bool:
            nonlocal first
            now = self.ref(name)
            first = first or now
            return bool(now) and now != first

        return moved

    def appears(self, pattern: str) -> Callable[[], bool]:
        """A moment: a file of this pattern in the worktrees is newer than now."""
        since = time.time_ns()
        place = self.state / "sprints" / SPRINT / "worktrees"

        def there() -> bool:
            for path in place.glob(pattern):
                try:
                    if path.stat().st_mtime_ns > since:
                        return True
                except OSError:
                    continue
            return False

        return there

    def processes(self) -> list[str]:
        """Command lines of living processes that work below the bench's folder."""
        return [line for _, line in self._processes()]

    def _processes(self) -> Iterator[tuple[int, str]]:
        needle = str(self.folder)
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                place = os.readlink(entry / "cwd")
            except OSError:
                continue
            if line and int(entry.name) != os.getpid() and (needle in line or place.startswith(needle)):
                yield int(entry.name), line

    def kill_everything(self, process: Forked) -> None:
        """Kill the run with all that it started at once, as the end of a container does."""
        process.kill()
        for pid, _ in list(self._processes()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    # ---- what is left in the end

    def rows(self) -> list[dict[str, str]]:
        """The backlog's rows."""
        with self.backlog.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def git(self, *words: str) -> str:
        """Ask git about the mirror."""
        (mirror,) = self.mirror_folder.glob("*.git")
        command = ["git", f"--git-dir={mirror}", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout.strip()

    def aftermath(self, code: int) -> Aftermath:
        """Read everything; also holds what must be true of any finished sprint, killed or not."""
        calls = self.calls()
        assert len(calls) == len(set(calls)), [key for key, n in Counter(calls).items() if n > 1]
        steps = self.git("log", "--branches", "--format=%(trailers:key=Orchestrator-Step,valueonly)").split()
        commits = Counter(steps)
        assert max(commits.values()) == 1, commits
        self._clean()
        return Aftermath(
            code=code,
            tree=self.git("rev-parse", f"refs/heads/orchestrator/{SPRINT}/result^{{tree}}"),
            commits=commits,
            calls=frozenset(calls),
            report=self._report(),
            cells=self._cells(),
            events=self._events(),
        )

    def _clean(self) -> None:
        left = self.processes()
        assert left == [], left  # told here: this module's asserts say nothing by themselves
        assert list(self.mirror_folder.rglob("*.lock")) == []
        assert list(self.mirror_folder.rglob("tmp_*")) == []
        assert list(self.folder.glob(".backlog.csv*")) == [], "a half-written backlog is left beside it"
        assert list(self.state.glob("sprints/*/worktrees/.trash/*")) == []
        assert list(self.state.rglob(".*.tmp")) == []
        assert list((self.folder / "tmp").glob("orchestrator-*")) == [], "scratch folders of killed runs"

    def _report(self) -> Any:
        def same(value: Any) -> Any:
            if isinstance(value, dict):
                passing = {"duration_s", "seconds", "commit"}
                return {key: same(held) for key, held in value.items() if key not in passing}
            return [same(held) for held in value] if isinstance(value, list) else value

        return same(json.loads((self.state / "reports" / SPRINT / "report.json").read_bytes()))

    def _cells(self) -> list[dict[str, str]]:
        rows = self.rows()
        others = [column for column in HEADER if column not in OURS]
        assert [[row[c] for c in others] for row in rows] == [[row[c] for c in others] for row in self.original]
        for row in rows:
            assert row["Execution_Completed_At"] == row["Last_Updated"] or not self.is_one_clock, row
            assert row["Execution_Started_At"] <= row["Last_Updated"] or not self.is_one_clock, row
        return [{column: TIMES.sub("TIME", row[column]) for column in OURS} for row in rows]

    def _events(self) -> dict[str, list[str]]:
        """Per story what the log says, in the order of its own numbering, without times and hashes."""
        found: dict[str, dict[str, str]] = {}
        for event in self.log():
            passing = event["name"].startswith("activity_")
            if event["story"] is None or passing:  # told when something takes long, or waits for room
                continue
            said = HASHES.sub("HASH", event["message"])
            found.setdefault(event["story"], {})[event["id"]] = f"{event['id']} {event['name']} {said}"
        return {story: sorted(lines.values()) for story, lines in sorted(found.items())}
