"""What the pages tell a reader to type works as it stands there; what cannot be run here is read by the product."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

from orchestrator.cli.main import app
from orchestrator.core.calls.exchange import ScriptEntry
from orchestrator.core.calls.wire import StageAnswer
from orchestrator.prompts.skills import read_skills
from orchestrator.settings import load
from tests.docs.blocks import ROOT, Block, all_blocks
from tests.support import git, make_repo, plain_environment

pytestmark = [pytest.mark.docs, pytest.mark.timeout(400)]

BLOCKS = all_blocks()
BIN = Path(sys.executable).parent
ENDLESS = """
less() { cat "$@"; }  # a screen at a time is for people
orchestrator() {  # what runs until Ctrl-C gets it
    case " $* " in
        *" board "* | *" -f "*) timeout --preserve-status -s INT 4 orchestrator "$@" || test $? = 130 ;;
        *) command orchestrator "$@" ;;
    esac
}
"""


class Row(NamedTuple):
    """A block that is run."""

    page: str
    begins: str
    place: str
    """Fixture that makes the folder in which it is given."""


RUN = [
    Row("README.md", "orchestrator init my-project", "fresh"),
    Row("README.md", "orchestrator board", "demo"),
    Row("docs/tutorial.md", ". .venv", "checkout"),
    Row("docs/tutorial.md", "orchestrator doctor", "application"),
    Row("docs/tutorial.md", "git clone demo-run", "checkout"),
    Row("docs/tutorial.md", "cat > story.yaml", "shelf"),
    Row("docs/outcomes.md", "orchestrator show", "demo"),
    Row("docs/check-answers.md", "orchestrator extract", "answers"),
    Row("docs/check-answers.md", "orchestrator check", "answers"),
    Row("docs/action-plans.md", "orchestrator check", "planned"),
    Row("docs/task-plans.md", "orchestrator check", "planned"),
    Row("docs/analyse.md", "orchestrator analyse", "application"),
    Row("docs/maintenance.md", "orchestrator prune", "demo"),
    Row("docs/recordings.md", "orchestrator replay", "recorded"),
]


def block(page: str, begins: str) -> Block:
    (found,) = (one for one in BLOCKS if one.page == page and one.text.startswith(begins) and not one.reason)
    return found


MAKE_DEMO = block("docs/tutorial.md", "make demo")


def give(text: str, folder: Path, home: Path) -> subprocess.CompletedProcess[str]:
    """Gives the lines of a block to a new shell, whose PATH has the package's commands and the system's."""
    path = f"{BIN}:/usr/local/bin:/usr/bin:/bin"
    environment = plain_environment(HOME=str(home), LOGNAME="reader") | {"PATH": path}
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", ENDLESS + text],
        cwd=folder, env=environment, input="y\ny\n", capture_output=True, text=True, timeout=390, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone in which `make demo` ran, as README and tutorial begin; its environment is this one."""
    folder = tmp_path_factory.mktemp("reader") / "checkout"
    git(ROOT, "clone", "--quiet", ".", str(folder))
    (folder / ".venv").mkdir()
    (folder / ".venv/bin").symlink_to(BIN)
    (folder / ".venv/.run").touch()
    done = give(MAKE_DEMO.text, folder, folder)
    assert (done.returncode, "8 done" in done.stdout) == (0, True), done.stdout + done.stderr
    return folder


@pytest.fixture
def demo(checkout: Path) -> Path:
    return checkout / "demo-run"


@pytest.fixture
def shelf(checkout: Path) -> Path:
    """The project that the block before has made."""
    return checkout / "shelf"


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def application(tmp_path: Path) -> Path:
    """A small project as ./app, and a text about it."""
    files = {
        "README.md": "# Shop\n",
        "src/shop.py": "def price(total):\n    return total\n",
        "shop/prices.py": "def price(total):\n    return total\n",
        "tests/test_shop.py": "def test_it():\n    assert 1 + 1 == 2\n",
    }
    make_repo(tmp_path / "app", files)
    (tmp_path / "PRD.md").write_text("A shop with prices.\n")
    (tmp_path / "config.yaml").write_text("provider: {name: scripted, script: team.jsonl}\n")
    (tmp_path / "team.jsonl").touch()
    return tmp_path


@pytest.fixture
def planned(application: Path, request: pytest.FixtureRequest) -> Path:
    """The same, with the plan that the page shows."""
    plan = next(
        one for one in BLOCKS if one.page == request.node.callspec.params["row"].page and one.language == "markdown"
    )
    (application / "plan.md").write_text(plan.text)
    return application


