"""Our errors survive the journey through the engine's records."""

import json

import pytest

from orchestrator import errors
from orchestrator.domain.findings import major
from orchestrator.engine.codec import pack, unpack

FINDING = major("x.y", "wrong", fix="mend it")
PROVIDER = [errors.ProviderError, errors.TransientProviderError, errors.PermanentProviderError, errors.BudgetExceeded]
OTHERS = [
    errors.OrchestratorError,
    errors.ConfigError,
    errors.WorkspaceError,
    errors.ContractViolation,
    errors.NeedsHuman,
    errors.AnswerRefused,
    errors.AnswerTruncated,
    errors.AnswerInvalid,
]


@pytest.mark.parametrize("cls", PROVIDER)
def test_provider_errors_keep_class_kind_and_code(cls: type[errors.ProviderError]) -> None:
    error = cls("no", kind="auth", code="script.missing", provider_name="p", original_message="raw")
    back = unpack(json.loads(json.dumps(pack(error))))
    assert type(back) is cls
    assert isinstance(back, errors.ProviderError)
    assert (back.message, back.kind, back.code) == ("no", "auth", "script.missing")
    assert (back.provider_name, back.original_message) == ("p", "raw")


@pytest.mark.parametrize("cls", OTHERS)
def test_other_errors_keep_class_message_and_findings(cls: type[errors.OrchestratorError]) -> None:
    back = unpack(json.loads(json.dumps(pack(cls("broken", findings=[FINDING])))))
    assert type(back) is cls
    assert back.message == "broken"
    assert back.findings == (FINDING,)


def test_a_class_of_another_version_becomes_the_base() -> None:
    packed = {**pack(errors.WorkspaceError("broken")), "class": "GoneError"}
    assert type(unpack(packed)) is errors.OrchestratorError
