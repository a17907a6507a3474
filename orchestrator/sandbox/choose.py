"""Chooses the tier that the commands of this process run in: the strongest one that passes its self-test.

In the self-test a command tries hostile actions on canaries, which a tier must keep out of its reach.
"""

import asyncio
import contextlib
import ctypes
import fcntl
import json
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.core.errors import ConfigError
from orchestrator.core.suite import Access, CommandResult, SandboxFacts, Tier
from orchestrator.files.atomic_file import make_folder
from orchestrator.sandbox.command_runner import LimitedCommandRunner, in_threads, remove_tree
from orchestrator.sandbox.confined import abi_version
from orchestrator.sandbox.landlock import OLDEST_ABI, LandlockSandbox
from orchestrator.sandbox.namespaces import NamespaceSandbox, find_bwrap, forms
from orchestrator.sandbox.plain import PlainSandbox
from orchestrator.sandbox.seccomp import Sockets, program
from orchestrator.sandbox.tier import Sandbox
from orchestrator.settings.model import CommandSettings
from orchestrator.settings.sections import SandboxSettings

_SECRET = "canary-7f3a"
_LOOPBACK = "reaches the loopback of this machine"
_LEAVES = "leaves a process behind"
ACTIONS = (
    "writes outside its folder",
    "reads a file that is none of its own",
    _LOOPBACK,
    _LEAVES,
)
"""Results of the probe's attempts, in order, and of checks from outside."""
_PROBE = r"""
import json, os, socket, sys
facts = json.loads(sys.argv[1])
found = []
def tried(number, deed):
    try:
        deed()
    except OSError:
        return
    found.append(number)
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
tried(0, lambda: open(facts["outside"] + "/written", "w"))
tried(1, read(facts["outside"] + "/secret"))
tried(2, connect)
open("mine", "w").close()
detach()
print(json.dumps(found))
"""


@dataclass(frozen=True, kw_only=True)
class Canaries:
    """Bait for a probe, which must stay unchanged."""

    tree: Path
    outside: Path
    port: int


async def self_test(runner: LimitedCommandRunner, facts: SandboxFacts) -> str | None:
    """Returns why the tier behind `runner` cannot be trusted on this machine, None where it can."""
    async with in_threads(_canaries()) as canaries:
        told = json.dumps({"outside": str(canaries.outside), "port": canaries.port})
        # The interpreter's own startup is left out: it is the tier that is tried.
        argv = [sys.executable, "-I", "-S", "-c", _PROBE, told]
        result = await runner.run(argv, cwd=canaries.tree, timeout_s=20, access=Access())
        done = await asyncio.to_thread(_done, result, canaries)
    if isinstance(done, str):
        return done
    # A tier says of itself that it leaves the network open.
    tolerated = {_LOOPBACK} if any(word.startswith("network") for word in facts.missing) else set[str]()
    broken = [action for action in done if action not in tolerated]
    return f"a command in it {', '.join(broken)}" if broken else None


def _done(result: CommandResult, canaries: Canaries) -> list[str] | str:
    if not result.ok:
        return f"a command cannot be run in it: {result.output.strip()[-300:] or result.limit or result.exit_code}"
    try:
        done = {ACTIONS[number] for number in json.loads(result.output)}
    except (ValueError, TypeError, IndexError):
        return f"a command in it printed what it should not: {result.output.strip()[-300:]}"
    if (canaries.outside / "written").exists():
        done.add(ACTIONS[0])
    if not _is_free(canaries.tree / "held"):
        done.add(_LEAVES)
    return [action for action in ACTIONS if action in done]


def _is_free(path: Path) -> bool:
    with contextlib.suppress(OSError), path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


@contextlib.contextmanager
def _canaries() -> Iterator[Canaries]:
    with contextlib.ExitStack() as stack:
        base = make_folder("orchestrator-")
        stack.callback(remove_tree, base)
        for name in ("tree", "outside"):
            (base / name).mkdir()
        (base / "outside" / "secret").write_text(_SECRET)
        # Readable for everybody, so that it is the tier that keeps a command out.
        for folder in (base, base / "outside"):
            folder.chmod(0o777)
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        yield Canaries(tree=base / "tree", outside=base / "outside", port=listener.getsockname()[1])


_TODO = {
    Tier.NAMESPACES: "install bubblewrap (0.8 or newer) and libseccomp, and allow user namespaces",
    Tier.LANDLOCK: f"install libseccomp, on a kernel with Landlock (ABI {OLDEST_ABI}, Linux 6.2) that is switched on",
}
_PR_SET_DUMPABLE = 4  # from <linux/prctl.h>
_passed: dict[tuple[SandboxSettings, str, tuple[Path, ...]], Sandbox] = {}
"""Cached per process, because the machine does not change meanwhile."""


async def open_sandbox(settings: SandboxSettings, path: str, places: tuple[Path, ...] = ()) -> Sandbox:
    """Returns the tier for commands with this PATH in `places`; self-tested once per process. Raises ConfigError.

    Also closes this process's memory and environment to other processes of its user.
    """
    await asyncio.to_thread(hide_process)
    if settings.mode == "plain":
        return PlainSandbox("asked for by name")
    key, reasons = (settings, path, places), dict[Tier, str]()
    for tier in _TODO if key not in _passed else ():
        found = await try_tier(tier, settings, path, places)
        if not isinstance(found, str):
            _passed[key] = found
            break
        reasons[tier] = found
    if key in _passed:
        return _passed[key]
    told = "; ".join(f"{tier}: {reason}" for tier, reason in reasons.items())
    raise ConfigError(
        f"commands cannot be confined on this machine. {told}. What to do: {'; '.join(_TODO.values())}; "
        "or let commands run unconfined: --set sandbox.mode=plain"
    )


def hide_process() -> None:
    """Close this process's memory, environment and descriptors to other processes of its user, and to its core dump."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(ctypes.c_int(_PR_SET_DUMPABLE), *(ctypes.c_ulong(0) for _ in range(4)))


async def try_tier(tier: Tier, settings: SandboxSettings, path: str, places: tuple[Path, ...] = ()) -> Sandbox | str:
    """Returns the tier if it passes its self-test on this machine, else why it cannot be had."""
    candidates = await asyncio.to_thread(_candidates, tier, settings, path, places)
    if isinstance(candidates, str):
        return candidates
    why = ""
    for candidate in candidates:
        runner = LimitedCommandRunner(CommandSettings(), path, sandbox=candidate)
        failed = await self_test(runner, candidate.facts)
        if failed is None:
            return candidate
        why = failed
    return why


def _candidates(tier: Tier, settings: SandboxSettings, path: str, places: tuple[Path, ...]) -> Sequence[Sandbox] | str:
    """Returns the forms of a tier that may work here, the best first, or why there is none."""
    readable = tuple(Path(name).expanduser().absolute() for name in settings.readable)
    bwrap = find_bwrap() if tier is Tier.NAMESPACES else None
    if tier is Tier.NAMESPACES and bwrap is None:
        return "bubblewrap is not there"
    if tier is Tier.LANDLOCK and (sys.platform != "linux" or (abi := abi_version()) < OLDEST_ABI):
        version = f"ABI {abi}" if sys.platform == "linux" and abi else "none"
        return f"the kernel's Landlock is too old or switched off ({version})"
    try:
        program(Sockets.USUAL)
    except (ImportError, RuntimeError, OSError) as error:
        return f"libseccomp is not there ({error})"
    if bwrap is not None:
        return [NamespaceSandbox(form, path, readable, places=places) for form in forms(bwrap)]
    return [LandlockSandbox(path, readable, shared=settings.loopback == "shared", places=places)]
