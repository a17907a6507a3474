"""Runs one command inside limits and leaves nothing of it behind: a stand-alone program.

    python -I -S -c 'import sys; sys.path.append(PLACE); from orchestrator.sandbox.launcher import main; main()'

The standard library and the few modules that say so are all it needs, so it starts at once. It gets its policy as JSON
on standard input: an environment that a model wrote has no say in how this program itself starts.

It becomes the reaper of everything the command starts (also of what detaches itself), watches memory, processor time,
number of processes and wall clock about ten times a second. When the command's main process ends, a limit is hit, it
is told to stop (SIGTERM) or the process that started it dies, it stops and kills every descendant until none is left.
Then it writes one JSON line to `verdict_fd` and ends:

    {"exit_code": 0-255 or null, "signal": number or null,
     "limit": "timeout" | "memory" | "processes" | null, "survivors": how many descendants could not be killed}

Policy: `argv`, `env` (complete), `parent` (pid that must stay alive), `verdict_fd`, `private_fds` (held open here,
closed in the command), `timeout_s`, `memory_mb` (resident) and `processes` (of the whole tree), `file_mb`,
`open_files`; and from the tiers `confine` (see `sandbox.confined`) and `signals_as_codes` (what is started tells the
end by a signal as 128 + its number, as shells do).

Where /proc or prctl is missing (macOS), process groups stand in: the command's own group is killed, memory and process
limits are not watched, and a descendant that makes a session of its own escapes.

The processes of one command, as its launcher sees them: what they hold, and how they are ended.

Part of the launcher's program: standard library only.
"""

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import time
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

HAS_PROC = os.path.exists("/proc/self/stat")
PAGE = os.sysconf("SC_PAGE_SIZE")
TICK_S = 0.02  # short: fork bombs grow fast
KILL_FOR_S = 30.0  # processes in uninterruptible sleep end late
STOP_ROUNDS, REAPED_AT_ONCE = 20, 50
MB = 1024 * 1024


class Process(NamedTuple):
    """One process at one moment."""

    group: int
    started: bytes
    """A number's next process has another one."""


def _stat(pid: int) -> tuple[int, Process] | None:
    """Parent and facts of `pid`, or None when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:  # the process has ended
        return None
    words = text[text.rindex(b")") + 2 :].split()
    return int(words[1]), Process(int(words[2]), words[19])


def descendants(root: int) -> dict[int, Process]:
    """Every process below `root`, zombies included (one whose first thread ended looks like that)."""
    children: dict[int, dict[int, Process]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (facts := _stat(int(name))) is not None:
            children.setdefault(facts[0], {})[int(name)] = facts[1]
    found: dict[int, Process] = {}
    waiting = [root]
    while waiting:
        below = children.pop(waiting.pop(), {})
        found |= below
        waiting += below
    return found


def tasks() -> int:
    """Tasks on the machine: a cheap number that jumps when something forks without end; 0 when unknown."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/loadavg", "rb") as file:
        return int(file.read().split()[3].partition(b"/")[2])
    return 0


def mapped(pid: int) -> int:
    """Returns the bytes of shared memory that the process maps: its share of them, where the kernel tells us that."""
    whole = _bytes(f"/proc/{pid}/status", b"RssShmem:")
    share = _bytes(f"/proc/{pid}/smaps_rollup", b"Pss_Shmem:") if whole else None
    return whole or 0 if share is None else share


def _bytes(path: str, name: bytes) -> int | None:
    with contextlib.suppress(OSError), open(path, "rb") as file:  # the process has ended, or is another user's
        return next((int(row.split()[1]) * 1024 for row in file if row.startswith(name)), None)
    return None


def takes_more(pids: Collection[int], most: int) -> bool:
    """Returns whether the processes hold more bytes: private resident pages, and shared ones once."""
    private, touched = 0, 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/statm", "rb") as file:
                words = file.read().split()
        except OSError:  # the process has ended
            continue
        shared = int(words[2]) * PAGE
        private += int(words[1]) * PAGE - shared
        touched += shared
    # `touched` has the files of programs as well, in each process again: reading more pays only where it matters.
    return private + touched > most and private + sum(map(mapped, pids)) > most


