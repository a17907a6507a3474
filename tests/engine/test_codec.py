"""Our errors survive the journey through the engine's records."""

import inspect
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core import errors
from orchestrator.core.finding import Finding, Severity, Where
from orchestrator.engine.step_results import DEFLATED, LARGE, pack, restored, storable, unpack

CLASSES = [cls for cls in vars(errors).values() if inspect.isclass(cls) and issubclass(cls, errors.OrchestratorError)]
texts = st.text(st.characters(exclude_categories=())) | st.text(min_size=480, max_size=600)
findings = st.builds(
    Finding,
    code=st.from_regex(r"[a-z]{1,9}\.[a-z_]{1,9}", fullmatch=True),
    severity=st.sampled_from(Severity),
    message=texts,
    where=st.builds(Where, line=st.none() | st.integers(1, 9), file=st.none() | texts),
    fix=texts,
)
DETAILS: dict[type[errors.OrchestratorError], dict[str, st.SearchStrategy[Any]]] = {
    errors.FromProvider: {"provider_name": texts, "original_message": texts},
    errors.ProviderError: {"kind": texts, "code": texts},
    errors.TransientProviderError: {"retry_after_s": st.none() | st.floats(0, 1e6)},
    errors.SprintLocked: {"pid": st.integers(1, 10**6)},
}


@st.composite
def raised(draw: st.DrawFn) -> errors.OrchestratorError:
    cls = draw(st.sampled_from(CLASSES))
    details = {name: draw(some) for base, own in DETAILS.items() if issubclass(cls, base) for name, some in own.items()}
    return cls(draw(texts), findings=draw(st.lists(findings, max_size=3)), **details)


@given(error=raised())
def test_every_error_comes_back_as_it_was(error: errors.OrchestratorError) -> None:
    back = unpack(restored(json.loads(json.dumps(storable(pack(error))[0]))))
    assert type(back) is type(error)
    assert vars(back) == vars(error)
    assert str(back) == str(error) == error.message


@given(filling=st.text(st.characters(exclude_categories=()), max_size=40), times=st.integers(0, 3000))
def test_what_is_not_small_comes_back_whole_and_takes_less(filling: str, times: int) -> None:
    data = {"value": [f"{filling}/{number}" for number in range(times)], "name": "deflated"}
    stored, text = storable(data)
    written = json.dumps(stored, ensure_ascii=False).encode()
    assert restored(json.loads(written)) == data == json.loads(text)
    assert len(written) <= max(DEFLATED + 20, len(text) * 3 // 4) or len(text) >= LARGE


def test_a_class_of_another_version_becomes_the_base() -> None:
    packed = {**pack(errors.PermanentProviderError("broken", kind="auth")), "class": "GoneError"}
    assert type(unpack(packed)) is errors.OrchestratorError
