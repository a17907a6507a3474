"""What a model server's refusals mean: status, headers and body → one of our provider errors."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from orchestrator.errors import PermanentProviderError, TransientProviderError

PREVIEW = 200
"""Characters of a foreign body that a message shows."""
NO_FUNDS = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_error", "billing_not_active"})
"""Codes and types of a refusal that no waiting mends, whatever its status: the account has to be paid for."""


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """An error status as it came."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case, or a mapping that ignores case."""
    text: str
    """The body."""

    @property
    def details(self) -> Mapping[str, Any]:
        """The body's `error` object, the body itself when it has none, or nothing when it is no JSON object."""
        try:
            body = json.loads(self.text)
        except ValueError:
            return {}
        inner = body.get("error", body) if isinstance(body, dict) else {}
        return inner if isinstance(inner, dict) else {"message": inner}

    @property
    def told(self) -> str:
        """What the server says in words, on one line."""
        message = self.details.get("message")
        return one_line(message if isinstance(message, str) and message else self.text)


def one_line(text: str) -> str:
    """The beginning of `text` without line breaks, for a message."""
    short = " ".join(text[: PREVIEW * 4].split())
    return short if len(short) <= PREVIEW else f"{short[:PREVIEW]}…"


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that the server asks to wait: `retry-after-ms`, else `retry-after` as seconds or as an HTTP date.

    None when it asks for nothing usable, or for a time that has passed: our own backoff counts then.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000 if milliseconds > 0 else None
    wished = headers.get("retry-after")
    seconds = _number(wished)
    if seconds is None and wished:
        seconds = _until(wished, now)
    return seconds if seconds is not None and seconds > 0 else None


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _until(date: str, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except (ValueError, OverflowError):
        return None
    # A date without a zone is UTC by the standard.
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now).total_seconds()


def refused(refusal: Refusal, provider: str, now: datetime) -> TransientProviderError | PermanentProviderError:
    """The error that an error status means."""
    message = f"{provider} answered {refusal.status}: {refusal.told}"
    details = {"provider_name": provider, "original_message": refusal.text}
    if NO_FUNDS & {str(refusal.details.get("code")), str(refusal.details.get("type"))} or refusal.status == 402:
        # Concerns every story as a wrong key does: kind `auth` pauses the sprint.
        return PermanentProviderError(message, kind="auth", code="provider.quota", **details)
    if refusal.status in {401, 403}:
        return PermanentProviderError(message, kind="auth", **details)
    kind = _transient_kind(refusal.status)
    if kind is None:
        return PermanentProviderError(message, kind="bad_request", **details)
    return TransientProviderError(message, kind=kind, retry_after_s=retry_after(refusal.headers, now), **details)


def _transient_kind(status: int) -> str | None:
    if status == 429:
        return "rate_limit"
    if status in {408, 504}:
        return "timeout"
    # 409 and 425 are told by servers that want the same request a little later.
    return "overloaded" if status >= 500 or status in {409, 425} else None


def unexpected(provider: str, content_type: str, text: str) -> TransientProviderError:
    """A success status whose body is no reply.

    Transient, because it is a gateway's page or a server that is just starting: the same request is right and may
    succeed. A wrong base URL looks the same and ends after `provider.max_attempts`; the message shows what came.
    """
    return TransientProviderError(
        f"{provider} answered 200 with something that is no reply ({content_type or 'no content type'}): "
        f"{one_line(text) or 'an empty body'}; is the base URL right?",
        kind="overloaded",
        code="provider.shape",
        provider_name=provider,
        original_message=text,
    )