@pytest.fixture
def answers(application: Path) -> Path:
    """Answers of models beside the project."""
    task: dict[str, object] = {
        "task_id": "T-US-003-01",
        "title": "Prices",
        "description": "Round each price once, at the end of the sum.",
    }
    task |= {"files_to_create": ["shop/prices.py"], "acceptance_criteria": ["It is rounded."]}
    plan = json.dumps({"story_id": "US-003", "tasks": [task], "architectural_conflict": {"detected": False}})
    delivery = json.dumps(
        {"files": [{"path": "shop/prices.py", "content": "def price(total):\n    return round(total, 2)\n"}]}
    )
    (application / "answer.txt").write_text(f"Here is the plan:\n{plan[:-1]},}}")
    (application / "plan.json").write_text(plan)
    (application / "delivery.txt").write_text(delivery)
    (application / "tests").mkdir()
    suite = "from shop.prices import price\n\n\ndef test_price_is_rounded():\n    assert price(1.005) == 1.0\n"
    (application / "tests/test_prices.py").write_text(suite)
    lines = [
        {"id": "1", "kind": "breakdown", "text": plan, "story": "US-003"},
        {"id": "2", "kind": "delivery", "text": delivery},
    ]
    (application / "answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return application


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    (tmp_path / "recordings").mkdir()
    (tmp_path / "recordings/shelf").symlink_to(ROOT / "examples/recording")
    return tmp_path


def test_every_block_is_run_or_says_why_not() -> None:
    """Not the settings, which are loaded, and the examples of code, which tests/test_extending.py puts together."""
    run = {block(row.page, row.begins).commands for row in RUN} | {MAKE_DEMO.commands}
    left = [one for one in BLOCKS if one.commands not in run and one.language not in {"yaml", "python"}]
    assert [str(one) for one in left if not one.reason] == []


@pytest.mark.parametrize("row", RUN, ids=lambda row: f"{row.page}:{row.begins}")
def test_a_block_works_as_it_stands_there(row: Row, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    done = give(block(row.page, row.begins).text, request.getfixturevalue(row.place), tmp_path)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_what_the_readme_shows_is_what_the_demo_prints(demo: Path, tmp_path: Path) -> None:
    (shown,) = (one for one in BLOCKS if one.page == "README.md" and one.text.startswith("Path of US-005"))
    printed = give("orchestrator show US-005", demo, tmp_path).stdout

    def events(text: str) -> list[str]:
        """Without times and hashes, which each run has of its own."""
        lines = re.findall(r"^  [\d:]{8} (?:     \+\d+ . | {10})(.*)$", text, re.MULTILINE)
        return [re.sub(r"merged as \w+", "merged", line) for line in lines]

    pairs = list(zip(events(shown.text), events(printed), strict=True))
    assert len(pairs) > 10
    assert [(ours, whole) for ours, whole in pairs if not whole.startswith(ours.removesuffix("…"))] == []


def commands(text: str) -> Iterator[list[str]]:
    """Yields the words behind `orchestrator` of each such command."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        while "orchestrator" in words:
            words = words[words.index("orchestrator") + 1 :]
            end = next((number for number, word in enumerate(words) if word in {"&&", ";", "|"}), len(words))
            if words and not words[0].startswith("-") and words[0].isalpha():
                yield words[:end]


def test_every_command_and_option_of_the_pages_exists() -> None:
    """Values count as well: a setting's name, a choice."""
    top: Any = typer.main.get_command(app)
    seen = 0
    for one in (one for one in BLOCKS if one.language == "shell"):
        subprocess.run(["bash", "-n"], input=one.text.replace("<this repository>", "."), text=True, check=True)
        for words in commands(one.text):
            name, *rest = words
            command = top.get_command(None, name)
            assert command is not None, f"{one}: {name} is no command"
            if rest and rest[0] in getattr(command, "commands", {}):
                command, rest = command.commands[rest[0]], rest[1:]
            given, _, _ = command.make_parser(command.context_class(command)).parse_args(list(rest))
            load(None, given.get("overrides") or (), {})
            seen += 1
    assert seen > 60


def test_settings_of_the_pages_load(tmp_path: Path) -> None:
    shown = [one for one in BLOCKS if one.language == "yaml"]
    for one in shown:
        (tmp_path / "config.yaml").write_text(one.text)
        settings, _ = load(tmp_path / "config.yaml", (), {})
        assert settings != load(None, (), {})[0], one
    assert len(shown) > 5


def test_the_targets_of_make_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = {(str(one), name) for one in BLOCKS for name in re.findall(r"^make ([a-z-]+)", one.text, re.MULTILINE)}
    assert named
    assert {(where, name) for where, name in named if name not in targets} == set()


def test_what_a_mark_names_exists() -> None:
    named = {(str(one), name) for one in BLOCKS for name in re.findall(r"tests/[\w/.]*\w", one.reason)}
    assert named
    assert {(where, name) for where, name in named if not (ROOT / name).exists()} == set()


def test_answers_backlogs_and_prompts_of_the_pages_are_read(application: Path, tmp_path: Path) -> None:
    def text(page: str, begins: str) -> str:
        return next(one.text for one in BLOCKS if one.page == page and one.text.startswith(begins))

    StageAnswer.model_validate_json(text("docs/analyse.md", '{"summary"'))
    line, _, _ = text("docs/models.md", '{"persona"').partition("\n\n")
    ScriptEntry.model_validate_json(line)
    json.loads(text("docs/logs.md", "{").replace(", …", ""))
    (lua,) = read_skills({"lua.md": text("docs/reviews.md", "---") + "- Arrays begin at 1."})
    assert lua.name == "Lua"
    (application / "stories").mkdir()
    (application / "stories/US-002.md").write_text(text("docs/backlogs.md", "---"))
    (application / "stories/US-001.md").write_text("---\npriority: High\n---\n# Keep books\n")
    planned = give("orchestrator run stories --dry-run --json", application, tmp_path)
    assert json.loads(planned.stdout)["waves"] == [["US-001"], ["US-002"]]
    (application / "prompts").mkdir()
    prompt = text("docs/analyse.md", "---\nid: ")
    (application / "prompts/own.md").write_text(prompt)
    asked = give("orchestrator analyse ./app --prd PRD.md --prompts prompts --dry-run", application, tmp_path)
    assert f"1 stage: {prompt.split()[2]}\n" in asked.stdout, asked.stdout + asked.stderr
