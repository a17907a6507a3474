"""What a tier must show before it is trusted: canaries that a command inside it may not touch."""

import asyncio
import contextlib
import fcntl
import json
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from orchestrator.adapters.command_runner import LimitedCommandRunner, in_threads, remove_tree
from orchestrator.adapters.leftovers import named
from orchestrator.domain.sandbox import Access, SandboxFacts
from orchestrator.domain.testing import CommandResult

_SECRET = "canary-7f3a"
_PROBE = r"""
import json, os, socket, sys
facts = json.loads(sys.argv[1])
found = []
def tried(name, deed):
    try:
        deed()
    except OSError:
        return
    found.append(name)
def read(path):
    def deed():
        if b"canary-7f3a" not in open(path, "rb").read():
            raise OSError
    return deed
def connect():
    link = socket.socket()
    link.settimeout(0.5)
    link.connect(("127.0.0.1", facts["port"]))
def detach():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            import fcntl, time
            held = open("held", "w")
            fcntl.flock(held, fcntl.LOCK_EX)
            open("ready", "w").close()
            time.sleep(60)
        os._exit(0)
    os.wait()
    while not os.path.exists("ready"):
        pass
tried("writes outside its folder", lambda: open(facts["outside"] + "/written", "w"))
tried("reads a file that is none of its own", read(facts["outside"] + "/secret"))
tried("reads another process's environment", read("/proc/%d/environ" % facts["pid"]))
tried("signals another process", lambda: os.kill(facts["pid"], 0))
tried("reaches the loopback of this machine", connect)
open("mine", "w").close()
detach()
print(json.dumps(found))
"""


@dataclass(frozen=True, kw_only=True)
class Canaries:
    """What lies around for a probe, and stays untouched."""

    tree: Path
    outside: Path
    port: int
    pid: int
    """A process of ours with the secret in its environment."""


async def self_test(runner: LimitedCommandRunner, facts: SandboxFacts) -> str:
    """Why the tier behind `runner` cannot be trusted here, or ""."""
    async with in_threads(_canaries()) as canaries:
        told = json.dumps({"outside": str(canaries.outside), "port": canaries.port, "pid": canaries.pid})
        # The interpreter's own startup is left out: it is the tier that is tried.
        argv = [sys.executable, "-I", "-S", "-c", _PROBE, told]
        result = await runner.run(argv, cwd=canaries.tree, timeout_s=20, access=Access())
        return await asyncio.to_thread(_verdict, result, canaries, tolerated(facts))


def tolerated(facts: SandboxFacts) -> frozenset[str]:
    """What the tier says of itself that it does not hold."""
    open_network = any(word.startswith("network") for word in facts.missing)
    return frozenset({"reaches the loopback of this machine"} if open_network else ())


def _verdict(result: CommandResult, canaries: Canaries, tolerated: frozenset[str]) -> str:
    if not result.ok:
        return f"a command cannot be run in it: {result.output.strip()[-300:] or result.limit or result.exit_code}"
    try:
        broken = [name for name in json.loads(result.output) if name not in tolerated]
    except (ValueError, TypeError):
        return f"a command in it printed what it should not: {result.output.strip()[-300:]}"
    if (canaries.outside / "written").exists() and "writes outside its folder" not in broken:
        broken.append("writes outside its folder")
    if not _is_free(canaries.tree / "held"):
        broken.append("leaves a process behind")
    return f"a command in it {', '.join(broken)}" if broken else ""


def _is_free(path: Path) -> bool:
    with contextlib.suppress(OSError), path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


@contextlib.contextmanager
def _canaries() -> Iterator[Canaries]:
    with contextlib.ExitStack() as stack:
        base = Path(tempfile.mkdtemp(prefix=named("orchestrator-"))).resolve()
        stack.callback(remove_tree, base)
        for name in ("tree", "outside"):
            (base / name).mkdir()
        (base / "outside" / "secret").write_text(_SECRET)
        # Readable for everybody, so that it is the tier that keeps a command out.
        for folder in (base, base / "outside"):
            folder.chmod(0o777)
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        sleeper = _sleeper(stack)
        yield Canaries(tree=base / "tree", outside=base / "outside", port=listener.getsockname()[1], pid=sleeper)


def _sleeper(stack: contextlib.ExitStack) -> int:
    process = subprocess.Popen(
        ["/bin/cat"],  # ends with its input, so that it does not outlive us when we are killed
        env={"CANARY": _SECRET},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    stack.enter_context(process)
    end: Callable[[], None] = process.kill
    stack.callback(end)
    return process.pid
