"""Stories of one sprint that several daemons run."""

import asyncio
import signal
from pathlib import Path

import pytest

from tests.durability.driver import Aftermath
from tests.durability.machines import Machine
from tests.durability.team import STORIES, team
from tests.support import ALL_PASS


@pytest.mark.soak
def test_stories_of_one_sprint_run_on_several_daemons_within_the_limits_of_all(
    tmp_path: Path, postgres: str, undisturbed: Aftermath
) -> None:
    machines = [Machine(tmp_path, name, postgres) for name in ("first", "second")]
    processes = [machine.start() for machine in machines]
    first = machines[0]
    first.wait_for(lambda: bool(first.told("sprint_ended")), timeout=60)
    for machine, process in zip(machines, processes, strict=True):
        process.send_signal(signal.SIGTERM)
        assert machine.ended(process).code == 0
    # Replies lie where they were paid for.
    theirs = [{story for story in STORIES if machine.journalled(story)} for machine in machines]
    assert all(theirs)
    assert set.union(*theirs) == set(STORIES)
    assert set.intersection(*theirs) == set()
    asyncio.run(first.fetch())
    assert first.aftermath(0) == undisturbed


@pytest.mark.soak
def test_an_order_reaches_a_story_that_another_daemon_runs(tmp_path: Path, postgres: str) -> None:
    slow = team(latency_ms=900)
    machines = [Machine(tmp_path, name, postgres, script=slow, settings=(ALL_PASS,)) for name in ("first", "second")]
    processes = [machine.start() for machine in machines]
    first = machines[0]
    for machine, process in zip(machines, processes, strict=True):
        machine.ready(process)

    def there() -> str:
        runs = first.runs()
        return next((story for story in ("US-001", "US-002") if runs.get(story, runs.get("")) != runs.get("")), "")

    first.wait_for(lambda: bool(there()), timeout=60)
    story = there()
    first.wait_for(lambda: any(machine.journalled(story) for machine in machines))
    assert first.command("cancel", story).code == 0
    calls = [call for call in first.calls() if story in call]
    first.wait_for(lambda: bool(first.told("sprint_ended")), timeout=60)
    for machine, process in zip(machines, processes, strict=True):
        process.send_signal(signal.SIGTERM)
        assert machine.ended(process).code == 0
    ends = {event["story"]: event["data"]["status"] for event in first.log() if event["name"] == "story_finished"}
    assert ends == dict.fromkeys(STORIES, "done") | {story: "cancelled"}
    assert [call for call in first.calls() if story in call] == calls
    assert len(set(first.calls())) == len(first.calls())
    # Replies lie where they were paid for.
    theirs = [{story for story in STORIES if machine.journalled(story)} for machine in machines]
    assert all(theirs)
    assert set.intersection(*theirs) == set()
    assert first.runs() == {}
