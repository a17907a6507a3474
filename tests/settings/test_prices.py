"""The price of a model: the settings' own, else the vendor's list price."""

import pytest

from orchestrator.settings.model import PriceSettings
from orchestrator.settings.prices import find_price

OWN = PriceSettings(input=1, output=2)


@pytest.mark.parametrize(
    ("model", "dollars"),
    [
        ("claude-sonnet-4-5", (3, 15)),
        ("claude-sonnet-4-5-20250929", (3, 15)),
        ("gpt-4o-2024-08-06", (2.5, 10)),
        ("gpt-5-mini", (0.25, 2)),
        ("gpt-5", (1, 2)),
        ("gpt-oss-20b", None),
        ("claude-sonnet-9", None),
        ("", None),
    ],
)
def test_prices(model: str, dollars: tuple[float, float] | None) -> None:
    price = find_price({"gpt-5": OWN}, model)
    assert (price and (price.input, price.output)) == dollars
