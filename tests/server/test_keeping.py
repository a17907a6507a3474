"""A daemon's backup, its past and its machine, from elsewhere."""

import asyncio
import json
from collections.abc import Iterator
from functools import partial
from io import BytesIO
from pathlib import Path

import pytest

from orchestrator.core.errors import ConfigError
from orchestrator.files.archive import passed_on
from orchestrator.server.service import get_service
from orchestrator.storage.state_folder import StateFolder
from tests.server.stand import TOKEN, Daemon, Stand, running
from tests.server.test_commands import cli


async def far(daemon: Daemon, *words: str, token: str = TOKEN) -> tuple[int, str, str]:
    given = {"ORCHESTRATOR_HOME": "/nonexistent", "ORCHESTRATOR_URL": daemon.address.url, "ORCHESTRATOR_TOKEN": token}
    done = await asyncio.to_thread(partial(cli, *words, **given))
    return done.exit_code, done.stdout, done.stderr


async def test_a_backup_is_fetched_and_restored(guarded: Stand, tmp_path: Path) -> None:
    file, other = tmp_path / "there.tar.gz", tmp_path / "restored"
    async with running(guarded) as daemon:
        code, out, err = await far(daemon, "backup", str(file), "--json")
        assert (code, err) == (0, "")
        told = json.loads(out)
        here = ["backup", str(tmp_path / "here.tar.gz"), "--json"]
        done = await asyncio.to_thread(partial(cli, *here, ORCHESTRATOR_HOME=str(guarded.environment.home)))
        own = json.loads(done.stdout)
        assert (told["files"], told["header"]["sprints"]) == (own["files"], own["header"]["sprints"])
        assert (told["path"], told["size_bytes"]) == (str(file), file.stat().st_size)
        assert file.stat().st_mode & 0o077 == 0
        code, _, err = await far(daemon, "backup", str(tmp_path / "none"), token="another-token-than-that-1")
        assert (code, "refuses the token" in err) == (2, True)
        assert (await daemon.client.head("/api/v1/backup")).content == b""
        async with get_service(daemon.app).alone["backup"]:
            busy = await daemon.client.get("/api/v1/backup")
            assert (busy.status_code, "another backup" in busy.json()["error"]) == (503, True)
    (record,) = await asyncio.to_thread(StateFolder(guarded.environment.home).records)
    given = ["--repo", record.repo, "--backlog", record.backlog]
    done = await asyncio.to_thread(partial(cli, "restore", str(file), *given, ORCHESTRATOR_HOME=str(other)))
    assert done.exit_code == 0, done.stderr
    status = await asyncio.to_thread(partial(cli, "status", ORCHESTRATOR_HOME=str(other)))
    assert "US-1" in status.stdout
    assert sorted(path.name for path in tmp_path.glob("*tar*")) == ["here.tar.gz", "there.tar.gz"]


async def test_with_no_auth_only_the_owner_of_the_files_gets_them(stand: Stand, tmp_path: Path) -> None:
    folder = StateFolder(stand.environment.home)
    async with running(stand) as daemon:
        refused = await daemon.client.get("/api/v1/backup")
        assert (refused.status_code, "--no-auth" in refused.json()["error"]) == (403, True)
        assert (await far(daemon, "backup", str(tmp_path / "far")))[0] == 2
        own = partial(cli, "backup", str(tmp_path / "own"), ORCHESTRATOR_HOME=str(folder.home))
        done = await asyncio.to_thread(own)
        assert (done.exit_code, done.stderr) == (0, "")
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["own"]


async def test_who_leaves_a_backup_ends_it(guarded: Stand) -> None:
    big = guarded.environment.home / "edits" / "big"
    await asyncio.to_thread(big.parent.mkdir, exist_ok=True)
    await asyncio.to_thread(big.write_bytes, bytes(range(256)) * 100_000)
    async with running(guarded) as daemon:
        async with daemon.client.stream("GET", "/api/v1/backup") as answer:
            assert answer.status_code == 200
            await anext(answer.aiter_raw())
        while get_service(daemon.app).alone["backup"].locked():
            await asyncio.sleep(0.01)
        names = {task.get_name() for task in asyncio.all_tasks()}
        assert "backup" not in names
        assert not list(guarded.environment.home.glob(".backup-*"))


def test_what_breaks_off_is_no_backup() -> None:
    def parts() -> Iterator[bytes]:
        yield b"\x1f\x8b\x08\x00"

    written = BytesIO()
    with pytest.raises(ConfigError, match="no whole backup"):
        passed_on(parts(), written)
    for nothing in (b"", b"<html>", b"{}"):
        with pytest.raises(ConfigError, match="no whole backup"):
            passed_on(iter([nothing]), written)


async def test_the_past_is_looked_at_by_the_daemons_settings_and_what_is_said(guarded: Stand) -> None:
    async with running(guarded) as daemon:

        async def gone(**body: object) -> tuple[list[str], bool]:
            answer = await daemon.client.post("/api/v1/prune", json=body)
            assert answer.status_code == 200, answer.text
            told = answer.json()
            assert told["freed_bytes"] == sum(one["freed_bytes"] for one in told["gone"])
            return [one["why"] for one in told["gone"]], told["dry_run"]

        assert await gone(dry_run=True, days=1e-9) == (["age"], True)
        first = await gone(dry_run=True)
        assert first == await gone(dry_run=True, days=None, max_mb=None)
        assert await gone(dry_run=True, max_mb=1e3) == await gone(dry_run=True, max_mb=1000), "whole, as JSON has it"
        assert await gone(days=1e-9) == (["age"], False)
        assert await gone(days=1e-9) == ([], False)
        for wrong in (
            {"days": 0},
            {"days": "x"},
            {"days": True},
            {"max_mb": True},
            {"dry_run": 0},
            {"dry_run": "false"},
            {"max_mb": 0},
            {"days": 1e300},
            {"more": 1},
        ):
            assert (await daemon.client.post("/api/v1/prune", json=wrong)).status_code == 422
        assert (await far(daemon, "prune", "--dry-run"))[:2] == (0, "nothing is too old or too much\n")


async def test_the_daemon_looks_at_its_machine(guarded: Stand) -> None:
    async with running(guarded) as daemon:
        code, out, err = await far(daemon, "doctor")
        assert (code, err) == (1, "1 of 1 checks failed\n")
        assert "wrong git  looked at" in out
        told = json.loads((await far(daemon, "doctor", "--sandbox", "--json"))[1])
        assert (told["ok"], told["rows"][0]["happened"]) == (False, "tried")
        guarded.hangs = asyncio.Event()
        slow = asyncio.create_task(daemon.client.get("/api/v1/doctor"))
        while not get_service(daemon.app).alone["doctor"].locked():
            await asyncio.sleep(0.01)
        assert (await daemon.client.get("/api/v1/doctor")).status_code == 503
        guarded.hangs.set()
        assert (await slow).status_code == 200
