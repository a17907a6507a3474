"""Why git could not talk to a remote repository, from what it said: to be tried again or not, and what to do."""

import re

from orchestrator.adapters.remote_access import SSH_KEY, TOKEN, Access
from orchestrator.adapters.remote_address import RemoteAddress
from orchestrator.domain.redaction import redact
from orchestrator.domain.words import printable
from orchestrator.errors import RepositoryError, RepositoryUnreachable

_NETWORK = re.compile(
    r"could not resolve host|temporary failure in name resolution|name or service not known|couldn't connect to server"
    r"|failed to connect|connection (refused|reset|timed out|closed|was aborted)|operation (timed out|too slow)"
    r"|timeout was reached|network is unreachable|no route to host|host is down|broken pipe|early eof"
    r"|unexpected disconnect|hung up unexpectedly|recv failure|send failure|empty reply from server"
    r"|transfer closed|http/2 stream|ssl_error_syscall|gnutls_handshake\(\) failed|tls connection was non-properly"
    r"|kex_exchange_identification|returned error: (429|5\d\d)|http 5\d\d|http 429",
    re.IGNORECASE,
)
_ACCESS = re.compile(
    r"authentication failed|could not read (username|password)|permission denied( \(|, please)"
    r"|permission to .* denied|access denied"
    r"|returned error: (401|403|404)|repository .*not found|repository not found|terminal prompts disabled"
    r"|invalid username|bad credentials|http basic: access denied|does not exist or you do not have",
    re.IGNORECASE,
)
_HOST_KEY = re.compile(r"host key verification failed|remote host identification has changed", re.IGNORECASE)
_SAID = re.compile(r"^(?:fatal|error|remote|ssh|kex_\w+|git@\S+): ?(.*)", re.IGNORECASE)
_SHOWN = 300


def trouble(message: str, address: RemoteAddress, access: Access) -> RepositoryError:
    """The error to raise for what git said: RepositoryUnreachable where the same may succeed later.

    Its message has no secret and gives a terminal no orders.
    """
    said = redact(_short(message), access.known)
    if _HOST_KEY.search(message):
        return RepositoryError(
            f"{address}: the server shows another key than last time; if that is right, remove its line from "
            f"repositories/known_hosts in the state folder ({said})"
        )
    if _ACCESS.search(message):
        return RepositoryError(f"{address}: {_let_in(address, access)} ({said})")
    if _NETWORK.search(message):
        return RepositoryUnreachable(f"{address} cannot be reached ({said})")
    return RepositoryError(f"{address}: {said}")


def _let_in(address: RemoteAddress, access: Access) -> str:
    if address.protocol == "ssh":
        if access.given:
            return f"the key in {SSH_KEY} is not let in; it must be known there, and have no passphrase"
        return f"set {SSH_KEY} to a private key that is known there"
    if address.protocol == "file":
        return "it cannot be read"
    if access.given:
        return f"{TOKEN} is not let in, or there is no such repository"
    return f"there is no such repository, or {TOKEN} has to be set to a token for it"


def _short(message: str) -> str:
    """The lines that say something, in one."""
    text = re.sub(r"^git [a-z-]+: ", "", message)
    lines = [" ".join(printable(line, keep="").split()) for line in text.splitlines()]
    telling = [line for line in lines if _SAID.match(line) and "correct access rights" not in line]
    return "; ".join(dict.fromkeys(telling or filter(None, lines)))[-_SHOWN:]
