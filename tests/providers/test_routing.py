"""Which provider answers whom, and what is told before anything is spent."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.core.calls.exchange import Prompt, Purpose, Segment, TurnKey
from orchestrator.core.errors import ConfigError, PermanentProviderError, TransientProviderError
from orchestrator.files.process import SystemClock
from orchestrator.providers.routing import RoutedProvider, open_providers
from orchestrator.providers.seats import all_seats, policies_of, seats_of
from orchestrator.settings import load
from orchestrator.settings.options import RunOptions
from tests.providers.http_server import Answer, completion, message, model_server
from tests.support import plain_environment

KEYS = {"ANTHROPIC_API_KEY": "sk-anthropic-key", "OPENAI_API_KEY": "sk-openai-key"}


def opened(folder: Path, *overrides: str, variables: dict[str, str] | None = None, **options: Any) -> RoutedProvider:
    settings, environment = load(None, overrides, KEYS if variables is None else variables, folder)
    return open_providers(RunOptions(backlog=folder / "b.csv", **options), settings, environment, SystemClock())


def seats(folder: Path, *overrides: str, forced: str | None = None) -> dict[str, str]:
    return {persona: str(seat) for persona, seat in seats_of(load(None, overrides, {}, folder)[0], forced).items()}


REAL = ("provider.name=anthropic", "provider.model=claude-a")


def test_a_persona_takes_what_it_does_not_say_itself(tmp_path: Path) -> None:
    own = ("personas.alex={provider: openai, model: gpt-b}", "personas.mike.max_output_tokens=99")
    chosen = seats_of(load(None, (*REAL, "provider.base_url=http://a", "provider.timeout_s=7", *own), {}, tmp_path)[0])
    assert {name: str(seat) for name, seat in chosen.items()} == {
        "mike": "anthropic claude-a",
        "alex": "openai gpt-b",
        "jordan": "anthropic claude-a",
        "reviewer": "anthropic claude-a",
    }
    assert {name: seat.base_url for name, seat in chosen.items()} == {
        "mike": "http://a",
        "alex": None,
        "jordan": "http://a",
        "reviewer": "http://a",
    }
    assert (chosen["mike"].max_output_tokens, chosen["alex"].timeout_s) == (99, 7)


def test_the_command_lines_provider_answers_everybody(tmp_path: Path) -> None:
    own = ("personas.alex={provider: openai, model: gpt-b}", "personas.mike.model=claude-m")
    assert set(seats(tmp_path, *REAL, *own, forced="scripted").values()) == {"scripted"}
    assert seats(tmp_path, *REAL, *own, forced="anthropic") == {
        "mike": "anthropic claude-m",
        "alex": "anthropic claude-a",
        "jordan": "anthropic claude-a",
        "reviewer": "anthropic claude-a",
    }


def test_the_analyst_has_a_seat_that_no_sprint_needs(tmp_path: Path) -> None:
    overrides = ["provider.script=team.jsonl", "personas.analyst={provider: openai, model: m}"]
    settings, environment = load(None, overrides, plain_environment(), tmp_path)
    (tmp_path / "team.jsonl").write_text("")
    assert "analyst" not in seats_of(settings)
    clock = SystemClock()
    assert str(open_providers(RunOptions(backlog=tmp_path), settings, environment, clock)) == "scripted"
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        open_providers(RunOptions(backlog=tmp_path), settings, environment, clock, alone="analyst")
    taken, _ = load(None, ["review.reviewers=[analyst]"], plain_environment(), tmp_path)
    with pytest.raises(ConfigError, match="another persona"):
        seats_of(taken)


def test_reviewers_have_seats_by_their_configured_names_while_there_is_review(tmp_path: Path) -> None:
    named = (*REAL, "review.reviewers=[reviewer, security]", "personas.security={provider: openai, model: gpt-b}")
    assert seats(tmp_path, *named)["security"] == "openai gpt-b"
    assert seats(tmp_path, *named)["reviewer"] == "anthropic claude-a"
    assert set(seats(tmp_path, *named, "review.enabled=false")) == {"mike", "alex", "jordan"}
    with pytest.raises(ConfigError, match=r"personas.securty: there is no such persona; did you mean security\?"):
        seats(tmp_path, *named, "personas.securty.model=m")
    with pytest.raises(ConfigError, match="alex is another persona"):
        seats(tmp_path, *REAL, "review.reviewers=[alex]")


def test_a_persona_has_iterations_of_its_own_where_it_has_a_loop(tmp_path: Path) -> None:
    named = ("review.reviewers=[reviewer, security]", "personas.security.max_iterations=8")
    settings, _ = load(None, [*named, "personas.mike.max_iterations=1"], plain_environment(), tmp_path)
    policies = policies_of(settings)
    assert (policies.plan.max_iterations, policies.most_reviews) == (1, 8)
    assert [policies.reviews_of(name) for name in ("reviewer", "security")] == [5, 8]
    for name in ("alex", "jordan", "analyst"):
        settings, _ = load(None, [f"personas.{name}.max_iterations=2"], plain_environment(), tmp_path)
        with pytest.raises(ConfigError, match=rf"personas.{name}.max_iterations: only mike and reviewer have"):
            policies_of(settings)
    with pytest.raises(ConfigError, match=r"personas.mike.max_iterations.*greater than or equal to 1"):
        load(None, ["personas.mike.max_iterations=0"], plain_environment(), tmp_path)


async def test_a_reviewer_whom_the_settings_have_lost_is_named(tmp_path: Path) -> None:
    own = [f"personas.{name}={{provider: openai, model: m}}" for name in ("mike", "alex", "jordan")]
    provider = await asyncio.to_thread(opened, tmp_path, *REAL, *own, "review.enabled=false")
    key = TurnKey(persona="security", story="A", task="T-A-01", purpose=Purpose.REVIEW)
    with pytest.raises(PermanentProviderError, match="no provider answers for security, with whom the story began"):
        await provider.complete(Prompt(key=key, segments=()))
    await provider.close()


@pytest.mark.parametrize(
    ("overrides", "variables", "told"),
    [
        (REAL, {}, "needs a key: put it into the environment variable ANTHROPIC_API_KEY"),
        (REAL, {"ANTHROPIC_API_KEY": " \n", "OPENAI_API_KEY": "sk-o"}, "ANTHROPIC_API_KEY"),
        (REAL, {"ANTHROPIC_API_KEY": "sk-a\nb"}, "ANTHROPIC_API_KEY holds something that is no key"),
        (REAL, {"ANTHROPIC_API_KEY": "sk-ключ"}, "no key"),
        (REAL[:1], KEYS, "the provider anthropic needs a model"),
        ((*REAL, "personas.alex.provider=openai"), KEYS, "the provider openai needs a model"),
        ((*REAL, "personas.alex={provider: openai, model: m}"), {"ANTHROPIC_API_KEY": "k"}, "OPENAI_API_KEY"),
        ((*REAL, "provider.fallback=[{provider: openai, model: m}]"), {"ANTHROPIC_API_KEY": "k"}, "OPENAI_API_KEY"),
        ((*REAL, "personas.alec.model=m"), KEYS, "personas.alec: there is no such persona; did you mean alex?"),
        ((*REAL, "provider.base_url=localhost:11434/v1"), KEYS, "is no http"),
        ((*REAL, "provider.base_url=http://[::1"), KEYS, "is no http"),
        ((*REAL, "provider.base_url=http://host:port/v1"), KEYS, "is no http"),
        ((*REAL, 'provider.base_url="http://ho\\tst/v1"'), KEYS, "is no http"),
        ((*REAL, "provider.base_url=http://me:secret@host/v1"), KEYS, "holds a name or password"),
        (REAL, {**KEYS, "ANTHROPIC_BASE_URL": "nowhere"}, "is no http"),
        ((*REAL, "provider.base_url=https://eu.api.anthropic.com"), {}, "needs a key"),
        (("provider.name=openai", "provider.model=m", "provider.base_url=https://x.openai.azure.com"), {}, "key"),
        ((), {}, "needs --script"),
    ],
)
def test_what_would_fail_later_is_told_first(
    tmp_path: Path, overrides: tuple[str, ...], variables: dict[str, str], told: str
) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        opened(tmp_path, *overrides, variables=variables)
    assert not any(secret in caught.value.message for secret in ("secret", "sk-"))


def test_an_unknown_provider_tells_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown provider antropic; did you mean anthropic"):
        opened(tmp_path, provider="antropic")


def test_a_script_that_nobody_reads_is_told_instead_of_money_being_spent(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="add --provider scripted"):
        opened(tmp_path, *REAL, script=tmp_path / "team.jsonl")


def test_a_proxy_that_cannot_be_used_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "ftp://proxy")
    with pytest.raises(ConfigError, match=r"the provider openai cannot be set up: .*proxy"):
        opened(tmp_path, "provider.name=openai", "provider.model=m")


LOADED = """
import json, sys
from pathlib import Path
from orchestrator.files.process import SystemClock
from orchestrator.settings import load
from orchestrator.settings.options import RunOptions
from orchestrator.providers.routing import open_providers
from orchestrator.providers.seats import formats_of
options = RunOptions(backlog=Path("b.csv"))
for override in sys.argv[1:]:
    open_providers(options, *load(None, [override], {}, Path.cwd()), SystemClock())
    print(json.dumps([name in sys.modules for name in ("anthropic", "openai")]))
