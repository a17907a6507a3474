"""Every operation of the document, with data that fits it and data that does not, over real HTTP."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable

from orchestrator.server.service import get_service
from tests.server.stand import TOKEN, Stand, running
from tests.support import Played, copy_state

HEADERS = {"Authorization": f"Bearer {TOKEN}"}
REAL = {"sprint": "S1", "story": "US-2"}


@pytest.fixture(scope="module")
def address(played: Played, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A daemon in a thread; its streams end at once, for nothing here waits for the end of one."""
    home = tmp_path_factory.mktemp("fuzzed") / "state"
    copy_state(played.mirror.parent.parent, home)
    stand = Stand(Path(home), ORCHESTRATOR_TOKEN=TOKEN)
    ready, found = threading.Event(), []

    async def serve() -> None:
        async with running(stand) as daemon:
            get_service(daemon.app).feed.ended = True
            ended = asyncio.Event()
            found.append((daemon, asyncio.get_running_loop(), ended))
            ready.set()
            await ended.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(30)
    daemon, loop, ended = found[0]
    yield daemon.address
    loop.call_soon_threadsafe(ended.set)
    thread.join()


def try_every_operation(address: str, examples: int) -> None:
    import schemathesis  # a second, which only this file's worker spends
    from schemathesis import GenerationMode
    from schemathesis.checks import CHECKS, load_all_checks

    load_all_checks()
    # What fits the document may be refused for what it says: a file that is no backlog, an answer that comes too late.
    fits = CHECKS.get_one("positive_data_acceptance")
    # It does not count that a body is refused for being too large.
    refuses = CHECKS.get_one("negative_data_rejection")

    def try_operation(operation: Any, mode: GenerationMode) -> None:
        @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy(generation_mode=mode))
        def keeps_its_promises(case: schemathesis.Case) -> None:
            if mode is GenerationMode.POSITIVE:  # a name at random is nobody's
                case.path_parameters.update({name: REAL[name] for name in REAL if name in case.path_parameters})
            response = case.call(base_url=address, headers=HEADERS)
            excluded = [fits, refuses] if response.status_code == 413 else [fits]
            case.validate_response(response, headers=HEADERS, excluded_checks=excluded)

        keeps_its_promises()

    told = httpx2.get(f"{address}/api/v1/openapi.json", headers=HEADERS).json()
    # Every request here has the token, which would count as data that fits or does not.
    document = schemathesis.openapi.from_dict({**told, "security": []})
    for found in document.get_all_operations():
        for mode in GenerationMode:
            # What takes nothing cannot be given anything wrong.
            with suppress(Unsatisfiable) if mode is GenerationMode.NEGATIVE else nullcontext():
                try_operation(found.ok(), mode)


@pytest.mark.soak
def test_what_an_operation_answers_leads_on(address: str) -> None:
    """Operations one behind the other, what one answers in the next; by the command, which bears a daemon's memory."""
    program = str(Path(sys.executable).with_name("schemathesis"))
    where = [f"{address}/api/v1/openapi.json", "--url", address, "-H", f"Authorization: Bearer {TOKEN}"]
    how = ["--phases", "stateful", "--max-examples", "60", "--exclude-checks", "positive_data_acceptance"]
    done = subprocess.run([program, "run", *where, *how, "--no-color"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]


@pytest.mark.soak
def test_every_operation_keeps_its_promises(address: str) -> None:
    try_every_operation(address, 150)
