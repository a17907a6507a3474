"""Addresses of remote repositories, and git's credentials for them.

An address is parsed once, and refused if it has a password or a forbidden target. Tokens and keys never appear in a
command line, a configuration file or a message.
"""

import asyncio
import fcntl
import hashlib
import os
import re
import secrets
import shlex
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from orchestrator.core.errors import RepositoryError, RepositoryUnreachable
from orchestrator.core.secrets import redact, secrets_of
from orchestrator.core.value import Value, printable
from orchestrator.git.command import remote_command, told_lines

_HOST_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]*|\[[0-9A-Fa-f:.]+\]"
_SCP = re.compile(rf"(?P<user>[A-Za-z0-9_][\w.+~-]*)@(?P<host>{_HOST_NAME}):/?[^/].*")
"""git@host:path, the short form of ssh."""
_USER = re.compile(r"[\w.+~@-]{1,200}")
_HOST = re.compile(_HOST_NAME)
_BRANCH = re.compile(r"[^\s~^:?*\[\\@-][^\s~^:?*\[\\]*")
_PRIVATE = re.compile(r"127\.\d+\.\d+\.\d+|\[::1\]|localhost|[\w.-]+\.internal", re.IGNORECASE)
"""Hosts that may be used without encryption: this machine, and private networks."""


class RemoteAddress(Value):
    """Address of a remote repository, without secrets."""

    url: str
    """In git's syntax."""
    branch: str = ""
    """The branch to follow; "" for the remote's default branch."""
    protocol: str
    """https, http, ssh or file: the only protocol that git may use for it."""
    user: str = ""
    host: str = ""
    """Host name, with a port if given."""

    def __str__(self) -> str:
        return f"{self.url}#{self.branch}" if self.branch else self.url

    @property
    def slug(self) -> str:
        """A folder's name: readable, and unique for the address without its branch."""
        name = re.sub(r"[^A-Za-z0-9._-]", "-", self.url.rstrip("/").rpartition("/")[2].removesuffix(".git"))
        return f"{name.strip('.-')[:40] or 'repository'}-{hashlib.sha256(self.url.encode()).hexdigest()[:10]}"


def is_address(text: str) -> bool:
    """Returns whether this names a remote repository rather than a folder."""
    return "://" in text or bool(re.match(r"\w+::", text)) or bool(_SCP.fullmatch(text.partition("#")[0]))


def remote_address(text: str) -> RemoteAddress:
    """Returns the address in `text`, with `#branch` behind it for another than the remote's default branch.

    Raises RepositoryError, which shows no password that is in it.
    """
    where, _, branch = text.strip().partition("#")
    if not where.isprintable() or " " in where or not unquote(where).isprintable() or "\\" in where:
        raise _refused(text, "it holds characters that no address has")
    if branch and not (_BRANCH.fullmatch(branch) and branch.isprintable()):
        raise _refused(text, "what follows # is no name for a branch")
    short = _SCP.fullmatch(where)
    if short is not None and "://" not in where:
        return RemoteAddress(url=where, branch=branch, protocol="ssh", user=short["user"], host=short["host"])
    return _with_scheme(text, where, branch)


def _with_scheme(text: str, where: str, branch: str) -> RemoteAddress:
    try:
        parts = urlsplit(where)
        port = parts.port
    except ValueError:
        raise _refused(text, "it cannot be read") from None
    protocol = parts.scheme.lower()
    if protocol not in {"https", "http", "ssh", "file"}:
        raise _refused(text, "it begins with https://, ssh:// or git@HOST:")
    if parts.password is not None or parts.query or redact(where) != where:
        raise _refused(text, "it holds a password or a token: put that into the variable GIT_TOKEN instead")
    if protocol == "file":
        if parts.netloc or not parts.path.startswith("/"):
            raise _refused(text, "an address of this machine begins with file:///")
        return RemoteAddress(url=where, branch=branch, protocol=protocol)
    userinfo, _, place = parts.netloc.rpartition("@")
    host = place if port is None else place.rpartition(":")[0]
    if not _HOST.fullmatch(host) or (userinfo and not _USER.fullmatch(userinfo)) or not parts.path.strip("/"):
        raise _refused(text, "it names no repository on a host")
    if protocol == "http" and not _PRIVATE.fullmatch(host):
        raise _refused(text, "http:// is not encrypted: write https://")
    return RemoteAddress(url=where, branch=branch, protocol=protocol, user=userinfo, host=place)


def _refused(text: str, why: str) -> RepositoryError:
    shown = re.sub(r"\?.*", "?…", re.sub(r"://.*@", "://…@", printable(text.strip(), keep="")))
    return RepositoryError(f"the address {redact(shown)!r} of a repository cannot be used: {why}")


