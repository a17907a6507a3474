"""Backups: one file, whole or not at all, into an empty folder only."""

import asyncio
import gzip
import io
import json
import os
import sqlite3
import stat
import subprocess
import sys
import tarfile
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.core.daemon import BackedUp, Restored
from orchestrator.core.errors import ConfigError, SprintLocked
from orchestrator.core.event import Event
from orchestrator.core.sprint import SprintRecord
from orchestrator.git.mirror import Mirror
from orchestrator.maintenance.backup import Moment, backup, take_moment
from orchestrator.maintenance.restore import restore
from orchestrator.settings import Environment, load
from orchestrator.storage.event_file import sqlite_url
from orchestrator.storage.event_reader import EventReader
from orchestrator.storage.event_store import EventStore
from orchestrator.storage.locks import SprintLock
from orchestrator.storage.state_folder import RESTORING, StateFolder
from tests.support import git, plain_environment, run_cli
from tests.zygote import ROOT, zygote


def environment(home: Path, **more: str) -> Environment:
    return load(None, (), plain_environment(ORCHESTRATOR_HOME=str(home), **more), home.parent)[1]


def made(home: Path, target: Path) -> BackedUp:
    return asyncio.run(backup(environment(home), target))


def restored(source: Path, home: Path, **more: str) -> Restored:
    return asyncio.run(restore(environment(home, **more), source))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return make_home(tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A backup of such a folder, unpacked."""
    place = tmp_path_factory.mktemp("whole")
    made(make_home(place), place / "b.tar.gz")
    return gzip.decompress((place / "b.tar.gz").read_bytes())


def make_home(place: Path) -> Path:
    """A state folder with a little of everything; its backlog was handed in, its repository is a copy of a remote."""
    folder = StateFolder(place / "state")
    folder.make()
    repo, backlog = folder.home / "repositories" / "r", folder.submitted / "b.csv"
    backlog.parent.mkdir()
    backlog.write_text("Story_ID,Title\nUS-1,One\n")
    for path in (folder.sidecar(backlog), folder.last_good(backlog), folder.home / "repositories" / "r"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    key, identity = folder.mask_key(), folder.executor_id()
    assert (len(key), identity[:6]) == (32, "serve-")
    folder.save(
        SprintRecord(
            sprint="S1",
            backlog=str(backlog),
            repo=str(repo),
            base="",
            story_ids=("US-1",),
            started_at=datetime.now(UTC),
        )
    )
    for name in ("1-1.json", "1.prompt.md", "7-1.json", "7.prompt.md", "2-1.tmp"):
        path = folder.replies / "S1" / "US-1" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
        if name.startswith("7"):  # written an hour after this
            os.utime(path, (path.stat().st_mtime + 3600,) * 2)
    (folder.worktrees("S1") / "US-1").mkdir(parents=True)
    (folder.worktrees("S1") / "US-1" / "a.py").write_text("A = 1\n")

    async def fill() -> None:
        async with EventStore(sqlite_url(folder.event_database)) as sink:
            await sink.emit(Event(id="S1:1", time=datetime.now(UTC), name="sprint_started", message="m", sprint="S1"))
        mirror = Mirror(folder.mirror(repo))
        await mirror.prepare()
        blob = (await mirror.git("hash-object", "-w", "--stdin", stdin=b"text")).text
        tree = (await mirror.git("mktree", stdin=f"100644 blob {blob}\tf\n".encode())).text
        commit = (await mirror.git("commit-tree", tree, "-m", "c")).text
        await mirror.update(f"create refs/heads/orchestrator/S1/result {commit}")
        mirror.close()

    asyncio.run(fill())
    return folder.home


def test_what_comes_back_is_what_was_there_and_nothing_else(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "b.tar.gz"
    done = made(home, file)
    assert [(one.sprint, one.going_on) for one in done.header.sprints] == [("S1", True)]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600, "it holds the key of the masks"
    assert [path.name for path in tmp_path.iterdir() if ".tmp" in path.name] == []
    assert list(home.glob(".backup-*")) == []

    other = tmp_path / "elsewhere" / "state"
    assert restored(file, other).files == done.files - 1
    before, after = StateFolder(home), StateFolder(other)
    assert after.mask_key() == before.mask_key()
    assert stat.S_IMODE((other / "mask.key").stat().st_mode) == 0o600
    assert after.executor_id() == before.executor_id()
    assert [event.id for _, event in EventReader(sqlite_url(after.event_database)).read("S1")] == ["S1:1"]
    journal = [path.name for path in (other / "replies" / "S1" / "US-1").iterdir()]
    assert sorted(journal) == ["1-1.json", "1.prompt.md"], "what came after the moment is asked again"
    (record,) = after.records()
    assert (record.backlog, record.repo) == (str(other / "backlogs" / "b.csv"), str(other / "repositories" / "r"))
    assert after.sidecar(Path(record.backlog)).exists()
    assert after.last_good(Path(record.backlog)).exists()
    ref = "refs/heads/orchestrator/S1/result"
    mirrors = before.mirror(home / "repositories" / "r"), after.mirror(Path(record.repo))
    assert git(mirrors[0], "rev-parse", ref) == git(mirrors[1], "rev-parse", ref)
    assert git(mirrors[1], "fsck", "--strict", "--no-dangling") == ""
    left_out = {"repositories", "sprints/S1/worktrees", RESTORING}
    assert [name for name in left_out if (other / name).exists()] == []
    assert (other / ".gitignore").read_text() == "*\n"


def test_a_backup_goes_to_standard_output_too(home: Path, tmp_path: Path) -> None:
    env = plain_environment(ORCHESTRATOR_HOME=str(home))
    command = [sys.executable, "-m", "orchestrator", "backup", "-"]
    done = subprocess.run(command, cwd=tmp_path, env=env | {"PYTHONPATH": str(ROOT)}, capture_output=True, check=True)
    assert b"not finished: S1" in done.stderr
    (tmp_path / "b").write_bytes(done.stdout)
    told = run_cli(["restore", "b", "--home", "new"], tmp_path, env)
    assert told.returncode == 0, told.stderr
    assert "not finished: S1" in told.stdout
    assert "is asked again" in told.stdout
    refused = run_cli(["restore", "b", "--home", "new"], tmp_path, env)
    assert (refused.returncode, "is not empty" in refused.stderr) == (2, True)
    inside = run_cli(["backup", str(home / "b")], tmp_path, env)
    assert (inside.returncode, "in the state folder" in inside.stderr) == (2, True)
    os.mkfifo(tmp_path / "pipe")
    pipe = run_cli(["backup", "pipe"], tmp_path, env)
    assert (pipe.returncode, "is no file" in pipe.stderr) == (2, True)
    nowhere = run_cli(["backup", "no/such/folder/b"], tmp_path, env)
    assert (nowhere.returncode, "could not be written" in nowhere.stderr) == (2, True)


def flipped(data: bytes) -> bytes:
    middle = data.index(b'"S1:1"') + 2
    return data[:middle] + b"X" + data[middle + 1 :]


def without(name: str) -> Callable[[bytes], bytes]:
    return rewritten(lambda one, data: None if one == name else data)


def rewritten(change: Callable[[str, bytes], bytes | None], extra: str | None = None) -> Callable[[bytes], bytes]:
    def change_all(data: bytes) -> bytes:
        made = io.BytesIO()
        with tarfile.open(fileobj=io.BytesIO(data)) as old, tarfile.open(fileobj=made, mode="w") as new:
            for member in old:
                stream = old.extractfile(member)
                content = change(member.name, stream.read() if stream else b"")
                if content is not None:
                    member.size = len(content)
                    new.addfile(member, io.BytesIO(content))
                if extra and member.name == "backup.json":
                    new.addfile(tarfile.TarInfo(extra), io.BytesIO())
        return made.getvalue()

    return change_all


def newer(name: str, data: bytes) -> bytes:
    return json.dumps({**json.loads(data), "format": 99}).encode() if name == "backup.json" else data


def linked(data: bytes) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(data)) as old, tarfile.open(fileobj=made, mode="w") as new:
        members = list(old)
        first = old.extractfile(members[0])
        new.addfile(members[0], first)
        link = tarfile.TarInfo("sprints")
        link.type, link.linkname = tarfile.SYMTYPE, "/"
        new.addfile(link)
    return made.getvalue()


BROKEN = {
    "half of it": (lambda data: data[: len(data) // 2], "no whole backup"),
    "nothing": (lambda data: b"", "no whole backup"),
    "something else": (lambda data: b"PK" + data, "no whole backup"),
    "another byte": (flipped, "events.sqlite is missing or is not what was backed up"),
    "a file less": (without("mask.key"), "mask.key is missing"),
    "no manifest": (without("manifest.json"), "its end is missing"),
    "no header": (without("backup.json"), "does not begin as one"),
    "a way out": (rewritten(lambda name, data: data, "../evil"), "does not belong"),
    "another way out": (rewritten(lambda name, data: data, "/tmp/evil"), "does not belong"),
    "a link": (linked, "does not belong"),
    "a newer one": (rewritten(newer), "newer version"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_backup_is_refused_and_leaves_nothing(whole: bytes, tmp_path: Path, what: str) -> None:
    file, other = tmp_path / "b.tar.gz", tmp_path / "other"
    change, said = BROKEN[what]
    file.write_bytes(gzip.compress(change(whole), 1))
    with pytest.raises(ConfigError, match=said):
        restored(file, other)
    assert [path.name for path in other.iterdir()] == ["daemon"]
    assert not (tmp_path / "evil").exists()


def test_a_restore_is_refused_where_somebody_lives(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "b.tar.gz"
    made(home, file)
    with pytest.raises(ConfigError, match="is not empty"):
        restored(file, home)
    with pytest.raises(ConfigError, match="restore it without DATABASE_URL"):
        restored(file, tmp_path / "pg", DATABASE_URL="postgresql://nowhere/x")
    (home / "engine.sqlite").write_bytes(b"this is no database, and was never one" * 100)
    with pytest.raises(ConfigError, match=r"engine.sqlite cannot be read"):
        made(home, tmp_path / "c")
    with pytest.raises(ConfigError, match="no state folder"):
        made(tmp_path / "none", tmp_path / "c")
    other = tmp_path / "other"
    env = environment(other)
    with pytest.raises(SprintLocked, match="as its daemon"):
        asyncio.run(_held(other, env, file))


async def _held(home: Path, env: Environment, file: Path) -> None:
    async with SprintLock(StateFolder(home).daemon_lock):
        await restore(env, file)


def test_a_restore_that_was_killed_is_given_again(home: Path, tmp_path: Path) -> None:
    file, other = tmp_path / "b.tar.gz", tmp_path / "other"
    files = made(home, file).files
    env = plain_environment(ORCHESTRATOR_HOME=str(other))
    killed = set()
    for deed in (3, 6, 12, 25, 40, 50, 55, 60):
        process = zygote().start("tests.durability.dying", [str(deed), "restore", str(file)], cwd=tmp_path, env=env)
        process.communicate(30)
        killed.add(process.returncode)
        if process.returncode == 0:
            break
        if not (other / RESTORING).exists():
            assert not other.exists() or {path.name for path in other.iterdir()} <= {"daemon"}, "nothing was begun"
            continue
        with pytest.raises(ConfigError, match="restore it again"):
            StateFolder(other).make()
    assert -9 in killed
    if 0 not in killed:
        assert restored(file, other).files == files - 1
    assert len(StateFolder(other).records()) == 1
    StateFolder(other).make()


def test_a_moment_shows_databases_and_branches_as_they_were_together(tmp_path: Path) -> None:
    """A step moves a branch and is then recorded, over and over, while moments are taken."""
    folder = StateFolder(tmp_path / "state")
    folder.make()
    mirror = Mirror(folder.mirror(tmp_path / "r"))
    create = "CREATE TABLE IF NOT EXISTS operation_outputs (workflow_uuid TEXT, function_id INTEGER)"

    def record(step: int) -> None:
        with closing(sqlite3.connect(folder.engine_database, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute(create)
            connection.execute("INSERT INTO operation_outputs VALUES ('S1/A', ?)", (step,))

    async def steps() -> list[str]:
        tree = (await mirror.git("mktree", stdin=b"")).text
        commits = []
        for step in range(60):
            commits.append((await mirror.git("commit-tree", tree, "-m", str(step))).text)
            await mirror.update(f"update refs/heads/a {commits[-1]}")
            await asyncio.to_thread(record, step)
            await asyncio.sleep(0.03 if step % 10 == 9 else 0)
        return commits

    known = environment(folder.home)

    async def both() -> tuple[list[str], list[Moment]]:
        await mirror.prepare()
        stepping, taken = asyncio.create_task(steps()), []
        while not stepping.done():
            taken.append(await take_moment(known, folder, [mirror.path]))
            taken[-1].databases.end()
        mirror.close()
        return await stepping, taken

    commits, taken = asyncio.run(both())
    seen = [(told.last_steps.get("S1/A", -1), told.refs[mirror.path.name].split()) for told in taken]
    pairs = [(step, commits.index(refs[-2]) if len(refs) > 5 else -1) for step, refs in seen]
    assert len({step for step, _ in pairs}) > 3
    assert [pair for pair in pairs if pair[1] - pair[0] not in {0, 1}] == []


def test_which_replies_belong_to_a_moment() -> None:
    now = Moment(databases=None, at=100.0, records={}, refs={}, last_steps={"S1/A": 4})  # type: ignore[arg-type]
    held = {(story, step, when) for story in ("S1/A", "S1/B") for step in range(1, 7) for when in (99.0, 101.0)
            if now.holds(story, step, when)}  # fmt: skip
    later = {(story, step) for story, step, when in held if when == 101.0}
    assert later == {("S1/A", 1), ("S1/A", 2), ("S1/A", 3), ("S1/A", 4), ("S1/A", 5), ("S1/B", 1)}
    assert len(held) == 12 + len(later), "what was written before is part of it, whatever its step"
