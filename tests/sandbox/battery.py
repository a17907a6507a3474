"""Hostile actions, each a few words of Python, tried in a tier of this machine.

An action that ends without an OSError was done. `facts` names what lies around as bait; `call` makes a system call by
its name, `libc` one of the C library's. They are chosen so that one that succeeds does no lasting harm.
"""

import asyncio
import contextlib
import json
import os
import resource
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from orchestrator.core.suite import Access, SandboxFacts, Tier
from orchestrator.files.atomic_file import make_folder
from orchestrator.sandbox.choose import _SECRET
from orchestrator.sandbox.command_runner import LimitedCommandRunner, in_threads, remove_tree, scratch_folder
from orchestrator.sandbox.tier import Sandbox
from orchestrator.settings.model import CommandSettings


class Case(NamedTuple):
    name: str
    group: str
    deed: str
    works: bool = False
    """An action of honest commands, which must be done."""
    plain: bool = False
    """Also refused (or done) where nothing is confined."""
    without: str = ""
    """Not expected of a tier that says it lacks this."""


def _each(group: str, *cases: tuple[str, str], without: str = "", plain: bool = False) -> tuple[Case, ...]:
    return tuple(Case(name, group, deed, plain=plain, without=without) for name, deed in cases)


CASES = (
    *_each(
        "files",
        ("writes a new file outside", "open(out + '/new', 'w')"),
        ("writes into a file outside", "open(out + '/file', 'r+').write('x')"),
        ("appends to a file outside", "open(out + '/file', 'a').write('x')"),
        ("empties a file outside", "os.truncate(out + '/file', 0)"),
        ("removes a file outside", "os.unlink(out + '/file')"),
        ("moves a file outside into its folder", "os.rename(out + '/file', 'taken')"),
        ("moves a file of its own outside", "open('own', 'w'); os.rename('own', out + '/given')"),
        ("links a file outside into its folder", "os.link(out + '/secret', 'linked')"),
        ("makes a folder outside", "os.mkdir(out + '/folder')"),
        ("makes a link outside", "os.symlink('/etc', out + '/link')"),
        ("makes a pipe outside", "os.mkfifo(out + '/pipe')"),
        ("reads a secret outside", "open(out + '/secret').read()"),
        ("reads a secret through a link", "os.symlink(out + '/secret', 'way'); open('way').read()"),
        ("writes through a link", "os.symlink(out + '/linked', 'other'); open('other', 'w')"),
        ("reads a secret by climbing out", "open('../' * 40 + out + '/secret').read()"),
        ("reads a secret by a descriptor of what lies above", "os.open('secret', 0, dir_fd=os.open(out, os.O_PATH))"),
        ("reads a secret as seen by another process", "open('/proc/%d/root%s/secret' % (facts['pid'], out)).read()"),
        ("reads a secret as seen by itself", "open('/proc/self/root%s/secret' % out).read()"),
        ("lists a folder outside", "os.listdir(out)"),
        ("reads the machine's passwords", "open('/etc/shadow').read()"),
        ("writes into the machine's names", "open('/etc/hosts', 'a')"),
        ("adds a program to the machine", "open('/usr/local/bin/battery-probe', 'x')"),
        ("adds a module to the interpreter", "open(facts['prefix'] + '/battery_probe.py', 'x')"),
        ("makes a device", "os.mknod('device', 0o20666, os.makedev(1, 3))"),
        ("opens the machine's memory", "open('/dev/mem', 'rb')"),
        ("mounts a file system", "checked(libc.mount(b'none', b'.', b'tmpfs', 0, None))"),
        ("changes its root", "os.chroot('.')"),
        ("opens a file by its handle", "checked(libc.open_by_handle_at(-100, b'\\x08\\0\\0\\0' * 8, 0), 9)"),
    ),
    *_each(
        "files",
        ("changes the mode of a file outside", "os.chmod(out + '/file', 0o777)"),
        ("changes the times of a file outside", "os.utime(out + '/file', (1, 1))"),
        ("writes an attribute of a file outside", "os.setxattr(out + '/file', 'user.x', b'1')"),
        without="attributes of our user's files",
    ),
    Case("gives a file of its own the right of its owner", "files", "open('s', 'w'); os.chmod('s', 0o4755)"),
    *_each(
        "git",
        ("removes .git", "os.unlink('.git')"),
        ("moves .git away", "os.rename('.git', 'git')"),
        ("puts another .git in its place", "open('mine', 'w'); os.rename('mine', '.git')"),
        ("writes into .git", "open('.git', 'r+').write('x')"),
        without=".git",
    ),
    *_each(
        "git",
        ("writes into the repository's configuration", "open(out + '/repository/config', 'a')"),
        ("adds a hook to the repository", "open(out + '/repository/hooks/post-commit', 'x')"),
    ),
    *_each(
        "processes",
        ("reads another process's memory", "open('/proc/%d/mem' % facts['pid'], 'rb')"),
        ("reads another process's command line", "open('/proc/%d/cmdline' % facts['pid'], 'rb').read(1)[0]"),
        ("traces another process", "checked(libc.ptrace(16, facts['pid'], 0, 0))"),
        ("takes a descriptor of another process", "call('pidfd_getfd', os.pidfd_open(facts['pid']), 0, 0)"),
        ("writes into the kernel's settings", "open('/proc/sys/kernel/core_pattern', 'r+')"),
        ("tells the kernel what to do at a crash", "open('/proc/sys/kernel/core_pattern', 'w')"),
        ("opens the kernel's emergency keys", "open('/proc/sysrq-trigger', 'w')"),
        ("makes a user namespace", "checked(libc.unshare(0x10000000))"),
        ("makes a network namespace", "checked(libc.unshare(0x40000000))"),
        ("enters another process's namespaces", "checked(libc.setns(os.pidfd_open(os.getpid()), 0x20000))"),
        ("types into the terminal", "fcntl.ioctl(0, 0x5412, b'x')"),
        ("loads a program into the kernel", "call('bpf', 0, 0, 0)"),
        ("measures the machine", "call('perf_event_open', bytes(128), 0, -1, -1, 0)"),
        ("opens io_uring, which no filter sees", "call('io_uring_setup', 1, bytes(120))"),
        ("reads the kernel's keys", "call('keyctl', 0, -3, 0)"),
        ("handles page faults itself", "call('userfaultfd', 1)"),
        ("names the machine", "socket.sethostname(socket.gethostname())"),
    ),
    *_each(
        "processes",
        ("limits another process", "resource.prlimit(facts['pid'], resource.RLIMIT_CORE, (0, 0))"),
        ("slows another process down", "os.setpriority(os.PRIO_PROCESS, facts['pid'], 19)"),
        ("ties another process to a processor", "os.sched_setaffinity(facts['pid'], {0})"),
        without="limits of our user's processes",
    ),
    *_each(
        "processes", ("signals another process", "os.kill(facts['pid'], 0)"), without="signals to our user's processes"
    ),
    *_each("processes", ("becomes root", "os.setresuid(0, 0, 0); open('/proc/1/mem', 'r+')")),
    Case("gets rights from a program's owner", "processes", "refused(libc.prctl(39, 0, 0, 0, 0) == 1)", plain=True),
    *_each(
        "network",
        ("connects to this machine's loopback", "tcp('127.0.0.1', facts['port'])"),
        ("connects to another machine", "tcp('203.0.113.7', 443)"),
        without="network (TCP is open: sandbox.loopback is shared)",
    ),
    *_each(
        "network",
        ("sends a datagram to this machine's loopback", "told(udp('127.0.0.1', facts['udp']))"),
        ("sends a datagram to another machine", "udp('203.0.113.7', 53)"),
        ("connects to a service by its abstract name", "unix(1).connect('\\0' + facts['abstract'])"),
        ("connects to a service by its path", "unix(1).connect(out + '/service')"),
        ("sends to a service from a pair", "socket.socketpair(1, 2)[0].sendto(b'x', out + '/datagrams')"),
        ("reaches the host by vsock", "socket.socket(40, 1)"),
        ("listens on the wire", "socket.socket(17, 3)"),
        ("sends raw packets", "socket.socket(2, 3, 1)"),
        ("opens the kernel's cryptography", "socket.socket(38, 5)"),
        ("opens bluetooth", "socket.socket(31, 3, 1)"),
    ),
    *_each(
        "secrets",
        ("reads the orchestrator's environment", "open('/proc/%d/environ' % facts['daemon'], 'rb').read(1)[0]"),
        ("reads another process's environment", "open('/proc/%d/environ' % facts['pid'], 'rb').read(1)[0]"),
        ("reads the orchestrator's descriptors", "os.listdir('/proc/%d/fd' % facts['daemon'])"),
    ),
    *_each(
        "secrets",
        ("finds a variable of the orchestrator's", "next(name for name in facts['names'] if name in os.environ)"),
        ("finds an open descriptor", "next(fd for fd in range(3, 256) if is_open(fd))"),
        ("reads something from standard input", "os.read(0, 1)[0]"),
        plain=True,
    ),
    *_each(
        "resources",
        ("writes a file of 2 GB", "os.ftruncate(os.open('big', os.O_CREAT | os.O_WRONLY), 2 << 30)"),
        ("opens five thousand files", "[os.open('/dev/null', 0) for _ in range(5000)]"),
        ("leaves its memory behind when it crashes", "refused(resource.getrlimit(resource.RLIMIT_CORE)[1] == 0)"),
        plain=True,
    ),
    *_each(
        "resources",
        ("opens more files than allowed", "resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))"),
        ("goes first on the processor", "os.nice(-10)"),
    ),
    Case("writes, moves and removes files in its folder", "work", "work()", works=True, plain=True),
    Case("starts programs and reads what they print", "work", "programs()", works=True, plain=True),
    Case("runs threads", "work", "threads()", works=True, plain=True),
    Case("makes temporary files", "work", "temporary()", works=True, plain=True),
    Case("asks how many processors there are", "work", "open('/proc/cpuinfo').read()", works=True, without="/proc"),
    Case("asks for the name of its user", "work", "user()", works=True, plain=True),
    Case("finds its user's home", "work", "home()", works=True, without="name of its user"),
    Case("talks to itself over a pair of sockets", "work", "pair()", works=True, plain=True),
    Case("runs a server and asks it", "work", "server()", works=True, plain=True, without="private loopback"),
)


