"""One family of errors, sorted by what the caller does next. Data stands in attributes; code branches on types."""

import errno
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

MESSAGE_CAP = 500
"""Characters of a foreign message that are kept."""


class OrchestratorError(Exception):
    """Base of everything this project raises on purpose.

    `message` is one sentence for people. `findings` are `core.finding.Finding` values.
    """

    def __init__(self, message: str, *, findings: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.findings = tuple(findings)


class UserError(OrchestratorError):
    """Something the user must change before anything can run: told in one message, exit code 2."""


class ConfigError(UserError):
    """The configuration (file, environment, --set or command line) names or holds something unusable."""


class UnknownName(ConfigError):
    """A name was given that nothing here has; the message names the nearest one."""


class ProviderIncomplete(ConfigError):
    """A provider has no model, key or script yet; nothing that is there is wrong."""


class RequestRefused(ConfigError):
    """What a person sent with a command or an answer cannot be used; findings say what is wrong with it."""


class BaseUnusable(ConfigError):
    """Nothing of a sprint's base commit can be run; nothing of the sprint is paid for before it can."""


class EventLogAway(ConfigError):
    """The event log's database cannot be reached, or takes nothing; the same may succeed later."""


class BacklogError(UserError):
    """The backlog cannot be used as it is; findings name rows and lines."""


class RepositoryError(UserError):
    """The repository cannot be used as it is."""


class RepositoryUnreachable(RepositoryError):
    """No connection to a remote repository came about: the same may succeed later."""


class SprintLocked(UserError):
    """Another living process works on this sprint."""

    def __init__(self, message: str, *, pid: int, findings: Sequence[Any] = ()) -> None:
        super().__init__(message, findings=findings)
        self.pid = pid


class FromProvider(OrchestratorError):
    """What a call can end in, in one shape: no answer (ProviderError), or one that does not fit.

    `original_message` is what the provider or the model said, verbatim but for its cap.
    """

    def __init__(
        self, message: str, *, provider_name: str = "", original_message: str = "", findings: Sequence[Any] = ()
    ) -> None:
        super().__init__(message, findings=findings)
        self.provider_name = provider_name
        self.original_message = original_message[:MESSAGE_CAP]


def concerns_all(kind: str) -> bool:
    """Whether an error of this kind lies at the key, the account, the model's name, or a service that is away."""
    return kind in {"auth", "model", "outage"}


class ProviderError(FromProvider):
    """Transport: no answer came; `kind` is one of `exchange.ErrorKind`, or `outage`."""

    kind = "provider"

    def __init__(self, message: str, *, kind: str = "", code: str = "", **details: Any) -> None:
        super().__init__(message, **details)
        self.kind = kind or self.kind
        self.code = code or f"provider.{self.kind}"

    @property
    def concerns_all(self) -> bool:
        """Whether every story meets it, until a person changes a key or a setting, or a service is back."""
        return concerns_all(self.kind)


class TransientProviderError(ProviderError):
    """The same request may succeed later: retried under the transport policy. `retry_after_s` is the server's wish.

    Errors with the same `row` had no answer to any call between them; "": none since this process began; None: unknown.
    """

    def __init__(
        self, message: str, *, retry_after_s: float | None = None, row: str | None = None, **details: Any
    ) -> None:
        super().__init__(message, **details)
        self.retry_after_s, self.row = retry_after_s, row


async def _no_wait() -> None:
    """Nothing is known to wait for."""


class ServiceAway(TransientProviderError):
    """A service answers no call at the moment: this one failed like those before it, or was not `begun`.

    `until` returns when the next call may be tried.
    """

    def __init__(
        self, message: str, *, begun: bool = True, until: Callable[[], Awaitable[None]] = _no_wait, **details: Any
    ) -> None:
        super().__init__(message, **details)
        self.begun, self.until = begun, until

    @classmethod
    def after(
        cls, error: TransientProviderError, message: str, *, begun: bool, until: Callable[[], Awaitable[None]]
    ) -> "ServiceAway":
        """Returns it with what is known of the last error of the service."""
        return cls(
            message,
            begun=begun,
            until=until,
            retry_after_s=error.retry_after_s,
            row=error.row,
            kind=error.kind,
            code=error.code,
            provider_name=error.provider_name,
            original_message=error.original_message,
        )


class CallWithdrawn(ProviderError):
    """The call was not sent: while it waited for its service's limits, its story was paused or its process stopped."""

    kind = "withdrawn"


class PermanentProviderError(ProviderError):
    """The same request will not succeed: stops the story (kinds `auth`, `model` and `outage` pause the sprint)."""


class BudgetExceeded(ProviderError):
    """A configured budget of calls is used up: stops the story."""

    kind = "budget"


class SchemaValidationError(FromProvider):
    """Content: answers came and were paid for, and none within the answer budget fits what was asked for.

    Raised by the answer loop, for every provider alike, and handled by the stage that asked; never a transport retry.
    `findings` start with a summary, whose code says why (`answer.truncated`, `answer.refused`, `answer.invalid`),
    followed by the findings on the last answer.
    """


class ContractViolation(OrchestratorError):
    """Something lies outside the architecture contract."""


class ProcessEnded(OrchestratorError):
    """What was answered, or what a command or a test run left, has ended the process that read it, again and again."""


class WorkspaceError(OrchestratorError):
    """git or the file system did not do what was asked; the message names the operation."""


def says_full(error: BaseException) -> bool:
    """Returns whether the error says that there is no room on a disk."""
    return isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}
