"""The fuzzer's targets hold on their seeds, and its own parts do what they say; no fuzzer runs here."""

import pytest

from orchestrator.core.calls.wire import BreakdownAnswer, DeliveryAnswer, SuiteAnswer
from tests.fuzz.__main__ import broken, shrunk
from tests.fuzz.seeds import encoded, seeds
from tests.fuzz.source import TOKENS, Source
from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_every_seed_keeps_the_promise(name: str) -> None:
    found = [why for seed in seeds(name) if (why := broken(name, seed))]
    assert not found, found[0]


def test_any_byte_has_a_meaning_and_texts_can_be_spelled() -> None:
    assert len(Source(bytes(range(256))).rest()) > 256
    assert len(TOKENS) <= 128
    assert Source(encoded('{"a": “b”}\n')).rest() == '{"a": “b”}\n'


def test_built_answers_meet_their_contracts() -> None:
    for seed in seeds("cut"):
        DeliveryAnswer.model_validate(Source(seed).delivery())
        BreakdownAnswer.model_validate(Source(seed).breakdown())
        SuiteAnswer.model_validate(Source(seed).suite())


def test_a_finding_is_made_as_small_as_it_can_be() -> None:
    assert shrunk(lambda data: b"x" in data and b"yy" in data, b"aaxbbbbyycc" * 9) in (b"xyy", b"yyx")