"""


def test_only_the_sdk_in_use_is_imported(tmp_path: Path) -> None:
    overrides = ["provider.script=team.jsonl", "provider={name: openai, model: m, base_url: 'http://127.0.0.1:1'}"]
    (tmp_path / "team.jsonl").touch()
    env = plain_environment(PYTHONPATH=str(Path(__file__).parents[2]))
    command = [sys.executable, "-c", LOADED, *overrides]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=True)
    assert [json.loads(line) for line in done.stdout.splitlines()] == [[False, False], [False, True]]


def prompt(persona: str, purpose: Purpose = Purpose.SUITE, *, stronger: bool = False) -> Prompt:
    key = TurnKey(persona=persona, story="A", purpose=purpose)
    segments = (Segment(name="role", text="r"), Segment(name="task", text="t"))
    return Prompt(key=key, turn=1, segments=segments, stronger=stronger)


ROLES = (
    *REAL,
    "personas.alex={model: claude-b, stronger: {model: claude-c}}",
    "personas.jordan.model=claude-s",
    "models={cheap: {model: claude-0}, strong: {model: claude-s}}",
    "provider.fallback=[{model: claude-f}, {provider: openai, model: gpt-f}]",
)


@pytest.mark.parametrize(("asked", "models"), [
    (prompt("mike"), "claude-a"),
    (prompt("mike", stronger=True), "claude-s"),
    (prompt("alex", stronger=True), "claude-c"),
    (prompt("jordan", stronger=True), "claude-s"),  # is its usual one
    (prompt("alex", Purpose.REPAIR), "claude-0 claude-b"),
    (prompt("alex", Purpose.CONTINUATION), "claude-b"),
])  # fmt: skip
def test_who_is_asked_first_and_in_an_outage(tmp_path: Path, asked: Prompt, models: str) -> None:
    seats = all_seats(load(None, ROLES, {}, tmp_path)[0])
    assert [seat.model for seat in seats.of(asked)] == [*models.split(), "claude-f", "gpt-f"]
    assert dict(seats.stronger).keys() == {"mike", "alex", "reviewer"}


def test_the_command_lines_provider_leaves_out_models_of_another(tmp_path: Path) -> None:
    seats = all_seats(load(None, ROLES, {}, tmp_path)[0], "openai")
    assert [str(seat) for seat in seats.fallback] == ["openai claude-f", "openai gpt-f"]
    assert all_seats(load(None, ROLES, {}, tmp_path)[0], "scripted").fallback == ()
    assert [str(seat) for seat in all_seats(load(None, ROLES, {}, tmp_path)[0], "anthropic").fallback] == [
        "anthropic claude-f"
    ]


async def test_a_refused_model_of_a_fallback_is_told_by_its_own_setting_and_in_the_servers_words(
    tmp_path: Path,
) -> None:
    away = Answer(status=529, body={"error": {"message": "busy"}})
    none = Answer(status=404, body={"error": {"message": "there is none of this name"}})
    with model_server(away) as claude, model_server(none) as local:
        fallback = f"provider.fallback=[{{provider: openai, model: qwen, base_url: '{local.url}/v1'}}]"
        variables = {"ANTHROPIC_API_KEY": "sk-anthropic-key", "ANTHROPIC_BASE_URL": claude.url}
        provider = await asyncio.to_thread(opened, tmp_path, *REAL, fallback, variables=variables)
        for _ in range(3):
            with pytest.raises(TransientProviderError) as caught:
                await provider.complete(prompt("alex"))
        await provider.close()
    told = "openai answered 404: there is none of this name; set provider.fallback[0].model (now qwen) to a model"
    assert told in caught.value.message


async def test_each_prompt_goes_to_its_personas_server_with_its_key_and_model(tmp_path: Path) -> None:
    log = tmp_path / "calls.jsonl"
    with model_server(Answer(body=message("claude"))) as claude, model_server(Answer(body=completion("gpt"))) as local:
        provider = await asyncio.to_thread(
            opened,
            tmp_path,
            *REAL,
            "personas.alex={provider: openai, model: qwen, max_output_tokens: 5}",
            f"personas.alex.base_url={local.url}/v1",
            "prices={qwen: {input: 0, output: 0}}",
            variables={"ANTHROPIC_API_KEY": "sk-anthropic-key", "ANTHROPIC_BASE_URL": claude.url},
            call_log=log,
        )
        assert str(provider) == "anthropic claude-a, alex: openai qwen"
        replies = [await provider.complete(prompt(persona)) for persona in ("mike", "alex", "jordan")]
        await provider.close()
    assert [(reply.text, reply.cost_usd) for reply in replies] == [("claude", None), ("gpt", 0.0), ("claude", None)]
    assert [asked.body["model"] for asked in claude.asked] == ["claude-a", "claude-a"]
    (asked,) = local.asked
    assert (asked.path, asked.body["model"], asked.body["max_tokens"]) == ("/v1/chat/completions", "qwen", 5)
    assert "sk-anthropic-key" not in str(asked)
    assert log.read_text().count("\n") == 3
