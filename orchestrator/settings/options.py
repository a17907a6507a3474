"""Options of a run from the command line."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Who answers, as typed."""

    provider: str | None = None
    script: Path | None = None
    call_log: Path | None = None
    replay: Path | None = None
    """Folder of a recording, which answers in place of all models; the settings may name any."""


@dataclass(frozen=True, kw_only=True)
class AnalyseOptions(ModelOptions):
    """The options of `analyse`, as typed."""

    repo: Path
    prd: Path | None = None
    profile: str | None = None
    stages: tuple[str, ...] = ()
    prompts: Path | None = None
    out: Path
    """Folder of the plan's files."""
    to_backlog: Path | None = None
    analysis: str | None = None
    """Its id; else an unfinished one of the same repository and stages, or the next free one."""
    replace: bool = False
    """Whether a plan and a backlog that are there may be written over."""
    mock: bool = False
    """Whether stand-ins answer in place of a model."""


@dataclass(frozen=True, kw_only=True)
class RunOptions(ModelOptions):
    """The options of `run`, as typed."""

    backlog: Path
    repo: Path | None = None
    sprint: str | None = None
    stories: tuple[str, ...] = ()
    push_to: str | None = None
    strict: bool = False
    plans: tuple[str, ...] = ()
    """`[STORY=]FILE`, each."""
    record: Path | None = None
    """Folder that gets a recording of the sprint when the run ends."""
    waits: bool = False
    """Whether a pause that people ordered is waited through, as at a terminal."""


@dataclass(frozen=True, kw_only=True)
class ServeOptions(ModelOptions):
    """The options of `serve`, as typed."""

    backlogs: tuple[Path, ...] = ()
    """Files and folders, beside those of the settings and those that are handed in."""


def default_repository() -> Path:
    """Without --repo: the current folder when it is a repository's top folder, else `repo` in it."""
    here = Path.cwd()
    return here if (here / ".git").exists() else here / "repo"
