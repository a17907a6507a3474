"""One sprint that was really run, for every test of these files."""

import json
from pathlib import Path

import pytest

from tests.server.stand import Stand
from tests.support import ALL_PASS, Played, Team, breakdown, copy_state, play, suite_text, write_backlog


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """US-1 is done after a healed answer, US-2 failed for want of a script, US-3 is blocked by it."""
    folder = tmp_path_factory.mktemp("served")
    team = Team()
    team.say("mike", "US-1", "breakdown", f"{json.dumps(breakdown('US-1', ['us_1.py']))[:-1]},}}")
    team.deliver("US-1", 1, {"us_1.py": "def value():\n    return 1\n"})
    team.suite("US-1", suite_text("US-1"))
    backlog = write_backlog(folder / "backlog.csv", "US-1", "US-2", "US-3 < US-2")
    return play(folder, team, backlog, ALL_PASS, sprint="S1")


@pytest.fixture
def home(played: Played, tmp_path: Path) -> Path:
    """A state folder of one's own with that sprint."""
    return copy_state(played.mirror.parent.parent, tmp_path / "state")


@pytest.fixture
def stand(home: Path) -> Stand:
    """Over that folder, on loopback."""
    return Stand(home)


@pytest.fixture
def guarded(home: Path) -> Stand:
    """The same on every address."""
    return Stand(home, PORT="0")
