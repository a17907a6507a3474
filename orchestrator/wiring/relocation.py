"""A state folder that was backed up at one place and is restored at another."""

from pathlib import Path

from orchestrator.adapters.state_folder import StateFolder


def relocate(staging: Path, before: Path, after: Path) -> None:
    """Let the state folder in `staging`, which lay at `before`, be one that lies at `after`.

    Backlogs that were handed in and copies of remote repositories lie in the state folder itself: records name them by
    their paths, and mirrors, sidecars and what a backlog last was are called after them. Blocks.
    """
    if before != after:
        _Move(staging, before, after).go()


class _Move:
    def __init__(self, staging: Path, before: Path, after: Path) -> None:
        self._here, self._before, self._after = StateFolder(staging), before, after
        self._old, self._new = StateFolder(before), StateFolder(after)

    def go(self) -> None:
        home = self._here.home
        repos: set[str] = set()
        backlogs = {str(self._before / path.relative_to(home)) for path in (home / "backlogs").glob("*")}
        for record in self._here.records():
            repos.add(record.repo)
            backlogs.add(record.backlog)
            moved = {"repo": self._moved(record.repo), "backlog": self._moved(record.backlog)}
            if moved != {"repo": record.repo, "backlog": record.backlog}:
                self._here.save(record.model_copy(update=moved))
        for repo in repos:
            self._rename(self._old.mirror(Path(repo)), self._new.mirror(Path(self._moved(repo))))
        for backlog in backlogs:
            moved_to = Path(self._moved(backlog))
            self._rename(self._old.sidecar(Path(backlog)), self._new.sidecar(moved_to))
            self._rename(self._old.last_good(Path(backlog)), self._new.last_good(moved_to))

    def _moved(self, path: str) -> str:
        inside = Path(path).is_relative_to(self._before)
        return str(self._after / Path(path).relative_to(self._before)) if inside else path

    def _rename(self, before: Path, after: Path) -> None:
        source = self._here.home / before.relative_to(self._before)
        if source.exists():
            source.rename(self._here.home / after.relative_to(self._after))
