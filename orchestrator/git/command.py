"""The only module that runs git: with a clean environment, and without any setting that could run a program."""

import asyncio
import os
import re
import shlex
import shutil
import signal
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from orchestrator.core.errors import MESSAGE_CAP, WorkspaceError
from orchestrator.core.value import printable

IDENTITY = ("Sprint Orchestrator", "orchestrator@localhost")
"""Author and committer of every commit we make."""

_SETTINGS = (
    # Programs that git would run on its own.
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.sshCommand=false",
    "core.alternateRefsCommand=true",
    # The user's files that change what is tracked or how it is written.
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.autocrlf=false",
    "core.quotePath=false",
    # A name that macOS or Windows treats as `.git` counts as one here too: the result may be checked out there.
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "core.pager=cat",
    "credential.helper=",
    "commit.gpgSign=false",
    "log.showSignature=false",
    "diff.external=",
    # Submodules are never read, fetched or pushed: they are other repositories with their own settings.
    "diff.ignoreSubmodules=all",
    "merge.directoryRenames=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "push.recurseSubmodules=no",
    "push.gpgSign=false",
    "advice.graftFileDeprecated=false",
    # Addresses in a tree or a configuration are never fetched; our own fetches name their protocol.
    "protocol.allow=never",
    "protocol.version=2",
    "safe.bareRepository=explicit",
    # Nothing may be packed or deleted while others read: `tidy` does that when no one uses the mirror.
    "gc.auto=0",
    "maintenance.auto=false",
    "receive.autogc=false",
)
OLDEST = (2, 38)
"""The first version with `merge-tree --write-tree` and `safe.bareRepository`."""
_PATIENCE_S = 2.0
"""How long a cancelled git may take to remove its lock files before it is killed."""


@dataclass(frozen=True, slots=True)
class GitOutput:
    """Result of a git call: its exit code (one that the caller allowed) and its stdout."""

    code: int
    stdout: bytes
    stderr: bytes = b""

    @property
    def text(self) -> str:
        """stdout as text without the final newline; invalid UTF-8 is shown as escapes."""
        return self.stdout.decode("utf-8", "backslashreplace").rstrip("\n")

    @property
    def refusal(self) -> str:
        """Returns why a push with `--porcelain` was refused: what the other side says, and git's word for it."""
        lines = [line.rpartition("\t")[2] for line in self.text.splitlines() if line.startswith("!")]
        found = [re.sub(r"^\[[a-z ]+\] \((.*)\)$", r"\1", line) for line in lines]
        said = told_lines(self.stderr.decode("utf-8", "replace"))
        return "; ".join((*(line for line in said if "failed to push some refs" not in line), *found))


_SAID = re.compile(r"^(?:fatal|error|remote|ssh|kex_\w+|git@\S+): ?(.*)", re.IGNORECASE)


def told_lines(message: str) -> list[str]:
    """Returns the lines of git's message that say something, each once, without control characters; all where none
    does."""
    lines = [" ".join(printable(line, keep="").split()) for line in message.splitlines()]
    telling = [line for line in lines if _SAID.match(line) and "correct access rights" not in line]
    return list(dict.fromkeys(telling or filter(None, lines)))


_PROGRAMS: dict[str | None, str] = {}
"""PATH → the git that it leads to."""


def _program() -> str:
    found = shutil.which("git")
    if found is None:
        raise WorkspaceError("git is not installed, or not on PATH")
    return found


def _flags(settings: Sequence[str]) -> list[str]:
    flags = ["--no-pager", "--literal-pathspecs", "--no-replace-objects"]
    for setting in (*_SETTINGS, *settings):
        flags += ["-c", setting]
    return flags


def _environment(program: str, protocols: str, locations: Mapping[str, Path | None]) -> dict[str, str]:
    name, email = IDENTITY
    environment = {
        "PATH": f"{Path(program).parent}:/usr/local/bin:/usr/bin:/bin",
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "GIT_EDITOR": "true",
        "GIT_SEQUENCE_EDITOR": "true",
        "GIT_PAGER": "cat",
        "GIT_ALLOW_PROTOCOL": protocols,
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_GRAFT_FILE": "/dev/null",
        "GIT_AUTHOR_NAME": name,
        "GIT_AUTHOR_EMAIL": email,
        "GIT_COMMITTER_NAME": name,
        "GIT_COMMITTER_EMAIL": email,
    }
    return environment | {key: str(path) for key, path in locations.items() if path is not None}


