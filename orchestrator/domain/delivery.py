"""The developer's answer once it is well-formed."""

from orchestrator.domain.action_plan import Execute
from orchestrator.domain.base import Value
from orchestrator.domain.paths import RepoPath


class FileChange(Value):
    """One whole file, as delivered."""

    path: RepoPath
    content: str


class Delivery(Value):
    """The files of one task. Paths are safe by type; whether they are allowed is the contract's question."""

    story_id: str
    task_id: str
    files: tuple[FileChange, ...]
    removed: tuple[RepoPath, ...] = ()
    """Files that are taken away; none of them is among `files`. JSON deliveries cannot say this."""

    commands: tuple[Execute, ...] = ()
    """To be run once the files are written, in this order. JSON deliveries cannot say this."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the delivered files in order."""
        return tuple(change.path for change in self.files)
