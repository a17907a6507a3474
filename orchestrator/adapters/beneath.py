"""Opening a folder below a descriptor without following a link, by the kernel's own rule where it has one."""

import ctypes
import errno
import os
import sys

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags of a folder that must be one itself."""
_OPENAT2 = 437
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08
_WALK_INSTEAD = frozenset({errno.ENOSYS, errno.EPERM, errno.EAGAIN, errno.EINVAL, errno.E2BIG, errno.ENAMETOOLONG})
"""No such call (an old kernel, a filter of system calls), a race inside the kernel, a path too long for one call."""


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def open_beneath(root_fd: int, folder: str) -> int:
    """A descriptor of a folder that exists below the root, "" being the root. Raises OSError; the caller closes it."""
    fd = openat2(root_fd, folder) if folder else None
    return walk(root_fd, folder) if fd is None else fd


def openat2(root_fd: int, folder: str) -> int | None:
    """One call that resolves the whole path below the root without links; None where only `walk` can do it."""
    if _LIBC is None:
        return None
    how = _How(flags=DIRECTORY, mode=0, resolve=_BENEATH | _NO_SYMLINKS | _NO_MAGICLINKS)
    fd: int = _LIBC.syscall(
        ctypes.c_long(_OPENAT2), ctypes.c_int(root_fd), ctypes.c_char_p(os.fsencode(folder)), ctypes.byref(how),
        ctypes.c_size_t(ctypes.sizeof(how)),
    )  # fmt: skip
    if fd >= 0:
        return fd
    code = ctypes.get_errno()
    if code in _WALK_INSTEAD:
        return None
    raise OSError(code, os.strerror(code), folder)


def walk(root_fd: int, folder: str, *, made: list[str] | None = None) -> int:
    """The same part by part, each opened in the one before it; with `made` missing folders are made and appended."""
    fd = os.open(".", DIRECTORY, dir_fd=root_fd)
    path = ""
    for part in folder.split("/") if folder else ():
        path = f"{path}/{part}" if path else part
        try:
            if made is not None:
                _make(fd, part, path, made)
            below = os.open(part, DIRECTORY, dir_fd=fd)
        finally:
            os.close(fd)
        fd = below
    return fd


def _make(fd: int, part: str, path: str, made: list[str]) -> None:
    try:
        os.mkdir(part, dir_fd=fd)
    except FileExistsError:
        return
    made.append(path)
