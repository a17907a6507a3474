"""What a delivery's contents are held against, besides the files as they were."""

from collections.abc import Mapping
from posixpath import dirname

from orchestrator.domain.base import Value


class Around(Value):
    """What is known around a task; what is empty is unknown, and the checks that need it say less."""

    packages: frozenset[str] = frozenset()
    """Normalised names from the manifests and the plan: they tell the dialect of SQL."""
    stack: tuple[str, ...] = ()
    """What was recorded on the tech stack, line by line."""
    runtime: str = ""
    """What the project scan says of it: Python has to compile for the oldest one that the project promises."""
    runtimes: Mapping[str, str] = {}
    """The same by folder, of projects inside the project."""
    task: str = ""
    """The task's description and instructions: what they name may go."""
    others: Mapping[str, str] = {}
    """Texts of other files of the project: they tell who uses what is lost. Without them it is told only."""

    def runtime_at(self, path: str) -> str:
        """Returns what the nearest manifest above a file says."""
        folder = dirname(path)
        while folder:
            if folder in self.runtimes:
                return self.runtimes[folder]
            folder = dirname(folder)
        return self.runtime
