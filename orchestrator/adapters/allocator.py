"""The C library's allocator in a process of many threads that stays for months.

glibc gives each of many threads an arena of its own, up to eight per processor, and none gives back what it once held:
fifty stories at once made a daemon half as large again as what it holds (mallopt(3), malloc_trim(3)).
"""

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
"""malloc.h of glibc."""
ARENAS = 2
APART = 64 * 1024
"""Bytes from which a block is mapped by itself, and unmapped when it is freed: prompts, steps' results, file lists."""


def _glibc() -> ctypes.CDLL | None:
    """None with another C library: musl and those of other systems have no arenas."""
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "gnu_get_libc_version") else None


def be_thrifty() -> bool:
    """From now on no further arena beyond ARENAS, and large blocks by themselves; whether the C library can do so.

    Named thresholds stay as they are named: by itself glibc raises them with each large block that is freed, until all
    lie between what is still held.
    """
    library = _glibc()
    if library is None:
        return False
    named = ((_M_ARENA_MAX, ARENAS), (_M_MMAP_THRESHOLD, APART), (_M_TRIM_THRESHOLD, 2 * APART))
    return all([library.mallopt(name, value) for name, value in named])


def give_back() -> None:
    """Free memory goes back to the system. Takes milliseconds per hundred megabytes; other threads go on."""
    if (library := _glibc()) is not None:
        library.malloc_trim(ctypes.c_size_t(0))
