"""What a sprint records: the architecture and tech stack, which later stories read, and the versions of its prompts."""

import asyncio
from pathlib import Path

import pytest

from orchestrator.app.commands import SprintCommands
from orchestrator.core.command import OrderBody, Verb
from orchestrator.settings import Settings, load
from orchestrator.settings.load import Environment
from tests.prompts.packaged import packaged_files
from tests.support import ALL_PASS, PLAIN_TESTS, Played, Team, plain_environment, play, suite_text, write_backlog

ROUTES = 'app = Flask(__name__)\n\n\n@app.route("/books")\ndef books():\n    return []\n'


def team() -> Team:
    made = Team()
    first = {"conventions": ["snake_case names"], "todos": {"add": ["paging"], "remove": []}}
    stack = {"language": "Python", "tests": "pytest"}
    made.plan("NFR-001", ["routes.py", "schema.sql", "nfr_001.py"], tech_stack=stack, **first)
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("record")


@pytest.fixture(scope="module")
def played(folder: Path) -> Played:
    """NFR-001 is merged, RED is not, LAST comes after both; the tester's prompt is replaced."""
    mine = folder / "prompts" / "tester"
    mine.mkdir(parents=True)
    (mine / "suite_plan.md").write_text(packaged_files()["tester/suite_plan"] + "\nBe kind.\n")
    backlog = write_backlog(folder / "b.csv", "NFR-001", "RED", "LAST")
    prompts = f"prompts.dir={folder / 'prompts'}"
    return play(folder / "run", team(), backlog, "concurrency.stories=1", "test.max_attempts=1", PLAIN_TESTS, prompts)


def loaded(folder: Path) -> tuple[Settings, Environment]:
    return load(None, (), plain_environment(ORCHESTRATOR_HOME=str(folder / "run" / "state")), folder)


def test_the_record_grows_with_merged_stories_and_shrinks_with_a_reset(played: Played, folder: Path) -> None:
    assert [played.status(story) for story in ("NFR-001", "RED", "LAST")] == ["done", "needs_attention", "done"]
    assert [len(played.told_of(story, "record_updated")) for story in ("NFR-001", "RED", "LAST")] == [1, 0, 1]
    (event,) = played.told_of("NFR-001", "record_updated")
    assert event.message == ("architecture record: NFR-001 adds 3 locked conventions, 1 open TODO")
    assert event.data["commit"] == played.story("NFR-001").commit
    told = first_prompt(folder / "run", "LAST")
    for line in (
        "- snake_case names (NFR-001)",
        "- TODO-NFR-001-01: paging",
    ):
        assert line in told
    assert "never seen" not in told

    settings, environment = loaded(folder)
    for story in ("NFR-001", "LAST"):
        given = OrderBody(verb=Verb.RESET, by="ann")
        assert asyncio.run(SprintCommands(environment, settings).order(None, story, given)).done
    again = Team()
    # What was merged stays in the result; a story that is made again is built beside it.
    again.plan("NFR-001", ["again.py"])
    again.deliver("NFR-001", 1, {"again.py": "def value():\n    return 1\n"})
    again.suite("NFR-001", suite_text("AGAIN"), "tests/test_again.py")
    again.plan("LAST", ["end.py"])  # its first prompt is what counts
    anew = play(folder / "run", again, folder / "b.csv", "concurrency.stories=1", ALL_PASS)
    assert anew.status("NFR-001") == "done"
    told = first_prompt(folder / "run", "LAST@2")
    assert "snake_case names" not in told
    assert "TODO-NFR-001-01" not in told
