"""A folder as an analysis reads it: its files without what is ignored, and the text of one. Reads only."""

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pathspec import GitIgnoreSpec

from orchestrator.errors import ConfigError

MAX_FILES = 50_000
MAX_BYTES = 400_000
"""A longer file is not read at all."""
ALWAYS = (
    *(".git", ".hg", ".svn", ".orchestrator/", "node_modules/", "__pycache__/", ".venv/", "venv/", "site-packages/"),
    *(
        ".mypy_cache/",
        ".ruff_cache/",
        ".pytest_cache/",
        ".tox/",
        ".nox/",
        ".gradle/",
        ".idea/",
        ".vscode/",
        "*.egg-info/",
    ),
    *(".DS_Store", "Thumbs.db"),
)
"""Left out of any project, in the syntax of .gitignore; a project's own rules may take them in again."""
_IGNORE_FILE = ".gitignore"


class Seen(NamedTuple):
    """A file of the folder."""

    path: str
    """Relative, with `/`."""
    size: int


def list_files(folder: Path, ignore: Sequence[str] = ()) -> tuple[Seen, ...]:
    """Regular files below `folder` that no rule leaves out, sorted; at most MAX_FILES.

    Rules are those of ALWAYS, of every .gitignore on the way and of .git/info/exclude, and `ignore`, which counts most;
    no link is followed. Raises ConfigError when the folder cannot be read, or `ignore` holds what is no pattern.
    """
    try:
        own = GitIgnoreSpec.from_lines(ignore)
    except ValueError as error:
        raise ConfigError(f"configuration analysis.ignore: {error}") from error
    base = GitIgnoreSpec.from_lines([*ALWAYS, *_lines(folder / ".git" / "info" / "exclude")])
    found: list[Seen] = []
    try:
        os.scandir(folder).close()
    except OSError as error:
        raise ConfigError(f"{folder} cannot be read: {error.strerror}") from error
    for seen in _walk(folder, "", [("", base)], own):
        found.append(seen)
        if len(found) >= MAX_FILES:
            break
    return tuple(sorted(found))


def _walk(folder: Path, at: str, rules: list[tuple[str, GitIgnoreSpec]], own: GitIgnoreSpec) -> Iterator[Seen]:
    here = folder / at if at else folder
    lines = _lines(here / _IGNORE_FILE)
    if lines:
        rules = [*rules, (f"{at}/" if at else "", GitIgnoreSpec.from_lines(lines))]
    try:
        with os.scandir(here) as scanned:
            entries = sorted(scanned, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        path = f"{at}/{entry.name}" if at else entry.name
        if not path.isprintable():
            continue
        inner = entry.is_dir(follow_symlinks=False)
        if _ignored(f"{path}/" if inner else path, rules, own):
            continue
        if inner:
            yield from _walk(folder, path, rules, own)
        elif entry.is_file(follow_symlinks=False):
            yield Seen(path, entry.stat(follow_symlinks=False).st_size)


def _ignored(path: str, rules: Sequence[tuple[str, GitIgnoreSpec]], own: GitIgnoreSpec) -> bool:
    """The last rule that speaks of the path decides, as in git: deeper files go first, `own` before all."""
    said = own.check_file(path).include
    for prefix, spec in reversed(rules):
        if said is not None:
            break
        said = spec.check_file(path.removeprefix(prefix)).include
    return bool(said)


def _lines(path: Path) -> list[str]:
    """Patterns of an ignore file that can be read as such; a link to elsewhere is none."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return []
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    kept = []
    for line in lines:
        try:
            GitIgnoreSpec.from_lines([line])
            kept.append(line)
        except ValueError:  # git passes over what is no pattern, too
            continue
    return kept


def read_text(folder: Path, path: str) -> str | None:
    """The text of a regular file of at most MAX_BYTES; None for one that is no UTF-8 text, is longer, or is gone."""
    try:
        descriptor = os.open(folder / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            return None
        try:
            data = file.read(MAX_BYTES + 1)
        except OSError:
            return None
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
