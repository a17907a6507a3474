"""Machines of one installation: daemons on one Postgres, each with a state folder of its own."""

import asyncio
import json
import os
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psycopg

from orchestrator.git.workspace import GitWorkspace
from orchestrator.storage.commit_store import PostgresCommitStore
from orchestrator.storage.shared_state import SharedState
from orchestrator.storage.state_folder import StateFolder
from tests.durability.daemon import DaemonBench
from tests.durability.team import STORIES
from tests.forwarder import Forwarder
from tests.support import Team
from tests.zygote import Forked


class Machine(DaemonBench):
    """One of several daemons over the same backlog and repository; what it keeps lies in a folder of its own."""

    def __init__(
        self,
        folder: Path,
        name: str,
        database: str,
        network: Forwarder | None = None,
        stories: Mapping[str, str] = STORIES,
        script: Team | None = None,
        settings: Sequence[str] = (),
    ) -> None:
        super().__init__(folder, stories, script=script, settings=settings)
        self.database: str = database
        self.state = folder / name
        self.mirror_folder = self.state / "mirrors"
        self._scratch = folder / "tmp" / name.replace("/", "-")
        self._scratch.mkdir()
        self.variables = {"ORCHESTRATOR_HOME": str(self.state), "TMPDIR": str(self._scratch)}
        if network is not None:
            self.variables["DATABASE_URL"] = network.url

    def ready(self, process: Forked) -> None:
        """Until it answers."""
        self.wait_for(lambda: self._listens(process), process)

    def _hold_between_calls(self, process: Forked) -> bool:
        """See the bench; here a reply counts once other machines have it."""
        kept = b"SELECT content FROM orchestrator_files WHERE path LIKE 'replies/S1/%'"
        for _ in range(40):
            process.send_signal(signal.SIGSTOP)
            until = time.monotonic() + 0.5  # calls of other machines end meanwhile
            while time.monotonic() < until:
                replies = 0
                with suppress(psycopg.errors.UndefinedTable), psycopg.connect(str(self.database)) as server:
                    replies = sum(json.loads(entry)["ended"] == "reply" for (entry,) in server.execute(kept))
                if len(self.calls()) == replies:
                    return True
                time.sleep(0.002)
            process.send_signal(signal.SIGCONT)
            time.sleep(0.02)
        return False

    async def fetch(self) -> None:
        """Has in state folder and mirror what counts; the machine that made it may be gone."""
        folder = StateFolder(self.state)
        state = SharedState(self.database, self.state)
        await asyncio.to_thread(state.refresh)
        state.close()
        workspace = GitWorkspace(
            mirror=folder.mirror(self.folder / "repo"), folder=folder.worktrees("S1"), sprint="S1", base="",
            store=PostgresCommitStore(self.database),
        )  # fmt: skip
        await workspace.prepare()
        workspace.close()

    def runs(self) -> dict[str, str]:
        """Story or, for the sprint itself, "" → the machine that works on it."""
        held = "SELECT workflow_id, token FROM orchestrator_stories UNION SELECT '', token FROM orchestrator_holders"
        held += " WHERE sprint = 'S1'"
        query = f"SELECT workflow_id, folder FROM ({held}) AS held JOIN orchestrator_daemons USING (token)"
        with psycopg.connect(self.database) as server:
            rows = server.execute(query.encode()).fetchall()
        return {str(workflow).removeprefix("S1/"): Path(folder).name for workflow, folder in rows}

    def vanish(self, process: Forked) -> None:
        """The end of the machine with all that it had; not inside a call, which may then be paid twice."""
        assert self._hold_between_calls(process)
        process.kill()
        for pid, line in list(self._processes()):
            if str(self.state) in line:
                os.kill(pid, signal.SIGKILL)
        process.communicate(timeout=30)
        shutil.rmtree(self.state)
        shutil.rmtree(self._scratch)
        self._scratch.mkdir()
