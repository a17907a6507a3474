"""Which commit a program was made from."""

from pathlib import Path

import pytest

from orchestrator.files.source_commit import RECORD, UNKNOWN, read_commit
from tests.support import git, make_repo


def test_a_checkout_is_named_with_its_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = tmp_path / "repo"
    make_repo(repo, {"a.py": "A = 1\n"})
    commit = git(repo, "rev-parse", "HEAD").strip()[:12]
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other"))  # as in a hook of another repository
    assert read_commit(repo) == commit
    (repo / RECORD).write_text("of an earlier build")  # git is asked first
    (repo / "a.py").write_text("A = 2\n")
    assert read_commit(repo) == f"{commit} with local changes"


def test_an_unpacked_archive_is_named_by_its_record_and_by_no_repository_around_it(tmp_path: Path) -> None:
    make_repo(tmp_path / "repo", {"a.py": "A = 1\n"})
    archive = tmp_path / "repo/unpacked"
    archive.mkdir()
    assert read_commit(archive) == UNKNOWN
    (archive / RECORD).write_text("0123456789ab\n")
    assert read_commit(archive) == "0123456789ab"


def test_a_repository_without_a_commit_or_of_no_kind_is_unknown(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    assert read_commit(tmp_path) == UNKNOWN
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare/.git").write_text("nothing of git's")
    assert read_commit(tmp_path / "bare") == UNKNOWN
