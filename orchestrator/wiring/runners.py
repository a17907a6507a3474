"""The runner of suites and commands, with the environments of Python and Node projects behind it."""

import shutil
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from orchestrator.adapters.base_commit import BaseCommit
from orchestrator.adapters.command_runner import LimitedCommandRunner
from orchestrator.adapters.fetch.network import FetchNetwork
from orchestrator.adapters.install_scripts import AUTO
from orchestrator.adapters.lock_files import LockMaker
from orchestrator.adapters.node_environment import NodeEnvironments
from orchestrator.adapters.node_layers import node_headers
from orchestrator.adapters.node_runner import NodeRunner
from orchestrator.adapters.project_build import ProjectBuild
from orchestrator.adapters.project_setup import ProjectSetup
from orchestrator.adapters.pytest_runner import PytestRunner
from orchestrator.adapters.python_environment import PythonEnvironments
from orchestrator.adapters.sandbox.tier import Sandbox
from orchestrator.adapters.services import Services
from orchestrator.adapters.suite_runner import ProjectRunner
from orchestrator.checks.backlog_needs import HEADERS, LOOKED_FOR
from orchestrator.domain.sandbox import Tier
from orchestrator.settings import Environment, Settings


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
    return ProjectRunner(pytest, runner, packages, settings.test, path, setup, build, services, locks, tries=tries)


def programs_there(environment: Environment) -> list[str]:
    """Those of `LOOKED_FOR` that commands would find. Blocks."""
    found = [name for name in LOOKED_FOR if shutil.which(name, path=command_path(environment))]
    return [*found, *([HEADERS] if node_headers() is not None else ())]


def command_path(environment: Environment) -> str:
    """PATH for commands and tests: the user's, so that the tools they installed are found."""
    return environment.variables.get("PATH", "/usr/local/bin:/usr/bin:/bin")
