"""A daemon over HTTP: what may be sent where, each failure as one sentence, and its event log without loss."""

import json
import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import httpx2
from pydantic import ValidationError

from orchestrator import __version__
from orchestrator.core.errors import ConfigError, UnknownName
from orchestrator.core.event import Event
from orchestrator.core.finding import Finding
from orchestrator.files.hosts import is_loopback
from orchestrator.records.logs import LogQuery, Pause, Tell

API = "/api/v1"
TOKEN = "ORCHESTRATOR_TOKEN"
PLAIN_HTTP = "ORCHESTRATOR_PLAIN_HTTP"
"""Set to 1, the token is sent over plain http to any host."""
MOST_BYTES = 64 * 1024 * 1024
"""Of an answer: a daemon's is far smaller."""
TIMEOUT_S = 60.0  # a daemon may be busy with a large answer
SILENCE_S = 90.0
"""A stream of events that shows no sign of life for so long has broken."""
# Names, IPv4, and IPv6 without brackets; the library takes other characters too.
_HOST = re.compile(r"[\w.:-]+")
_MOST_CHARS = 1000  # of a message that another process wrote
_MOST_FINDINGS = 200


class DaemonAway(ConfigError):
    """The daemon cannot be reached, or not now: the same request may succeed later."""


class NoDaemon(ConfigError):
    """Something else answers at the address."""


