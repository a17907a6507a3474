"""The promises of the answer reader, each over texts and values drawn from bytes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_the_promise_is_kept(name: str) -> None:
    @settings(max_examples=examples(600))
    @given(data=st.binary(max_size=1200))
    def keeps(data: bytes) -> None:
        TARGETS[name](data)

    keeps()
