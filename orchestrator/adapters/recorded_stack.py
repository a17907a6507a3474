"""What the recorded tech stack says about the test runner, read strictly: rather nothing than a guess."""

import re
from collections.abc import Iterable, Mapping

_NAMES: Mapping[str, str] = {
    "pytest": r"python[\d.]*|cpython|pytest|django|flask|fastapi",
    "node": r"node(?:\.?js)?|javascript|typescript|express(?:\.?js)?|jest|vitest|mocha",
}
"""Runner of ours → the words that stand for it."""
_OTHERS = r"jasmine|ava|deno|bun|java|kotlin|golang|rust|ruby|rails|php|elixir|swift"
"""Other languages and runners: what names one of them does not tell which of ours is meant."""
_NOT = r"\b(?:no|not|non|never|without|except|than|instead of|replac\w+|from)[ \t]+(?:\w+[ \t]+){0,2}"
"""Words that rule out what comes right behind them."""


def recorded_runner(sources: Iterable[str]) -> str | None:
    """The runner that the first of `sources` names which names exactly one; None when none of them does.

    A source that names both, a foreign one, or one of them only to rule it out, is unclear and says nothing.
    """
    return next((runner for source in sources if (runner := _named(source)) is not None), None)


def _named(text: str) -> str | None:
    found = [runner for runner, names in _NAMES.items() if re.search(rf"\b(?:{names})\b", text, re.IGNORECASE)]
    every = "|".join((*_NAMES.values(), _OTHERS))
    unclear = re.search(rf"\b(?:{_OTHERS})\b|{_NOT}(?:{every})\b", text, re.IGNORECASE)
    return found[0] if len(found) == 1 and unclear is None else None
