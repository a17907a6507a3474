"""Tries hostile actions in a tier of this machine and tells what came of each."""

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from orchestrator.adapters.command_runner import LimitedCommandRunner, in_threads
from orchestrator.adapters.sandbox.bait import SECRET, Bait, bait
from orchestrator.adapters.sandbox.battery_cases import CASES, Case
from orchestrator.adapters.sandbox.tier import Sandbox
from orchestrator.domain.doctor import DoctorRow
from orchestrator.domain.sandbox import Access, SandboxFacts, Tier
from orchestrator.domain.testing import CommandResult
from orchestrator.settings.model import CommandSettings

PROBE = Path(__file__).with_name("battery_probe.py")
_OWN = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LANG", "CI", "PWD", "OLDPWD", "SHLVL", "_", "HUSKY", "LC_CTYPE"}
    | {"PIP_DISABLE_PIP_VERSION_CHECK", "PIP_NO_INPUT", "PYTHONDONTWRITEBYTECODE"}
)
"""Variables that commands have as well, with values of their own."""
_STRONGER = "use a stronger tier: see what `sandbox.mode: auto` says about the others on this machine"
_WORK = "an honest command needs this: look at sandbox.readable, at what bubblewrap says, or use another tier"


class Heavy(NamedTuple):
    """An action that a limit must end."""

    name: str
    script: str
    limits: tuple[str, ...]
    """Each may be first."""
    settings: Mapping[str, float]


HEAVY = (
    Heavy("runs for ever", "trap '' TERM; while :; do sleep 1; done", ("timeout",), {"timeout_s": 0.5}),
    Heavy("computes for ever", "while :; do :; done", ("timeout",), {"timeout_s": 0.5}),
    Heavy("prints without end", "yes", ("output",), {"output_killed_kb": 64}),
    Heavy("forks without end", "while :; do sleep 60 & done", ("processes",), {"processes": 30}),
    Heavy(
        "takes memory in many processes",
        'for i in 1 2 3 4; do "$PYTHON" -I -S -c "import time; x = bytearray(50_000_000); time.sleep(30)" & done; wait',
        ("memory",),
        {"memory_mb": 128},
    ),
    Heavy("fills the disk", "while :; do head -c 1000000 /dev/zero > f$((n=n+1)); done", ("disk",), {"disk_mb": 16}),
)
_LEFT = """
(setsid sh -c 'trap "" TERM HUP; exec 9> held; flock 9; touch ready; sleep 60' &)
while ! test -e ready; do :; done
"""


async def run_battery(sandbox: Sandbox, path: str) -> tuple[DoctorRow, ...]:
    """Every action that the tier is to stop, or to allow, with what happened. Takes a few seconds; harms nothing.

    In the plain tier only what limits stop is tried.
    """
    facts = sandbox.facts
    rows = [*await _light(sandbox, path)]
    heavy = await asyncio.gather(*(_heavy(sandbox, path, case) for case in HEAVY))
    return (*rows, *heavy, await _left(sandbox, path)) if facts.tier is not Tier.SEATBELT else tuple(rows)


def expected_of(facts: SandboxFacts) -> tuple[Case, ...]:
    """The cases that a tier answers for."""
    return tuple(
        case
        for case in CASES
        if (case.plain or facts.tier is not Tier.PLAIN) and (not case.without or case.without not in facts.missing)
    )


async def _light(sandbox: Sandbox, path: str) -> Iterator[DoctorRow]:
    cases = expected_of(sandbox.facts)
    async with in_threads(bait()) as laid:
        await asyncio.to_thread(_write, laid, cases)
        runner = LimitedCommandRunner(CommandSettings(timeout_s=60), path, sandbox=sandbox)
        argv = [sys.executable, "-I", "-S", str(PROBE), "facts.json"]
        result = await runner.run(argv, cwd=laid.tree, access=Access(readable=(PROBE,)))
        touched = await asyncio.to_thread(laid.touched)
    return _rows(cases, result, touched)


def _write(laid: Bait, cases: tuple[Case, ...]) -> None:
    names = sorted(set(os.environ) - _OWN)
    told = {"facts": {**laid.facts, "names": names}, "cases": [(case.name, case.deed) for case in cases]}
    (laid.tree / "facts.json").write_text(json.dumps(told), encoding="utf-8")


def _rows(cases: tuple[Case, ...], result: CommandResult, touched: tuple[str, ...]) -> Iterator[DoctorRow]:
    told = _told(result)
    for case in cases:
        happened = told.get(case.name, f"the probe did not come so far: {result.output.strip()[-200:] or result.limit}")
        ok = (happened == "done") is case.works and case.name in told
        todo = "" if ok else _WORK if case.works else _STRONGER
        expected = "done" if case.works else "refused"
        yield DoctorRow(name=case.name, group=case.group, expected=expected, happened=happened, ok=ok, todo=todo)
    ok = not touched
    happened = "untouched" if ok else "; ".join(touched)[:500]
    name, todo = "what lies around, seen from outside", "" if ok else _STRONGER
    yield DoctorRow(name=name, group="files", expected="untouched", happened=happened, ok=ok, todo=todo)
    ok = SECRET not in result.output
    name, happened = "a secret in what is printed", "absent" if ok else "there"
    yield DoctorRow(name=name, group="secrets", expected="absent", happened=happened, ok=ok, todo=todo)


def _told(result: CommandResult) -> dict[str, Any]:
    try:
        told = json.loads(result.output[result.output.index('{"') :])
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


async def _heavy(sandbox: Sandbox, path: str, case: Heavy) -> DoctorRow:
    settings = CommandSettings.model_validate({"timeout_s": 20, **case.settings})
    runner = LimitedCommandRunner(settings, path, sandbox=sandbox)
    async with in_threads(bait()) as laid:
        env = {"PYTHON": sys.executable}
        result = await runner.run(["/bin/sh", "-c", case.script], cwd=laid.tree, env=env)
    ok = result.limit in case.limits
    happened = f"ended by the limit on {result.limit}" if result.limit else f"exit code {result.exit_code}"
    todo = "" if ok else "see the limits in `commands`; under heavy load of the machine try again"
    expected = f"ended by the limit on {case.limits[0]}"
    return DoctorRow(name=case.name, group="resources", expected=expected, happened=happened, ok=ok, todo=todo)


async def _left(sandbox: Sandbox, path: str) -> DoctorRow:
    """A process that detaches itself is gone when its command is."""
    runner = LimitedCommandRunner(CommandSettings(timeout_s=20), path, sandbox=sandbox)
    async with in_threads(bait()) as laid:
        result = await runner.run(["/bin/sh", "-c", _LEFT], cwd=laid.tree)
        test = ["/bin/sh", "-c", "exec 9> held; flock -n 9"]
        free = await runner.run(test, cwd=laid.tree)
    ok = result.ok and free.ok
    happened = "gone" if ok else f"still there, or it did not begin: {result.output.strip()[-200:]}"
    name, todo = "leaves a process behind", "" if ok else _STRONGER
    return DoctorRow(name=name, group="processes", expected="gone", happened=happened, ok=ok, todo=todo)