def send(groups: Iterable[int], number: signal.Signals) -> None:
    """Signals whole process groups; those that are gone are left out."""
    for group in groups:
        with contextlib.suppress(OSError):  # the group has ended
            os.killpg(group, number)


class Tree:
    """The command's processes: `main` and all that descends from it."""

    def __init__(self, main: int) -> None:
        self.main = main
        self.status: int | None = None

    def reap(self, most: int = REAPED_AT_ONCE) -> bool:
        """Collects some of what ended; True while anything is left. As reaper of orphans, no child means no descendant.

        The main process's end is the end of its group, while the number is still its own: one call, no fork missed.
        """
        for _ in range(most):  # a fork bomb's members end as fast as they are collected: look up between
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:  # no child is left
                return False
            if ended is None:
                return True
            if ended.si_pid == self.main:
                send([self.main], signal.SIGKILL)
                self.status = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
            os.waitpid(ended.si_pid, 0)
        return True

    def end(self, wake: int) -> int:
        """Stops everything, then kill it, until nothing is left; returns how many could not be killed."""
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
        """Kills whole groups at once. All are the command's own: no process joins a group of another session."""
        frozen: set[int] = set()
        for _ in range(STOP_ROUNDS):
            fresh = {one.group for one in descendants(os.getpid()).values()} - frozen - {os.getpgrp()}
            if not fresh:
                break
            send(fresh, signal.SIGSTOP)
            frozen |= fresh
        send(frozen, signal.SIGKILL)


def pause(wake: int, seconds: float) -> None:
    """Until `seconds` have passed or something can be read from `wake`."""
    if select.select([wake], [], [], max(seconds, 0.0))[0]:
        os.read(wake, 4096)


PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 36, 38
SCAN_EVERY_S = 0.1  # reading all of /proc costs milliseconds
NICE = 5  # of the command
FIRST_SIGNAL_CODE, LAST_SIGNAL_CODE = 129, 192


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(ctypes.c_int(option), *(ctypes.c_ulong(word) for word in (value, 0, 0, 0)))