def remote_command(program: str, settings: Sequence[str]) -> str:
    """Returns the shell command that runs `upload-pack` or `receive-pack` as safely as our own calls.

    git drops our settings when it starts the other side, which would then use the other repository's configuration.
    """
    words = ["git", *_flags(settings), program]
    return "GIT_ALLOW_PROTOCOL=none GIT_NO_LAZY_FETCH=1 " + shlex.join(words)


async def require_git() -> None:
    """Raises WorkspaceError when git is missing or too old."""
    said = (await run_git(["version"])).text
    found = re.search(r"(\d+)\.(\d+)", said)
    if found is None or (int(found[1]), int(found[2])) < OLDEST:
        raise WorkspaceError(f"git {OLDEST[0]}.{OLDEST[1]} or newer is needed, this is: {said}")


async def run_git(
    args: Sequence[str],
    *,
    git_dir: Path | None = None,
    common_dir: Path | None = None,
    work_tree: Path | None = None,
    index: Path | None = None,
    cwd: Path | None = None,
    stdin: bytes | IO[bytes] | None = None,
    stdout: IO[bytes] | None = None,
    settings: Sequence[str] = (),
    protocols: str = "none",
    pass_fds: Sequence[int] = (),
    variables: Mapping[str, str] | None = None,
    ok: Collection[int] = (0,),
) -> GitOutput:
    """Runs `git <args>` and returns its output; raises WorkspaceError unless its exit code is in `ok`.

    Without `git_dir` git discovers the repository from `cwd`: for the user's repository only. `stdin` None is an empty
    input; what is too large for the memory comes from a file, and goes to the file `stdout`. `settings` are further
    `key=value` pairs, `variables` those of its environment. `pass_fds` stay open in git and its children: a file lock
    of ours lives until they end even if we are killed. A cancelled call ends git first.
    """
    locations = {
        "GIT_DIR": git_dir,
        "GIT_COMMON_DIR": common_dir or git_dir,
        "GIT_WORK_TREE": work_tree,
        "GIT_INDEX_FILE": index,
    }
    path = os.environ.get("PATH")
    if path not in _PROGRAMS:
        _PROGRAMS[path] = await asyncio.to_thread(_program)
    program = _PROGRAMS[path]
    process = await _start(
        [program, *_flags(settings), *args],
        cwd=cwd or git_dir,
        env=_environment(program, protocols, locations) | dict(variables or {}),
        stdin=asyncio.subprocess.PIPE if isinstance(stdin, bytes) else stdin or asyncio.subprocess.DEVNULL,
        stdout=stdout or asyncio.subprocess.PIPE,
        pass_fds=tuple(pass_fds),
    )
    code, out, err = await _talk(process, stdin if isinstance(stdin, bytes) else None)
    if code not in ok:
        said = err.decode("utf-8", "replace").strip()[-MESSAGE_CAP:] or f"exit code {code}"
        raise WorkspaceError(f"git {args[0]}: {said}")
    return GitOutput(code, out, err)


async def _start(
    argv: Sequence[str],
    *,
    cwd: Path | None,
    env: Mapping[str, str],
    stdin: int | IO[bytes],
    stdout: int | IO[bytes],
    pass_fds: tuple[int, ...],
) -> asyncio.subprocess.Process:
    """Starts git in its own session, so that Ctrl-C at the terminal reaches only us, not git."""
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *argv,
            cwd=cwd,
            env=env,
            stdin=stdin,
            stdout=stdout,
            stderr=asyncio.subprocess.PIPE,
            pass_fds=pass_fds,
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        # If cancelled half-way, asyncio would lose track of git's children and wait until they end by themselves.
        await asyncio.shield(asyncio.ensure_future(_end_started(starting)))
        raise
    except (OSError, ValueError) as error:
        raise WorkspaceError(f"git could not be started: {error}") from error


async def _talk(process: asyncio.subprocess.Process, stdin: bytes | None) -> tuple[int, bytes, bytes]:
    try:
        out, err = await process.communicate(stdin)
    except asyncio.CancelledError:
        await asyncio.shield(asyncio.ensure_future(_end(process)))
        raise
    return await process.wait(), out or b"", err


async def _end_started(starting: asyncio.Future[asyncio.subprocess.Process]) -> None:
    with suppress(OSError, ValueError):  # it could not be started, so there is nothing to end
        await _end(await starting)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Ends git's whole session: terminates it first, so that git removes its lock files, then kills it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):  # it has ended
            os.killpg(process.pid, number)
        with suppress(TimeoutError):  # then it is killed
            async with asyncio.timeout(_PATIENCE_S):
                await process.wait()
            return
