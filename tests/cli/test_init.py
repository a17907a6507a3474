"""`init` in folders as people have them: none, an empty one, repositories of different kinds."""

import json
from itertools import takewhile
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from orchestrator.backlogs.files import read_backlog
from orchestrator.cli.common import find_own_command
from orchestrator.cli.main import app
from orchestrator.core.errors import BacklogError
from orchestrator.files.process import SystemClock
from orchestrator.providers.routing import open_providers
from orchestrator.settings import load
from orchestrator.settings.options import RunOptions
from tests.support import make_repo

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


def init(*args: str, **variables: str) -> Result:
    none = {"ANTHROPIC_API_KEY": None, "OPENAI_API_KEY": None}
    return CliRunner().invoke(app, ["init", *args], env={**none, **variables})


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


def test_a_repository_gets_a_backlog_without_rows_and_nothing_that_is_found_there_is_set(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", PYTHON)
    said = init(str(repo), "--json")
    assert said.exit_code == 0, said.output
    assert json.loads(said.stdout)["written"] == [str(repo / "config.yaml"), str(repo / "backlog.csv")]
    settings, environment = load(repo / "config.yaml", (), {}, repo)
    assert settings == load(None, (), {}, tmp_path)[0]
    with pytest.raises(BacklogError, match="write one row per story"):
        read_backlog(repo / "backlog.csv", settings, environment)


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
