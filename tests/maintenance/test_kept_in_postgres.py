"""Pruning a state folder whose log and engine are in Postgres."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

from orchestrator.app.run import Run
from orchestrator.maintenance.retention import prune
from orchestrator.records.sprint_reader import RunResult
from orchestrator.settings import Environment, Settings, load
from orchestrator.settings.options import RunOptions
from tests.support import ALL_PASS, Team, plain_environment, write_backlog

COUNTS = {
    "events": "SELECT count(*), max(seq) FROM orchestrator_events",
    "workflows": "SELECT count(*), max(status) FROM dbos.workflow_status",
    "steps": "SELECT count(*), max(function_id) FROM dbos.operation_outputs",
}


def configured(home: Path, url: str) -> tuple[Settings, Environment]:
    environment = plain_environment(ORCHESTRATOR_HOME=str(home), DATABASE_URL=url)
    overrides = ("provider.wait_initial_s=0.01", "retention.days=0.0000001", ALL_PASS)
    return load(None, overrides, environment, home.parent)


def rows(url: str) -> dict[str, Any]:
    with psycopg.connect(url) as connection:
        return {name: connection.execute(query.encode()).fetchone() for name, query in COUNTS.items()}


def run(place: Path, home: Path, url: str) -> RunResult:
    settings, environment = configured(home, url)
    options = RunOptions(
        backlog=place / "backlog.csv", repo=place / "repo", script=place / "team.jsonl", sprint="S1",
        call_log=home.parent / f"{home.name}.calls",
    )  # fmt: skip
    told: list[str] = []
    return asyncio.run(Run(options, settings, environment, tell=told.append, listen=lambda _: None).go())


def test_only_the_rows_of_the_pruned_sprint_go(fresh_postgres: Callable[[], str], tmp_path: Path) -> None:
    second = fresh_postgres()
    team = Team()
    team.good("US-1")
    team.write(tmp_path / "team.jsonl")
    write_backlog(tmp_path / "backlog.csv", "US-1")
    run(tmp_path, tmp_path / "two", second)
    before = rows(second)
    assert before["workflows"] == (1, "SUCCESS")
    with psycopg.connect(second) as connection:
        connection.execute("INSERT INTO orchestrator_events (id, sprint, body) VALUES ('x', 'S9', '{}')")

    settings, environment = configured(tmp_path / "two", second)
    assert [one.name for one in asyncio.run(prune(environment, settings)).gone] == ["S1"]
    after = rows(second)
    assert (after["workflows"], after["steps"]) == ((0, None), (0, None))
    assert after["events"][0] == 1, "what is not ours"
    with psycopg.connect(second) as connection:
        for table in (b"orchestrator_refs", b"orchestrator_packs", b"orchestrator_pack_pieces"):
            assert connection.execute(b"SELECT count(*) FROM " + table).fetchone() == (0,)
