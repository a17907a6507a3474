"""What common models cost where the settings name no price: the vendors' list prices, as they were at `AS_OF`."""

import re
from collections.abc import Mapping

from orchestrator.core.calls.exchange import Usage
from orchestrator.settings.model import PriceSettings

AS_OF = "2026-11"
# Model → US dollars per million tokens: input, input from the cache, input written to the cache, output. Of prices that
# rise with the prompt's length the first ones: no prompt of ours comes near the second step.
_LISTED: dict[str, tuple[float, float, float, float]] = {
    "claude-fable-5": (10, 1, 12.5, 50),
    "claude-fable-5-1": (10, 0.25, 12.5, 50),
    "claude-fable-5-2": (8, 0.2, 10, 40),
    "claude-haiku-4-5": (1, 0.1, 1.25, 5),
    "claude-haiku-5-5": (0.1, 0.01, 0.125, 0.5),
    "claude-opus-4-1": (15, 1.5, 18.75, 75),
    "claude-opus-4-5": (5, 0.5, 6.25, 25),
    "claude-opus-4-6": (5, 0.5, 6.25, 25),
    "claude-opus-4-7": (5, 0.5, 6.25, 25),
    "claude-opus-4-8": (5, 0.5, 6.25, 25),
    "claude-opus-5": (5, 0.5, 6.25, 25),
    "claude-opus-5-5": (4, 0.2, 5, 20),
    "claude-sonnet-4-5": (3, 0.3, 3.75, 15),
    "claude-sonnet-4-6": (3, 0.3, 3.75, 15),
    "claude-sonnet-5": (2, 0.2, 2.5, 10),
    "claude-sonnet-5-5": (2, 0.1, 2.5, 10),
    "gpt-4.1": (2, 0.5, 2, 8),
    "gpt-4.1-mini": (0.4, 0.1, 0.4, 1.6),
    "gpt-4.1-nano": (0.1, 0.025, 0.1, 0.4),
    "gpt-4o": (2.5, 1.25, 2.5, 10),
    "gpt-4o-mini": (0.15, 0.075, 0.15, 0.6),
    "gpt-5": (1.25, 0.125, 1.25, 10),
    "gpt-5-mini": (0.25, 0.025, 0.25, 2),
    "gpt-5-nano": (0.05, 0.005, 0.05, 0.4),
    "gpt-5.1": (1.25, 0.125, 1.25, 10),
    "gpt-5.2": (1.75, 0.175, 1.75, 14),
    "gpt-5.3": (1.75, 0.175, 1.75, 14),
    "gpt-5.3-codex": (1.75, 0.175, 1.75, 14),
    "gpt-5.4": (2.5, 0.25, 2.5, 15),
    "gpt-5.4-mini": (0.75, 0.075, 0.75, 4.5),
    "gpt-5.4-nano": (0.2, 0.02, 0.2, 1.25),
    "gpt-5.5": (5, 0.5, 5, 30),
    "gpt-5.6-luna": (0.2, 0.02, 0.25, 1.2),
    "gpt-5.6-sol": (4, 0.4, 5, 20),
    "gpt-5.6-terra": (2, 0.2, 2.5, 12),
    "gpt-6-astra": (10, 1, 12.5, 50),
    "gpt-6-luna": (0.1, 0.01, 0.125, 0.5),
    "gpt-6-sol": (2, 0.2, 2.5, 10),
    "gpt-6.1-sol": (2, 0.1, 2.5, 10),
    "gpt-6.1-terra": (1, 0.05, 1.25, 5),
    "o3": (2, 0.5, 2, 8),
    "o4-mini": (1.1, 0.275, 1.1, 4.4),
}
# What clouds and gateways write around a model's own name: `us.anthropic.claude-haiku-4-5-20251001-v1:0` (Bedrock),
# `claude-haiku-4-5@20251001` (Vertex), `anthropic/claude-haiku-4.5:beta` (gateways), `databricks-claude-haiku-4-5`.
_BEFORE = re.compile(r"\A(?:.*/)?(?:(?:[a-z-]+\.)?(?:anthropic|openai)\.|databricks-)?", re.DOTALL)
_BEHIND = re.compile(
    r"(?:\[1m\]|:(?:beta|thinking|nitro|floor|online|exacto|extended))?(?:@[\w-]+)?(?:-v\d+(?::\d+(?::\d+k)?)?)?\Z"
)
# `claude-haiku-4-5-20251001`, `gpt-4o-2024-08-06`, `…-latest`: the same model under a dated name.
_DATED = re.compile(r"-(?:20\d{6}|20\d\d-\d\d-\d\d|latest)\Z")


def _spelled(name: str) -> str:
    """Returns a name in one spelling: gateways and deployments write `-` where vendors write a dot."""
    return name.strip().casefold().replace(".", "-").replace("_", "-")


def _names(model: str) -> tuple[str, ...]:
    """Returns spellings of a model's names, the most particular first: as it stands, its own, and without a date."""
    bare = _BEHIND.sub("", _BEFORE.sub("", model.strip().casefold(), count=1), count=1)
    return tuple(map(_spelled, (model, bare, _DATED.sub("", bare))))


_SPELLED = {_spelled(name): price for name, price in _LISTED.items()}


def find_price(prices: Mapping[str, PriceSettings], *models: str) -> PriceSettings | None:
    """Returns the price of a call, by the names of its model, the best one first; None where none of them has one.

    Any price of the settings goes before a list price. That of a model's own name is also that of its dated names and
    of its ids at clouds and gateways.
    """
    own = {_spelled(name): price for name, price in prices.items()}
    for model in models:
        found = [prices.get(model), *map(own.get, _names(model))]
        if (price := next((one for one in found if one is not None), None)) is not None:
            return price
    names = [name for model in models for name in _names(model)]
    if (listed := next((_SPELLED[name] for name in names if name in _SPELLED), None)) is None:
        return None
    plain, cached, write, output = listed
    return PriceSettings(input=plain, cached=cached, cache_write=write, output=output)


def cost_of(price: PriceSettings, usage: Usage, written: int = 0) -> float:
    """Returns the US dollars of a call; `written` of its input tokens went into the provider's cache."""
    cached = price.input if price.cached is None else price.cached
    write = price.input if price.cache_write is None else price.cache_write
    plain = max(0, usage.input - usage.cached - written)
    return (plain * price.input + usage.cached * cached + written * write + usage.output * price.output) / 1_000_000
