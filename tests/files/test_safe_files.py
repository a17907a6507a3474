"""Files below a descriptor: all or none, and never outside."""

import errno
import itertools
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.core.errors import WorkspaceError
from orchestrator.files.safe_files import open_folder, open_root, write_all
from tests.effort import examples
from tests.git.git_samples import fill, snapshot


@pytest.fixture
def root(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "root").mkdir()
    fd = open_root(tmp_path / "root")
    yield fd
    os.close(fd)


def test_writes_and_reads(tmp_path: Path, root: int) -> None:
    write_all(root, [("a/b/c.txt", b"1"), ("d", b""), ("d", b"last one counts")])
    (tmp_path / "root/d").chmod(0o755)
    write_all(root, [("d", b"2"), ("a/b/c.txt", b"3")])
    assert snapshot(tmp_path / "root") == {"a/b/c.txt": b"3", "d": b"2"}
    assert os.access(tmp_path / "root/d", os.X_OK)
    assert (tmp_path / "root/a/b/c.txt").stat().st_mode & 0o111 == 0
    write_all(root, [])


def test_removals_happen_with_the_rest_or_not_at_all(tmp_path: Path, root: int) -> None:
    folder, outside = tmp_path / "root", tmp_path / "outside"
    fill(outside, {"victim": "precious"})
    fill(folder, {"a/one": "1", "two": "2", "three": "3"})
    (folder / "link").symlink_to(outside / "victim")
    (folder / "out").symlink_to(outside)
    before = snapshot(folder)
    for trap in ("link", "out/victim", "a", "absent", "absent/too", "../outside/victim"):
        for removed in ([trap, "two"], ["two", trap]):
            with pytest.raises(WorkspaceError):
                write_all(root, [("new/four", b"4"), ("three", b"x")], removed)
    assert snapshot(folder) == before
    assert not (folder / "new").exists()
    assert snapshot(outside) == {"victim": b"precious"}
    write_all(root, [("new/four", b"4")], ["a/one", "two"])
    assert {path for path in snapshot(folder) if path != "link"} == {"three", "new/four"}
    assert [name for name in os.listdir(folder) if name.startswith(".")] == []


def test_traps_are_refused_and_leave_everything_as_it_was(tmp_path: Path, root: int) -> None:
    folder, outside = tmp_path / "root", tmp_path / "outside"
    fill(outside, {"victim": "precious"})
    fill(folder, {"folder/file": "x", "plain": "old"})
    (folder / "out").symlink_to(outside)
    (folder / "link").symlink_to(outside / "victim")
    (folder / "dangling").symlink_to(outside / "new")
    os.link(outside / "victim", folder / "hard")
    os.mkfifo(folder / "pipe")
    before = sorted(os.listdir(folder))
    traps = ["out/victim", "out/new", "link", "dangling", "hard", "pipe", "folder", "plain/below", "pipe/x"]
    for trap in traps:
        for content in (
            [(trap, b"x"), ("new/file", b"1"), ("plain", b"1")],
            [("new/a", b"1"), ("plain", b"1"), (trap, b"x")],
        ):
            with pytest.raises(WorkspaceError):
                write_all(root, content)
    for unsafe in ("../x", "/etc/x", ".git/config", "a/.GIT/x", "", "a//b", "a\0b", "a/../../b"):
        with pytest.raises(WorkspaceError):
            write_all(root, [("plain", b"1"), (unsafe, b"x")])
    with pytest.raises(WorkspaceError):
        write_all(root, [("plain", b"1"), ("fresh", b"1"), ("fresh/below", b"1")])
    assert sorted(os.listdir(folder)) == before
    assert (folder / "plain").read_text() == "old"
    assert os.listdir(folder / "folder") == ["file"]
    assert snapshot(outside) == {"victim": b"precious"}
    with pytest.raises(WorkspaceError):
        open_root(folder / "out")


def test_a_folder_is_opened_through_no_link(tmp_path: Path, root: int) -> None:
    folder, outside = tmp_path / "root", tmp_path / "outside"
    fill(outside, {"deep/victim": "precious"})
    fill(folder, {"a/b/file": "x"})
    (folder / "link").symlink_to(outside)
    (folder / "a/inner").symlink_to("b")
    fd = open_folder(root, "a/b")
    assert os.listdir(fd) == ["file"]
    os.close(fd)
    for refused in ("link", "link/deep", "a/inner", "a/b/file", "a/none", "a/b/file/x"):
        with pytest.raises(OSError):
            open_folder(root, refused)


