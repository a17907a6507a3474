"""What git needs to be let in by a remote repository: in no command line, no configuration file and no message."""

import asyncio
import fcntl
import os
import secrets
import shlex
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.adapters.git import remote_command
from orchestrator.adapters.remote_address import RemoteAddress
from orchestrator.domain.redaction import secrets_of
from orchestrator.errors import RepositoryError

TOKEN, SSH_KEY = "GIT_TOKEN", "GIT_SSH_KEY"
"""Variables of ours: a token for https, a private key for ssh."""
_HELD = "ORCHESTRATOR_REMOTE_TOKEN"
_ANYBODY = "x-access-token"
"""User name beside a token where the address has none; the forges that look at it take this one."""
_HELPER = """!f() { test "$1" = get && printf 'username=%s\\npassword=%s\\n' {user} "${held}"; }; f"""
_HTTP: tuple[str, ...] = (
    "http.followRedirects=initial",
    "http.lowSpeedLimit=500",
    "http.lowSpeedTime=60",
    "http.sslVerify=true",
)
_PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy")
_NOWHERE = "/nonexistent"
_OTHER_SIDE = ("safe.directory=*", "receive.denyNonFastForwards=true", "receive.denyDeletes=true")
_SSH = (
    "BatchMode=yes",
    "StrictHostKeyChecking=accept-new",
    "GlobalKnownHostsFile=/dev/null",
    "UpdateHostKeys=no",
    "ConnectTimeout=20",
    "ServerAliveInterval=15",
    "ServerAliveCountMax=4",
    "ForwardAgent=no",
    "ForwardX11=no",
    "PermitLocalCommand=no",
    "ControlMaster=no",
    "ControlPath=none",
    "LogLevel=ERROR",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How one call of git gets in."""

    protocol: str
    settings: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    known: tuple[str, ...] = field(default=(), repr=False)
    """Secrets that may stand in no message."""
    given: str = ""
    """Name of the variable that lets us in; "" when there is none."""

    def option(self, program: str) -> tuple[str, ...]:
        """Option for the other side's `program`, upload-pack or receive-pack, where we are the ones who start it."""
        return (f"--{program}={remote_command(program, _OTHER_SIDE)}",) if self.protocol == "file" else ()


@asynccontextmanager
async def let_in(address: RemoteAddress, folder: Path, variables: Mapping[str, str]) -> AsyncIterator[Access]:
    """What lets git in at `address`; a key for ssh is a file in `folder` meanwhile. Raises RepositoryError."""
    held = _held(address, folder, variables)
    entering = asyncio.ensure_future(asyncio.to_thread(held.__enter__))
    try:
        yield await asyncio.shield(entering)
    finally:
        # Also when we are cancelled at any moment: no key stays behind.
        await asyncio.wait({entering})
        if entering.exception() is None:
            await asyncio.shield(asyncio.ensure_future(asyncio.to_thread(held.__exit__, None, None, None)))


@contextmanager
def _held(address: RemoteAddress, folder: Path, variables: Mapping[str, str]) -> Iterator[Access]:
    known = secrets_of(variables)
    if address.protocol == "file":
        yield Access(protocol="file", known=known)
    elif address.protocol == "ssh":
        with _key(folder, variables.get(SSH_KEY, "")) as key:
            yield Access(
                protocol="ssh",
                variables=_ssh(folder, key, variables),
                known=known,
                given=SSH_KEY if key else "",
            )
    else:
        yield _by_token(address, variables, known)


def _by_token(address: RemoteAddress, variables: Mapping[str, str], known: tuple[str, ...]) -> Access:
    token = variables.get(TOKEN, "").strip()
    if not token.isprintable() or " " in token:
        raise RepositoryError(f"{TOKEN} holds a blank or a line break: set it to the token alone")
    # HOME: the library that git speaks https with would look for a .netrc there.
    environment = {"HOME": _NOWHERE, **{name: variables[name] for name in _PROXIES if variables.get(name)}}
    if variables.get("SSL_CERT_FILE"):
        environment["GIT_SSL_CAINFO"] = variables["SSL_CERT_FILE"]
    settings = _HTTP
    if token:
        environment[_HELD] = token
        # git asks the helper for this very host alone: a redirect to another one gets no token.
        where = f"credential.{address.protocol}://{address.host}.helper"
        helper = _HELPER.replace("{user}", shlex.quote(address.user or _ANYBODY)).replace("{held}", _HELD)
        settings = (*settings, f"{where}={helper}")
    return Access(
        protocol=address.protocol,
        settings=settings,
        variables=environment,
        known=(*known, token) if token else known,
        given=TOKEN if token else "",
    )


def _ssh(folder: Path, key: Path | None, variables: Mapping[str, str]) -> dict[str, str]:
    program = shutil.which("ssh")
    if program is None:
        raise RepositoryError("ssh is not installed, or not on PATH: name the repository by https, or install it")
    words = [program, "-F", "none"]
    for option in (*_SSH, f"UserKnownHostsFile={_quoted(folder / 'known_hosts')}"):
        words += ["-o", option]
    if key is not None:
        words += ["-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none", "-o", f"IdentityFile={_quoted(key)}"]
    environment = {"GIT_SSH_COMMAND": shlex.join(words), "GIT_SSH_VARIANT": "ssh"}
    if key is None and variables.get("SSH_AUTH_SOCK"):
        environment["SSH_AUTH_SOCK"] = variables["SSH_AUTH_SOCK"]
    return environment


def _quoted(path: Path) -> str:
    """As ssh reads a value: blanks end it, and a percent sign begins a name for something."""
    return '"' + str(path).replace("%", "%%") + '"'


@contextmanager
def _key(folder: Path, text: str) -> Iterator[Path | None]:
    """The private key as a file that only we can read, removed at the end; None when there is none."""
    if not text.strip():
        yield None
        return
    if "PRIVATE KEY" not in text:
        raise RepositoryError(f"{SSH_KEY} holds no private key: set it to the text of the file, all lines of it")
    lines = text.replace("\r\n", "\n") if "\n" in text.strip() else text.replace("\\n", "\n")
    remove_keys(folder)
    path = folder / f"key-{secrets.token_hex(8)}"
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        os.write(fd, (lines.strip() + "\n").encode())
        yield path
    finally:
        path.unlink(missing_ok=True)
        os.close(fd)


def remove_keys(folder: Path) -> None:
    """Remove the keys that a killed process left in `folder`; one in use is locked by its user. Blocks."""
    for path in folder.glob("key-*"):
        with suppress(OSError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            path.unlink()
