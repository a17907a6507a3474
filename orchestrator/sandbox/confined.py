"""Confines the process that calls it, before it becomes a command: Landlock, no capability, seccomp.

Part of the launcher's program: standard library only, imported by file. Everything raises OSError when it cannot be
done; a command that could not be confined is never run.

`confine` takes what the daemon worked out: `read`, `write`, `devices` (paths; one that is gone is left out), `abi` (0:
no Landlock), `tcp` (whether TCP stays open), `ports` (where it does not, those that can be connected to, of any host),
`seccomp` (the program as hexadecimal digits; empty: none)."""

import ctypes
import os
from collections.abc import Iterable, Mapping
from typing import Any

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
READ = 1 << 0 | 1 << 2 | 1 << 3  # execute, read a file, list a folder
_FIRST = (1 << 13) - 1
_PATH_BENEATH, _NET_PORT, _CONNECT_TCP = 1, 2, 1 << 1
_DEVICE_NODES = 1 << 6 | 1 << 11  # landlock's MAKE_CHAR and MAKE_BLOCK
LAST_CAP = 63
PR_CAPBSET_DROP, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 24, 22, 38
_CAPSET_VERSION = 0x20080522  # _LINUX_CAPABILITY_VERSION_3
_libc = ctypes.CDLL(None, use_errno=True)


def handled(abi: int) -> int:
    """Every right on files that this version of Landlock knows: renaming into, truncating and ioctl came later."""
    return _FIRST | (1 << 13) * (abi >= 2) | (1 << 14) * (abi >= 3) | (1 << 15) * (abi >= 5)


def abi_version() -> int:
    """Returns the Landlock version of the running kernel; 0 without Landlock."""
    return max(0, int(_libc.syscall(ctypes.c_long(CREATE_RULESET), None, ctypes.c_size_t(0), ctypes.c_uint(1))))


def confine(policy: Mapping[str, Any]) -> None:
    """Confines this process and all it will start, forever. Raises OSError."""
    ruleset = _ruleset(policy) if policy["abi"] else None
    _drop_capabilities()
    _checked(_prctl(PR_SET_NO_NEW_PRIVS, 1), "no_new_privs")
    if ruleset is not None:
        _checked(_libc.syscall(ctypes.c_long(RESTRICT_SELF), ctypes.c_int(ruleset), ctypes.c_uint(0)), "landlock")
        os.close(ruleset)
    if policy["seccomp"]:
        _load(bytes.fromhex(policy["seccomp"]))


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _prctl(option: int, *words: int) -> int:
    padded = (*words, 0, 0, 0, 0)[:4]
    return int(_libc.prctl(ctypes.c_int(option), *(ctypes.c_ulong(word) for word in padded)))


def _ruleset(policy: Mapping[str, Any]) -> int:
    abi = int(policy["abi"])
    words = [handled(abi), 0 if policy["tcp"] or abi < 4 else 3, 3 if abi >= 6 else 0]
    attribute = (ctypes.c_uint64 * 3)(*words)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    result = _libc.syscall(
        ctypes.c_long(CREATE_RULESET), ctypes.byref(attribute), ctypes.c_size_t(size), ctypes.c_uint(0)
    )
    ruleset = _checked(result, "landlock")
    everything = handled(abi) & ~_DEVICE_NODES
    _allow(ruleset, policy["read"], READ, abi)
    _allow(ruleset, policy["write"], everything, abi)
    _allow(ruleset, policy["devices"], everything & ~(1 << 13), abi)
    for port in policy["ports"] if abi >= 4 else ():
        _add(ruleset, _NET_PORT, _PortRule(_CONNECT_TCP, port), f"port {port}")
    return ruleset


class _PortRule(ctypes.Structure):
    _fields_ = [("allowed", ctypes.c_uint64), ("port", ctypes.c_uint64)]


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


def _allow(ruleset: int, paths: Iterable[str], rights: int, abi: int) -> None:
    on_files = (1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15) & handled(abi)
    for path in paths:
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue  # what is not there, or closed to us, needs no rule
        try:
            folder = os.path.isdir(f"/proc/self/fd/{fd}") if os.path.exists("/proc/self/fd") else os.path.isdir(path)
            rule = _PathRule(rights if folder else rights & on_files, fd)
            _add(ruleset, _PATH_BENEATH, rule, path)
        finally:
            os.close(fd)


def _add(ruleset: int, kind: int, rule: ctypes.Structure, what: str) -> None:
    words = (ctypes.c_long(ADD_RULE), ctypes.c_int(ruleset), ctypes.c_int(kind), ctypes.byref(rule), ctypes.c_uint(0))
    _checked(_libc.syscall(*words), f"landlock rule for {what}")


def _drop_capabilities() -> None:
    """Takes from root what makes it more than a user, for good; nobody else has anything to lose."""
    for capability in range(LAST_CAP + 1):
        _prctl(PR_CAPBSET_DROP, capability)
    header, none = (ctypes.c_uint32 * 2)(_CAPSET_VERSION, 0), (ctypes.c_uint32 * 6)()
    _checked(_libc.capset(ctypes.byref(header), ctypes.byref(none)), "capabilities")


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def _load(text: bytes) -> None:
    buffer = ctypes.create_string_buffer(text, len(text))
    program = _Program(len(text) // 8, ctypes.addressof(buffer))
    result = _libc.prctl(
        ctypes.c_int(PR_SET_SECCOMP), ctypes.c_ulong(2), ctypes.byref(program), ctypes.c_ulong(0), ctypes.c_ulong(0)
    )
    _checked(result, "seccomp")