_FILES = {"file": "untouched\n", "secret": f"{_SECRET}\n", "repository/config": "[core]\n\tbare = true\n"}


@dataclass(frozen=True, kw_only=True)
class Bait:
    """The folder that a command may work in, and what lies around it."""

    tree: Path
    outside: Path
    pid: int
    sockets: tuple[socket.socket, ...]
    facts: Mapping[str, Any]
    before: tuple[str, ...] = field(repr=False)

    def touched(self) -> tuple[str, ...]:
        """What is not as it was, by sight from outside. Blocks."""
        after = _look(self.outside, self.pid)
        changed = [f"{old} became {new}" for old, new in zip(self.before, after, strict=False) if old != new]
        changed += [] if len(self.before) == len(after) else ["files came or went"]
        return (*changed, *(f"something came to {one.getsockname()!r}" for one in self.sockets if _called(one)))


@contextlib.contextmanager
def bait() -> Iterator[Bait]:
    """Laid out while the block runs, and taken away after it."""
    with contextlib.ExitStack() as stack:
        base = make_folder("orchestrator-")
        stack.callback(remove_tree, base)
        tree, outside = base / "tree", base / "outside"
        for folder in (tree, outside, outside / "repository", outside / "repository" / "hooks"):
            folder.mkdir()
        for name, text in _FILES.items():
            (outside / name).write_text(text)
        (tree / ".git").write_text("gitdir: nowhere\n")
        for path in (base, *base.rglob("*")):
            if path.is_relative_to(outside) or path == base:
                path.chmod(0o777 if path.is_dir() else 0o666)
        sockets = {name: stack.enter_context(one) for name, one in _services(outside).items()}
        process = sleeping_process(stack)
        facts = {
            "outside": str(outside),
            "pid": process.pid,
            "daemon": os.getpid(),
            "prefix": sys.prefix,
            "port": sockets["tcp"].getsockname()[1],
            "udp": sockets["udp"].getsockname()[1],
            "abstract": sockets["abstract"].getsockname()[1:].decode(),
        }
        before = _look(outside, process.pid)
        yield Bait(
            tree=tree, outside=outside, pid=process.pid, sockets=(*sockets.values(),), facts=facts, before=before
        )


