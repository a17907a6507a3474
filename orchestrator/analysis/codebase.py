"""A folder as an analysis reads it: its files without what is ignored, and the text of one. Reads only."""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from pathspec import GitIgnoreSpec

from orchestrator.core.errors import ConfigError

MAX_FILES = 50_000
MAX_DEPTH = 60
"""Folders within folders."""
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


class _Rules(NamedTuple):
    """One ignore file: its patterns, and how a path below the folder reads from where the file stands."""

    strip: str
    add: str
    spec: GitIgnoreSpec

    def say(self, path: str) -> bool | None:
        """Whether it leaves `path` out; None when it does not speak of it."""
        return self.spec.check_file(self.add + path.removeprefix(self.strip)).include


def list_files(folder: Path, ignore: Sequence[str] = ()) -> tuple[Seen, ...]:
    """Regular files below `folder` that no rule leaves out, sorted; at most MAX_FILES.

    Rules are those of ALWAYS, of .git/info/exclude, of every .gitignore from the repository's top down, and `ignore`,
    which counts most; no link is followed. Raises ConfigError when the folder cannot be read, or `ignore` holds what is
    no pattern.
    """
    try:
        own = GitIgnoreSpec.from_lines(ignore)
    except ValueError as error:
        raise ConfigError(f"configuration analysis.ignore: {error}") from error
    try:
        os.scandir(folder).close()
    except OSError as error:
        raise ConfigError(f"{folder} cannot be read: {error.strerror}") from error
    rules = [_Rules("", "", GitIgnoreSpec.from_lines(ALWAYS)), *_from_above(folder.resolve())]
    return tuple(sorted(islice(_walk(folder, "", rules, _Rules("", "", own)), MAX_FILES)))


def _from_above(folder: Path) -> Iterator[_Rules]:
    """Rules that the repository around the folder has for it, from its top down."""
    top = next((place for place in (folder, *folder.parents) if (place / ".git").exists()), None)
    if top is None:
        return
    way = folder.relative_to(top).parts
    below = "/".join((*way, ""))
    yield _Rules("", below, GitIgnoreSpec.from_lines(_lines(top / ".git" / "info" / "exclude")))
    for depth in range(len(way)):
        lines = _lines(top.joinpath(*way[:depth]) / _IGNORE_FILE)
        yield _Rules("", "/".join((*way[depth:], "")), GitIgnoreSpec.from_lines(lines))


def _walk(folder: Path, at: str, rules: list[_Rules], own: _Rules) -> Iterator[Seen]:
    here = folder / at if at else folder
    lines = _lines(here / _IGNORE_FILE)
    if lines:
        rules = [*rules, _Rules(f"{at}/" if at else "", "", GitIgnoreSpec.from_lines(lines))]
    try:
        with os.scandir(here) as scanned:
            entries = sorted(scanned, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        path = f"{at}/{entry.name}" if at else entry.name
        inner = entry.is_dir(follow_symlinks=False)
        if not path.isprintable() or _ignored(f"{path}/" if inner else path, rules, own):
            continue
        if inner and path.count("/") < MAX_DEPTH:
            yield from _walk(folder, path, rules, own)
        elif entry.is_file(follow_symlinks=False):
            with suppress(OSError):  # it is gone by now
                yield Seen(path, entry.stat(follow_symlinks=False).st_size)


def _ignored(path: str, rules: Sequence[_Rules], own: _Rules) -> bool:
    """The last rule that speaks of the path decides, as in git: deeper files go first, `own` before all."""
    return bool(next((said for one in (own, *reversed(rules)) if (said := one.say(path)) is not None), False))


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
