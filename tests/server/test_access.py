"""Who gets in: whoever has the token."""

import asyncio
import json
from functools import partial
from itertools import product
from pathlib import Path

import pytest

from orchestrator.core.errors import ConfigError
from orchestrator.core.suite import Tier
from orchestrator.sandbox.choose import try_tier
from orchestrator.sandbox.command_runner import LimitedCommandRunner
from orchestrator.server.listen import choose_host, serve_http
from orchestrator.server.service import get_service
from orchestrator.settings import load
from orchestrator.settings.model import CommandSettings
from orchestrator.settings.sections import SandboxSettings
from orchestrator.storage.state_folder import StateFolder
from tests.sandboxes import PATH, sandbox
from tests.server.stand import TOKEN, Daemon, Stand, running
from tests.support import plain_environment


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty state folder does here."""
    return tmp_path / "state"


PATHS = ("/metrics", "/api/v1/daemon", "/api/v1/openapi.json", "/api/v1/events", "/api/v1/nothing", "/", "/healthz/")
RIGHT = f"Authorization: Bearer {TOKEN}"
WRONG = (
    "Authorization: Bearer wrong",
    f"Authorization: Bearer {TOKEN}x",
    f"Authorization: Bearer {TOKEN[:-1]}",
    f"Authorization: Basic {TOKEN}",
    f"Authorization: {TOKEN}",
    "Authorization: Bearer",
    "Authorization:",
    f"Authorization: Bearer {TOKEN.upper()}",
    f"{RIGHT}\r\n{RIGHT}",
    f"{RIGHT}\r\nAuthorization: Bearer wrong",
    "Authorization: Bearer \xff\xfe",
)


async def status(daemon: Daemon, path: str, *headers: str, method: str = "GET") -> int:
    head = "".join(f"{line}\r\n" for line in (f"{method} {path} HTTP/1.1", "Connection: close", *headers))
    reader, writer = await daemon.connection()
    writer.write(f"{head}\r\n".encode("latin-1"))
    told = await reader.readuntil(b"\r\n")
    writer.close()
    return int(told.split()[1])


@pytest.mark.parametrize(
    ("variables", "host"),
    [({"PORT": "0"}, "Host: healthcheck.railway.app"), ({}, "Host: 127.0.0.1:8080")],
    ids=["every address", "loopback"],
)
async def test_with_a_token_nothing_but_health_is_told_without_it(
    home: Path, variables: dict[str, str], host: str
) -> None:
    """On loopback as well: another user here, or a proxy by its defaults, sends just what this user sends."""
    stand = await asyncio.to_thread(partial(Stand, home, ORCHESTRATOR_TOKEN=TOKEN, **variables))
    async with running(stand) as daemon:
        for path in PATHS:
            assert await status(daemon, path, host) == 401, path
            assert await status(daemon, path, host, RIGHT) != 401
            assert await status(daemon, path, host, "Authorization: bearer  " + TOKEN) != 401
        for path, wrong in product(("/api/v1/daemon", "/"), WRONG):
            assert await status(daemon, path, host, wrong) == 401, (path, wrong)
        for path in ("/healthz", "/readyz"):
            for given in ((), (RIGHT,), (WRONG[0],)):
                assert await status(daemon, path, host, *given) == 200
            assert await status(daemon, path, host, method="POST") == 401
        refused = await daemon.raw(f"GET /metrics HTTP/1.1\r\n{host}\r\n\r\n".encode())
        assert b"www-authenticate: Bearer" in refused
        assert json.loads(refused.partition(b"\r\n\r\n")[2])["error"].startswith("a token is needed")


ASK = """
import sys, urllib.error, urllib.request
url, file = sys.argv[1:]
try:
    urllib.request.urlopen(url + "/api/v1/daemon", timeout=10)
except urllib.error.HTTPError as error:
    print(error.code)
try:
    print(open(file).read())
except OSError as error:
    print(type(error).__name__)
"""


async def test_a_command_in_the_sandbox_that_shares_loopback_is_refused_and_cannot_read_the_token(
    home: Path, tmp_path: Path
) -> None:
    sandbox(Tier.LANDLOCK)
    folder, tree = StateFolder(home), tmp_path / "tree"
    await asyncio.to_thread(tree.mkdir)
    token = await asyncio.to_thread(folder.make_token)
    stand = await asyncio.to_thread(partial(Stand, home, ORCHESTRATOR_TOKEN=token))
    box = await try_tier(Tier.LANDLOCK, SandboxSettings(loopback="shared"), PATH, (home,))
    assert not isinstance(box, str), box
    runner = LimitedCommandRunner(CommandSettings(), PATH, sandbox=box)
    async with running(stand) as daemon:
        argv = ["python3", "-c", ASK, daemon.address, str(folder.daemon_token)]
        ran = await runner.run(argv, cwd=tree)
    told = [line for line in ran.output.split() if line]
    assert told in (["401", "PermissionError"], ["401", "FileNotFoundError"]), ran.output


@pytest.mark.parametrize(
    ("host", "port", "right"),
    [
        (None, "", "127.0.0.1"),
        (None, "8000", ""),
        ("localhost", "8000", "127.0.0.1"),
        ("[::]", "", "::"),
        ("10.0.0.1", "8000", "10.0.0.1"),
    ],
)
def test_where_it_listens(tmp_path: Path, host: str | None, port: str, right: str) -> None:
    overrides = [f'serve.host="{host}"'] if host else []
    assert choose_host(*load(None, overrides, plain_environment(PORT=port), tmp_path)) == right


async def test_readiness_tells_reasons_to_those_who_may_know_and_is_looked_at_once(guarded: Stand) -> None:
    async with running(guarded) as daemon:
        assert (await daemon.client.get("/healthz")).json() == {"status": "ok"}
        assert (await daemon.client.get("/readyz")).json()["ready"] is True
        why = {"disk": "3 MB are free in /srv/state"}
        guarded.components, guarded.phase = why, "stopping"
        # Within a second it is not looked at again, however many ask.
        answers = await asyncio.gather(*(daemon.client.get("/readyz") for _ in range(20)))
        assert ({answer.status_code for answer in answers}, guarded.looks) == ({200}, 1)
        for head in ({"authorization": "none"}, {}):
            get_service(daemon.app).readiness._until = 0.0
            told = await daemon.client.get("/readyz", headers=head)
            assert (told.status_code, told.json()["ready"]) == (503, False)
            reasons = {"daemon": "not ready", "disk": "not ready"} if head else {"daemon": "it is stopping", **why}
            assert told.json()["components"] == reasons


async def test_a_port_that_is_taken_is_named(stand: Stand) -> None:
    async with running(stand) as daemon:
        port = int(daemon.address.rpartition(":")[2])
        serve = stand.settings.serve.model_copy(update={"port": port})
        settings = stand.settings.model_copy(update={"serve": serve})
        with pytest.raises(ConfigError, match=f"port {port} of 127.0.0.1 is in use"):
            await serve_http(daemon.app, settings, stand.environment).__aenter__()
