"""What people's commands of `environment.setup` get or make: once per base, and put into every tree that runs anything.

They run on a checkout of the base commit, so that no story changes what they do.
"""

import asyncio
import hashlib
import json
import platform
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from orchestrator.adapters.base_commit import BaseCommit
from orchestrator.adapters.command_runner import remove_tree
from orchestrator.adapters.fetch.npm_settings import npm_variables
from orchestrator.adapters.generated_files import paths_in, put_back, take_new
from orchestrator.adapters.kept_folders import begin, is_used, put
from orchestrator.adapters.python_installer import Installer
from orchestrator.domain.testing import CommandResult
from orchestrator.errors import ConfigError
from orchestrator.settings.environment import EnvironmentSettings
from orchestrator.settings.model import CommandSettings, SandboxSettings

KEY = "environment.setup"
"""Of the environment that the commands have."""
_FILES = "files"
_NOT_FOUND = 127
"""A shell's exit code for a program that is not there."""
_NOT_THERE = re.compile(r"(?:^|: )([\w.+/-]+): (?:command )?not found", re.MULTILINE)


class Run(Protocol):
    """Runs a command in a tree with its environment; with `fetch`, variables, it reaches what installers reach."""

    async def __call__(
        self, root: Path, command: str, *, timeout_s: float | None = None, fetch: Mapping[str, str] | None = None
    ) -> CommandResult:
        """At most `timeout_s`, else as long as any command."""
        ...


class ProjectSetup:
    """Keeps what the commands made in `folder`/<digest>. Without a base, or on an empty one, nothing is to be done."""

    def __init__(
        self,
        folder: Path,
        base: BaseCommit | None,
        own: EnvironmentSettings,
        commands: CommandSettings,
        rules: SandboxSettings,
        variables: Mapping[str, str],
    ) -> None:
        """`variables` are the machine's, from which installers get their settings and nothing else is taken."""
        self._folder, self._base, self._own = folder.absolute(), base, own
        self._variables, self._registry = variables, rules.registries.npm
        handed_on = {name: variables[name] for name in commands.install_env if name in variables}
        self._installer = Installer(variables, handed_on, rules.registries.pip)
        self._timeout_s = commands.install_timeout_s
        self._lock = asyncio.Lock()

    async def ensure(self, root: Path, run: Run) -> str:
        """Have in `root` what the commands made; "" when it is there, else the failed one's output and how it ended."""
        if not self._own.setup or self._base is None or not (tree := await self._base.tree_id()):
            return ""
        kept = self._folder / self._digest(tree)
        async with self._lock:
            failed = "" if await asyncio.to_thread(is_used, kept) else await self._make(kept, self._base, run)
        if not failed:
            await asyncio.to_thread(_put_back, kept / _FILES, root)
        return failed

    async def _make(self, kept: Path, base: BaseCommit, run: Run) -> str:
        """Which command failed, if one did."""
        try:
            env = await asyncio.to_thread(self._environment)
        except ConfigError as error:
            return f"environment.setup: {error}"
        begun = await asyncio.to_thread(begin, self._folder)
        try:
            async with base.checkout(begun) as tree:
                begins = await run(tree, ":")
                if not begins.ok:
                    return told_failure("setup", ":", begins)
                before = await asyncio.to_thread(paths_in, tree)  # with what the project's own build has made
                for command in self._own.setup:
                    result = await run(tree, command, timeout_s=self._timeout_s, fetch=env)
                    if not result.ok:
                        return told_failure("setup", command, result)
                await asyncio.to_thread(take_new, tree, before, begun / _FILES)
            await asyncio.to_thread(put, begun, kept)
        finally:
            await asyncio.to_thread(remove_tree, begun)
        return ""

    def _environment(self) -> dict[str, str]:
        """Where uv, pip and npm fetch from, and what people set. Blocks; raises ConfigError."""
        npm = {} if self._registry is None else {"NPM_CONFIG_REGISTRY": self._registry}
        return {**npm_variables(self._variables), **self._installer.for_commands(), **npm, **self._own.env}

    def _digest(self, tree: str) -> str:
        own = self._own.model_dump(mode="json", exclude={"base", "base_timeout_s", "hosts"})
        content = json.dumps([tree, own, sys.version, platform.machine()], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:32]


def _put_back(files: Path, root: Path) -> None:
    if files.is_dir():
        put_back(files, root)


def told_failure(setting: str, command: str, result: CommandResult) -> str:
    """What a command of the setting printed, then how it ended."""
    how = f"limit: {result.limit}" if result.limit else f"exit code {result.exit_code}"
    lacking = _NOT_THERE.search(result.output) if result.exit_code == _NOT_FOUND else None
    more = f"; this machine has no `{lacking[1]}`: install it" if lacking else ""
    # Last, for only the end of what is printed is shown.
    return f"{result.output.rstrip()}\nenvironment.{setting}: `{command}` failed ({how}){more}".lstrip()
