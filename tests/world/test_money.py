"""Prices and budgets in money: every model that costs has a price before the first call, or the run does not start."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.core.errors import ConfigError
from orchestrator.providers.routing import check_providers
from orchestrator.settings import load
from orchestrator.settings.model import PriceSettings
from orchestrator.settings.options import ModelOptions
from orchestrator.settings.prices import find_price
from tests.world.case import Case, table

BEDROCK, VERTEX, GATEWAY, AZURE = "Bedrock's ids", "Vertex' ids", "ids of gateways", "names of deployments"
_ARN = "arn:aws:bedrock:us-east-1:123456789012:"


def price(model: str, right: float | None, seen: str) -> Case:
    return Case(name=model, given=model, right=right, seen=seen)


@table(
    price("us.anthropic.claude-sonnet-4-5-20250929-v1:0", 3, BEDROCK),
    price("eu.anthropic.claude-opus-4-5-20251101-v1:0", 5, BEDROCK),
    price("apac.anthropic.claude-haiku-4-5-20251001-v1:0", 1, BEDROCK),
    price("global.anthropic.claude-sonnet-4-6", 3, BEDROCK),
    price("anthropic.claude-opus-4-6-v1", 5, BEDROCK),
    price("us-gov.anthropic.claude-sonnet-4-5-20250929-v1:0:200k", 3, BEDROCK),
    price(f"{_ARN}inference-profile/us.anthropic.claude-haiku-4-5-20251001-v1:0", 1, BEDROCK),
    price(f"{_ARN}application-inference-profile/abc123", None, BEDROCK),
    price("openai.gpt-oss-120b-1:0", None, BEDROCK),
    price("claude-opus-4-5@20251101", 5, VERTEX),
    price("claude-sonnet-4-6@default", 3, VERTEX),
    price("projects/p/locations/us-east5/publishers/anthropic/models/claude-sonnet-4-5@20250929", 3, VERTEX),
    price("anthropic/claude-sonnet-4-5", 3, GATEWAY),
    price("anthropic/claude-sonnet-4.5:beta", 3, GATEWAY),
    price("openrouter/openai/gpt-4.1", 2, GATEWAY),
    price("vertex_ai/claude-opus-4-5@20251101", 5, GATEWAY),
    price("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", 3, GATEWAY),
    price("@openai/gpt-5", 1.25, GATEWAY),
    price("databricks-claude-sonnet-4-5", 3, GATEWAY),
    price("openai/gpt-5:free", None, GATEWAY),
    price("qwen/qwen3-coder", None, GATEWAY),
    price("azure/gpt-4o-mini", 0.15, AZURE),
    price("GPT-4.1", 2, AZURE),
    price("gpt-4-1", 2, AZURE),
    price("gpt-4o-2024-11-20", 2.5, AZURE),
    price("team-a", None, AZURE),
    price("my-gpt-4o", None, "a deployment that is called nearly as a model: what it runs nobody knows"),
    price("ft:gpt-4o-2024-08-06:org::x", None, "a fine-tuned model has a price of its own"),
    price("gpt-5-pro", None, "a model that is called nearly as another"),
    price("llama3:8b", None, "a server of one's own"),
)
def test_list_price(case: Case) -> None:
    found = find_price({}, case.given)
    assert (found and found.input) == case.right


def own(name: str, asked: tuple[str, ...], right: float | None) -> Case:
    return Case(name=f"{name} for {asked}", given=(name, asked), right=right, seen="prices of the settings")


@table(
    own("gpt-4o", ("gpt-4o-2024-08-06", "gpt-4o"), 7),
    own("claude-sonnet-4-5", ("us.anthropic.claude-sonnet-4-5-20250929-v1:0",), 7),
    own("us.anthropic.claude-sonnet-4-5-20250929-v1:0", ("claude-sonnet-4-5",), 3),
    own("team-a", ("gpt-4o-2024-08-06", "team-a"), 7),
    own("gpt-4o-2024-05-13", ("gpt-4o-2024-08-06",), 2.5),
    own("gpt-4o-2024-05-13", ("openai/gpt-4o-2024-05-13",), 7),
    own("anthropic/claude-sonnet-4.5", ("anthropic/claude-sonnet-4.5",), 7),
)
def test_own_price(case: Case) -> None:
    name, asked = case.given
    found = find_price({name: PriceSettings(input=7, output=7)}, *asked)
    assert (found and found.input) == case.right


def started(tmp_path: Path, *given: str, **variables: str) -> str:
    """What a run says of these settings before it starts; "" when it starts."""
    keys = {"ANTHROPIC_API_KEY": "sk-1", "OPENAI_API_KEY": "sk-2", "AWS_REGION": "us-east-1"}
    settings, environment = load(None, given, {**keys, **variables}, tmp_path)
    try:
        check_providers(ModelOptions(), settings, environment)
    except ConfigError as error:
        return error.message
    return ""


def budget(name: str, *given: str, right: str = "") -> Case:
    return Case(name=name, given=given, right=right, seen="a budget on Bedrock that never ended a sprint")


USD, OWN, OPUS = "budget.usd_per_sprint=5", "provider.name=openai", "eu.anthropic.claude-opus-4-5-20251101-v1:0"


@table(
    budget("unknown", USD, OWN, "provider.model=team-a", right="--set prices.team-a.input="),
    budget("unknown in a story", "budget.usd_per_story=1", OWN, "provider.model=m", right="budget.usd_per_story"),
    budget("unknown in a day", "budget.usd_per_day=1", OWN, "provider.model=m", right="budget.usd_per_day"),
    budget("a persona's", USD, OWN, "provider.model=gpt-5", "personas.alex.model=m.2", right="prices.m.2.input"),
    budget("a stronger one", USD, OWN, "provider.model=gpt-5", "models.strong={model: big}", right="prices.big.input"),
    budget("a cheap one", USD, OWN, "provider.model=gpt-5", "models.cheap={model: tiny}", right="prices.tiny.input"),
    budget(
        "one that stands in", USD, OWN, "provider.model=gpt-5", "provider.fallback=[{model: spare}]",
        right="prices.spare.input",
    ),
    budget("known on Bedrock", USD, "provider.name=bedrock", f"provider.model={OPUS}"),
    budget("named", USD, OWN, "provider.model=my.v2", "prices.my.v2.input=1", "prices.my.v2.output=2"),
    budget("free", USD, OWN, "provider.model=local", "prices.local={input: 0, output: 0}"),
    budget("tokens alone", "budget.tokens_per_sprint=1000", OWN, "provider.model=local"),
    budget("no budget", OWN, "provider.model=local"),
    budget("a script", USD, "provider.script=team.jsonl", right="team.jsonl"),
)  # fmt: skip
def test_start(tmp_path: Path, case: Case) -> None:
    told = started(tmp_path, *case.given)
    assert case.right in told
    assert bool(told) == bool(case.right)


def name(text: str, value: str, right: Any, *, seen: str = "a name with dots or capitals") -> Case:
    return Case(name=text, given=(text, value), right=right, seen=seen)


def at(settings: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        settings = settings[part] if isinstance(settings, dict) else getattr(settings, part)
    return settings


FILE = "prices: {gpt-4.1: {input: 9, output: 9}}\npersonas: {bob: {model: b}}\n"
GIVEN = (
    name("prices.gpt-4.1.input", "3", (("prices", "gpt-4.1", "input"), 3)),
    name("prices.gpt-4.1.cache_write", "3", (("prices", "gpt-4.1", "cache_write"), 3)),
    name("prices.Qwen/Qwen2.5-7B", "{input: 1, output: 2}", (("prices", "Qwen/Qwen2.5-7B", "output"), 2)),
    name("personas.bob.stronger.model", "c", (("personas", "bob", "stronger", "model"), "c")),
    name("personas.Ann.B.timeout_s", "3", (("personas", "Ann.B", "timeout_s"), 3)),
    name("analysis.profiles.Team.v2", "[pr_review]", (("analysis", "profiles", "Team.v2"), ("pr_review",))),
    name("provider.extra.reasoning.Summary", "auto", (("provider", "extra", "reasoning", "Summary"), "auto")),
)


@table(*GIVEN)
def test_a_name_that_is_set(tmp_path: Path, case: Case) -> None:
    (text, value), (path, right) = case.given, case.right
    (tmp_path / "config.yaml").write_text(FILE)
    assert at(load(None, [f"{text}={value}"], {}, tmp_path)[0], path) == right


@table(
    name("PRICES__gpt-4.1__INPUT", "3", (("prices", "gpt-4.1", "input"), 3)),
    name("PRICES__GPT-4.1__INPUT", "3", (("prices", "gpt-4.1", "input"), 3), seen="the file has it in small letters"),
    name("PRICES__my__Model", "{input: 1, output: 2}", (("prices", "my__Model", "output"), 2)),
    name("PERSONAS__BOB__TIMEOUT_S", "4", (("personas", "bob", "timeout_s"), 4)),
    name("PERSONAS__Ann__STRONGER__MODEL", "c", (("personas", "Ann", "stronger", "model"), "c")),
    name("TEST__MAX_ATTEMPTS", "7", (("test", "max_attempts"), 7)),
    name("ANALYSIS__PROFILES__Team.v2", "[pr_review]", (("analysis", "profiles", "Team.v2"), ("pr_review",))),
)
def test_a_name_in_the_environment(tmp_path: Path, case: Case) -> None:
    (text, value), (path, right) = case.given, case.right
    (tmp_path / "config.yaml").write_text(FILE)
    assert at(load(None, (), {f"ORCHESTRATOR_{text}": value}, tmp_path)[0], path) == right


@table(
    name(
        "prices.gpt-4.1.inptu",
        "3",
        "unknown configuration name prices.gpt-4.1.inptu; did you mean prices.gpt-4.1.input",
    ),
    name("wire.fromat", "json", "unknown configuration name wire.fromat; did you mean wire.format"),
    name("personas.ALEX.model", "m", "personas.ALEX: there is no such persona; did you mean alex"),
)
def test_a_name_that_is_none(tmp_path: Path, case: Case) -> None:
    text, value = case.given
    with pytest.raises(ConfigError, match=case.right):
        check_providers(ModelOptions(), *load(None, [f"{text}={value}"], {}, tmp_path))