class DaemonClient:
    """Requests to one daemon. Raises ConfigError (DaemonAway) with one sentence, and with the findings it was told."""

    def __init__(
        self,
        url: str,
        variables: Mapping[str, str],
        *,
        timeout_s: float = TIMEOUT_S,
        own: bool = False,
        kept: str | None = None,
    ) -> None:
        """`own`: it runs on this machine, whatever its address; what is sent to it passes no network.

        `kept` is the token of its state folder, which is sent where ORCHESTRATOR_TOKEN is not set.
        """
        self.url = _checked(url)
        host = httpx2.URL(self.url).host
        token = variables.get(TOKEN, "").strip()
        private = own or is_loopback(host) or host.lower().endswith(".internal")
        if token and self.url.startswith("http:") and not private and variables.get(PLAIN_HTTP) != "1":
            raise ConfigError(
                f"{self.url} is plain http: {TOKEN} is sent over https, or set {PLAIN_HTTP}=1 where no one can listen"
            )
        if not token.isascii() or not token.isprintable() or " " in token:
            raise ConfigError(f"{TOKEN} holds something that no header can: it is letters, digits and signs")
        self._named, token = bool(token), token or kept or ""
        self._client = httpx2.Client(
            headers={"user-agent": f"orchestrator/{__version__}"}
            | ({"authorization": f"Bearer {token}"} if token else {}),
            timeout=httpx2.Timeout(timeout_s, connect=min(10.0, timeout_s)),
            limits=httpx2.Limits(max_keepalive_connections=0),  # a command asks once or twice, and leaves nothing open
            follow_redirects=False,  # the token stays with the host it was meant for
            trust_env=not private,  # what is on this machine or a private network is behind no proxy
            # Reading the certificates that are trusted takes 90 ms: over plain http none is.
            verify=self.url.startswith("https:") or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        )

    def close(self) -> None:
        """Closes the connection."""
        self._client.close()

    def get(self, path: str, query: Mapping[str, str] | None = None, *, patience_s: float = TIMEOUT_S) -> Any:
        """Returns what the daemon says at a path below /api/v1."""
        return self._json("GET", path, params=query, timeout=httpx2.Timeout(patience_s, connect=10.0))

    def post(self, path: str, body: Mapping[str, Any], *, patience_s: float = TIMEOUT_S) -> Any:
        """Returns what became of a command, also where that was refused in the words of the same answer."""
        return self._json("POST", path, json=dict(body), timeout=httpx2.Timeout(patience_s, connect=10.0))

    def send_file(self, method: str, path: str, content: bytes, **query: str) -> Any:
        """Sends a content and returns the daemon's answer about it."""
        kind = {"content-type": "application/octet-stream"}
        return self._json(method, path, params=query, content=content, headers=kind)

    def events(
        self, query: Mapping[str, str], after: int, *, resumes: bool, follow: bool, opened: Callable[[], None]
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yields (number, log line) of the events after `after`: up to now, or until the connection ends.

        `resumes`: that was the last of another connection, and nothing behind it may be missed. `opened` is called once
        the daemon begins to tell.
        """
        given = {**query, "after": str(after), "follow": "true" if follow else "false"}
        headers = {"accept": "text/event-stream", "accept-encoding": "identity"} | (
            {"last-event-id": str(after)} if resumes else {}
        )
        patience = httpx2.Timeout(TIMEOUT_S, connect=10.0, read=SILENCE_S)
        try:
            with self._client.stream(
                "GET", f"{self.url}{API}/events", params=given, headers=headers, timeout=patience
            ) as response:
                if response.status_code != 200:
                    raise self._refused(response, _body(response))
                if response.headers.get("content-type", "").startswith("text/event-stream"):
                    opened()
                for told in httpx2.EventSource(response):
                    if told.event == "log":
                        yield self._line(told)
        except httpx2.SSEError as error:
            raise self._no_daemon(str(error)) from error
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            raise self._away(error) from error

    def _json(self, method: str, path: str, **more: Any) -> Any:
        try:
            with self._client.stream(method, f"{self.url}{API}{path}", **more) as response:
                body = _body(response)
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            raise self._away(error) from error
        if not response.is_success and not (response.status_code == 409 and _said(body) is None):
            raise self._refused(response, body)
        try:
            return json.loads(body)
        except ValueError as error:
            raise self._no_daemon(f"HTTP {response.status_code} with something that is no JSON") from error

    def _line(self, told: httpx2.ServerSentEvent) -> tuple[int, dict[str, Any]]:
        try:
            line = json.loads(told.data)
            number = int(told.id)
        except ValueError as error:
            raise self._no_daemon("an event that is no log line") from error
        if not isinstance(line, dict) or number < 0:
            raise self._no_daemon("an event that is no log line")
        return number, line

    def _away(self, error: Exception) -> ConfigError:
        if isinstance(error, httpx2.TimeoutException):
            return DaemonAway(f"the daemon at {self.url} does not answer")
        return DaemonAway(f"the daemon at {self.url} cannot be reached: {_reason(error)}")

    def _no_daemon(self, what: str) -> ConfigError:
        return NoDaemon(f"{self.url} does not answer as a daemon: {_short(what)}")

    def _refused(self, response: httpx2.Response, body: bytes) -> ConfigError:
        """Returns what an answer other than success means for the user."""
        status, said = response.status_code, _said(body)
        if 300 <= status < 400:
            where = _short(response.headers.get("location", "nowhere"))
            return ConfigError(f"{self.url} redirects to {where}, which is not followed: give the address itself")
        if status == 401:
            wants = f"wants a token: set {TOKEN} to its own, or give the command as its user where its state folder is"
            why = f"refuses the token in {TOKEN}: it is not its own" if self._named else wants
            return ConfigError(f"the daemon at {self.url} {why}")
        if said is None:  # a platform's edge while the daemon is being replaced, or another server
            return DaemonAway(f"{self.url} does not answer as a daemon: HTTP {status}")
        message, findings = said
        if status in {429, 503}:
            return DaemonAway(f"the daemon at {self.url} cannot answer now: {message}")
        if status >= 500:
            return ConfigError(f"the daemon at {self.url} failed: {message}")
        return (UnknownName if status == 404 else ConfigError)(message, findings=findings)


def _checked(url: str) -> str:
    """Returns the address without what an address of a daemon does not need. Raises ConfigError, without a secret."""
    try:
        parsed = httpx2.URL(url.strip())
    except (httpx2.InvalidURL, TypeError, ValueError) as error:
        raise ConfigError(f"{_short(url)} is no address of a daemon: {error}") from error
    if parsed.userinfo:
        raise ConfigError(f"an address of a daemon holds no password: it is read from {TOKEN}")
    if parsed.scheme not in {"http", "https"} or not _HOST.fullmatch(parsed.host):
        raise ConfigError(f"{_short(url)} is no address of a daemon: give one like https://daemon.example.org")
    if parsed.query or parsed.fragment:
        raise ConfigError(f"{_short(url)} is no address of a daemon: it ends before the question mark")
    return re.sub(r"(/api/v1)?/*$", "", str(parsed))  # the address of the API is taken too


def _body(response: httpx2.Response) -> bytes:
    """Returns the whole body, as long as it is not longer than any answer of ours."""
    parts, size = [], 0
    for part in response.iter_bytes():
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            raise ConfigError(f"{response.url.host} answers with more than a daemon does ({MOST_BYTES >> 20} MB)")
    return b"".join(parts)


def _said(body: bytes) -> tuple[str, list[Finding]] | None:
    """Returns the sentence and the findings of an error; None for what is no error of a daemon."""
    try:
        told = json.loads(body)
    except ValueError:  # a proxy's page and not our answer
        return None
    if not isinstance(told, dict) or not isinstance(told.get("error"), str):
        return None
    findings = told.get("findings")
    try:
        return _short(told["error"]), [Finding.model_validate(one) for one in list(findings or ())[:_MOST_FINDINGS]]
    except (ValidationError, TypeError):
        return _short(told["error"]), []


def _reason(error: Exception) -> str:
    """Returns what the network says, without the layers it went through."""
    text = str(error).strip() or type(error).__name__
    found = re.search(r"\[Errno -?\d+\] (.*)", text)
    return _short(found[1] if found else text)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MOST_CHARS else f"{line[:_MOST_CHARS]}…"


FIRST_PAUSE_S = 0.5  # a restart takes about as long
LONGEST_PAUSE_S = 30.0
"""Between two tries to reach a daemon that is away."""
LASTING_S = 60.0
"""A connection that held for so long was a good one: the next try after it comes soon."""
_FIELDS = ("timestamp", "level", "message", "event", "sprint", "story", "task", "persona")


class RemoteLog:
    """The event log of a daemon, filtered there."""

    def __init__(self, client: DaemonClient, query: LogQuery, *, after: int = 0, pause: Pause = time.sleep) -> None:
        self.seen = self._start = after
        self._client, self._query, self._pause = client, query, pause
        self._opened_at: float | None = None
        self._lost = False

    def recorded(self) -> Iterator[tuple[int, Event]]:
        """Yields (number, event) of what is wanted after `seen`, up to now. Raises ConfigError."""
        start = self.seen
        try:
            yield from self._behind(follow=False, opened=lambda: None)
        except DaemonAway as error:
            goes_on = f"; --after {self.seen} goes on from there" if self.seen > start else ""
            raise ConfigError(f"{error.message}{goes_on}") from error

    def followed(self, tell: Tell) -> Iterator[tuple[int, Event]]:
        """Yields the same forever; waits for a daemon that goes away once it was there, and reports that.

        Raises ConfigError when it cannot be reached at first, or says something that trying again does not change.
        """
        wait = FIRST_PAUSE_S
        while True:
            try:
                yield from self._behind(follow=True, opened=lambda: self._opened(tell))
                ended = f"the daemon at {self._client.url} has ended its stream of events"
            except DaemonAway as error:
                if self._opened_at is None:
                    raise
                ended = error.message
            if not self._lost:
                tell(f"{ended}; trying again from event {self.seen}")
            if self._lasted:
                wait = FIRST_PAUSE_S
            self._lost = True
            self._pause(wait)
            wait = min(wait * 2, LONGEST_PAUSE_S)

    def close(self) -> None:
        """Closes the connection."""
        self._client.close()

    def _opened(self, tell: Tell) -> None:
        if self._lost:
            tell(f"the daemon at {self._client.url} is there again")
        self._lost, self._opened_at = False, time.monotonic()

    @property
    def _lasted(self) -> bool:
        """Returns whether the connection that has just ended had worked."""
        return not self._lost and self._opened_at is not None and time.monotonic() - self._opened_at > LASTING_S

    def _behind(self, *, follow: bool, opened: Callable[[], None]) -> Iterator[tuple[int, Event]]:
        resumes, words = self.seen > self._start, self._query.words()
        for seq, line in self._client.events(words, self.seen, resumes=resumes, follow=follow, opened=opened):
            if seq > self.seen:  # never twice, whatever the other side makes of where we are
                event = self._event(seq, line)
                self.seen = seq
                yield seq, event

    def _event(self, seq: int, line: dict[str, Any]) -> Event:
        known = {"timestamp": "time", "event": "name"}
        told = {known.get(name, name): line.get(name) for name in _FIELDS}
        data = {name: value for name, value in line.items() if name not in _FIELDS and name != "seq"}
        try:
            return Event.model_validate({**told, "id": str(seq), "sprint": told["sprint"] or "", "data": data})
        except ValidationError as error:
            raise ConfigError(f"{self._client.url} does not answer as a daemon: event {seq} is no log line") from error
