"""Which backlog a path is: the file's suffix or the folder decides, never a guess at its content."""

from pathlib import Path

from orchestrator.adapters.backlog_rows import ReadingRules
from orchestrator.adapters.csv_backlog import CsvBacklog
from orchestrator.adapters.file_backlogs import FileBacklog, markdown_rows, tree_reader
from orchestrator.adapters.json_tree import parse_json
from orchestrator.adapters.state_folder import StateFolder
from orchestrator.adapters.yaml_tree import parse_yaml
from orchestrator.domain.findings import Where, critical
from orchestrator.domain.story import BacklogContent
from orchestrator.errors import BacklogError
from orchestrator.ports import Backlog
from orchestrator.settings import Environment, Settings

_TREES = {".yaml": parse_yaml, ".yml": parse_yaml, ".json": parse_json}


def open_backlog(path: Path, settings: Settings, folder: StateFolder) -> Backlog:
    """The backlog at `path`, with its sidecar in the state folder.

    Raises BacklogError for a file whose suffix says no format we read.
    """
    sidecar = folder.sidecar(path)
    rules = ReadingRules(foundation=settings.backlog.foundation, closes=settings.backlog.closes)
    suffix = path.suffix.lower()
    if path.is_dir():
        return FileBacklog(path, sidecar, rules, markdown_rows)
    if suffix in _TREES:
        return FileBacklog(path, sidecar, rules, tree_reader(_TREES[suffix]))
    if suffix == ".csv" or not path.exists():
        return CsvBacklog(path, sidecar, rules)
    message = f"{path} is no backlog we can read: its name ends with {suffix or 'no suffix'}"
    fix = "a backlog is a file .csv, .yaml, .yml or .json, or a folder of Markdown files (*.md)"
    finding = critical("backlog.format", message, where=Where(file=str(path)), fix=fix)
    raise BacklogError(f"{message}; {fix}", findings=(finding,))


def read_backlog(path: Path, settings: Settings, environment: Environment) -> BacklogContent:
    """Read and validate. Raises BacklogError when nothing can be read."""
    return open_backlog(path, settings, StateFolder(environment.home)).read()
