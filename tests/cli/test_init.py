"""`init` in folders as people have them: none, an empty one, repositories of different kinds."""

import asyncio
import csv
import json
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from orchestrator.app.init import start as write_start
from orchestrator.backlogs.files import read_backlog
from orchestrator.cli.common import find_own_command
from orchestrator.cli.main import app
from orchestrator.core.finding import Severity
from orchestrator.files.process import SystemClock
from orchestrator.providers.routing import open_providers
from orchestrator.settings import load
from orchestrator.settings.options import RunOptions
from tests.support import PLAIN_TESTS, Team, make_repo, play

PYTHON = {
    "README.md": "# Shop\n",
    "docs/vision.md": "Sell books.\n",
    "docs/wireframes/wf-1.md": "[ Buy ]\n",
    "pyproject.toml": '[project]\nname = "book-shop"\nrequires-python = ">=3.11"\ndependencies = ["fastapi"]\n',
    "shop/__init__.py": "",
    "shop/api.py": 'from fastapi import FastAPI\n\napp = FastAPI()\n@app.get("/books")\ndef books(): ...\n',
    "schema.sql": "CREATE TABLE books (id INTEGER PRIMARY KEY, title TEXT NOT NULL);\n",
    "tests/test_api.py": "def test_it():\n    assert True\n",
    ".gitignore": "secret.txt\n",
}
NODE = {
    "Readme.md": "# Desk\n",
    "package.json": json.dumps(
        {
            "name": "desk",
            "scripts": {"test": "jest --ci"},
            "dependencies": {"express": "^4"},
            "engines": {"node": ">=20"},
        }
    ),
    "src/app.js": "const express = require('express');\nconst app = express();\napp.get('/desks', list);\n",
    "src/app.test.js": "test('x', () => {});\n",
}


def init(*args: str, **variables: str) -> Result:
    none = {"ANTHROPIC_API_KEY": None, "OPENAI_API_KEY": None}
    return CliRunner().invoke(app, ["init", *args], env={**none, **variables})


