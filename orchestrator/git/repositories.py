"""`serve.repo`: the repository that sprints begin from and results are pushed to, on this machine or a remote one."""

from pathlib import Path

from orchestrator.core.errors import RepositoryError, WorkspaceError
from orchestrator.core.sprint import SprintRecord
from orchestrator.git.remote_access import RemoteAddress, is_address, remote_address
from orchestrator.git.remote_repository import RemoteRepositories
from orchestrator.git.workspace import GitWorkspace
from orchestrator.settings import Environment, Settings
from orchestrator.storage.state_folder import StateFolder

SPRINT = "{sprint}"
"""What `serve.push_to` may hold in place of the sprint's id."""


class SharedRepository:
    """The repository of all sprints of a daemon, `default` where `serve.repo` names none.

    Raises RepositoryError when `serve.repo` or `serve.push_to` can never be used.
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
        self._folder = StateFolder(environment.home)
        self._remotes = RemoteRepositories(
            environment.home / "repositories",
            environment.variables,
            settings.remote,
            keep_free_mb=settings.serve.min_disk_mb,
        )

    def __str__(self) -> str:
        """Returns the repository as people are told of it; nothing in it is secret."""
        return str(self._path if self._address is None else self._address)

    @property
    def is_remote(self) -> bool:
        """Whether it lies elsewhere."""
        return self._address is not None

    async def now(self) -> Path:
        """Returns the repository as it is now, for `open_repository`: a remote one is fetched first.

        To be asked before each new sprint; a sprint that goes on needs it not. Raises RepositoryError, of which
        RepositoryUnreachable may mend by itself.
        """
        if self._address is None:
            return self._path
        return await self._remotes.refresh(self._address)

    def branch(self, sprint: str) -> str | None:
        """Returns the branch that this sprint's result is pushed to."""
        return None if self._push_to is None else self._push_to.replace(SPRINT, sprint)

    async def check_push(self, workspace: GitWorkspace, record: SprintRecord) -> None:
        """Raise RepositoryError unless the result could be pushed as things stand; for a workspace that is prepared."""
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
        """Pushes the result; returns why that could not be done, or None. Doing it again is fine."""
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
        """Where the sprint's result belongs. Raises RepositoryError when `serve.repo` is not what it began from."""
        ours = self._address is not None and self._remotes.path(self._address) == Path(record.repo)
        if ours or not Path(record.repo).is_relative_to(self._remotes.folder):
            return self._address if ours else None
        raise RepositoryError(f"sprint {record.sprint} began from another repository than serve.repo names: {self}")
