"""The C library's allocator in a process of many threads that stays for months.

glibc gives each of many threads an arena of its own, up to eight per processor, and none gives back what it once held:
fifty stories at once made a daemon half as large again as what it holds (mallopt(3), malloc_trim(3)).
"""

import ctypes
import sys

_M_ARENA_MAX = -8
"""malloc.h of glibc."""
ARENAS = 2


def _glibc() -> ctypes.CDLL | None:
    """None with another C library: musl and those of other systems have no arenas."""
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "gnu_get_libc_version") else None


def few_arenas() -> bool:
    """From now on the process begins no further arena beyond ARENAS; whether the C library has such a thing."""
    library = _glibc()
    return library is not None and bool(library.mallopt(_M_ARENA_MAX, ARENAS))


def give_back() -> None:
    """Free memory goes back to the system. Takes milliseconds per hundred megabytes; other threads go on."""
    if (library := _glibc()) is not None:
        library.malloc_trim(ctypes.c_size_t(0))
