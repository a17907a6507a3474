"""Determines whether a path came with a repository: git tracks it, something below it, or a link on the way to it."""

import asyncio
import os
from pathlib import Path

from orchestrator.core.errors import ConfigError, WorkspaceError
from orchestrator.git.command import run_git

_MOST_LINKS = 40
"""As many as Linux follows."""


async def find_tracking_repository(path: Path) -> Path | None:
    """Returns the top folder of a repository that tracks the path, a file below it, or a link on the way to it.

    None where no repository does, and where nothing is there. The commit that is checked out counts as well as the
    index, so that `git rm --cached` alone changes nothing. Raises ConfigError where git cannot say.
    """
    for place in await asyncio.to_thread(_places, path):
        for top in await asyncio.to_thread(_repositories, place):
            if await _is_tracked(top, place):
                return top
    return None


def _places(path: Path) -> list[Path]:
    """Returns each link on the way to the path, and the place that it leads to if something is there."""
    links: list[Path] = []
    done, parts = Path("/"), [*reversed(path.absolute().parts[1:])]
    while parts:
        part = parts.pop()
        here = done.parent if part == ".." else done / part
        if not here.is_symlink():
            done = here
            continue
        links.append(here)
        if len(links) > _MOST_LINKS:
            raise ConfigError(f"{path} is reached through a circle of links")
        target = here.readlink()
        done = Path("/") if target.is_absolute() else done
        parts += [part for part in reversed(target.parts) if part != "/"]
    return [*links, done] if done.exists() else links


def _repositories(place: Path) -> list[Path]:
    """Returns the folders around the place, or the place itself, that are checked out repositories."""
    return [
        folder
        for folder in (place, *place.parents)
        if (folder / ".git").is_file() or os.path.lexists(folder / ".git" / "HEAD")
    ]


async def _is_tracked(top: Path, place: Path) -> bool:
    """Returns whether the repository has the place, also in other case: on some machines that is the same file."""
    parts = place.relative_to(top).parts
    pattern = f":(icase,literal){'/'.join(parts) or '.'}"
    asked = ("--no-literal-pathspecs", "ls-files", "-z", "--cached")
    try:
        try:
            said = await run_git([*asked, "--with-tree=HEAD", "--", pattern], cwd=top, settings=_ANYBODYS)
        except WorkspaceError:  # there is no commit yet
            said = await run_git([*asked, "--", pattern], cwd=top, settings=_ANYBODYS)
    except WorkspaceError as error:
        raise ConfigError(f"whether the repository {top} brought {place} cannot be seen: {error.message}") from error
    names = {tuple(os.fsdecode(name).split("/")[: len(parts)]) for name in said.stdout.split(b"\0") if name}
    return await asyncio.to_thread(lambda: any(_is_same(top.joinpath(*name), place) for name in names))


_ANYBODYS = ("safe.directory=*",)
"""Another user may own the repository: to look at its index runs nothing of it."""


def _is_same(one: Path, other: Path) -> bool:
    return one == other or (one.exists() and other.exists() and one.samefile(other))
