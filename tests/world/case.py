from dataclasses import dataclass
from typing import Any

import pytest


@dataclass(frozen=True, kw_only=True)
class Case:
    """An input with its right value: `seen` says in which project or answer this kind of input was met."""

    name: str
    given: Any
    right: Any
    seen: str


def table(*cases: Case) -> pytest.MarkDecorator:
    """Parametrizes a test by `case`, one row a case, named as the case is."""
    return pytest.mark.parametrize("case", cases, ids=[case.name for case in cases])