def sleeping_process(stack: contextlib.ExitStack) -> "subprocess.Popen[bytes]":
    """Starts a process that has the secret in its environment, and ends with the stack, or when we are killed."""
    process = subprocess.Popen(
        ["/bin/cat"],  # ends with its input, so that it does not outlive us when we are killed
        env={"CANARY": _SECRET},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    stack.enter_context(process)
    stack.callback(process.kill)
    return process


def _services(outside: Path) -> dict[str, socket.socket]:
    services = {
        "tcp": socket.create_server(("127.0.0.1", 0)),
        "udp": socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        "path": socket.socket(socket.AF_UNIX),
        "datagrams": socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),
    }
    services["udp"].bind(("127.0.0.1", 0))
    services["path"].bind(str(outside / "service"))
    services["datagrams"].bind(str(outside / "datagrams"))
    for name in ("service", "datagrams"):
        (outside / name).chmod(0o666)
    services["abstract"] = socket.socket(socket.AF_UNIX)
    services["abstract"].bind(f"\0{uuid.uuid4().hex}")
    services["abstract"].listen()
    services["path"].listen()
    for one in services.values():
        one.setblocking(False)
    return services


def _called(one: socket.socket) -> bool:
    try:
        if one.type == socket.SOCK_STREAM:
            one.accept()[0].close()
        else:
            one.recv(16)
    except BlockingIOError:
        return False
    return True


