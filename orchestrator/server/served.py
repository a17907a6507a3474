"""What the HTTP interface sees of the daemon."""

from collections.abc import Mapping
from typing import Protocol

from orchestrator.domain.analysis import AnalysisRequest, AnalysisState
from orchestrator.domain.daemon import DaemonState, Submitted
from orchestrator.domain.doctor import DoctorRow
from orchestrator.domain.retention import Pruned
from orchestrator.settings import Environment, Settings


class Analysing(Protocol):
    """Who carries analyses out. Both raise SprintLocked for what cannot be while another one, or none, is at work."""

    async def begin(self, asked: AnalysisRequest) -> AnalysisState:
        """Keep what is asked, begin it. Raises ConfigError for what cannot be used, WorkspaceError when the disk takes
        nothing; nothing is kept then.
        """

    async def cancel(self, analysis: str) -> AnalysisState:
        """End the one that is at work. Raises UnknownName."""


class Served(Protocol):
    """The daemon, or whoever stands for it in a test."""

    @property
    def environment(self) -> Environment:
        """What the process was started with; never changes."""

    @property
    def settings(self) -> Settings:
        """As they are now: a reload puts others in their place."""

    @property
    def analyses(self) -> Analysing:
        """One analysis of its repository at a time."""

    def state(self) -> DaemonState:
        """How the daemon is at this moment. Called on the event loop; blocks for nothing."""

    async def readiness(self) -> Mapping[str, str]:
        """Component (database, engine, disk) → "" while it is fine, else why it is not."""

    async def submit(self, name: str, suffix: str, content: bytes) -> Submitted:
        """Watch a backlog from now on, new or in place of the one of this name; `suffix` is .csv, .yaml or .json.

        Raises BacklogError with findings, and ConfigError where the name is taken by another form; nothing is stored
        then.
        """

    async def withdraw(self, name: str) -> None:
        """Watch a backlog that was submitted no more. Raises ConfigError for one that is not there."""

    async def prune(self, limits: Mapping[str, float | None], *, dry_run: bool) -> Pruned:
        """Give up what is too old or too much, by the settings of `retention` with `limits` in their place.

        Raises ConfigError.
        """

    async def examine(self, *, sandbox: bool) -> list[DoctorRow]:
        """What `doctor` says of the machine and the settings; with `sandbox` hostile actions are tried as well."""

    async def reload(self) -> str:
        """Read the configuration anew; what changed, in one sentence. Raises UserError: the last good one stays."""
