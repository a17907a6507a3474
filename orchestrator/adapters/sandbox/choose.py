"""Which tier the commands of this process are in: the strongest that is there and passes its self-test."""

import asyncio
import ctypes
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from orchestrator.adapters.command_runner import LimitedCommandRunner
from orchestrator.adapters.sandbox.confined import abi_version
from orchestrator.adapters.sandbox.landlock import OLDEST_ABI, LandlockSandbox
from orchestrator.adapters.sandbox.namespaces import NamespaceSandbox, find_bwrap, forms
from orchestrator.adapters.sandbox.seatbelt import SeatbeltSandbox, is_there
from orchestrator.adapters.sandbox.seccomp import Sockets, program
from orchestrator.adapters.sandbox.selftest import self_test
from orchestrator.adapters.sandbox.tier import PlainSandbox, Sandbox
from orchestrator.domain.sandbox import Tier
from orchestrator.errors import ConfigError
from orchestrator.settings.model import CommandSettings, SandboxSettings

RANK = {Tier.PLAIN: 0, Tier.LANDLOCK: 1, Tier.SEATBELT: 1, Tier.NAMESPACES: 2}
_PLAIN = "or let commands run unconfined: --set sandbox.mode=plain"
_TODO = {
    Tier.NAMESPACES: "install bubblewrap (0.8 or newer) and libseccomp, and allow user namespaces",
    Tier.LANDLOCK: f"install libseccomp, on a kernel with Landlock (ABI {OLDEST_ABI}, Linux 6.2) that is switched on",
}
_PR_SET_DUMPABLE = 4
_passed: dict[tuple[SandboxSettings, str, tuple[Path, ...]], tuple[Sandbox | None, dict[Tier, str]]] = {}
"""What was found in this process: the machine does not change under it."""


class NotOffered(Exception):
    """Why a tier is not there."""


async def open_sandbox(settings: SandboxSettings, path: str, places: tuple[Path, ...] = ()) -> Sandbox:
    """The tier for commands with this PATH in `places`; its self-test runs once per process. Raises ConfigError.

    From then on this process's memory and environment are closed to others of its user.
    """
    least = _least(settings)
    await asyncio.to_thread(hide_process)
    if settings.mode == "plain":
        return PlainSandbox("asked for by name")
    key = (settings, path, places)
    if key not in _passed:
        _passed[key] = await _strongest(settings, path, places)
    found, reasons = _passed[key]
    if found is not None and RANK[found.facts.tier] >= RANK[least]:
        return found
    told = "; ".join(f"{tier}: {reason}" for tier, reason in reasons.items())
    if found is not None:
        raise ConfigError(
            f"sandbox.require asks for {least} and commands can be confined by {found.facts.tier}. {told}"
        )
    if settings.mode == "auto" and least is Tier.PLAIN:
        return PlainSandbox(told)
    todo = "; ".join(_TODO[tier] for tier in reasons if tier in _TODO)
    raise ConfigError(f"commands cannot be confined on this machine. {told}. What to do: {todo}; {_PLAIN}")


async def available(settings: SandboxSettings, path: str) -> tuple[tuple[Sandbox, ...], dict[Tier, str]]:
    """Every tier of this machine that passes, the strongest first, and why others are not there."""
    found: list[Sandbox] = [PlainSandbox()]
    reasons: dict[Tier, str] = {}
    for tier in (Tier.LANDLOCK, Tier.NAMESPACES):
        one = SandboxSettings.model_validate({**settings.model_dump(), "mode": tier.value, "require": None})
        passed, why = await _strongest(one, path, ())
        reasons |= why
        found += [] if passed is None else [passed]
    return tuple(reversed(found)), reasons


def hide_process() -> None:
    """Close this process's memory, environment and descriptors to other processes of its user, and to its core dump."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(ctypes.c_int(_PR_SET_DUMPABLE), *(ctypes.c_ulong(0) for _ in range(4)))


def _least(settings: SandboxSettings) -> Tier:
    """What the run must have at least. Raises ConfigError where the two settings contradict each other."""
    named = Tier.LANDLOCK if settings.mode == "auto" else Tier(settings.mode)
    required = (
        named if settings.require is None else Tier.PLAIN if settings.require == "none" else Tier(settings.require)
    )
    if settings.mode != "auto" and RANK[named] < RANK[required]:
        raise ConfigError(
            f"sandbox.mode is {settings.mode} and sandbox.require asks for {settings.require}: change one of them"
        )
    return required


async def _strongest(
    settings: SandboxSettings, path: str, places: tuple[Path, ...]
) -> tuple[Sandbox | None, dict[Tier, str]]:
    reasons: dict[Tier, str] = {}
    for tier, offer in _offers(settings, path, places):
        try:
            candidates = await asyncio.to_thread(offer)
        except NotOffered as error:
            reasons[tier] = str(error)
            continue
        for candidate in candidates:
            why = await self_test(LimitedCommandRunner(CommandSettings(), path, sandbox=candidate), candidate.facts)
            if not why:
                return candidate, reasons
            reasons[tier] = why
    return None, reasons


def _offers(
    settings: SandboxSettings, path: str, places: tuple[Path, ...]
) -> Iterator[tuple[Tier, Callable[[], Sequence[Sandbox]]]]:
    readable = tuple(Path(name).expanduser().absolute() for name in settings.readable)
    shared = settings.loopback == "shared"
    if sys.platform == "darwin":
        yield Tier.SEATBELT, lambda: _seatbelt(path, readable)
    if settings.mode in {"auto", "namespaces"}:
        yield Tier.NAMESPACES, lambda: _namespaces(path, readable, places)
    if settings.mode in {"auto", "landlock"}:
        yield Tier.LANDLOCK, lambda: _landlock(path, readable, shared, places)


def _seatbelt(path: str, readable: tuple[Path, ...]) -> Sequence[Sandbox]:
    if not is_there():
        raise NotOffered("sandbox-exec is not there")
    return [SeatbeltSandbox(path, readable)]


def _namespaces(path: str, readable: tuple[Path, ...], places: tuple[Path, ...]) -> Sequence[Sandbox]:
    bwrap = find_bwrap()
    if bwrap is None:
        raise NotOffered("bubblewrap is not there")
    _require_seccomp()
    return [NamespaceSandbox(form, path, readable, places=places) for form in forms(bwrap)]


def _landlock(path: str, readable: tuple[Path, ...], shared: bool, places: tuple[Path, ...]) -> Sequence[Sandbox]:
    if sys.platform != "linux" or (abi := abi_version()) < OLDEST_ABI:
        version = f"ABI {abi}" if sys.platform == "linux" and abi else "none"
        raise NotOffered(f"the kernel's Landlock is too old or switched off ({version})")
    _require_seccomp()
    return [LandlockSandbox(path, readable, shared=shared, places=places)]


def _require_seccomp() -> None:
    try:
        program(Sockets.USUAL, shared_processes=False)
    except (ImportError, RuntimeError, OSError) as error:
        raise NotOffered(f"libseccomp is not there ({error})") from error
