"""`doctor`'s look at how commands are confined here: the tier of a run, what each tier costs, and what it holds."""

import statistics
import time
from collections.abc import Sequence

from orchestrator.adapters.command_runner import LimitedCommandRunner, scratch_folder
from orchestrator.adapters.sandbox.battery import run_battery
from orchestrator.adapters.sandbox.choose import available
from orchestrator.adapters.sandbox.tier import Sandbox
from orchestrator.domain.doctor import DoctorRow
from orchestrator.domain.sandbox import Tier
from orchestrator.errors import ConfigError
from orchestrator.settings import Environment, Settings
from orchestrator.settings.model import CommandSettings
from orchestrator.wiring.runners import command_path
from orchestrator.wiring.sandboxes import sandbox_for

_STARTS = 7
_STRONGER = "nothing has to be done; a stronger tier would hold more: see `orchestrator doctor --sandbox`"
_UNCONFINED = "take sandbox.mode out of the configuration, or install what the table of tiers names"


async def tier_rows(settings: Settings, environment: Environment) -> Sequence[DoctorRow]:
    """The tier that the commands of a run would be in; it has passed its self-test."""
    expected = "commands that a model writes are confined"
    try:
        sandbox = await sandbox_for(settings, environment)
    except ConfigError as error:
        todo = "do what is named there, or let commands run unconfined: sandbox.mode: plain"
        return [_row("commands", expected, error.message, todo, ok=False)]
    facts = sandbox.facts
    todo = _UNCONFINED if facts.tier is Tier.PLAIN else _STRONGER if facts.missing else ""
    return [_row("commands", expected, str(facts), todo, ok=True)]


async def battery_rows(settings: Settings, environment: Environment) -> Sequence[DoctorRow]:
    """Every tier of this machine: what it adds to a command, then each hostile action and what it came to."""
    path = command_path(environment)
    there, reasons = await available(settings.sandbox, path)
    rows, tried = [], []
    for sandbox in there:
        cost = await _start_ms(sandbox, path)
        told = (
            f"{cost:.0f} ms for a command that does nothing; missing: {', '.join(sandbox.facts.missing) or 'nothing'}"
        )
        rows.append(_row(sandbox.facts.tier.value, "it passes its self-test", told, "", ok=True))
    for tier, reason in reasons.items():
        rows.append(_row(tier.value, "nothing, where another tier is there", reason, "", ok=True))
    for sandbox in there:
        for row in await run_battery(sandbox, path):
            tried.append(row.model_copy(update={"group": f"{sandbox.facts.tier}: {row.group}"}))
    return [*rows, *_by_group(tried)]


def _by_group(rows: Sequence[DoctorRow]) -> list[DoctorRow]:
    """The same rows, those of a group together, groups in the order of their first rows."""
    order = {group: number for number, group in enumerate(dict.fromkeys(row.group for row in rows))}
    return sorted(rows, key=lambda row: order[row.group])


async def _start_ms(sandbox: Sandbox, path: str) -> float:
    """Median milliseconds from asking for `true` to its result."""
    runner = LimitedCommandRunner(CommandSettings(), path, sandbox=sandbox)
    taken = []
    async with scratch_folder() as folder:
        for _ in range(_STARTS):
            started = time.perf_counter()
            await runner.run(["true"], cwd=folder)
            taken.append((time.perf_counter() - started) * 1000)
    return statistics.median(taken)


def _row(name: str, expected: str, happened: str, todo: str, *, ok: bool) -> DoctorRow:
    return DoctorRow(name=name, group="sandbox", expected=expected, happened=happened, ok=ok, todo=todo)