def _look(outside: Path, pid: int) -> tuple[str, ...]:
    told = []
    for path in sorted(outside.rglob("*")):
        found = path.lstat()
        text = path.read_bytes() if path.is_file() else b""
        marks = os.listxattr(path, follow_symlinks=False)
        told.append(
            f"{path.name} {found.st_mode:o} {found.st_uid} {found.st_nlink} {found.st_mtime_ns} {text!r} {marks}"
        )
    limits, processors = resource.prlimit(pid, resource.RLIMIT_CORE), sorted(os.sched_getaffinity(pid))
    return (*told, f"process {limits} {processors} {os.getpriority(os.PRIO_PROCESS, pid)}")


PROBE = Path(__file__).with_name("battery_probe.py")
_OWN = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LANG", "CI", "PWD", "OLDPWD", "SHLVL", "_", "HUSKY", "LC_CTYPE"}
    | {"PIP_DISABLE_PIP_VERSION_CHECK", "PIP_NO_INPUT", "PYTHONDONTWRITEBYTECODE"}
)
"""Variables that commands have as well, with values of their own."""


class Heavy(NamedTuple):
    """An action that a limit must end."""

    name: str
    script: str
    limit: str
    settings: Mapping[str, float]


HEAVY = (
    Heavy("runs forever", "trap '' TERM; while :; do sleep 1; done", "timeout", {"timeout_s": 0.5}),
    Heavy("computes forever", "while :; do :; done", "timeout", {"timeout_s": 0.5}),
    Heavy("prints without end", "yes", "output", {"output_killed_kb": 64}),
    Heavy("forks without end", "while :; do sleep 60 & done", "processes", {"processes": 100}),
    Heavy(
        "takes memory in many processes",
        'for i in 1 2 3 4; do "$PYTHON" -I -S -c "import time; x = bytearray(50_000_000); time.sleep(30)" & done; wait',
        "memory",
        {"memory_mb": 128},
    ),
    Heavy("fills the disk", "while :; do head -c 1000000 /dev/zero > f$((n=n+1)); done", "disk", {"disk_mb": 16}),
    Heavy("fills the disk and ends", "head -c 40000000 /dev/zero > file", "disk", {"disk_mb": 16}),
)
_LEFT = """
(setsid sh -c 'trap "" TERM HUP; exec 9> held; flock 9; touch ready; sleep 60' &)
while ! test -e ready; do :; done
"""


