"""The architecture record in a real sprint: grows with merged stories only, reaches the architect, is reset."""

import asyncio
from pathlib import Path

from orchestrator.app.briefs import Briefs
from orchestrator.app.commands import SprintCommands
from orchestrator.app.sprints import Chosen
from orchestrator.backlogs.files import read_backlog
from orchestrator.core.command import OrderBody, Verb
from orchestrator.settings import Policies, load
from orchestrator.storage.state_folder import StateFolder
from tests.support import Team, plain_environment, play, suite_text, write_backlog

ROUTES = 'app = Flask(__name__)\n\n\n@app.route("/books")\ndef books():\n    return []\n'


def team() -> Team:
    made = Team()
    first = {"conventions": ["snake_case names"], "todos": {"add": ["paging"], "remove": []}}
    made.plan("NFR-001", ["routes.py", "schema.sql", "nfr_001.py"], **first)
    made.deliver(
        "NFR-001", 1,
        {"routes.py": ROUTES,
         "schema.sql": "CREATE TABLE books (id INTEGER PRIMARY KEY, title TEXT NOT NULL);\n",
         "nfr_001.py": "def value():\n    return 1\n"},
    )  # fmt: skip
    made.suite("NFR-001", "from nfr_001 import value\n\n\ndef test_value():\n    assert value() == 1\n")
    made.plan("RED", ["red.py"], todos={"add": ["never seen"], "remove": ["TODO-NFR-001-01"]})
    made.deliver("RED", 1, {"red.py": "def value():\n    return 2\n"})
    made.suite("RED", "from red import value\n\n\ndef test_red():\n    assert value() == 1\n")
    made.good("LAST")
    return made


def first_prompt(folder: Path, workflow: str) -> str:
    """What the architect was asked first."""
    prompts = (folder / "state" / "replies" / "SP-001" / workflow).glob("*.prompt.md")
    return min(prompts, key=lambda path: int(path.name.split(".")[0])).read_text()


def test_the_record_grows_with_merged_stories_and_shrinks_with_a_reset(tmp_path: Path) -> None:
    backlog = write_backlog(tmp_path / "b.csv", "NFR-001", "RED", "LAST")
    played = play(tmp_path / "run", team(), backlog, "concurrency.stories=1", "test.max_attempts=1")
    assert [played.status(story) for story in ("NFR-001", "RED", "LAST")] == ["done", "needs_attention", "done"]
    assert [len(played.told_of(story, "record_updated")) for story in ("NFR-001", "RED", "LAST")] == [1, 0, 1]
    (event,) = played.told_of("NFR-001", "record_updated")
    assert event.message == ("architecture record: NFR-001 adds 1 locked convention, 1 table, 1 endpoint, 1 open TODO")
    assert event.data["commit"] == played.story("NFR-001").commit
    told = first_prompt(tmp_path / "run", "LAST")
    for line in (
        "- snake_case names (NFR-001)",
        "- TODO-NFR-001-01: paging",
        "- books (id INTEGER PRIMARY KEY, title TEXT NOT NULL) in schema.sql (NFR-001)",
        "- GET /books → books in routes.py (NFR-001)",
    ):
        assert line in told
    assert "never seen" not in told

    settings, environment = load(
        None, (), plain_environment(ORCHESTRATOR_HOME=str(tmp_path / "run" / "state")), tmp_path
    )
    for story in ("NFR-001", "LAST"):
        given = OrderBody(verb=Verb.RESET, by="ann")
        assert asyncio.run(SprintCommands(environment, settings).order(None, story, given)).done
    again = Team()
    for story, name in (("NFR-001", "again"), ("LAST", "end")):
        # What was merged stays in the result; a story that is made again is built beside it.
        again.plan(story, [f"{name}.py"])
        again.deliver(story, 1, {f"{name}.py": "def value():\n    return 1\n"})
        again.suite(
            story,
            f"from {name} import value\n\n\ndef test_{name}():\n    assert value() == 1\n",
            f"tests/test_{name}.py",
        )
    again = play(tmp_path / "run", again, backlog, "concurrency.stories=1")
    assert again.status("LAST") == "done"
    told = first_prompt(tmp_path / "run", "LAST@2")
    assert "snake_case names" not in told
    assert "TODO-NFR-001-01" not in told


def test_the_foundations_tech_stack_is_told_to_the_stories_that_follow(tmp_path: Path) -> None:
    backlog = write_backlog(tmp_path / "b.csv", "NFR-001", "US-001")
    made = Team()
    made.plan("NFR-001", ["nfr_001.py"], tech_stack={"language": "Python", "tests": "pytest"})
    made.deliver("NFR-001", 1, {"nfr_001.py": "def value():\n    return 1\n"})
    made.suite("NFR-001", suite_text("NFR-001"))
    made.good("US-001")
    play(tmp_path / "run", made, backlog)
    settings, environment = load(
        None, (), plain_environment(ORCHESTRATOR_HOME=str(tmp_path / "run" / "state")), tmp_path
    )
    record = StateFolder(environment.home).record("SP-001")
    assert record is not None
    content = read_backlog(backlog, settings, environment)
    briefs = Briefs(Chosen(record=record, continued=True, content=content), settings, environment, Policies())
    assert briefs.of(content.stories[1]).tech_stack == ("language: Python", "tests: pytest")