class Stop:
    """Signal handler that remembers it was told to stop."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self, number: int, _frame: object) -> None:
        """Called by the interpreter between two instructions."""
        self.asked = self.asked or number != signal.SIGCHLD


def _listen() -> tuple[Stop, int]:
    wake, write_end = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    stop = Stop()
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    return stop, wake


def _over_limit(policy: dict[str, Any]) -> str | None:
    below = descendants(os.getpid())
    if len(below) > policy["processes"]:
        return "processes"
    return "memory" if takes_more(below, policy["memory_mb"] * MB) else None


def watch(tree: Tree, policy: dict[str, Any], stop: Stop, wake: int) -> str | None:
    """Waits for the end of the main process; returns the name of the limit that was hit, if any."""
    started = time.monotonic()
    scan_at, before = started + SCAN_EVERY_S / 2, tasks()
    tree.reap()
    while tree.status is None and not stop.asked and os.getppid() == policy["parent"]:
        now = time.monotonic()
        if now - started >= policy["timeout_s"]:
            return "timeout"
        jumped = HAS_PROC and tasks() > before + policy["processes"]
        if HAS_PROC and (now >= scan_at or jumped):
            send([tree.main] * jumped, signal.SIGSTOP)  # what forks without end waits while one looks
            limit = _over_limit(policy)
            send([tree.main] * (jumped and limit is None), signal.SIGCONT)
            tree.reap()
            if limit is not None and tree.status is None:
                return limit
            # On a machine with very many processes a scan is dear: never spend more than a tenth of a core on it.
            scan_at, before = time.monotonic() + max(SCAN_EVERY_S, 10 * (time.monotonic() - now)), tasks()
        pause(wake, min(TICK_S, started + policy["timeout_s"] - time.monotonic()))
        tree.reap()
    return None


def _limit(kind: int, value: int) -> None:
    hard = resource.getrlimit(kind)[1]
    wanted = value if hard == resource.RLIM_INFINITY else min(value, hard)
    with contextlib.suppress(ValueError, OSError):  # a container may forbid raising a limit
        resource.setrlimit(kind, (wanted, wanted))


def _set_limits(policy: dict[str, Any]) -> None:
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NOFILE, int(policy["open_files"]))
    _limit(resource.RLIMIT_FSIZE, int(policy["file_mb"] * MB))
    # Never RLIMIT_AS: run-times reserve far more address space than they use. Twice the tree's limit, because stacks of
    # threads count in full here: this only stops what allocates faster than the watchdog looks, which names the limit.
    _limit(resource.RLIMIT_DATA, int(2 * policy["memory_mb"] * MB))
    # Counted over all of the user's threads, and not at all for root: a wall far out, for what outruns the watchdog.
    if HAS_PROC:
        _limit(resource.RLIMIT_NPROC, int(tasks() + 4 * policy["processes"]))


def _become_command(argv: list[str], policy: dict[str, Any], launcher: int) -> None:
    """In the forked child: limits on, then exec. Only returns by ending the process (126 or 127, as shells do)."""
    # A session of its own: `kill 0` in the command must not reach the launcher.
    os.setsid()
    _prctl(PR_SET_DUMPABLE, 1)
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != launcher:
        os._exit(125)
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # when memory runs out, the kernel takes the command
    os.nice(NICE)
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    _set_limits(policy)
    if policy.get("confine"):
        _confine(policy["confine"])
    try:
        os.execvpe(argv[0], argv, policy["env"])
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        os.write(2, f"{argv[0][:500]}: {reason}\n".encode("utf-8", "backslashreplace"))
        os._exit(126 if isinstance(error, PermissionError) else 127)


def _confine(policy: dict[str, Any]) -> None:
    from orchestrator.sandbox.confined import confine

    try:
        confine(policy)
    except OSError as error:
        os.write(2, f"the command could not be confined and was not run: {error}\n".encode("utf-8", "backslashreplace"))
        os._exit(125)


def _told(status: int | None, policy: dict[str, Any]) -> dict[str, int | None]:
    """Exit code or signal of the main process."""
    if status is not None and policy.get("signals_as_codes") and FIRST_SIGNAL_CODE <= status <= LAST_SIGNAL_CODE:
        status = 128 - status
    return {
        "exit_code": status if status is not None and status >= 0 else None,
        "signal": -status if status is not None and status < 0 else None,
    }


def _read_policy() -> dict[str, Any]:
    with os.fdopen(0, "rb") as stream:
        policy: dict[str, Any] = json.loads(stream.read())
    os.open(os.devnull, os.O_RDONLY)  # becomes standard input
    os.set_inheritable(0, True)
    return policy


def main() -> int:
    """Runs the command of the policy on standard input to its end and writes the verdict."""
    policy = _read_policy()
    private = [policy["verdict_fd"], *policy["private_fds"]]
    for fd in private:
        os.set_inheritable(fd, False)
    if os.getsid(0) != os.getpid():
        os.setsid()
    stop, wake = _listen()
    _prctl(PR_SET_DUMPABLE, 0)  # keeps the descriptors held here out of the command's reach
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != policy["parent"]:  # it died before the line above, so no signal would arrive
        return 1
    launcher = os.getpid()
    if (child := os.fork()) == 0:
        try:
            _become_command(policy["argv"], policy, launcher)
        finally:  # this process must never continue as a second launcher, whatever goes wrong
            os._exit(125)
    with contextlib.suppress(OSError, AttributeError):  # what forks without end must not keep its watchdog waiting
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    tree = Tree(child)
    ended = tree.status if (limit := watch(tree, policy, stop, wake)) is None else None
    survivors = tree.end(wake)
    verdict = {**_told(ended, policy), "limit": limit, "survivors": survivors}
    with contextlib.suppress(OSError):  # the reader has died
        os.write(private[0], json.dumps(verdict).encode() + b"\n")
    return 0
