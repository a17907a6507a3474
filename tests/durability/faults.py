"""Faults of a machine that a test brings about and takes back: a full disk, a clock that jumps."""

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class SmallDisk:
    """A file system of its own at a folder."""

    def __init__(self, folder: Path) -> None:
        self._ballast = folder / "ballast"

    def fill(self) -> None:
        """Leave no room."""
        with self._ballast.open("wb") as file, suppress(OSError):  # others took what was left
            while free := shutil.disk_usage(self._ballast.parent).free:
                os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, free)

    def empty(self) -> None:
        """Make room again."""
        self._ballast.unlink()


@contextmanager
def small_disk(folder: Path, size_mb: int) -> Iterator[SmallDisk | None]:
    """A disk at a new folder until the end of the context; None for a user who may not mount any."""
    folder.mkdir(parents=True)
    words = ["mount", "-t", "tmpfs", "-o", f"size={size_mb}m", "none", str(folder)]
    if os.getuid() != 0 or subprocess.run(words, check=False, capture_output=True).returncode != 0:
        yield None
        return
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


class Clock:
    """What the processes that have these variables take for the time of day; their monotonic clock is the machine's."""

    def __init__(self, file: Path) -> None:
        spec = importlib.util.find_spec("libfaketime")
        assert spec is not None
        assert spec.origin is not None
        library = Path(spec.origin).parent / "vendor/libfaketime/src/libfaketime.so.1"
        self.loader = {
            "LD_PRELOAD": str(library), "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_CACHE_DURATION": "1",
        }  # fmt: skip
        self.variables = {"FAKETIME_TIMESTAMP_FILE": str(file)}
        self._file = file
        self.jump(0)

    def jump(self, seconds: int) -> None:
        """Be so far off from now on."""
        self._file.write_text(f"{seconds:+d}\n")
