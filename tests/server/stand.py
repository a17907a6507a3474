"""A daemon's place taken: a real state folder with a recorded sprint, behind real sockets."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2

from orchestrator.core.calls.spending import BudgetState
from orchestrator.core.daemon import BacklogState, DaemonState, SprintState, Submitted
from orchestrator.core.errors import BacklogError, UnknownName
from orchestrator.core.event import Event, Level
from orchestrator.core.finding import major
from orchestrator.core.sprint import Pruned
from orchestrator.maintenance.retention import prune
from orchestrator.server.app import build_app
from orchestrator.server.listen import serve_http
from orchestrator.server.metrics import Metrics
from orchestrator.settings import load
from orchestrator.storage.event_file import sqlite_url
from orchestrator.storage.event_store import EventStore
from orchestrator.storage.state_folder import StateFolder
from tests.support import plain_environment

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TOKEN = "a-rather-long-token-of-a-test-1"
BEARER = f"Authorization: Bearer {TOKEN}\r\n"
SECRET = "sk-ant-api03-abcdefghijklmnop1"


class Stand:
    """As much of the daemon as the routes ask, over a state folder."""

    def __init__(self, home: Path, *overrides: str, **variables: str) -> None:
        given = plain_environment(ORCHESTRATOR_HOME=str(home), **{"ORCHESTRATOR_TOKEN": TOKEN, **variables})
        self.settings, self.environment = load(None, ("serve.port=0", *overrides), given, home.parent)
        self.metrics = Metrics()
        self.phase: Any = "ready"
        self.components: Mapping[str, str] = {"database": "", "engine": "", "disk": ""}
        self.looks = 0
        self.hangs: asyncio.Event | None = None
        self.handed_in: dict[str, bytes] = {}
        self.faulty = ""

    def state(self) -> DaemonState:
        backlogs = [
            BacklogState(name=name, path=f"/b/{name}", read_at=NOON, stories=1, waiting=("A-1",), refused="")
            for name in self.handed_in
        ]
        return DaemonState(
            version="0.1.0", pid=os.getpid(), started_at=NOON, phase=self.phase, executor_id="local",
            backlogs=tuple(backlogs),
            sprints=(
                SprintState(
                    sprint="S1", backlog="b", phase="paused", reason=f"the token is {SECRET}",
                    budgets=(BudgetState(name="calls_per_sprint", limit=9, spent=4),),
                ),
            ),
            calls_in_flight=2, stories_at_work=1, stories_waiting=3, stories_queued=4,
            budgets=(BudgetState(name="usd_per_day", limit=5, spent=1.25),),
        )  # fmt: skip

    async def readiness(self) -> Mapping[str, str]:
        self.looks += 1
        if self.hangs is not None:
            await self.hangs.wait()
        return self.components

    async def submit(self, name: str, suffix: str, content: bytes) -> Submitted:
        if not content.startswith(b"Story_ID"):
            raise BacklogError("it is no backlog", findings=[major("backlog.header", f"{suffix} without ids")])
        replaced = name in self.handed_in
        self.handed_in[name] = content
        return Submitted(name=name, path=f"/b/{name}", stories=1, replaced=replaced)

    async def withdraw(self, name: str) -> None:
        if self.handed_in.pop(name, None) is None:
            raise UnknownName(f"no backlog {name} was handed in")

    async def prune(self, limits: Mapping[str, float | None], *, dry_run: bool) -> Pruned:
        retention = self.settings.retention.model_copy(update=limits)
        settings = self.settings.model_copy(update={"retention": retention})
        return await prune(self.environment, settings, dry_run=dry_run)


@dataclass
class Daemon:
    """A stand that listens."""

    stand: Stand
    app: Any
    address: str
    client: httpx2.AsyncClient
    store: EventStore
    numbers: list[int] = field(default_factory=list)

    async def record(self, count: int = 1, sprint: str = "S1", **fields: Any) -> None:
        """New events."""
        for _ in range(count):
            self.numbers.append(len(self.numbers) + 1)
            name = f"{sprint}/new:{self.numbers[-1]}"
            told = {"level": Level.INFO, "message": f"event {self.numbers[-1]}", **fields}
            await self.store.emit(Event(id=name, time=NOON, name="noted", sprint=sprint, **told))

    async def raw(self, sent: bytes) -> bytes:
        """What comes back for bytes that no client of good manners sends."""
        reader, writer = await self.connection()
        answer = b""
        try:
            writer.write(sent)
            with suppress(ConnectionResetError):  # who has answered may not wait for all that still comes
                while chunk := await reader.read(65536):
                    answer += chunk
            return answer
        finally:
            writer.close()

    async def connection(self, *, slow: bool = False) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """To the first address; a `slow` one takes next to nothing until it is read."""
        host, port = urlsplit(self.address).hostname, urlsplit(self.address).port
        one = socket.socket(socket.AF_INET6 if ":" in str(host) else socket.AF_INET)
        if slow:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.setblocking(False)
        await asyncio.get_running_loop().sock_connect(one, (host, port))
        return await asyncio.open_connection(sock=one, limit=1 if slow else 2**16)


@asynccontextmanager
async def running(stand: Stand) -> AsyncIterator[Daemon]:
    """The stand, listening, with a client that has its token."""
    app = build_app(stand, stand.metrics)
    headers = {"authorization": f"Bearer {stand.environment.token}"}
    url = sqlite_url(StateFolder(stand.environment.home).event_database)
    stand.environment.home.mkdir(exist_ok=True)
    async with (
        EventStore(url, on_event=stand.metrics.observe) as store,
        serve_http(app, stand.settings, stand.environment) as address,
        httpx2.AsyncClient(base_url=address, headers=headers, trust_env=False, timeout=30, verify=False) as client,
    ):
        yield Daemon(stand, app, address, client, store)
