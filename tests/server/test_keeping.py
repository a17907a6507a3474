"""A daemon's past, from elsewhere."""

import asyncio
from functools import partial

from tests.server.stand import TOKEN, Daemon, Stand, running
from tests.server.test_commands import cli


async def far(daemon: Daemon, *words: str, token: str = TOKEN) -> tuple[int, str, str]:
    given = {"ORCHESTRATOR_HOME": "/nonexistent", "ORCHESTRATOR_URL": daemon.address, "ORCHESTRATOR_TOKEN": token}
    done = await asyncio.to_thread(partial(cli, *words, **given))
    return done.exit_code, done.stdout, done.stderr


async def test_the_past_is_looked_at_by_the_daemons_settings_and_what_is_said(guarded: Stand) -> None:
    async with running(guarded) as daemon:

        async def gone(**body: object) -> tuple[list[str], bool]:
            answer = await daemon.client.post("/api/v1/prune", json=body)
            assert answer.status_code == 200, answer.text
            told = answer.json()
            assert told["freed_bytes"] == sum(one["freed_bytes"] for one in told["gone"])
            return [one["name"] for one in told["gone"]], told["dry_run"]

        assert await gone(dry_run=True, days=1e-9) == (["S1"], True)
        first = await gone(dry_run=True)
        assert first == await gone(dry_run=True, days=None)
        assert await gone(days=1e-9) == (["S1"], False)
        assert await gone(days=1e-9) == ([], False)
        for wrong in (
            {"days": 0},
            {"days": "x"},
            {"days": True},
            {"dry_run": 0},
            {"dry_run": "false"},
            {"max_mb": 1},
            {"days": 1e300},
            {"more": 1},
        ):
            assert (await daemon.client.post("/api/v1/prune", json=wrong)).status_code == 422
        assert (await far(daemon, "prune", "--dry-run"))[:2] == (0, "nothing is too old\n")
