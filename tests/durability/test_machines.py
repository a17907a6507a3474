"""Several daemons on one Postgres, each with its own state folder: what one that has gone held is done by another."""

import asyncio
import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.durability.driver import Aftermath
from tests.durability.faults import Clock, small_disk
from tests.durability.machines import Machine
from tests.forwarder import Forwarder
from tests.postgres import FAST, IMMEDIATE, PostgresServer

pytestmark = pytest.mark.timeout(300)
ONE_STORY = {"NFR-001": "None"}
DISK_MB = 64
ROUNDS = int(os.environ.get("FAULT_ROUNDS", "5"))
SEED = int(os.environ.get("KILL_SEED", "0")) or time.time_ns() % 1_000_000


def test_what_a_lost_machine_held_is_done_by_another_one(tmp_path: Path, postgres: str, undisturbed: Aftermath) -> None:
    first, second = Machine(tmp_path, "first", postgres), Machine(tmp_path, "second", postgres)
    lost = first.start()
    first.wait_for(lambda: len(first.told("task_finished")) >= 2, lost)
    other = second.start()
    second.ready(other)
    first.vanish(lost)
    gone = time.monotonic()
    second.wait_for(lambda: (second.state / "sprints" / "S1" / "worktrees").exists(), other, timeout=60)
    assert time.monotonic() - gone < 30
    assert second.until_done(other).code == 0
    assert second.aftermath(0) == undisturbed


@pytest.mark.soak
def test_one_that_stood_still_learns_that_its_sprint_is_no_longer_its_own(
    tmp_path: Path, postgres: str, undisturbed: Aftermath
) -> None:
    first, second = Machine(tmp_path, "first", postgres), Machine(tmp_path, "second", postgres)
    slept = first.start()
    first.wait_for(lambda: first.journalled("NFR-001") >= 1, slept)
    first._hold_between_calls(slept)
    other = second.start()
    second.ready(other)
    second.wait_for(lambda: second.journalled("US-001") >= 1, other, timeout=60)
    slept.send_signal(signal.SIGCONT)
    ended = first.ended(slept)
    assert (ended.code, "taken over" in ended.stdout) == (70, True)
    assert second.until_done(other).code == 0
    assert second.aftermath(0) == undisturbed


@pytest.mark.soak
def test_one_that_was_cut_off_from_the_database_changes_nothing_when_it_comes_back(
    tmp_path: Path, postgres: str, undisturbed: Aftermath
) -> None:
    with Forwarder(postgres) as network:
        first = Machine(tmp_path, "first", postgres, network, ONE_STORY)
        second = Machine(tmp_path, "second", postgres, stories=ONE_STORY)
        lost = first.start()
        first.wait_for(lambda: first.journalled("NFR-001") >= 1, lost)
        first._hold_between_calls(lost)
        network.cut()
        lost.send_signal(signal.SIGCONT)
        other = second.start()
        second.ready(other)
        second.wait_for(lambda: second.journalled("NFR-001") >= 2, other, timeout=60)
        assert lost.poll() is None
        network.mend(resets=False)  # what it has sent meanwhile arrives now
        ended = first.ended(lost)
    assert (ended.code, "taken over" in ended.stdout) == (70, True)
    assert second.until_done(other).code == 0
    left = second.aftermath(0)
    assert left.calls == {call for call in undisturbed.calls if " NFR-001 " in call}
    assert left.events == {"NFR-001": undisturbed.events["NFR-001"]}