def proposal(folder: Path) -> dict[str, str]:
    """The one row proposed, after both files were read as a run reads them."""
    settings, environment = load(folder / "config.yaml", (), {}, folder)
    content = read_backlog(folder / "backlog.csv", settings, environment)
    assert [(story.id, story.foundation) for story in content.stories] == [("NFR-001", True)]
    assert len(content.stories[0].acceptance_criteria) == 2
    assert content.problems == ()
    with (folder / "backlog.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    return row


@pytest.mark.parametrize("there", [False, True])
def test_a_new_or_empty_folder_gets_the_example(tmp_path: Path, there: bool) -> None:
    folder = tmp_path / "deep" / "new"
    if there:
        folder.mkdir(parents=True)
    said = init(str(folder))
    assert said.exit_code == 0, said.output
    assert f"next: cd {folder} && {find_own_command()} run backlog.csv --dry-run" in said.stdout
    assert sorted(path.name for path in folder.iterdir()) == ["backlog.csv", "config.yaml", "team.jsonl"]
    settings, environment = load(folder / "config.yaml", (), {}, folder)
    changed = load(None, ("provider.script=team.jsonl",), {}, tmp_path)[0]
    assert settings == changed, "the example changes no other default"
    content = read_backlog(folder / "backlog.csv", settings, environment)
    assert content.problems == ()
    assert [story.dependencies for story in content.stories][1:] == [("NFR-001",), ("US-001",), ("US-001", "US-002")]
    assert all(story.acceptance_criteria for story in content.stories)
    planned = CliRunner().invoke(
        app, ["run", str(folder / "backlog.csv"), "--dry-run", "--json", "--config", str(folder / "config.yaml")]
    )
    assert planned.exit_code == 0
    assert json.loads(planned.stdout)["problems"] == []


def blocks(text: str, name: str) -> list[str]:
    """The commented blocks of a configuration that begin with `name:`, as they read without their comment signs."""
    lines = text.splitlines()
    found = []
    for start, line in enumerate(lines):
        if line == f"# {name}:":
            inside = takewhile(lambda line: line.startswith("#   "), lines[start + 1 :])
            found.append("\n".join(line.removeprefix("# ") for line in (lines[start], *inside)) + "\n")
    return found


@pytest.mark.parametrize("files", [{}, PYTHON])
def test_the_configuration_shows_real_providers_that_work_as_they_stand_there(
    tmp_path: Path, files: dict[str, str]
) -> None:
    folder = make_repo(tmp_path / "repo", files) if files else tmp_path / "new"
    assert init(str(folder)).exit_code == 0
    text = (folder / "config.yaml").read_text()
    named = []
    for provider in blocks(text, "provider"):
        (tmp_path / "mine.yaml").write_text(provider + "".join(blocks(text, "personas") + blocks(text, "prices")))
        settings, environment = load(tmp_path / "mine.yaml", (), {"ANTHROPIC_API_KEY": "x"}, tmp_path)
        named.append(str(open_providers(RunOptions(backlog=folder / "b.csv"), settings, environment, SystemClock())))
    assert named == ["anthropic MODEL-ID, alex: anthropic OTHER-ID", "openai MODEL-ID, alex: openai OTHER-ID"]


def test_a_python_repository_is_read(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", PYTHON)
    (repo / "secret.txt").write_text("no")
    said = init(str(repo), "--json")
    assert said.exit_code == 0, said.output
    told = json.loads(said.stdout)
    assert told["files"] == len(PYTHON)
    assert told["written"] == [str(repo / "config.yaml"), str(repo / "backlog.csv")]
    row = proposal(repo)
    assert row["Title"] == "What book-shop stands on"
    assert "2 files in shop/" in row["Functional_Requirements"]
    assert (row["Integrations"], "requires-python >=3.11" in row["Constraints"]) == ("fastapi", True)
    settings, _ = load(repo / "config.yaml", (), {}, repo)
    assert (settings.project.vision, settings.project.wireframes) == ("docs/vision.md", "docs/wireframes")
    assert settings.test.command == "pytest"


def test_a_node_repository_with_a_foreign_runner_names_it_and_sets_none(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", NODE)
    assert init(str(repo)).exit_code == 0
    row = proposal(repo)
    assert row["Title"] == "What desk stands on"
    assert row["Functional_Requirements"] == "2 files in src/; 2 files in the top folder"
    assert (row["Integrations"], "node >=20" in row["Constraints"]) == ("express", True)
    settings, _ = load(repo / "config.yaml", (), {}, repo)
    assert (settings.project.vision, settings.test.command) == ("Readme.md", None)
    assert "package.json says: jest --ci" in (repo / "config.yaml").read_text()


@pytest.mark.parametrize("name", ["config.yaml", "backlog.csv"])
def test_what_is_there_is_never_overwritten_and_nothing_half_done(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    said = init(str(tmp_path))
    assert said.exit_code == 2
    assert f"{tmp_path / name} is there already" in said.stderr
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {name: "mine"}
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to("nowhere")
    assert init(str(tmp_path)).exit_code == 2


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    said = init(str(tmp_path / "file"))
    assert said.exit_code == 2
    assert "cannot be used" in said.stderr


def test_what_is_proposed_runs_as_it_is(tmp_path: Path) -> None:
    repo = make_repo(
        tmp_path / "repo", {"README.md": "# Small\n", "tests/test_old.py": "def test_old():\n    assert 1\n"}
    )
    assert init(str(repo)).exit_code == 0
    team = Team()
    team.good("NFR-001")
    played = play(tmp_path, team, repo / "backlog.csv", PLAIN_TESTS, repo=repo)
    assert played.status("NFR-001") == "done"
    assert not [finding for finding in played.story("NFR-001").findings if finding.severity is not Severity.MINOR]


SETUPS = {
    "README.md": "# Tides\n",
    "tox.ini": "[testenv]\nextras = tests\nset_env =\n    TIDES_MODE = wide\n    py27: OLD = 1\n"
    "    WHERE = {toxinidir}\ncommands_pre =\n    python -m pip install -e .\n    python make_tables.py --all\n"
    "commands = pytest\n",
    "noxfile.py": "import nox\n\n@nox.session\ndef tests(session):\n    session.env['TIDES_MODE'] = 'other'\n"
    "    session.install('.')\n    session.run('make', 'assets')\n    session.run('pytest')\n    session.run('late')\n",
    "hatch.toml": "[envs.test.env-vars]\nTIDES_KIND = 'spring'\n",
    ".github/workflows/ci.yml": "on: push\nenv: {TIDES_MODE: ci, TOKEN: '${{ secrets.T }}', CI: 1}\njobs:\n  lint:\n"
    "    steps: [{run: make lint}]\n  test:\n    steps:\n    - run: sudo apt-get install -y libtide-dev\n"
    "    - run: |\n        pip install -e .\n        curl -fO https://tides.example/coasts.csv\n"
    "      working-directory: data\n    - run: pytest\n      env: {TIDES_DEBUG: true}\n    - run: make upload\n",
    ".devcontainer/devcontainer.json": '{"image": "x/python:1-3.99", // old\n'
    ' "postCreateCommand": "make assets && ./more",}\n',
}
PROPOSED = """
# How the repository's files set the project up. What they install for tests is taken anyway.
# Look at the commands before you take out their marks: they run once on the base commit, confined.
environment:
  env:
    TIDES_KIND: "spring"  # hatch.toml:2
    TIDES_MODE: "other"  # noxfile.py:5
    TIDES_DEBUG: "true"  # .github/workflows/ci.yml:14
#  python: "3.99"  # .devcontainer/devcontainer.json:1; not installed here
#  setup:
#    - "make assets && ./more"  # .devcontainer/devcontainer.json:2
#    - "make assets"  # noxfile.py:7
#    - "python make_tables.py --all"  # tox.ini:9
#    - "cd data && curl -fO https://tides.example/coasts.csv"  # .github/workflows/ci.yml:11
# This machine must have: libtide-dev  # .github/workflows/ci.yml:8
"""


def test_the_environment_is_proposed_with_each_lines_source_and_commands_only_as_comments(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "tides", SETUPS)
    assert init(str(repo)).exit_code == 0
    text = (repo / "config.yaml").read_text()
    assert text.endswith(PROPOSED), text[text.index("# How the") :]
    found = load(repo / "config.yaml", (), {}, repo)[0].environment
    assert found.env == {"TIDES_KIND": "spring", "TIDES_MODE": "other", "TIDES_DEBUG": "true"}
    assert (found.setup, found.python) == ((), "")
    plain = make_repo(tmp_path / "plain", {"README.md": "# Tides\n"})
    assert init(str(plain)).exit_code == 0
    assert "environment:" not in (plain / "config.yaml").read_text()


@pytest.mark.parametrize("answer", [True, False])
def test_commands_are_taken_with_a_persons_word_alone(tmp_path: Path, answer: bool) -> None:
    repo, asked = make_repo(tmp_path / "tides", SETUPS), list[str]()

    def take(commands: Sequence[str]) -> bool:
        asked.extend(commands)
        return answer

    asyncio.run(write_start(repo, {}, take))
    assert asked[1:3] == ["make assets  (noxfile.py:7)", "python make_tables.py --all  (tox.ini:9)"]
    found = load(repo / "config.yaml", (), {}, repo)[0].environment
    assert len(found.setup) == (4 if answer else 0)
    assert not answer or found.setup[3] == "cd data && curl -fO https://tides.example/coasts.csv"