async def run_battery(sandbox: Sandbox, path: str) -> tuple[int, list[str]]:
    """How many actions were tried that the tier is to stop, or to allow, and what went wrong."""
    cases = expected_of(sandbox.facts)
    wrong = await _light(sandbox, path, cases)
    for problems in await asyncio.gather(*(_heavy(sandbox, path, case) for case in HEAVY), _left(sandbox, path)):
        wrong += problems
    return len(cases) + len(HEAVY) + 1, wrong


def expected_of(facts: SandboxFacts) -> tuple[Case, ...]:
    """The cases that a tier answers for."""
    asked = (case for case in CASES if case.plain or facts.tier is not Tier.PLAIN)
    return tuple(case for case in asked if (case.without or "-") not in facts.missing)


async def _light(sandbox: Sandbox, path: str, cases: tuple[Case, ...]) -> list[str]:
    async with in_threads(bait()) as laid:
        facts = {**laid.facts, "names": sorted(set(os.environ) - _OWN)}
        told = {"facts": facts, "cases": [(case.name, case.deed) for case in cases]}
        (laid.tree / "facts.json").write_text(json.dumps(told), encoding="utf-8")
        runner = LimitedCommandRunner(CommandSettings(timeout_s=60), path, sandbox=sandbox)
        argv = [sys.executable, "-I", "-S", str(PROBE), "facts.json"]
        result = await runner.run(argv, cwd=laid.tree, access=Access(readable=(PROBE,)))
        wrong = [f"seen from outside: {one}" for one in laid.touched()]
    wrong += ["a secret is in what was printed"] if _SECRET in result.output else []
    came = json.loads(result.output[result.output.index('{"') :])
    other = [case.name for case in cases if (came[case.name] == "done") != case.works]
    return wrong + [f"{name}: {came[name]}" for name in other]


async def _heavy(sandbox: Sandbox, path: str, case: Heavy) -> list[str]:
    settings = CommandSettings.model_validate({"timeout_s": 20, **case.settings})
    runner = LimitedCommandRunner(settings, path, sandbox=sandbox)
    async with scratch_folder() as folder:
        env = {"PYTHON": sys.executable}
        result = await runner.run(["/bin/sh", "-c", case.script], cwd=folder, env=env)
    return [] if result.limit == case.limit else [f"{case.name}: {result.limit or result.exit_code}"]


async def _left(sandbox: Sandbox, path: str) -> list[str]:
    """A process that detaches itself is gone when its command is."""
    runner = LimitedCommandRunner(CommandSettings(timeout_s=20), path, sandbox=sandbox)
    async with scratch_folder() as folder:
        result = await runner.run(["/bin/sh", "-c", _LEFT], cwd=folder)
        free = await runner.run(["/bin/sh", "-c", "exec 9> held; flock -n 9"], cwd=folder)
    return [] if result.ok and free.ok else [f"leaves a process behind: {result.output}"]
