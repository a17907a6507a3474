"""Relocates a state folder: its records name repositories and backlogs by absolute paths, which mirrors, sidecars and
last good backlogs are called after.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from orchestrator.core.errors import ConfigError
from orchestrator.storage.state_folder import StateFolder


def find_paths_inside(folder: StateFolder, before: Path, after: Path) -> dict[str, str]:
    """Returns each path in a state folder, which lay at `before`, that its records or mirrors name → the path when it
    lies at `after`. Blocks.

    Backlogs that were handed in and copies of remote repositories lie in the state folder itself.
    """
    paths = {str(before / path.relative_to(folder.home)) for path in folder.submitted.glob("*")}
    paths |= {path for one in folder.records() for path in (one.repo, one.backlog)}
    return move_paths(paths, before, after)


def move_paths(paths: Iterable[str], before: Path, after: Path) -> dict[str, str]:
    """Returns each of the paths that lies at or below `before` → the same below `after`."""
    inside = (path for path in paths if Path(path).is_relative_to(before))
    return {path: str(after / Path(path).relative_to(before)) for path in inside}


def relocate(folder: StateFolder, moved: Mapping[str, str]) -> None:
    """Writes each new path in place of the old one, in the records of sprints and in the names of files. Blocks.

    Given again after a kill, it does the rest. Raises ConfigError, before anything is changed, where something is
    called after the new path already.
    """
    kinds = (folder.mirror, folder.sidecar, folder.last_good)
    pairs = [(kind(Path(old)), kind(Path(new))) for old, new in moved.items() if old != new for kind in kinds]
    pairs = [(source, target) for source, target in pairs if source.exists()]
    targets = [target for _, target in pairs]
    if taken := next((one for one in targets if one.exists() or targets.count(one) > 1), None):
        raise ConfigError(
            f"two paths of the records would become one: {taken} is there already, or would be there twice"
        )
    for source, target in pairs:
        source.rename(target)
    for record in folder.records():
        now = {"repo": moved.get(record.repo, record.repo), "backlog": moved.get(record.backlog, record.backlog)}
        if now != {"repo": record.repo, "backlog": record.backlog}:
            folder.save(record.model_copy(update=now))
