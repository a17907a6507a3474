"""When a disk counts as full: also a small one, and never one that says nothing of itself."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from orchestrator.files.disk import is_full

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
