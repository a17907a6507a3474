"""Mutations applied to a text, and chance that always falls the same way."""

import os
import random
from collections.abc import Sequence
from typing import Any

from orchestrator.code.mutations import Mutation

WITHOUT_PLUGINS = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""A pytest that loads no plugin starts in a tenth of the time."""


class First(random.Random):
    """Always the first and the smallest."""

    def randint(self, a: int, b: int) -> int:
        return a

    def choice(self, seq: Sequence[Any]) -> Any:
        return seq[0]

    def sample(self, population: Sequence[Any], k: int, **more: Any) -> list[Any]:
        return list(population[:k])

    def choices(self, population: Sequence[Any], *args: Any, k: int = 1, **more: Any) -> list[Any]:
        return [population[0]] * k


def changed(text: str, mutations: Sequence[Mutation]) -> str:
    raw = text.encode()
    for one in reversed(mutations):
        raw = raw[: one.start] + one.text.encode() + raw[one.end :]
    return raw.decode()
