"""Which files of a folder `check`, `apply` and `init` know."""

import asyncio
from pathlib import Path

import pytest

from orchestrator.app.plan_files import project_files
from tests.support import git, make_repo


def names(folder: Path) -> list[str]:
    return [*asyncio.run(project_files(folder))]


def write(folder: Path, *paths: str) -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("build/\n" if path.endswith(".gitignore") else "")


def test_what_git_has_counts_although_a_rule_leaves_it_out(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    before = names(repo)
    write(repo, ".gitignore", "build/kept.js", "build/made.js", "new.py", ".venv/x.py", "inner/a.py")
    git(repo, "add", "--force", "build/kept.js")
    git(repo / "inner", "init", "--quiet")
    assert names(repo) == sorted([*before, ".gitignore", "build/kept.js", "inner/a.py", "new.py"])


def test_a_folder_that_is_no_repository_has_all_but_what_is_always_left_out(tmp_path: Path) -> None:
    write(make_repo(tmp_path / "repo"), ".gitignore")
    folder = tmp_path / "repo" / "build" / "app"  # a rule of the repository around it leaves it out
    write(folder, ".github/ci.yml", ".gitignore", "a.py", "build/b.js", "node_modules/x.js")
    assert names(folder) == [".github/ci.yml", ".gitignore", "a.py", "build/b.js"]


def test_a_folder_may_be_named_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "app", "a.py")
    monkeypatch.chdir(tmp_path)
    assert names(Path("app")) == ["a.py"]
    assert asyncio.run(project_files(Path("app"), tracked=False)) == ("a.py",)