def test_permissions_are_kept_and_no_more_than_those(tmp_path: Path, root: int) -> None:
    folder = tmp_path / "root"
    fill(folder, {"private": "x", "script": "x", "setuid": "x", "closed": "x"})
    for name, mode in (("private", 0o640), ("script", 0o755), ("setuid", 0o4711), ("closed", 0)):
        (folder / name).chmod(mode)
    write_all(root, [(name, b"new") for name in ("private", "script", "setuid", "closed", "fresh")])
    modes = {path.name: path.stat().st_mode & 0o7777 for path in folder.iterdir()}
    assert modes == {"private": 0o640, "script": 0o755, "setuid": 0o711, "closed": 0o600, "fresh": modes["fresh"]}
    assert modes["fresh"] & 0o111 == 0


def test_a_full_disk_half_way_leaves_everything_as_it_was(tmp_path: Path, root: int) -> None:
    folder = tmp_path / "root"
    fill(folder, {"first": "old", "below/second": "old"})
    before = snapshot(folder)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(WorkspaceError):
            write_all(root, [("first", b"1"), ("made/new", b"1"), ("below/second", b"x" * 2000), ("last", b"1")])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert snapshot(folder) == before
    assert sorted(os.listdir(folder)) == ["below", "first"]


@pytest.mark.parametrize("failing", range(1, 5))
def test_a_rename_that_fails_takes_the_earlier_ones_back(
    tmp_path: Path, root: int, failing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "root"
    fill(folder, {"first": "old", "below/second": "old"})
    before, real, calls = snapshot(folder), os.rename, itertools.count(1)

    def rename(*names: Any, **fds: Any) -> None:
        if next(calls) == failing:
            raise OSError(errno.EACCES, "Permission denied")
        real(*names, **fds)

    monkeypatch.setattr(os, "rename", rename)
    with pytest.raises(WorkspaceError, match="Permission denied"):
        write_all(root, [("first", b"1"), ("below/second", b"2"), ("made/third", b"3")])
    assert snapshot(folder) == before
    assert sorted(os.listdir(folder)) == ["below", "first"]


SWAP = """
import os, sys
inside, outside = sys.argv[1:]
os.chdir(inside)
print("begun", flush=True)
for number in range(10**9):
    for move in (
        lambda: os.rename("real", f"folder{number}"),
        lambda: os.symlink(outside, "real"),
        lambda: os.rename("real", f"link{number}"),
        lambda: os.mkdir("real"),
        lambda: os.rename("real/deep", f"deep{number}"),
        lambda: os.symlink(outside, "real/deep"),
        lambda: os.unlink("real/x"),
        lambda: os.symlink(outside + "/x", "real/x"),
    ):
        try:
            move()
        except OSError:
            pass
"""


def test_a_folder_swapped_with_a_link_all_the_time_never_leads_outside(tmp_path: Path, root: int) -> None:
    """By another process, for folders, for a folder below and for the file itself."""
    folder, outside = tmp_path / "root", tmp_path / "outside"
    fill(outside, {"x": "precious"})
    attacker = subprocess.Popen([sys.executable, "-c", SWAP, folder, outside], stdout=subprocess.PIPE, text=True)
    try:
        assert attacker.stdout is not None
        attacker.stdout.readline()
        for number in range(3000):
            with suppress(WorkspaceError):
                write_all(root, [("real/x", str(number).encode()), ("real/deep/y", b"y")])
    finally:
        attacker.kill()
        attacker.communicate()
    assert snapshot(outside) == {"x": b"precious"}
    assert os.listdir(outside) == ["x"]


NAMES = st.sampled_from(["a", "b", "a/a", "a/b", "b/a/c", "c", "c/d"])


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.lists(st.tuples(NAMES, st.binary(max_size=3)), max_size=4), st.sets(NAMES, max_size=2)), max_size=5
    )
)
def test_every_batch_happens_whole_or_not_at_all(
    tmp_path_factory: pytest.TempPathFactory, batches: list[tuple[list[tuple[str, bytes]], set[str]]]
) -> None:
    folder = tmp_path_factory.mktemp("batch")
    root = open_root(folder)
    try:
        for batch, removed in batches:
            before = snapshot(folder)
            try:
                write_all(root, batch, sorted(removed))
            except WorkspaceError:
                assert snapshot(folder) == before
            else:
                after = before | dict(batch)
                assert snapshot(folder) == {path: after[path] for path in after if path not in removed}
    finally:
        os.close(root)
