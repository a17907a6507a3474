"""What is large and nearly the same in all stories of a sprint is held once, and comes back after a crash."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.ports import Step
from orchestrator.core.sprint import StoryOutcome
from orchestrator.engine.database import EngineDatabase, forget_workflows
from orchestrator.engine.large_results import cut, table_of
from tests.engine.test_durable import Body, Counting, House, address, done, on_both

__all__ = ["on_both"]
FILES = 2000
STORIES = 12


def files(story: int) -> list[str]:
    """The paths that a story finds: those of the project and of the stories before it, sorted."""
    return sorted([f"shop/part_{number:04d}/\ud83d.py" for number in range(FILES)] + [f"shop/new_{story}.py"])


def body(found: list[list[str]], reached: asyncio.Event | None = None) -> Body:
    """A story that scans its project and comes to its end, or to a crash behind the scan."""

    async def story(step: Step, payload: dict[str, Any]) -> StoryOutcome:
        async def scan(_step_id: str) -> list[str]:
            assert payload["files"] == files(0), "what it begins with comes back too"
            return files(int(payload["story"]))

        found.append(await step.step("scan", scan, list[str]))
        if reached is not None:
            reached.set()
            await asyncio.sleep(60)
        return done(story=payload["story"])

    return story


async def run(folder: Path, story: Body, stories: Sequence[int], reached: asyncio.Event | None = None) -> None:
    async def use(engine: Any) -> None:
        for number in stories:
            payload = {"sprint": "SP-001", "story": str(number), "files": files(0)}
            task = asyncio.create_task(engine.run_story(f"SP-001/{number}", payload))
            await (task if reached is None else asyncio.wait_for(reached.wait(), 20))
            task.cancel()

    await House(folder, Counting()).live(story, use)


async def query(folder: Path, text: str, **values: object) -> Any:
    """The first value of a query on the engine's tables."""
    return await asyncio.to_thread(_query, folder, text, values)


def _query(folder: Path, text: str, values: dict[str, object]) -> Any:
    database = EngineDatabase(address(folder, "engine"))
    prefix = "" if database.engine.dialect.name == "sqlite" else "dbos."
    try:
        with database.engine.begin() as connection:
            told = connection.execute(
                sa.text(text.replace("<parts>", table_of(database.engine)).replace("<dbos>", prefix)), values
            )
            return told.scalar() if told.returns_rows else told.rowcount
    finally:
        database.close()


HELD = (
    "SELECT (SELECT sum(length(data)) FROM <parts>) + (SELECT sum(length(output)) FROM <dbos>operation_outputs)"
    " + (SELECT sum(length(inputs)) FROM <dbos>workflow_input)"
)


@pytest.mark.usefixtures("on_both")
async def test_a_story_more_holds_what_it_changes(tmp_path: Path) -> None:
    found: list[list[str]] = []
    await run(tmp_path, body(found), [0])
    first = await query(tmp_path, HELD)
    await run(tmp_path, body(found), range(1, STORIES))
    more = (await query(tmp_path, HELD) - first) / (STORIES - 1)
    assert found == [files(number) for number in range(STORIES)]
    assert more < len(json.dumps(files(0))) / 15
    await asyncio.to_thread(forget_workflows, address(tmp_path, "engine"), "SP-001")
    assert await query(tmp_path, "SELECT count(*) FROM <parts>") == 0


@pytest.mark.usefixtures("on_both")
async def test_after_a_crash_the_same_comes_back(tmp_path: Path) -> None:
    found: list[list[str]] = []
    reached = asyncio.Event()
    await run(tmp_path, body(found, reached), [7], reached)
    await run(tmp_path, body(found), [7])
    assert found == [files(7), files(7)]


@given(entries=st.lists(st.text(max_size=30), max_size=400), place=st.integers(0, 400), more=st.text(max_size=30))
def test_parts_are_the_text_and_an_entry_more_changes_few_of_them(entries: list[str], place: int, more: str) -> None:
    entries = [f"{number}-{entry}" for number, entry in enumerate(entries)]
    before = json.dumps(entries).encode()
    after = json.dumps([*entries[:place], more, *entries[place:]]).encode()
    assert b"".join(cut(before)) == before
    assert b"".join(cut(after)) == after
    assert len({*cut(after)} - {*cut(before)}) <= 4
