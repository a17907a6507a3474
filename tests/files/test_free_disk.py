"""When a disk counts as full: also a small one, and never one that says nothing of itself."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from orchestrator.files import disk
from orchestrator.files.disk import DiskWatch, is_full

MB = 2**20


@pytest.mark.parametrize(
    ("total", "free", "full"),
    [
        (100_000 * MB, 9 * MB, False), (100_000 * MB, 7 * MB, True), (20 * MB, 2 * MB, False), (20 * MB, 0, True),
        (0, 0, False),
    ],
)  # fmt: skip
def test_a_disk_is_full(monkeypatch: pytest.MonkeyPatch, total: int, free: int, full: bool) -> None:
    disks = {"here": SimpleNamespace(total=total, free=free), "there": SimpleNamespace(total=99 * MB, free=99 * MB)}
    monkeypatch.setattr(shutil, "disk_usage", lambda place: disks[str(place)])
    assert is_full(Path("there"), Path("here")) is full
    assert not is_full(Path("there"))


async def test_a_look_holds_for_no_longer_than_the_room_could_last(monkeypatch: pytest.MonkeyPatch) -> None:
    free, looks = [9 * MB, 7 * MB, 10**9 * MB], []

    def look(place: Path) -> SimpleNamespace:
        looks.append(place)
        return SimpleNamespace(total=10**10 * MB, free=free[0])

    monkeypatch.setattr(shutil, "disk_usage", look)
    monkeypatch.setattr(disk, "LOOK_S", 3600.0)
    watch = DiskWatch(Path("here"))
    for full in (False, True, False):  # a megabyte lasts no time
        assert await watch.is_full() is full
        free.pop(0) if len(free) > 1 else None
    seen = len(looks)
    assert not await watch.is_full()
    assert len(looks) == seen
