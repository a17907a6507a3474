"""Login: the token once, then a cookie that proves it."""

import hashlib
import hmac
import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.requests import cookie_parser

BODY_BYTES = 4096
"""A login form is a token and a path."""
TRIES, TRIES_S = 10, 60.0
"""Wrong tokens that one address may send in so many seconds."""
_MOST_ADDRESSES = 1000
LASTS_S = 7 * 24 * 3600


def cookie_name(token: str) -> str:
    """Returns the name of the session's cookie: two boards on one machine, which cookies do not tell apart by their
    ports, do not log each other out."""
    return f"orchestrator_{hashlib.sha256(f'cookie of {token}'.encode()).hexdigest()[:8]}"


def make_session(token: str, now: float | None = None) -> str:
    """Returns a cookie's value, good for a week: when it ends, and a proof that its maker knew the token."""
    ends = str(int(time.time() if now is None else now) + LASTS_S)
    return f"{ends}.{_proof(token, ends)}"


def is_session(value: str, token: str, now: float | None = None) -> bool:
    """Returns whether the value was made with this token and is still good."""
    ends, _, proof = value.partition(".")
    return (
        hmac.compare_digest(_proof(token, ends).encode(), proof.encode("utf-8", "replace"))
        and (time.time() if now is None else now) < int(ends)  # digits: they are part of the proof
    )


class LoginTries:
    """Wrong tokens by address, in memory: after `TRIES` within `TRIES_S` the address waits, also with the right one."""

    def __init__(self) -> None:
        self._wrong: OrderedDict[str, list[float]] = OrderedDict()

    def wait_s(self, address: str, now: float) -> int:
        """Returns how many seconds the address has to wait; 0: it may try."""
        times = self._wrong.get(_network(address), [])
        return max(0, math.ceil(times[-TRIES] + TRIES_S - now)) if len(times) >= TRIES else 0

    def note_wrong(self, address: str, now: float) -> None:
        """Counts a wrong token."""
        times = self._wrong.setdefault(_network(address), [])
        self._wrong.move_to_end(_network(address))
        times[:] = [*times[1 - TRIES :], now]
        if len(self._wrong) > _MOST_ADDRESSES:
            self._wrong.popitem(last=False)


def _network(address: str) -> str:
    """Returns the address; of IPv6 its first 64 bits, the least that one customer is given."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is None:
        return str(ipaddress.ip_network((ip, 64), strict=False))
    return str(ip)


def is_token(given: bytes, token: str) -> bool:
    """Returns whether it is the token, in a time that tells nothing of it."""
    return hmac.compare_digest(given, token.encode())


def _proof(token: str, ends: str) -> str:
    return hmac.new(token.encode(), f"board session until {ends}".encode(), hashlib.sha256).hexdigest()


def has_session(headers: list[tuple[bytes, bytes]], token: str) -> bool:
    """Returns whether a request brings a good session."""
    cookies = [cookie_parser(value.decode("latin-1")) for name, value in headers if name == b"cookie"]
    name = cookie_name(token)
    return any(is_session(one[name], token) for one in cookies if name in one)


def is_same_origin(headers: list[tuple[bytes, bytes]]) -> bool:
    """Returns whether a browser says that a page of this very address sends the request.

    A cookie comes along by itself: whoever gives orders with it has to show that no other site made the browser do so.
    """
    told: Mapping[bytes, bytes] = dict(headers)
    if (site := told.get(b"sec-fetch-site")) is not None:  # which no page can set; a proxy may have changed the host
        return site == b"same-origin"
    host = told.get(b"host", b"").decode("latin-1").lower()
    try:
        netloc = urlsplit(told.get(b"origin", b"").decode("latin-1")).netloc.lower()
    except ValueError:  # not an address
        return False
    return bool(netloc) and netloc == host


def path_within(address: str) -> str:
    """Returns the address when it is a path of this server, else `/`: a login must not lead anywhere else."""
    is_path = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    return address if is_path else "/"
