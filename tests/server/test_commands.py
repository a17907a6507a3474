"""Commands through the interface itself: they print elsewhere what they print where the state folder is."""

import asyncio
import json
import os
from functools import partial
from pathlib import Path
from typing import Any

from click.testing import Result
from typer.testing import CliRunner

from orchestrator.cli.main import app
from tests.server.stand import TOKEN, Stand, running
from tests.support import plain_environment

READ = (
    ["status", "--json"],
    ["show", "US-1"],
    ["show", "US-2", "--json", "--full"],
    ["contract", "US-1"],
    ["contract", "US-1", "--json", "--sprint", "S1"],
    ["logs"],
    ["logs", "--json", "--level", "debug", "--after", "7"],
    ["logs", "--story", "US-2", "--level", "warn"],
)


def cli(*words: str, **variables: str) -> Result:
    """A command in this process and no other environment than this."""
    env = {name: None for name in os.environ} | plain_environment(LOGNAME="anna", **variables)
    result = CliRunner().invoke(app, list(words), env=env)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


async def test_commands_print_elsewhere_what_they_print_here(guarded: Stand, tmp_path: Path) -> None:
    async with running(guarded) as daemon:
        there = {"ORCHESTRATOR_URL": daemon.address.url, "ORCHESTRATOR_TOKEN": TOKEN}

        def both() -> list[tuple[Result, Result]]:
            homes = (guarded.environment.home, tmp_path / "nothing")
            return [
                (cli(*words, ORCHESTRATOR_HOME=str(homes[0])), cli(*words, ORCHESTRATOR_HOME=str(homes[1]), **there))
                for words in READ
            ]

        for words, (here, far) in zip(READ, await asyncio.to_thread(both), strict=True):
            assert (far.exit_code, far.stderr) == (0, ""), words
            assert far.stdout == here.stdout, words
            assert len(far.stdout) > 60, words
    assert not (tmp_path / "nothing").exists()


async def test_commands_order_and_hand_in_through_the_interface(guarded: Stand, tmp_path: Path) -> None:
    good, bad = tmp_path / "shop.csv", tmp_path / "bad.csv"
    good.write_text("Story_ID\nA-1\n")
    bad.write_text("nothing")
    async with running(guarded) as daemon:
        far = {"ORCHESTRATOR_HOME": str(tmp_path / "nothing"), "ORCHESTRATOR_TOKEN": TOKEN}

        async def asked(*words: str) -> tuple[int, str, str]:
            done = await asyncio.to_thread(partial(cli, *words, "--url", daemon.address.url, **far))
            return done.exit_code, done.stdout, done.stderr

        assert await asked("cancel", "US-1") == (1, "", "error: US-1 has ended: it is done\n")
        code, out, _ = await asked("retry", "US-2", "--json", "--comment", "once more")
        told: dict[str, Any] = json.loads(out)
        assert (code, told["done"], told["stories"]) == (0, True, ["US-2", "US-3"])
        assert "by anna: once more" in told["message"]
        assert (await asked("pause"))[0] == 0
        assert (await asked("pause"))[::2] == (1, "error: it is paused by anna already\n")
        assert "is reset" in (await asked("reset", "US-1"))[1]
        assert "2 pending" not in (await asked("status"))[1]
        assert (await asked("approve", "US-2"))[0] == 2
        assert "is new there" in (await asked("submit", str(good)))[1]
        assert "replaces what was there" in (await asked("submit", str(good)))[1]
        code, out, err = await asked("submit", str(bad))
        assert (code, out) == (2, "")
        assert "[major] backlog.header: .csv without ids" in err
        assert "refuses the token" in (await asyncio.to_thread(_stranger, daemon.address.url)).stderr
    assert set(guarded.handed_in) == {"shop"}


def _stranger(url: str) -> Result:
    return cli("status", "--url", url, ORCHESTRATOR_TOKEN="another-token-than-that-1")
