"""What a command line asks of a run."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of `run`, as typed (DESIGN 7)."""

    backlog: Path
    repo: Path | None = None
    sprint: str | None = None
    stories: tuple[str, ...] = ()
    provider: str | None = None
    script: Path | None = None
    call_log: Path | None = None
    push_to: str | None = None
    strict: bool = False
    plans: tuple[str, ...] = ()
    """`[STORY=]FILE`, each."""


def default_repository() -> Path:
    """Without --repo: the current folder when it is a repository's top folder, else `repo` in it."""
    here = Path.cwd()
    return here if (here / ".git").exists() else here / "repo"
