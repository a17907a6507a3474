"""The processes of one command, as its launcher sees them: what they hold, and how they are ended.

Part of the launcher's program: standard library only.
"""

import contextlib
import os
import select
import signal
import time
from collections.abc import Iterable

HAS_PROC = os.path.exists("/proc/self/stat")
PAGE = os.sysconf("SC_PAGE_SIZE")
TICK_S = 0.02
KILL_FOR_S = 30.0
STOP_ROUNDS, REAPED_AT_ONCE = 20, 50
MB = 1024 * 1024


def _stat(pid: int) -> tuple[int, int] | None:
    """Parent and process group of `pid`, or None when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    words = text[text.rindex(b")") + 2 :].split()
    return int(words[1]), int(words[2])


def descendants(root: int) -> dict[int, int]:
    """Every process below `root` with its group, zombies included (one whose first thread ended looks like that)."""
    children: dict[int, dict[int, int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (facts := _stat(int(name))) is not None:
            children.setdefault(facts[0], {})[int(name)] = facts[1]
    found: dict[int, int] = {}
    waiting = [root]
    while waiting:
        below = children.pop(waiting.pop(), {})
        found |= below
        waiting += below
    return found


def _shared_anonymous(pid: int) -> int:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status", "rb") as file:
        return next((int(row.split()[1]) * 1024 for row in file if row.startswith(b"RssShmem:")), 0)
    return 0


def tasks() -> int:
    """Tasks on the machine: a cheap number that jumps when something forks without end; 0 when unknown."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/loadavg", "rb") as file:
        return int(file.read().split()[3].partition(b"/")[2])
    return 0


def memory_of(pids: Iterable[int]) -> int:
    """Bytes the processes hold: resident pages that are nobody else's, plus the largest shared-memory mapping."""
    private, shared = 0, 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/statm", "rb") as file:
                words = file.read().split()
        except OSError:
            continue
        mapped = int(words[2]) * PAGE
        private += int(words[1]) * PAGE - mapped
        if mapped > 64 * MB:  # reading one more file per process pays only where it can matter
            shared = max(shared, _shared_anonymous(pid))
    return private + shared


def send(groups: Iterable[int], number: signal.Signals) -> None:
    """Signal whole process groups; those that are gone are left out."""
    for group in groups:
        with contextlib.suppress(OSError):
            os.killpg(group, number)


class Tree:
    """The command's processes: `main` and all that descends from it."""

    def __init__(self, main: int) -> None:
        self.main = main
        self.status: int | None = None

    def reap(self, most: int = REAPED_AT_ONCE) -> bool:
        """Collect some of what ended; True while anything is left. As reaper of orphans, no child means no descendant.

        The main process's end is the end of its group, while the number is still its own: one call, no fork missed.
        """
        for _ in range(most):  # a fork bomb's members end as fast as they are collected: look up between
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return False
            if ended is None:
                return True
            if ended.si_pid == self.main:
                send([self.main], signal.SIGKILL)
                self.status = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
            os.waitpid(ended.si_pid, 0)
        return True

    def end(self, wake: int) -> int:
        """Stop everything, then kill it, until nothing is left; returns how many could not be killed."""
        until = time.monotonic() + KILL_FOR_S
        if self.status is None:  # not collected yet, so the number of its group is still its own
            send([self.main], signal.SIGKILL)
        while self.reap(100 * REAPED_AT_ONCE):
            if HAS_PROC:
                self._freeze_and_kill()
            if time.monotonic() > until:
                return len(descendants(os.getpid())) if HAS_PROC else 1
            pause(wake, TICK_S)
        return 0

    def _freeze_and_kill(self) -> None:
        """A group is signalled at once. All are the command's own: no process joins a group of another session."""
        frozen: set[int] = set()
        for _ in range(STOP_ROUNDS):
            fresh = set(descendants(os.getpid()).values()) - frozen - {os.getpgrp()}
            if not fresh:
                break
            send(fresh, signal.SIGSTOP)
            frozen |= fresh
        send(frozen, signal.SIGKILL)


def pause(wake: int, seconds: float) -> None:
    """Until `seconds` have passed or something can be read from `wake`."""
    if select.select([wake], [], [], max(seconds, 0.0))[0]:
        os.read(wake, 4096)
