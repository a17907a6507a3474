"""Regenerates lock files from the manifests beside them, with the tool that owns each, in the fetch step."""

import asyncio
import os
import shutil
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from posixpath import basename, dirname

from orchestrator.core.delivery import FileChange, LockFiles
from orchestrator.core.errors import ConfigError
from orchestrator.core.paths import LOCKS
from orchestrator.core.ports import CommandRunner
from orchestrator.core.suite import Access
from orchestrator.environments.node import npm_environment
from orchestrator.environments.node_layers import INSTALLS, write_files
from orchestrator.environments.node_requirements import MANIFEST, gather
from orchestrator.environments.python_installer import installer_for, uv_program
from orchestrator.files.safe_files import read_text
from orchestrator.sandbox.command_runner import scratch_folder
from orchestrator.settings.model import CommandSettings
from orchestrator.settings.sections import SandboxSettings

_COMMANDS = {
    "npm-shrinkwrap.json": (*INSTALLS["npm"], "--package-lock-only"),
    "package-lock.json": (*INSTALLS["npm"], "--package-lock-only"),
    "pnpm-lock.yaml": (*INSTALLS["pnpm"], "--lockfile-only"),
    "yarn.lock": INSTALLS["yarn"],
    # No package is built just to learn its requirements.
    "uv.lock": ("uv", "lock", "--no-build", "--no-progress", "--python", sys.executable),
    "poetry.lock": ("poetry", "lock", "--no-interaction"),
    "pdm.lock": ("pdm", "lock", "--update-reuse"),
    "Pipfile.lock": ("pipenv", "lock"),
}
_TOLD = 500  # characters of a tool's output in a message


class LockMaker:
    """`variables` are the machine's; registries and the tools' settings come from them."""

    def __init__(
        self, runner: CommandRunner, settings: CommandSettings, variables: Mapping[str, str], rules: SandboxSettings
    ) -> None:
        self._runner, self._timeout_s = runner, settings.install_timeout_s
        self._npm = partial(npm_environment, variables, settings, rules)
        self._installer = installer_for(variables, settings, rules)
        self._path = variables.get("PATH", os.defpath)

    async def follow(self, texts: Mapping[str, str], locks: tuple[str, ...]) -> LockFiles:
        """Returns `locks` as the manifests among `texts` require, with notes on failures. Never raises for texts."""
        made, told = list[FileChange](), list[str]()
        for lock in locks:
            text = await self._make(lock, texts)
            if isinstance(text, FileChange):
                made += [text] if text.content != texts.get(lock) else []
            else:
                told.append(f"`{lock}` was left unchanged: {text}")
        return LockFiles(files=tuple(made), told=tuple(told))

    async def _make(self, lock: str, texts: Mapping[str, str]) -> FileChange | str:
        """Returns the file, or why it cannot be made."""
        name, folder = basename(lock), dirname(lock)
        program, *words = _COMMANDS[name]
        found = await asyncio.to_thread(self._found, program)
        if found is None:
            return f"{program} is not installed here"
        if name == "yarn.lock" and "__metadata:" in texts.get(lock, ""):
            return "it needs a newer yarn than can be run here"
        prefix = f"{folder}/" if folder else ""
        below = {path.removeprefix(prefix): text for path, text in texts.items() if path.startswith(prefix)}
        async with scratch_folder() as home:
            await asyncio.to_thread(_lay_out, home, below, name)
            try:
                of_node = LOCKS[name] == {MANIFEST}
                env = await asyncio.to_thread(self._npm if of_node else self._installer.environment)
            except ConfigError as error:
                return str(error)
            told = await self._runner.run(
                [found, *words], cwd=home, env=env, timeout_s=self._timeout_s, access=Access(fetch=True)
            )
            if not told.ok:
                return f"`{program} {words[0]}` failed: {told.output[-_TOLD:].strip()}"
            text = await asyncio.to_thread(read_text, home, name)
        if text is None:
            return f"`{program} {words[0]}` made none"
        return FileChange(path=lock, content=text)

    def _found(self, program: str) -> str | None:
        """Returns the installed program; a corepack shim, which would fetch it first, does not count. Blocks."""
        found = uv_program() if program == "uv" else shutil.which(program, path=self._path)
        return None if found is None or "/corepack/" in os.path.realpath(found) else found


def _lay_out(home: Path, texts: Mapping[str, str], lock: str) -> None:
    """Writes the files that the tool reads; drops lines of `.npmrc` that point elsewhere. Blocks."""
    write_files(home, {path: text for path, text in texts.items() if basename(path) != ".npmrc"})
    if LOCKS[lock] == {MANIFEST} and ".npmrc" in texts:
        write_files(home, {".npmrc": texts[".npmrc"]})
        settings = gather(home).files.get(".npmrc", "")
        write_files(home, {".npmrc": settings})
