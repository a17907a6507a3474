"""The runner of suites and commands, with the environments of Python and Node projects behind it.

The sandbox that a command line's commands run in, and how it is told.
"""

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from pathlib import Path

from orchestrator.app.sprints import Chosen, begun_event
from orchestrator.core.event import Event, Level
from orchestrator.core.suite import SANDBOX_CHOSEN, SandboxFacts, Tier
from orchestrator.environments.base_commit import AUTO, BaseCommit
from orchestrator.environments.lock_files import LockMaker
from orchestrator.environments.node import NodeEnvironments
from orchestrator.environments.project import ProjectBuild, ProjectSetup
from orchestrator.environments.python import PythonEnvironments
from orchestrator.sandbox.choose import open_sandbox
from orchestrator.sandbox.command_runner import LimitedCommandRunner
from orchestrator.sandbox.fetch_proxy import FetchNetwork
from orchestrator.sandbox.services import Services
from orchestrator.sandbox.tier import Sandbox
from orchestrator.settings import Environment, Settings
from orchestrator.test_runners.node import NodeRunner
from orchestrator.test_runners.pytest_runner import PytestRunner
from orchestrator.test_runners.suite_runner import ProjectRunner


def project_runner(
    settings: Settings,
    environment: Environment,
    folder: Path,
    sandbox: Sandbox,
    *,
    slots: AbstractAsyncContextManager[object] | None = None,
    lock_fds: tuple[int, ...] = (),
    base: BaseCommit | None = None,
) -> ProjectRunner:
    """What runs tests and commands in `sandbox`; environments are kept in `folder`, packages in the state folder.

    Whoever runs one is inside `slots`. `lock_fds` stay open as long as a command may still run. `base` is the commit
    whose tox, nox, hatch and pipeline files count, and which `environment.setup` is run on.
    """
    path = command_path(environment)
    variables = environment.variables
    network = FetchNetwork(variables, settings.environment.hosts)
    services = Services(settings.environment.services)
    commands = LimitedCommandRunner(
        settings.commands,
        path,
        lock_fds=lock_fds,
        slots=slots,
        sandbox=sandbox,
        network=network,
        services=services,
        variables=settings.environment.env,
    )
    kept = environment.home / "environments"
    layers, rules, own = kept / "python", settings.sandbox, settings.environment
    if sandbox.facts.tier is Tier.PLAIN:  # nothing would confine them: these alone that people name
        named = own.install_scripts if isinstance(own.install_scripts, tuple) else ()
        own = own.model_copy(update={"install_scripts": tuple(name for name in named if name != AUTO)})
    venvs = PythonEnvironments(folder, layers, commands, settings.commands, variables, rules, base, own)
    packages = NodeEnvironments(kept / "node", commands, settings.commands, variables, rules, base, own)
    pytest = PytestRunner(commands, venvs, settings.test, path)
    runner, tries = NodeRunner(commands, packages, settings.test), settings.environment.base != "skip"
    setup = ProjectSetup(kept / "setup", base, own, settings.commands, rules, variables)
    locks = LockMaker(commands, settings.commands, variables, rules)
    limit = settings.commands.install_timeout_s
    build = ProjectBuild(folder / ".built", own.build, limit)
    return ProjectRunner(pytest, runner, settings.test, path, setup, build, services, locks, tries=tries)


def command_path(environment: Environment) -> str:
    """PATH for commands and tests: the user's, so that the tools they installed are found."""
    return environment.variables.get("PATH", "/usr/local/bin:/usr/bin:/bin")


async def sandbox_for(settings: Settings, environment: Environment) -> Sandbox:
    """The tier that the settings ask for and this machine has. Raises ConfigError."""
    sandbox = settings.sandbox.model_copy(update={"readable": _readable(settings, environment.base_dir)})
    return await open_sandbox(sandbox, command_path(environment), (environment.home, environment.base_dir))


def _readable(settings: Settings, base: Path) -> tuple[str, ...]:
    return tuple(str(base / Path(name).expanduser()) for name in settings.sandbox.readable)


def sandbox_told(events: Iterable[Event]) -> SandboxFacts | None:
    """The tier of the latest run, as the sprint's events tell it; None where none does."""
    told = [event.data["sandbox"] for event in events if event.name == SANDBOX_CHOSEN]
    return SandboxFacts.model_validate(told[-1]) if told else None


def begun_events(chosen: Chosen, provider: str, facts: SandboxFacts, now: datetime) -> tuple[Event, Event]:
    """That a sprint starts or goes on, and in which tier the commands of this run are."""
    sprint = chosen.record.sprint
    told = Event(
        id=f"{sprint}:{SANDBOX_CHOSEN}:{now.isoformat()}",
        time=now,
        name=SANDBOX_CHOSEN,
        message=str(facts),
        sprint=sprint,
        level=Level.WARN if facts.tier is Tier.PLAIN else Level.INFO,
        data={"sandbox": facts.model_dump(mode="json")},
    )
    return begun_event(chosen, provider, now), told
