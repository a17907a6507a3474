"""`doctor`: what a run would need, looked at before one is begun: one row per question, each with what to do."""

import asyncio
import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from orchestrator.adapters.event_store import EventReader
from orchestrator.adapters.machine import folder_row, program_rows
from orchestrator.domain.doctor import DoctorRow
from orchestrator.domain.redaction import redact, secrets_of
from orchestrator.errors import ConfigError
from orchestrator.settings import Environment, Settings, load
from orchestrator.wiring.doctor_project import ProjectLook, look_at_project
from orchestrator.wiring.doctor_sandbox import battery_rows, tier_rows
from orchestrator.wiring.providers import PROVIDERS, key_problem, key_variable, policies_of, seats_of, stronger_of
from orchestrator.wiring.routed_provider import Seat
from orchestrator.wiring.runners import command_path
from orchestrator.wiring.team import prompt_library


async def examine(config: Path | None, overrides: Sequence[str], *, sandbox: bool = False) -> list[DoctorRow]:
    """All rows; no key and no password is in any. Raises nothing for what it finds.

    With `sandbox`, hostile actions are tried in every tier of this machine as well: some seconds each.
    """
    try:
        settings, environment = await asyncio.to_thread(load, config, overrides)
    except ConfigError as error:
        todo = "correct it; nothing else can be looked at before"
        return [_row("settings", "configuration", "a configuration that can be read", error.message, todo)]
    return await rows_of(settings, environment, sandbox=sandbox)


async def examine_project(
    repo: Path, config: Path | None, overrides: Sequence[str], *, sandbox: bool = False
) -> ProjectLook:
    """`examine`, and what the repository's last commit comes to here: its dependencies are installed, its tests run."""
    rows = await examine(config, overrides, sandbox=sandbox)
    try:
        settings, environment = await asyncio.to_thread(load, config, overrides)
    except ConfigError:  # `examine` has a row for it
        return ProjectLook(rows=tuple(rows))
    look = await look_at_project(repo, settings, environment)
    return look.model_copy(update={"rows": (*rows, *look.rows)})


async def rows_of(settings: Settings, environment: Environment, *, sandbox: bool = False) -> list[DoctorRow]:
    """The same with settings that were read already."""
    rows = [
        *await asyncio.to_thread(_configuration, settings, environment),
        *_keys(settings, environment),
        *await asyncio.to_thread(_machine, environment),
        *await tier_rows(settings, environment),
        *(await battery_rows(settings, environment) if sandbox else ()),
    ]
    known = secrets_of(environment.variables)
    return [row.model_copy(update={"happened": redact(row.happened, known)}) for row in rows]


def _row(name: str, group: str, expected: str, problem: str, todo: str, fine: str = "as expected") -> DoctorRow:
    """A row that is fine without a `problem`."""
    return DoctorRow(
        name=name,
        group=group,
        expected=expected,
        happened=problem or fine,
        ok=not problem,
        todo=todo if problem else "",
    )


def _problem(look: Callable[[], object]) -> str:
    try:
        look()
    except ConfigError as error:
        return error.message
    return ""


def _configuration(settings: Settings, environment: Environment) -> list[DoctorRow]:
    source = str(environment.config_file) if environment.config_file else "the packaged one"
    texts = [
        _row(
            f"project.{name}", "configuration", f"{environment.base_dir / value} is there",
            "" if (environment.base_dir / value).exists() else "not there",
            f"correct project.{name}, or leave it out: personas are then told nothing of it",
        )
        for name, value in (("vision", settings.project.vision), ("wireframes", settings.project.wireframes))
        if value
    ]  # fmt: skip
    prompts = _problem(lambda: prompt_library(settings, environment))
    personas = _problem(lambda: policies_of(settings))
    return [
        _row("settings", "configuration", "a configuration that can be read", "", "", source),
        _row(
            "personas", "configuration", "every persona has somebody to answer it", personas, "correct it", "they have"
        ),
        _row("prompts", "configuration", "every prompt can be read", prompts, "correct it, or prompts.dir", "they can"),
        *texts,
    ]


def _keys(settings: Settings, environment: Environment) -> list[DoctorRow]:
    """The providers in use, then keys that are there although nobody uses them."""
    if _problem(lambda: policies_of(settings)):
        return []
    used = {*seats_of(settings).values(), *stronger_of(settings).values()}
    rows = [_seat(seat, settings, environment) for seat in sorted(used, key=str)]
    idle = {name for name in PROVIDERS if name != "scripted"} - {seat.provider for seat in used}
    for name in sorted(idle):
        there = "present" if environment.variables.get(key_variable(name), "").strip() else "absent"
        rows.append(_row(key_variable(name), "keys", f"nothing: {name} is not in use", "", "", there))
    return rows


def _seat(seat: Seat, settings: Settings, environment: Environment) -> DoctorRow:
    if seat.provider == "scripted":
        script = settings.provider.script
        told = script or "none in the configuration: `run` then needs --script FILE or --provider NAME"
        problem = "not there" if script and not (environment.base_dir / script).is_file() else ""
        return _row("scripted", "keys", "no key; a script", problem, f"correct provider.script ({script})", told)
    variable = key_variable(seat.provider)
    problem, todo = key_problem(seat, environment), f"name provider.model, and put the key into {variable}"
    there = "present" if environment.variables.get(variable, "").strip() else "absent, and not needed at this address"
    return _row(str(seat), "keys", f"a model, and a key in {variable}", problem, todo, f"{variable}: {there}")


def _machine(environment: Environment) -> list[DoctorRow]:
    temporary = Path(tempfile.gettempdir())
    return [
        *program_rows(command_path(environment)),
        folder_row("state folder", environment.home, "make room, or name another folder by ORCHESTRATOR_HOME"),
        folder_row("temporary files", temporary, "make room, or name another folder by TMPDIR"),
        _database(environment),
    ]


def _database(environment: Environment) -> DoctorRow:
    """The event log's database, read and not written."""
    url = environment.database_url
    expected = "the database of DATABASE_URL answers" if url else f"SQLite in {environment.home}"
    if url is None:
        file = environment.home / "events.sqlite"
        if not file.exists():
            fine = f"SQLite {sqlite3.sqlite_version}, not made yet"
            return _row("database", "database", expected, "", "", fine)
        url = f"sqlite:///{file}"
    problem = _problem(lambda: _read(str(url)))
    todo = "correct DATABASE_URL, or take it out" if environment.database_url else f"move {environment.home} away"
    return _row("database", "database", expected, problem, todo, "it answers")


def _read(url: str) -> None:
    reader = EventReader(url)
    try:
        reader.sprints()
    finally:
        reader.close()
