"""Opens a daemon's resources: anything that may fail fails here, and closes what was opened before."""

import asyncio
import tempfile
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from orchestrator.app.runners import sandbox_for
from orchestrator.app.runtime import Works
from orchestrator.app.secrets import known_secrets
from orchestrator.app.sprint_runtime import Equipment
from orchestrator.app.team import prompt_library
from orchestrator.core.event import Event, Level
from orchestrator.files.process import SystemClock, end_at_once
from orchestrator.git.repositories import SharedRepository
from orchestrator.providers.routing import open_providers
from orchestrator.records.histories import event_url
from orchestrator.sandbox.command_runner import remove_old_scratch
from orchestrator.settings import Environment, Settings, forget_secrets
from orchestrator.settings.options import ServeOptions, default_repository
from orchestrator.storage.leases import Lease
from orchestrator.storage.locks import SprintLock
from orchestrator.storage.state_folder import StateFolder

DATABASE_COMES_S = 60.0
"""Seconds that a starting daemon waits for a Postgres that is starting too."""


async def open_daemon(
    stack: AsyncExitStack,
    options: ServeOptions,
    settings: Settings,
    environment: Environment,
    listen: Callable[[Event], None],
) -> tuple[SharedRepository, Equipment]:
    """Opens the state folder's lock, the providers, the lease and the works, on the stack. Raises UserError."""
    folder = StateFolder.of(environment)
    if warning := await asyncio.to_thread(folder.make):
        listen(make_folder_event(warning))
    await stack.enter_async_context(SprintLock(folder.daemon_lock, f"{folder.home} as its daemon"))
    repository = await asyncio.to_thread(open_shared_repository, settings, environment)
    provider = await asyncio.to_thread(open_providers, options, settings, environment, SystemClock())
    stack.push_async_callback(provider.close)
    forget_secrets()
    await asyncio.to_thread(remove_old_scratch, Path(tempfile.gettempdir()))
    library = await asyncio.to_thread(prompt_library, settings, environment)
    sandbox = await sandbox_for(settings, environment)
    executor_id = await asyncio.to_thread(folder.executor_id)
    url = event_url(environment, folder)
    lease = Lease(url, executor_id, folder=str(folder.home), lost=end_at_once, patience_s=DATABASE_COMES_S)
    await stack.enter_async_context(lease)
    works = Works(settings, environment, provider, lease=lease, listen=listen)
    secrets = await asyncio.to_thread(known_secrets, environment, repository.folder)
    works.sink.hide(secrets)
    await stack.enter_async_context(works)
    equipment = Equipment(
        works=works,
        environment=environment,
        library=library,
        sandbox=sandbox,
        secrets=secrets,
        provider=options.provider,
        provider_told=str(provider),
    )
    return repository, equipment


def add_token(environment: Environment) -> tuple[Environment, str | None]:
    """Returns it with a token: ORCHESTRATOR_TOKEN, else that of the state folder; and the warning of `make` for that.

    Raises ConfigError. Blocks.
    """
    if environment.token is not None:
        return environment, None
    folder = StateFolder.of(environment)
    warning = folder.make()
    return environment.with_token(folder.make_token()), warning


def make_folder_event(warning: str) -> Event:
    """That the state folder was open to others; shown and stored nowhere: the log is not open yet."""
    now = SystemClock().now()
    return Event(
        id=f"state_folder_closed:{now.isoformat()}",
        time=now,
        level=Level.WARN,
        name="state_folder_closed",
        message=warning,
        sprint="",
    )


def open_shared_repository(settings: Settings, environment: Environment) -> SharedRepository:
    """Returns the repository of a daemon's sprints. Raises RepositoryError. Blocks."""
    return SharedRepository(settings, environment, default_repository())
