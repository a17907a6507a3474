"""The runner of suites and commands, with the environments of Python and Node projects, and its sandbox."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from orchestrator.core.suite import Tier
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
from orchestrator.test_runners.suite_runner import ProjectRunner, Runner


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
    """Returns what runs tests and commands in `sandbox`; environments are kept in `folder`, packages in the state
    folder.

    Each run takes one of `slots`. `lock_fds` stay open as long as a command may still run. `base` is the commit whose
    tox, nox, hatch and pipeline files count, and which `environment.setup` is run on.
    """
    path = command_path(environment)
    variables = environment.variables
    if (newest := settings.environment.exclude_newer) is not None:  # as pip's and npm's settings of this machine say it
        variables = {**variables, "PIP_UPLOADED_PRIOR_TO": str(newest), "NPM_CONFIG_BEFORE": f"{newest}T23:59:59Z"}
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
    more: dict[str, Runner] = {}  # of kinds beside Python and Node, by their names in test_runners.choice.KINDS
    return ProjectRunner(pytest, runner, settings.test, path, setup, build, services, locks, more=more, tries=tries)


def command_path(environment: Environment) -> str:
    """Returns PATH for commands and tests: the user's, so that the tools they installed are found."""
    return environment.variables.get("PATH", "/usr/local/bin:/usr/bin:/bin")


async def sandbox_for(settings: Settings, environment: Environment) -> Sandbox:
    """Returns the tier that the settings ask for and this machine has. Raises ConfigError."""
    sandbox = settings.sandbox.model_copy(update={"readable": _readable(settings, environment.base_dir)})
    return await open_sandbox(sandbox, command_path(environment), (environment.home, environment.base_dir))


def _readable(settings: Settings, base: Path) -> tuple[str, ...]:
    return tuple(str(base / Path(name).expanduser()) for name in settings.sandbox.readable)
