"""Addresses of remote repositories: read once, and refused where they hold a password or lead where none may lead."""

import hashlib
import re
from urllib.parse import unquote, urlsplit

from orchestrator.domain.base import Value
from orchestrator.domain.redaction import redact
from orchestrator.domain.words import printable
from orchestrator.errors import RepositoryError

_HOST_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]*|\[[0-9A-Fa-f:.]+\]"
_SCP = re.compile(rf"(?P<user>[A-Za-z0-9_][\w.+~-]*)@(?P<host>{_HOST_NAME}):/?[^/].*")
"""git@host:path, the short form of ssh."""
_USER = re.compile(r"[\w.+~@-]{1,200}")
_HOST = re.compile(_HOST_NAME)
_BRANCH = re.compile(r"[^\s~^:?*\[\\@-][^\s~^:?*\[\\]*")
_PRIVATE = re.compile(r"127\.\d+\.\d+\.\d+|\[::1\]|localhost|[\w.-]+\.internal", re.IGNORECASE)
"""Hosts that are talked to without encryption: this machine, and networks that nobody else is in."""


class RemoteAddress(Value):
    """Where a remote repository is. Nothing in it is secret."""

    url: str
    """As git takes it."""
    branch: str = ""
    """The branch that is followed; "" the remote's default one."""
    protocol: str
    """https, http, ssh or file: the only one that git may use for it."""
    user: str = ""
    host: str = ""
    """With its port, where it has one."""

    def __str__(self) -> str:
        return f"{self.url}#{self.branch}" if self.branch else self.url

    @property
    def slug(self) -> str:
        """A folder's name: readable, and unique for the address without its branch."""
        name = re.sub(r"[^A-Za-z0-9._-]", "-", self.url.rstrip("/").rpartition("/")[2].removesuffix(".git"))
        return f"{name.strip('.-')[:40] or 'repository'}-{hashlib.sha256(self.url.encode()).hexdigest()[:10]}"


def is_address(text: str) -> bool:
    """Whether this names a remote repository rather than a folder."""
    return "://" in text or bool(re.match(r"\w+::", text)) or bool(_SCP.fullmatch(text.partition("#")[0]))


def remote_address(text: str) -> RemoteAddress:
    """The address in `text`, with `#branch` behind it for another than the remote's default branch.

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
