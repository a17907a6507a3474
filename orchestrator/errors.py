"""One family of errors, sorted by what the caller does next. Data stands in attributes; code branches on types."""

from collections.abc import Sequence
from typing import Any

MESSAGE_CAP = 500
"""Characters of a foreign message that are kept (spec 3)."""


class OrchestratorError(Exception):
    """Base of everything this project raises on purpose.

    `message` is one sentence for people. `findings` are `domain.findings.Finding` values (this floor imports nothing,
    so they travel untyped).
    """

    def __init__(self, message: str, *, findings: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.findings = tuple(findings)


class UserError(OrchestratorError):
    """Something the user must change before anything can run: told in one message, exit code 2."""


class ConfigError(UserError):
    """The configuration (file, environment, --set or command line) names or holds something unusable."""


class BacklogError(UserError):
    """The backlog cannot be used as it is; findings name rows and lines."""


class RepositoryError(UserError):
    """The repository cannot be used as it is."""


class SprintLocked(UserError):
    """Another living process works on this sprint."""

    def __init__(self, message: str, *, pid: int) -> None:
        super().__init__(message)
        self.pid = pid


class _FromProvider(OrchestratorError):
    """Shared shape of everything a provider's answer can make us raise (spec 3)."""

    def __init__(
        self, message: str, *, provider_name: str = "", original_message: str = "", findings: Sequence[Any] = ()
    ) -> None:
        super().__init__(message, findings=findings)
        self.provider_name = provider_name
        self.original_message = original_message[:MESSAGE_CAP]


class ProviderError(_FromProvider):
    """The call itself failed; `kind` is rate_limit, overloaded, timeout, connection, auth or bad_request."""

    kind = "provider"

    def __init__(
        self, message: str, *, kind: str = "", code: str = "", provider_name: str = "", original_message: str = ""
    ) -> None:
        super().__init__(message, provider_name=provider_name, original_message=original_message)
        self.kind = kind or self.kind
        self.code = code or f"provider.{self.kind}"


class TransientProviderError(ProviderError):
    """The same request may succeed later: retried under the transport policy. `retry_after_s` is the server's wish."""

    def __init__(self, message: str, *, retry_after_s: float | None = None, **details: str) -> None:
        super().__init__(message, **details)
        self.retry_after_s = retry_after_s


class PermanentProviderError(ProviderError):
    """The same request will never succeed: stops the story (kind `auth` pauses the sprint)."""


class BudgetExceeded(ProviderError):
    """A configured budget of calls is used up: stops the story."""

    kind = "budget"


class SchemaValidationError(_FromProvider):
    """The reply came, its content does not fit: asked again with its findings, never a transport retry."""


class AnswerRefused(SchemaValidationError):
    """No value could be extracted without guessing."""


class AnswerTruncated(SchemaValidationError):
    """The answer was cut off and its missing part did not come."""


class AnswerInvalid(SchemaValidationError):
    """A value was extracted and does not satisfy its contract or checks."""


class ContractViolation(OrchestratorError):
    """Something lies outside the architecture contract."""


class WorkspaceError(OrchestratorError):
    """git or the file system did not do what was asked; the message names the operation."""


class NeedsHuman(OrchestratorError):
    """Only a person can decide how the story goes on."""