class FailingMachine:
    """A machine whose network, disk and clock fail, and its daemon, which is started whenever it has ended."""

    def __init__(self, stack: ExitStack, folder: Path, name: str, database: str) -> None:
        self.name = name
        self.network = stack.enter_context(Forwarder(database))
        self.disk = stack.enter_context(small_disk(folder / f"{name}-disk", DISK_MB))
        self.clock = Clock(folder / f"{name}-clock")
        self.machine = Machine(folder, f"{name}-disk/state", database, self.network)
        self.machine.loader = self.clock.loader
        self.machine.variables |= self.clock.variables
        self.machine.is_one_clock = False
        self.mend: Callable[[], None] | None = None
        """Ends the fault that it has."""
        self.mended_at = 0.0
        self.partitions = 0
        self.process = self.machine.start()
        stack.callback(lambda: self.process.kill())

    def fail(self, fault: str, chance: random.Random) -> None:
        """Have a fault, most of them until `mended_at`."""
        machine, process = self.machine, self.process
        length = chance.uniform(1, 50)
        print(f"{time.monotonic():.1f} {self.name} {fault} {length:.1f}", flush=True)
        # A call that is in flight would be paid twice.
        if fault not in {"clock", "disk"} and not machine._hold_between_calls(process):
            return
        match fault:
            case "kill":
                process.kill()
                process.communicate(timeout=30)
            case "vanish":
                machine.vanish(process)
            case "clock":
                self.clock.jump(chance.randint(-100_000, 100_000))
            case "sleep":
                self.mend = partial(process.send_signal, signal.SIGCONT)
            case "partition":
                self.network.cut()
                self.partitions += 1
                process.send_signal(signal.SIGCONT)
                self.mend = partial(self.network.mend, resets=chance.random() < 0.5)
            case "disk" if self.disk is not None:
                self.disk.fill()
                self.mend = self.disk.empty
        self.mended_at = time.monotonic() + length

    def go_on(self, *, now: bool = False) -> None:
        """End a fault whose time has come, and start a daemon that ended."""
        if self.mend is not None and (now or time.monotonic() >= self.mended_at):
            print(f"{time.monotonic():.1f} {self.name} is mended", flush=True)
            self.mend()
            self.mend = None
        if self.process.poll() is not None:
            if self.process.returncode != -signal.SIGKILL:
                print(f"{time.monotonic():.1f} {self.name} ended", self.machine.ended(self.process), flush=True)
            self.process = self.machine.start()


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_machines_and_the_database_come_and_go_at_random(
    tmp_path: Path, postgres_server: PostgresServer, undisturbed: Aftermath
) -> None:
    chance = random.Random(SEED)
    print(f"KILL_SEED={SEED}")
    faults = ("kill", "vanish", "sleep", "partition", "partition", "disk", "clock")
    for number in range(ROUNDS):
        print(f"round {number}", flush=True)
        folder, database = tmp_path / str(number), postgres_server.fresh()
        with ExitStack() as stack:
            places = [FailingMachine(stack, folder, name, database) for name in ("first", "second")]
            some = places[0].machine
            for _ in range(40):
                time.sleep(chance.uniform(0.2, 4))
                if some.told("sprint_ended"):
                    break
                if chance.random() < 0.25:
                    print(f"{time.monotonic():.1f} database", flush=True)
                    postgres_server.stop(chance.choice((FAST, IMMEDIATE)))
                    time.sleep(chance.choice((0.0, 0.3, 3.0)))
                    postgres_server.start()
                else:
                    place = chance.choice(places)
                    if place.mend is None:
                        place.fail(chance.choice(faults), chance)
                for place in places:
                    place.go_on()
            for _ in range(240):
                for place in places:
                    place.go_on(now=True)
                if some.told("sprint_ended"):
                    break
                time.sleep(1)
            else:
                for place in places:
                    place.process.send_signal(signal.SIGTERM)
                    print(place.name, place.machine.ended(place.process), some.runs())
                raise AssertionError("the sprint does not end")
            for place in places:
                place.go_on()
                place.machine.ready(place.process)
                place.process.send_signal(signal.SIGTERM)
                place.machine.ended(place.process)
            asyncio.run(some.fetch())
            # What was in flight when a network was cut is answered where nobody learns of it: a call for each story.
            repeated = len(some.calls()) - len(set(some.calls()))
            assert repeated <= 2 * sum(place.partitions for place in places)
            print(*(event for event in some.log() if event["level"] in {"warn", "error"}), sep="\n", flush=True)
            some.forget_repeated()
            assert some.aftermath(0) == undisturbed