TOKEN, SSH_KEY = "GIT_TOKEN", "GIT_SSH_KEY"
"""Variables of ours: a token for https, a private key for ssh."""
_HELD = "ORCHESTRATOR_REMOTE_TOKEN"
_ANYBODY = "x-access-token"
"""User name beside a token where the address has none; the forges that look at it take this one."""
_HELPER = """!f() { test "$1" = get && printf 'username=%s\\npassword=%s\\n' {user} "${held}"; }; f"""
_HTTP: tuple[str, ...] = (
    # A server may move a repository, and not send single requests with their credentials elsewhere.
    "http.followRedirects=initial",
    # Below 500 bytes a second for a minute, the connection counts as dead.
    "http.lowSpeedLimit=500",
    "http.lowSpeedTime=60",
    "http.sslVerify=true",
)
_PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy")
_NOWHERE = "/nonexistent"
_OTHER_SIDE = ("safe.directory=*", "receive.denyNonFastForwards=true")
_SSH = (
    "BatchMode=yes",  # never ask for a passphrase: nobody is there to type one
    # The first key of a host is kept in our own file; another one later is refused.
    "StrictHostKeyChecking=accept-new",
    "GlobalKnownHostsFile=/dev/null",
    "UpdateHostKeys=no",
    "ConnectTimeout=20",
    "ServerAliveInterval=15",
    "ServerAliveCountMax=4",
    # Nothing of this machine is lent to the server, and no connection of the user's is shared.
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
    """Yields what lets git in at `address`; a key for ssh is a file in `folder` meanwhile. Raises RepositoryError."""
    known = secrets_of(variables)
    if address.protocol == "file":
        yield Access(protocol="file", known=known)
        return
    if address.protocol != "ssh":
        yield _by_token(address, variables, known)
        return
    held = _key(folder, variables.get(SSH_KEY, ""))
    entering = asyncio.ensure_future(asyncio.to_thread(held.__enter__))
    try:
        key = await asyncio.shield(entering)
        environment = await asyncio.to_thread(_ssh, folder, key, variables)
        yield Access(protocol="ssh", variables=environment, known=known, given=SSH_KEY if key else "")
    finally:
        # Also when we are cancelled at any moment: no key stays behind.
        await asyncio.wait({entering})
        if entering.exception() is None:
            await asyncio.shield(asyncio.ensure_future(asyncio.to_thread(held.__exit__, None, None, None)))


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
    """Yields the private key as a file that only we can read, removed at the end; None when there is none."""
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
    """Removes the keys that a killed process left in `folder`; one in use is locked by its user. Blocks."""
    for path in folder.glob("key-*"):
        with suppress(OSError), path.open("rb") as file:  # locked by another process, or removed
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            path.unlink()


# Messages of git, ssh and the common hosts.
_NOT_LET_IN = re.compile(
    r"authentication failed|could not read (username|password)|permission .*denied|access denied"
    r"|returned error: 40[134]|repository .*not found|terminal prompts disabled",
    re.IGNORECASE,
)
_NETWORK = re.compile(
    r"unable to access|rpc failed|could not resolve|connect|timed out|unreachable|hung up|early eof", re.IGNORECASE
)
"""What git and ssh say where another try may succeed; all that curl says comes behind `unable to access`."""
_SHOWN = 300  # characters of git's message
_HINTS = {
    ("ssh", True): f"the key in {SSH_KEY} is not let in; it must be known there, and have no passphrase",
    ("ssh", False): f"set {SSH_KEY} to a private key that is known there",
    ("http", True): f"{TOKEN} is not let in, or there is no such repository",
    ("http", False): f"there is no such repository, or {TOKEN} has to be set to a token for it",
}
"""By the protocol and whether we have something that lets us in."""


def remote_error(message: str, address: RemoteAddress, access: Access) -> RepositoryError:
    """Returns the error to raise for git's own message: RepositoryUnreachable where another try may succeed.

    Its message has no secret and no control characters.
    """
    said = redact(_short(message), access.known)
    if "ost key verification failed" in message:
        return RepositoryError(f"{address}: the server's key is not the one in repositories/known_hosts ({said})")
    if _NOT_LET_IN.search(message):
        hint = _HINTS.get((address.protocol.removesuffix("s"), bool(access.given)), "it cannot be read")
        return RepositoryError(f"{address}: {hint} ({said})")
    if address.protocol != "file" and _NETWORK.search(message):
        return RepositoryUnreachable(f"{address} cannot be reached ({said})")
    return RepositoryError(f"{address}: {said}")


def _short(message: str) -> str:
    """Returns the lines that say something, as one."""
    return "; ".join(told_lines(re.sub(r"^git [a-z-]+: ", "", message)))[-_SHOWN:]
