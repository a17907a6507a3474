"""Errors that a service answers with, and what they mean for us."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.core.errors import PermanentProviderError, TransientProviderError

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
        """Returns the body's `error` object, the body itself when it has none, or nothing when it is no JSON object."""
        try:
            body = json.loads(self.text)
        except ValueError:  # an error page of a proxy
            return {}
        inner = body.get("error", body) if isinstance(body, dict) else {}
        return inner if isinstance(inner, dict) else {"message": inner}

    @property
    def told(self) -> str:
        """Returns what the server says in words, on one line."""
        message = self.details.get("message")
        return one_line(message if isinstance(message, str) and message else self.text)


def one_line(text: str) -> str:
    """Returns the beginning of `text` without line breaks, for a message."""
    short = " ".join(text[: PREVIEW * 4].split())
    return short if len(short) <= PREVIEW else f"{short[:PREVIEW]}…"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait: `retry-after-ms`, else `retry-after` in seconds.

    None when it asks for nothing usable, such as a date: our own backoff counts then.
    """
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:  # missing, or a date
            continue
        return seconds if math.isfinite(seconds) and seconds > 0 else None
    return None


def refused(refusal: Refusal, provider: str) -> TransientProviderError | PermanentProviderError:
    """Returns the error that an error status means."""
    message = f"{provider} answered {refusal.status}: {refusal.told}"
    details = {"provider_name": provider, "original_message": refusal.text}
    if NO_FUNDS & {str(refusal.details.get("code")), str(refusal.details.get("type"))} or refusal.status == 402:
        # Concerns every story as a wrong key does: kind `auth` pauses the sprint.
        return PermanentProviderError(message, kind="auth", code="provider.quota", **details)
    # Bedrock has no code for it.
    no_model = refusal.details.get("code") == "model_not_found" or "model identifier is invalid" in refusal.told
    if refusal.status == 404 or no_model:
        return PermanentProviderError(message, kind="model", **details)
    if refusal.status in {401, 403}:
        return PermanentProviderError(message, kind="auth", **details)
    kind = _transient_kind(refusal.status)
    if kind is None:
        return PermanentProviderError(message, kind="bad_request", **details)
    return TransientProviderError(message, kind=kind, retry_after_s=retry_after(refusal.headers), **details)


def _transient_kind(status: int) -> str | None:
    if status == 429:
        return "rate_limit"
    if status in {408, 504}:
        return "timeout"
    # Servers answer 409 and 425 when they want the same request a little later.
    return "overloaded" if status >= 500 or status in {409, 425} else None


def unexpected(provider: str, content_type: str, text: str) -> TransientProviderError:
    """Returns the error of a success status whose body is no reply.

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
