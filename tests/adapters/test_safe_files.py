"""Files below a descriptor: all or none, and never outside."""

import itertools
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.adapters.safe_files import open_root, write_all
from orchestrator.errors import WorkspaceError
from tests.adapters.git_samples import fill, snapshot


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


def test_a_folder_swapped_with_a_link_all_the_time_never_leads_outside(tmp_path: Path, root: int) -> None:
    folder, outside = tmp_path / "root", tmp_path / "outside"
    outside.mkdir()
    stop = threading.Event()

    def swap() -> None:
        for number in itertools.count():
            if stop.is_set():
                return
            for move in (
                lambda n=number: os.rename(folder / "real", folder / f"folder{n}"),
                lambda: os.symlink(outside, folder / "real"),
                lambda n=number: os.rename(folder / "real", folder / f"link{n}"),
                lambda: os.mkdir(folder / "real"),
            ):
                with suppress(OSError):
                    move()

    attacker = threading.Thread(target=swap)
    attacker.start()
    try:
        for number in range(300):
            with suppress(WorkspaceError):
                write_all(root, [("real/x", str(number).encode())])
    finally:
        stop.set()
        attacker.join()
    assert os.listdir(outside) == []


NAMES = st.sampled_from(["a", "b", "a/a", "a/b", "b/a/c", "c", "c/d"])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.tuples(NAMES, st.binary(max_size=3)), max_size=4), max_size=5))
def test_every_batch_happens_whole_or_not_at_all(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[tuple[str, bytes]]]
) -> None:
    folder = tmp_path_factory.mktemp("batch")
    root = open_root(folder)
    try:
        for batch in batches:
            before = snapshot(folder)
            try:
                write_all(root, batch)
            except WorkspaceError:
                assert snapshot(folder) == before
            else:
                assert snapshot(folder) == before | dict(batch)
    finally:
        os.close(root)
