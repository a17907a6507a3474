"""`serve.repo`: the repository of base commits and pushed results, on this machine or remote."""

from pathlib import Path

from orchestrator.core.errors import RepositoryError, WorkspaceError
from orchestrator.core.sprint import SprintRecord
from orchestrator.git.remote_access import RemoteAddress, is_address, remote_address
from orchestrator.git.remote_repository import RemoteRepositories
from orchestrator.git.workspace import GitWorkspace
from orchestrator.settings import Environment, Settings
from orchestrator.storage.state_folder import StateFolder

SPRINT = "{sprint}"
"""Placeholder for the sprint's id in `serve.push_to`."""


class SharedRepository:
    """The repository of all sprints of a daemon; `default` when `serve.repo` names none.

    Raises RepositoryError when `serve.repo` or `serve.push_to` is invalid.
    """

    def __init__(self, settings: Settings, environment: Environment, default: Path) -> None:
        named, push_to = settings.serve.repo, settings.serve.push_to
        self._address: RemoteAddress | None = None
        if named is None:
            self._path = default
        elif is_address(named):
            self._address = remote_address(named)
        else:
            self._path = environment.base_dir / Path(named).expanduser()
        if push_to is not None and (not push_to.strip() or push_to.startswith("-")):
            raise RepositoryError(f"serve.push_to is {push_to!r}, which is no name for a branch")
        self._push_to = push_to
        self._folder = StateFolder.of(environment)
        self._remotes = RemoteRepositories(environment.home / "repositories", environment.variables)

    def __str__(self) -> str:
        """Returns the repository's name for people, without secrets."""
        return str(self._path if self._address is None else self._address)

    @property
    def folder(self) -> Path | None:
        """Its folder on this machine; None for a remote repository."""
        return self._path if self._address is None else None

    async def now(self) -> Path:
        """Fetches a remote repository, and returns the current state for `open_repository`.

        Called before each new sprint; a resumed sprint does not need it. Raises RepositoryError; its subclass
        RepositoryUnreachable may be temporary.
        """
        if self._address is None:
            return self._path
        return await self._remotes.refresh(self._address)

    def branch(self, sprint: str) -> str | None:
        """Returns the branch that this sprint's result is pushed to."""
        return None if self._push_to is None else self._push_to.replace(SPRINT, sprint)

    async def check_push(self, workspace: GitWorkspace, record: SprintRecord) -> None:
        """Raises RepositoryError unless the result could be pushed now. The workspace must be prepared."""
        branch = self.branch(record.sprint)
        if branch is None:
            return
        address = self._target(record)
        if address is None:
            await workspace.check_push(Path(record.repo), branch)
            return
        commit, mirror = await workspace.result_head(), self._folder.mirror(Path(record.repo))
        await self._remotes.check_push(address, mirror, commit, branch, begun=commit != record.base)

    async def push(self, workspace: GitWorkspace, record: SprintRecord) -> str | None:
        """Pushes the result; returns the reason of a failure, or None. Idempotent."""
        branch = self.branch(record.sprint)
        if branch is None:
            return None
        try:
            address = self._target(record)
            if address is None:
                await workspace.push(Path(record.repo), branch)
            else:
                commit, mirror = await workspace.result_head(), self._folder.mirror(Path(record.repo))
                await self._remotes.push(address, mirror, commit, branch)
        except (RepositoryError, WorkspaceError) as error:
            return error.message
        return None

    def _target(self, record: SprintRecord) -> RemoteAddress | None:
        """Returns the target of the sprint's result. Raises RepositoryError when `serve.repo` is not its origin."""
        ours = self._address is not None and self._remotes.path(self._address) == Path(record.repo)
        if ours or not Path(record.repo).is_relative_to(self._remotes.folder):
            return self._address if ours else None
        raise RepositoryError(f"sprint {record.sprint} began from another repository than serve.repo names: {self}")
