"""How much room is left."""

import os
import shutil
from pathlib import Path


def short_of_disk(place: Path, least_mb: int) -> str:
    """Why nothing more is to be written at `place`; "" while it may be."""
    if os.statvfs(place).f_flag & os.ST_RDONLY:
        return "the disk where the state folder is takes nothing: it is read-only"
    free = shutil.disk_usage(place).free // 2**20
    return f"{free} MB are free where the state folder is, serve.min_disk_mb is {least_mb}" if free < least_mb else ""


FULL_MB = 8
"""With less a disk counts as full, a small one with less than a twentieth: nobody can say what would still fit."""


def is_full(*places: Path) -> bool:
    """Whether one of these folders is on a disk where nothing can be written any more. Blocks."""
    disks = [shutil.disk_usage(place) for place in places]
    return any(disk.free < min(FULL_MB * 2**20, disk.total // 20) for disk in disks)
