"""Relocates a state folder that was moved.

Its records name repositories and backlogs by absolute paths, and mirrors, sidecars and last good backlogs are called
after those.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from orchestrator.core.errors import ConfigError
from orchestrator.files.safe_files import discard
from orchestrator.git.repository import holds_commit
from orchestrator.storage.locks import SprintLock
from orchestrator.storage.state_folder import Place, StateFolder

REBUILT = ("environments", "sprints/*/environments", "sprints/*/worktrees")
"""Folders that hold absolute paths of their own, in scripts and links, and are made again when a story resumes."""
Pairs = Sequence[tuple[Path, Path]]
"""Folders as (where it was, where it is)."""


async def follow_move(folder: StateFolder) -> str | None:
    """Relocates the state folder if it was moved. Returns what changed, for people; None if it is where it was.

    What lay in the folder moves with it. What lay in the folder around it moves if it is at the same place here: a
    repository only if it has the commit that its latest sprint began from. Other paths stay. After a kill, the next
    call completes it. Raises ConfigError if this is a copy of a folder that is still there, SprintLocked while a
    process works in it.
    """
    # With a database the folder is a cache, and paths are those of every machine.
    before = await asyncio.to_thread(_find_former_place, folder) if folder.shared is None else None
    if before is None:
        return None
    async with SprintLock(folder.daemon_lock, f"{folder.home} as its daemon"):
        # Nobody begins while we hold the daemon's lock: every command comes here first.
        locks = (sorted(folder.home.glob(f"{kind}/*/lock")) for kind in ("sprints", "analyses"))
        for lock in await asyncio.to_thread(lambda: [path for found in locks for path in found]):
            async with SprintLock(lock, f"{lock.parent.name}, and {folder.home} was moved"):
                pass
        moved = await _find_moved(folder, before)
        await asyncio.to_thread(_complete, folder, moved)
    around = (f"{new} in place of {old}" for old, new in moved.items() if not Path(new).is_relative_to(folder.home))
    return "; ".join((f"the state folder {folder.home} was moved here from {before.home}", *around))


def _find_former_place(folder: StateFolder) -> Place | None:
    before = folder.place()
    if before is None or Path(before.real) == folder.home.resolve():
        return None
    former = Path(before.real)
    try:
        there = former.is_dir()
        if there and former.samefile(folder.home):  # mounted at two places
            return None
    except OSError as error:
        told = f"whether {folder.home} was moved or copied from {former} cannot be seen"
        raise ConfigError(f"{told}: {error.strerror}") from error
    other = StateFolder(former).place() if there else None
    if other is not None and other.id == before.id:
        raise ConfigError(
            f"{folder.home} is a copy of {former}, which is still there: both would push to one repository. To go on "
            f"here alone, delete or rename {former} and what was copied with it; to begin with nothing here, delete "
            f"{folder.home}; to work in both, `orchestrator backup` there and `orchestrator restore --repo DIR` here"
        )
    return before


async def _find_moved(folder: StateFolder, before: Place) -> dict[str, str]:
    """Returns each recorded path that has another place now → that place."""
    home, real = folder.home, await asyncio.to_thread(folder.home.resolve)
    inside = ((Path(before.home), home), (Path(before.real), real))
    around = tuple((was.parent, now.parent) for was, now in inside)
    records, analyses = await asyncio.to_thread(folder.records), await asyncio.to_thread(folder.analyses)
    # The latest sprint's base: an older one may have been rewritten since.
    bases = {analysis.repo: "" for analysis in analyses}
    bases |= {record.repo: record.base for record in records if record.base or record.repo not in bases}
    moved = await asyncio.to_thread(_find_moved_inside, folder, inside)
    repos: dict[str, str] = {}
    for repo, base in bases.items():
        here = rebase(repo, around) if repo not in moved else None
        if here is not None and await holds_commit(here, base):
            repos[repo] = str(here)
    # A backlog whose repository moved is meant here, even if another file has taken its former place.
    backlogs = [(one.backlog, one.repo in repos) for one in records]
    backlogs += [(name, one.repo in repos) for one in analyses for name in one.wrote]
    for backlog, follows in backlogs:
        here = rebase(backlog, around) if backlog not in moved else None
        if here is not None and await asyncio.to_thread(_is_moved, Path(backlog), here, follows):
            moved[backlog] = str(here)
    return moved | repos


def _find_moved_inside(folder: StateFolder, inside: Pairs) -> dict[str, str]:
    named = find_moved_inside(folder, inside)
    # After a kill some paths are relocated already, which matters where the folder was moved below its former place.
    return {old: new for old, new in named.items() if Path(new).exists() or not Path(old).exists()}


def find_moved_inside(folder: StateFolder, inside: Pairs) -> dict[str, str]:
    """Returns each path that lay in the state folder itself and is named by a record or a file → the new path. Blocks.

    The content lies in `folder`, wherever the paths are.
    """
    paths = {str(was / "backlogs" / path.name) for was, _ in inside for path in folder.submitted.glob("*")}
    paths |= {path for one in folder.records() for path in (one.repo, one.backlog)}
    paths |= {path for one in folder.analyses() for path in (one.repo, *one.wrote)}
    return {path: str(here) for path in sorted(paths) if (here := rebase(path, inside)) is not None}


def rebase(path: str, pairs: Pairs) -> Path | None:
    """Returns the path at the new place of the first folder that it is in; None for one that stays as it is."""
    found = (now / Path(path).relative_to(was) for was, now in pairs if Path(path).is_relative_to(was))
    return next((here for here in found if str(here) != path), None)


def _is_moved(backlog: Path, here: Path, follows: bool) -> bool:
    return here.exists() and (follows or not backlog.exists())


def _complete(folder: StateFolder, moved: Mapping[str, str]) -> None:
    relocate(folder, moved)
    trash = folder.home / ".trash"
    # In the trash is what a kill left there.
    for path in [path for pattern in (*REBUILT, ".trash/*") for path in folder.home.glob(pattern)]:
        discard(path, trash)
    if trash.is_dir():
        trash.rmdir()
    # The last step: until it is done, the next command begins again.
    folder.save_place()


def relocate(folder: StateFolder, moved: Mapping[str, str]) -> None:
    """Writes each new path in place of the old one, in records and in the names of files. Blocks.

    Raises ConfigError, before anything is changed, where something is called after the new path already.
    """
    kinds = (folder.mirror, folder.sidecar, folder.last_good)
    moved = {old: new for old, new in moved.items() if old != new}
    names = [(kind(Path(old)), kind(Path(new))) for old, new in moved.items() for kind in kinds]
    names = [(source, target) for source, target in names if source.exists()]
    _expect_free(target for _, target in names)
    for source, target in names:
        source.rename(target)
    for record in folder.records():
        paths = {"repo": moved.get(record.repo, record.repo), "backlog": moved.get(record.backlog, record.backlog)}
        if paths != {"repo": record.repo, "backlog": record.backlog}:
            folder.save(record.model_copy(update=paths))
    for analysis in folder.analyses():
        wrote = {moved.get(name, name): text for name, text in analysis.wrote.items()}
        paths = {"repo": moved.get(analysis.repo, analysis.repo), "asked_in": analysis.asked_in or analysis.repo}
        if paths["repo"] != analysis.repo or wrote != analysis.wrote:
            folder.save_analysis(analysis.model_copy(update={**paths, "wrote": wrote}))


def _expect_free(targets: Iterable[Path]) -> None:
    seen: set[Path] = set()
    for target in targets:
        if target in seen or target.exists():
            raise ConfigError(f"two paths of the records would become one: {target} is there already")
        seen.add(target)
