"""Shared by the tests of the git side: the user's repositories, and short ways to say things."""

import atexit
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from orchestrator.core.delivery import CommitNote, FileChange
from orchestrator.git.workspace import GitWorkspace

ENV = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "User",
    "GIT_AUTHOR_EMAIL": "user@localhost",
    "GIT_COMMITTER_NAME": "User",
    "GIT_COMMITTER_EMAIL": "user@localhost",
}


def git(where: Path, *args: str) -> str:
    """Plain git, as the user would run it."""
    done = subprocess.run(["git", *args], cwd=where, env=ENV, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def fill(folder: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def save(repo: Path, message: str) -> str:
    """Commit everything byte for byte, whatever a `.gitattributes` among it says; returns the commit."""
    exact = repo / ".git/info/attributes"
    fill(repo, {".git/info/attributes": "* !text !eol !ident !filter !working-tree-encoding\n"})
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "--allow-empty", "-m", message)
    exact.unlink()
    return git(repo, "rev-parse", "HEAD")


def user_repo(folder: Path, files: dict[str, str], *options: str) -> Path:
    """A repository with one commit; one with the same files is made once."""
    shutil.copytree(_template(tuple(files.items()), options), folder, symlinks=True)
    return folder


@cache
def _template(files: tuple[tuple[str, str], ...], options: Sequence[str]) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="user-repo-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    git(folder, "init", "-q", "-b", "main", *options)
    fill(folder, dict(files))
    save(folder, "First")
    return folder


async def open_workspace(place: Path, files: dict[str, str]) -> GitWorkspace:
    """The workspace of sprint s1 in `place`, begun from a repository with one commit."""
    repo = user_repo(place / "user", files)
    base = git(repo, "rev-parse", "HEAD")
    made = GitWorkspace(mirror=place / "mirror.git", folder=place / "trees", sprint="s1", base=base)
    await made.prepare(repo)
    return made


def change(path: str, content: str) -> FileChange:
    return FileChange(path=path, content=content)


def note(step: str, story: str = "US-1", subject: str = "Work") -> CommitNote:
    return CommitNote(subject=subject, sprint="s1", story=story, step=step)


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file below a folder except `.git`, links as their targets."""
    found = {}
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        for name in names:
            path = Path(where, name)
            key = str(path.relative_to(folder))
            if key != ".git":
                found[key] = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
    return found
