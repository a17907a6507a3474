"""Errors that a service answers with, and what they mean for us."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
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
        body = body[0] if isinstance(body, list) and body else body  # Google's
        inner = body.get("error", body) if isinstance(body, dict) else {}
        return inner if isinstance(inner, dict) else {"message": inner}

    @property
    def told(self) -> str:
        """Returns what the server says in words, on one line."""
        message = self.details.get("message")
        return one_line(message if isinstance(message, str) and message else self.text)

    @property
    def param(self) -> str:
        """Returns the field of the request that is named as what is wrong; "" where none is."""
        param = self.details.get("param")
        return param.removeprefix("body.") if isinstance(param, str) else ""

    @property
    def complaints(self) -> tuple[str, ...]:
        """Returns what is said to be wrong, one by one, without what is repeated there of the request.

        Those of pydantic, as servers in Python send them, are written as `field.path: reason`.
        """
        told = [self.details.get(name) for name in ("message", "detail")]
        text = next((one for one in told if isinstance(one, str) and one), self.text)[:_MOST_READ]
        if found := _LOCATED.findall(text):
            return tuple(f"{'.'.join(_PART.findall(path)).removeprefix('body.')}: {why}" for path, _, why in found)
        for _ in range(_DEEPEST):
            text = _OBJECT.sub(" ", text)
        text = text.partition("{")[0]  # an object that was cut
        return tuple(filter(None, _SENTENCE_END.split(_CONTINUED.sub(": ", text))))


# What stands beside it, `input`, may be the whole request.
_LOCATED = re.compile(r"""["']loc["']:\s*[(\[]([^)\]]*)[)\]],\s*["']msg["']:\s*(["'])(.*?)\2""")
_PART = re.compile(r"[\w-]+")
_OBJECT = re.compile(r"\{[^{}]*\}")
_CONTINUED = re.compile(r"\n[ \t]+")
_SENTENCE_END = re.compile(r"(?<=[.;!?])\s+|\n")
_MOST_READ, _DEEPEST = 100_000, 20


def one_line(text: str) -> str:
    """Returns the beginning of `text` without line breaks, for a message."""
    short = " ".join(text[: PREVIEW * 4].split())
    return short if len(short) <= PREVIEW else f"{short[:PREVIEW]}…"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait: `retry-after-ms`, else `retry-after` in seconds or as a date.

    None when it asks for nothing usable, such as a date that has passed: our own backoff counts then.
    """
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        told = headers.get(name, "")
        try:
            seconds: float | None = float(told) / unit
        except ValueError:  # missing, or a date
            seconds = seconds_to(told)
        if seconds is not None:
            return seconds if math.isfinite(seconds) and seconds > 0 else None
    return None


def seconds_to(text: str, now: datetime | None = None) -> float | None:
    """Returns the seconds until a time as headers write it, of RFC 3339 or of HTTP; None for anything else."""
    try:
        until = datetime.fromisoformat(text)
    except ValueError:
        try:
            until = parsedate_to_datetime(text)
        except (ValueError, OverflowError):
            return None
    if until.tzinfo is None:
        return None
    return (until - (now or datetime.now(UTC))).total_seconds()


def refused(refusal: Refusal, provider: str, through: str = "") -> TransientProviderError | PermanentProviderError:
    """Returns the error that an error status means; `through` tells of a proxy that may have answered."""
    message = f"{provider}{through} answered {refusal.status}: {refusal.told}"
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
