"""Backlog files for commands that need nothing else."""

from pathlib import Path

from orchestrator.adapters.csv_backlog import CsvBacklog
from orchestrator.adapters.state_folder import StateFolder
from orchestrator.domain.story import BacklogContent
from orchestrator.settings import Environment, Settings


def open_backlog(path: Path, settings: Settings, folder: StateFolder) -> CsvBacklog:
    """The backlog at `path`, with its sidecar in the state folder."""
    return CsvBacklog(path, folder.sidecar(path), settings.backlog.foundation)


def read_backlog(path: Path, settings: Settings, environment: Environment) -> BacklogContent:
    """Read and validate. Raises BacklogError when nothing can be read."""
    return open_backlog(path, settings, StateFolder(environment.home)).read()
