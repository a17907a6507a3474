"""The board in a browser, of a sprint of many stories: first paint, event to screen, memory, what a page costs.

The log is a real one: one story is run, and its events are written again for every other, as a store writes them.
"""

import asyncio
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from benchmarks import samples
from benchmarks.measure import Figure, Result
from orchestrator.core.event import Event
from orchestrator.core.sprint import SprintRecord
from orchestrator.storage.event_file import sqlite_url
from orchestrator.storage.event_reader import EventReader
from orchestrator.storage.event_store import EventStore
from orchestrator.storage.state_folder import StateFolder

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

EVENTS = 100
PAGES = 10
WATCHED_S = 15.0
RATE_S = 0.2
"""Between two events while the pages are watched."""
WATCHED = samples.story_id(10)
"""A story that has not ended, near the top of the page."""
_KEEP_TIMES = """card => {
    window.shown = {};
    new MutationObserver(() => {
        const found = document.querySelector(`${card} .doing`)?.textContent.match(/measured ([0-9]+)/);
        if (found && !(found[1] in shown)) requestAnimationFrame(() => { shown[found[1]] = Date.now(); });
    }).observe(document.querySelector(".columns"), { childList: true, subtree: true });
}"""


def _lay_out(folder: Path) -> None:
    """Runs one story."""
    samples.write_backlog(folder / "backlog.csv", 1)
    samples.write_script(folder / "team.jsonl", 1, 3, 0)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(folder / "repo")]
    subprocess.run(["git", "init", "--quiet", str(folder / "repo")], check=True)
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "--message", "Base"], check=True)
    words = ["run", "backlog.csv", "--repo", "repo", "--script", "team.jsonl", "--set", "review.enabled=false"]
    words += ["--set", "sandbox.require=none"]
    subprocess.run([sys.executable, "-m", "orchestrator", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)


async def _multiply(state: StateFolder, stories: int) -> SprintRecord:
    """Writes the events of the one story for all; nine of ten have ended."""
    (record,) = state.records()
    with_log = EventReader(sqlite_url(state.event_database))
    one = samples.story_id(1)
    texts = [event.model_dump_json() for _, event in with_log.read(record.sprint, 0) if event.story == one]
    with_log.close()
    names = tuple(samples.story_id(number) for number in range(1, stories + 1))
    titles = {name: f"{record.titles[one]} {name}" for name in names}
    record = record.model_copy(update={"story_ids": names, "titles": titles})
    state.save(record)
    async with EventStore(sqlite_url(state.event_database)) as store:
        for number, name in enumerate(names[1:], start=2):
            kept = texts if number % 10 else texts[: len(texts) // 2]
            await asyncio.gather(*(store.emit(Event.model_validate_json(text.replace(one, name))) for text in kept))
    return record


@contextmanager
def _daemon(folder: Path) -> Iterator[tuple[psutil.Process, str, str]]:
    """A `serve` over the state folder that works on nothing: process, address, token."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["serve", "--repo", "repo", "--port", str(port), "--provider", "scripted", "--script", "team.jsonl"]
    begun = subprocess.Popen(
        [sys.executable, "-m", "orchestrator", *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    address = folder / ".orchestrator" / "daemon" / "address.json"
    try:
        while not address.exists() or json.loads(address.read_bytes())["pid"] != begun.pid:
            time.sleep(0.05)
        token = (address.parent / "token").read_text().strip()
        yield psutil.Process(begun.pid), f"http://127.0.0.1:{port}", token
    finally:
        begun.terminate()
        begun.wait()


async def _paint_ms(page: "Page", address: str) -> float:
    await page.goto(address)
    entries = "performance.getEntriesByName('first-contentful-paint').map((one) => one.startTime)"
    while not (found := await page.evaluate(entries)):
        await asyncio.sleep(0.02)
    return float(found[0])


async def _heap_mb(page: "Page") -> float:
    session = await page.context.new_cdp_session(page)
    await session.send("HeapProfiler.collectGarbage")
    used = await session.send("Runtime.getHeapUsage")
    return float(used["usedSize"]) / 2**20


async def _latencies(page: "Page", store: EventStore, sprint: str) -> list[float]:
    """Milliseconds from before an event is recorded until its card has been drawn."""
    await page.evaluate(_KEEP_TIMES, f"#card-{WATCHED}")
    began = []
    for number in range(EVENTS):
        began.append(time.time() * 1000)
        await store.emit(_event(sprint, number))
        await asyncio.sleep(RATE_S)
    shown = {int(number): at for number, at in (await page.evaluate("shown")).items()}
    # Of events within one look at the log the last one is drawn.
    return [min(at for seen, at in shown.items() if seen >= number) - at_first for number, at_first in enumerate(began)]


def _event(sprint: str, number: int) -> Event:
    return Event(
        id=f"{sprint}/{WATCHED}:measured:{number}",
        time=datetime.now(UTC),
        name="turn_started",
        message=f"measured {number}",
        sprint=sprint,
        story=WATCHED,
        persona="alex",
        data={"purpose": "delivery"},
    )


async def _share(process: psutil.Process, store: EventStore | None, sprint: str, first: int) -> float:
    """Percent of a processor that the daemon takes, with events coming when there is a store."""
    before = sum(process.cpu_times()[:2])
    began = time.monotonic()
    number = first
    while time.monotonic() - began < WATCHED_S:
        if store is not None:
            await store.emit(_event(sprint, number))
            number += 1
        await asyncio.sleep(RATE_S)
    return (sum(process.cpu_times()[:2]) - before) / (time.monotonic() - began) * 100


async def _open(browser: "Browser", url: str, token: str) -> "Page":
    context = await browser.new_context(viewport={"width": 1440, "height": 900})
    await context.request.post(f"{url}/login", form={"token": token}, headers={"origin": url})
    return await context.new_page()


async def _measured(folder: Path, stories: int) -> list[Figure]:
    record = await _multiply(StateFolder(folder / ".orchestrator"), stories)
    sprint, figures = record.sprint, []
    # Imported here: the extra `board` is needed for this benchmark alone.
    from playwright.async_api import async_playwright

    from tests.board.browser import find_chromium

    async with async_playwright() as driver, EventStore(sqlite_url(folder / ".orchestrator/events.sqlite")) as store:
        browser = await driver.chromium.launch(executable_path=find_chromium())
        with _daemon(folder) as (process, url, token):
            address = f"{url}/sprints/{sprint}"
            page = await _open(browser, url, token)
            cold = await _paint_ms(page, address)
            figures.append(Figure(name="first paint, the first page of a daemon", value=cold, unit="ms"))
            again = [await _paint_ms(page, address) for _ in range(5)]
            figures.append(Figure(name="first paint, after that", value=statistics.median(again), unit="ms"))
            taken = sorted(await _latencies(page, store, sprint))
            figures.append(Figure(name="event to screen p50", value=statistics.median(taken), unit="ms"))
            figures.append(Figure(name="event to screen p95", value=taken[int(len(taken) * 0.95)], unit="ms"))
            figures.append(Figure(name="JavaScript memory of the page", value=await _heap_mb(page), unit="MB"))
            await page.context.close()
            idle, busy = await _share(process, None, sprint, 0), await _share(process, store, sprint, 1000)
            pages = [await _open(browser, url, token) for _ in range(PAGES)]
            for one in pages:
                await one.goto(address)
            looked = await _share(process, None, sprint, 0), await _share(process, store, sprint, 2000)
            for name, alone, seen in (("nothing happens", idle, looked[0]), ("5 events a second", busy, looked[1])):
                figures.append(Figure(name=f"processor per open page, {name}", value=(seen - alone) / PAGES, unit="%"))
        await browser.close()
    return figures


def run(stories: int = 1000) -> Result:
    """Raises RuntimeError where no Chromium is."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        _lay_out(Path(name))
        figures = asyncio.run(_measured(Path(name), stories))
    return Result(name="board", about=f"a sprint of {stories:,} stories in Chromium, SQLite", figures=tuple(figures))
