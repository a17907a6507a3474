"""Our errors as plain data and back: exceptions lose their class when a durable step is replayed (DESIGN 6)."""

from typing import Any

from orchestrator import errors
from orchestrator.domain.findings import Finding

_CLASSES: dict[str, type[errors.OrchestratorError]] = {
    cls.__name__: cls
    for cls in vars(errors).values()
    if isinstance(cls, type) and issubclass(cls, errors.OrchestratorError)
}


def pack(error: errors.OrchestratorError) -> dict[str, Any]:
    """The class name, message, findings and provider details of `error`, JSON-able."""
    packed: dict[str, Any] = {"class": type(error).__name__, "message": error.message}
    packed["findings"] = [finding.model_dump(mode="json") for finding in error.findings]
    if isinstance(error, errors.ProviderError):
        packed |= {
            "kind": error.kind,
            "code": error.code,
            "provider_name": error.provider_name,
            "original_message": error.original_message,
        }
    return packed


def unpack(packed: dict[str, Any]) -> errors.OrchestratorError:
    """The error that `pack` was given, as the same class."""
    cls = _CLASSES.get(packed["class"], errors.OrchestratorError)
    if issubclass(cls, errors.ProviderError):
        details = {name: packed[name] for name in ("kind", "code", "provider_name", "original_message")}
        return cls(packed["message"], **details)
    findings = [Finding.model_validate(finding) for finding in packed["findings"]]
    return cls(packed["message"], findings=findings)
