"""The system calls that commands may not make, as a program for the kernel."""

import errno
import functools
import importlib
import os
from enum import StrEnum
from types import ModuleType
from typing import Any

_FORBIDDEN = (
    # Ways around everything else, or into parts of the kernel that no build and no test needs.
    *("io_uring_setup", "io_uring_enter", "io_uring_register", "bpf", "userfaultfd", "perf_event_open"),
    *("ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd", "process_madvise"),
    *("keyctl", "add_key", "request_key", "open_by_handle_at", "name_to_handle_at", "lookup_dcookie"),
    *("mount", "umount2", "pivot_root", "chroot", "fsopen", "fsconfig", "fsmount", "fspick", "move_mount"),
    *("open_tree", "mount_setattr", "unshare", "setns", "swapon", "swapoff", "quotactl", "quotactl_fd", "acct"),
    *("init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "syslog"),
    *("settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname", "vhangup"),
    *("iopl", "ioperm", "modify_ldt", "fanotify_init", "migrate_pages", "move_pages"),
)
_UNCOUNTED = ("memfd_create", "memfd_secret", "msgget", "semget")
"""Memory that no process maps, which a limit cannot count. Programs have other ways, for kernels without these."""
_SEGMENT = 4096
"""Bytes of the largest System V segment, as the one by which Postgres knows that it runs; there are 4096 at most."""
_NEW_NAMESPACES = (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000, 0x00000080)
_TERMINAL_INPUT = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX inject input into the terminal as if the user had typed it."""
_MODES = (("chmod", 1), ("fchmod", 1), ("fchmodat", 2), ("fchmodat2", 2))
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_DGRAM, _TYPES = 2, 0xF
_TCP = 6  # IPPROTO_TCP
_FAST_OPEN = 0x20000000  # MSG_FASTOPEN connects without `connect`
_SENDS = (("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3))


class Sockets(StrEnum):
    """The sockets that a command may make."""

    USUAL = "usual"
    """Those of programs: where the network is the command's own, or on."""
    TCP = "tcp"
    """TCP alone."""
    NONE = "none"
    """Pairs that know each other, and nothing else."""


@functools.cache
def program(sockets: Sockets) -> bytes:
    """Returns the filter for the running kernel. Raises RuntimeError or ImportError where there is no libseccomp."""
    module: ModuleType = importlib.import_module("pyseccomp")
    build = _Build(module)
    for name in _FORBIDDEN:
        build.deny(errno.EPERM, name)
    # Programs fall back to clone, whose flags a filter can read.
    for name in ("clone3", *_UNCOUNTED):
        build.deny(errno.ENOSYS, name)
    build.deny(errno.EINVAL, "shmget", build.more_than(1, _SEGMENT))
    for flag in _NEW_NAMESPACES:
        build.deny(errno.EPERM, "clone", build.masked(0, flag, flag))
    for request in _TERMINAL_INPUT:
        build.deny(errno.EPERM, "ioctl", build.masked(1, 0xFFFFFFFF, request))
    for name, place in _MODES:
        for bit in (0o4000, 0o2000):
            build.deny(errno.EPERM, name, build.masked(place, bit, bit))
    _sockets(build, sockets)
    return build.exported()


def _sockets(build: "_Build", sockets: Sockets) -> None:
    if sockets is not Sockets.USUAL:  # no server of this kind either
        build.deny(errno.ENOSYS, "shmget")
    if sockets is Sockets.NONE:
        for name in ("socket", "connect", "bind", "listen"):
            build.deny(errno.EACCES, name)
    else:
        usual = {_UNIX, _INET, _INET6, _NETLINK} if sockets is Sockets.USUAL else {_INET, _INET6}
        for family in set(range(_NETLINK + 1)) - usual:
            build.deny(errno.EACCES, "socket", build.masked(0, 0xFFFFFFFF, family))
        build.deny(errno.EACCES, "socket", build.more_than(0, _NETLINK))
    if sockets is Sockets.TCP:
        build.deny(errno.EACCES, "socket", build.masked(1, _TYPES, _DGRAM))
        # Landlock's ports hold for `connect` of plain TCP: neither for its successors, nor for a first message that
        # connects as well.
        build.deny(errno.EPROTONOSUPPORT, "socket", build.more_than(2, _TCP))
        for name, place in _SENDS:
            build.deny(errno.EOPNOTSUPP, name, build.masked(place, _FAST_OPEN, _FAST_OPEN))
    if sockets is not Sockets.USUAL:
        # A datagram pair can be sent elsewhere afterwards: to the system's log, to a service that listens on a path.
        build.deny(errno.EACCES, "socketpair", build.masked(1, _TYPES, _DGRAM))


class _Build:
    """A filter that grows rule by rule; a call that the library does not know by name stays open."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._filter = module.SyscallFilter(module.ALLOW)

    def deny(self, number: int, name: str, *conditions: Any) -> None:
        if self._module.resolve_syscall(self._module.system_arch(), name) >= 0:
            self._filter.add_rule(self._module.ERRNO(number), name, *conditions)

    def masked(self, place: int, mask: int, value: int) -> Any:
        return self._module.Arg(place, self._module.MASKED_EQ, mask, value)

    def more_than(self, place: int, value: int) -> Any:
        return self._module.Arg(place, self._module.GT, value)

    def exported(self) -> bytes:
        with os.fdopen(os.memfd_create("filter"), "w+b") as file:
            self._filter.export_bpf(file)
            file.seek(0)
            return file.read()
