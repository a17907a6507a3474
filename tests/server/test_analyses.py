"""Analyses over HTTP: begun, looked at and ended; what can be none is refused."""

import asyncio
import json
from functools import partial
from pathlib import Path

import pytest

from tests.server.stand import NOON, TOKEN, Stand, running
from tests.server.test_commands import cli

AT = "/api/v1/analyses"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty state folder does here."""
    return tmp_path / "state"


async def test_one_at_a_time_is_begun_shown_and_ended(stand: Stand) -> None:
    async with running(stand) as daemon:
        ask = daemon.client
        assert (await ask.get(AT)).json() == []
        begun = await ask.post(AT, json={"stages": ["testing"], "prompts": {"a.md": "# A"}, "backlog": "csv"})
        assert (begun.status_code, begun.json()["analysis"], begun.json()["status"]) == (202, "AN-001", "running")
        assert (await ask.post(AT, json={})).status_code == 409
        results = Path(begun.json()["folder"])
        await asyncio.to_thread(results.mkdir)
        texts = {"mvp_improvement_plan.md": "# MVP", "backlog.csv": "Story_ID", "plan.json": "x" * 4_000_001}
        for name, text in texts.items():
            await asyncio.to_thread((results / name).write_text, text)
        shown = (await ask.get(f"{AT}/AN-001")).json()
        assert (shown["markdown"], shown["backlog"], shown["plan"]) == ("# MVP", "Story_ID", None)
        assert (shown["files"], shown["too_long"]) == (sorted(texts), ["plan.json"])
        ended = await ask.post(f"{AT}/AN-001/cancel")
        assert (ended.status_code, ended.json()["status"]) == (200, "cancelled")
        assert (await ask.post(f"{AT}/AN-001/cancel")).status_code == 409
        assert [state["ended_at"] for state in (await ask.get(AT)).json()] == [f"{NOON:%Y-%m-%dT%H:%M:%SZ}"]
        assert (await ask.get(f"{AT}/AN-009")).status_code == (await ask.post(f"{AT}/AN-009/cancel")).status_code == 404


WRONG: tuple[dict[str, object], ...] = (
    {"profile": "nix"},
    {"repo": "/etc"},
    {"prompts": {"../a.md": "x"}},
    {"prompts": {".a.md": "x"}},
    {"prompts": {"a.txt": "x"}},
    {"prompts": {"a/b.md": "x"}},
    {"backlog": "/etc/passwd"},
    {"analysis": "../AN-001"},
    {"stages": "testing"},
    {"prd": 5},
)


async def test_what_can_be_no_analysis_is_refused(stand: Stand) -> None:
    async with running(stand) as daemon:
        codes = [(await daemon.client.post(AT, json=wrong)).status_code for wrong in WRONG]
        assert (codes, (await daemon.client.get(AT)).json()) == ([422] * len(WRONG), [])


async def test_a_command_line_says_which_repository_is_meant(guarded: Stand, tmp_path: Path) -> None:
    async with running(guarded) as daemon:

        async def said(*words: str) -> tuple[int, str]:
            given = {"ORCHESTRATOR_HOME": str(tmp_path / "else"), "ORCHESTRATOR_TOKEN": TOKEN}
            done = await asyncio.to_thread(partial(cli, "analyse", *words, **given))
            return done.exit_code, done.stderr

        url = ("--url", daemon.address.url)
        for both in ((".",), ("--dry-run",), ("--mock",), ("--provider", "anthropic"), ("--script", "x.jsonl")):
            code, told = await said(*both, *url)
            assert (code, "reads its own repository" in told) == (2, True), told
        code, told = await said("--profile", "nix", *url)
        assert (code, told) == (2, "error: there is no profile nix\n")
        (tmp_path / "none").mkdir()
        assert "there is no prompt" in (await said("--prompts", str(tmp_path / "none"), *url))[1]
        assert json.loads((await daemon.client.get(AT)).text) == []
