"""A sprint is recorded once, and run again without a model: by this version, with other settings, after a kill."""

import asyncio
import json
from pathlib import Path

import pytest

from orchestrator.app.replay import Replay, replay
from orchestrator.app.run import Run
from orchestrator.core.errors import ConfigError
from orchestrator.settings import load
from orchestrator.settings.options import RunOptions
from tests.durability.driver import SPRINT, Bench
from tests.end_to_end.test_gate import COMMENT, Terminal, person, write_team
from tests.end_to_end.test_real_providers import KEYS, answer_to
from tests.providers.http_server import EVENTS, Answer, Asked, message, message_stream, model_server
from tests.support import (
    ALL_PASS,
    APPROVED,
    Team,
    breakdown,
    git,
    make_repo,
    plain_environment,
    play,
    reviewed,
    run_cli,
    write_backlog,
)

LEAKED = "AKIA3SPVXQ7ZLM2DTB5W"
"""In the shape of a key, as a model may make one up."""


def again(folder: Path, place: Path, *overrides: str) -> Replay:
    """A recording run once more, with its own settings, `test.custom` among them, but for the `overrides`."""
    environ = plain_environment(ORCHESTRATOR_HOME=str(place / "state"))
    configured, environment = load(folder / "config.yaml", overrides, environ, place)
    return asyncio.run(replay(folder, configured, environment))


def team_of(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "team.jsonl").read_text().splitlines()]


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_a_recording_of_a_real_service_comes_out_the_same_without_it(tmp_path: Path) -> None:
    """A busy service, a stream that breaks off, and a reply with keys in it; the repository has a history."""
    repo = make_repo(tmp_path / "repo", {"README.md": "Shop\n"})
    (repo / "old.py").write_text("OLD = 1\n")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--message", "Second")
    busy = Answer(status=529, body={"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})
    stream = message_stream("Here it", pieces=7)
    broken = Answer(body=stream, headers=EVENTS, cut=len(stream) * 8 // 10)

    def claude(asked: Asked) -> Answer:
        leaked = f"The keys are {KEYS['ANTHROPIC_API_KEY']} and {LEAKED}.\n"
        return Answer(
            body=message(("" if "senior code reviewer" in json.dumps(asked.body) else leaked) + answer_to(asked))
        )

    environ = plain_environment(ORCHESTRATOR_HOME=str(tmp_path / "state"), **KEYS)
    with model_server(busy, broken, claude) as server:
        overrides = (
            "personas.alex={provider: openai, model: other, format: json}",  # for what is not forced
            "provider.model=m", f"provider.base_url={server.url}",
            "provider.wait_initial_s=0.01", ALL_PASS, "prices={claude-told: {input: 1, output: 1}}",
        )  # fmt: skip
        configured, environment = load(None, overrides, environ, tmp_path)
        backlog = write_backlog(tmp_path / "b.csv", {"Story_ID": "A", "Title": f"Refuse {LEAKED}"}, "B", "C < A")
        options = RunOptions(
            backlog=backlog,
            repo=repo,
            stories=("A",),
            push_to="result",
            record=tmp_path / "kept" / "rec",
            provider="anthropic",
        )
        run = Run(options, configured, environment, tell=lambda _: None, listen=lambda _: None)
        result = asyncio.run(run.go())
    recording = tmp_path / "kept" / "rec"
    entries = team_of(recording)
    assert [entry.get("error") for entry in entries] == ["overloaded", None, None, None, None, None]
    assert entries[1]["stop_reason"] == "interrupted"
    assert [entry["model"] for entry in entries[2:]] == ["claude-told"] * 4
    assert not any(secret.encode() in everything(recording) for secret in (LEAKED, *KEYS.values()))
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["rec"], "nothing is left beside it"

    later = ["replay", result.report.sprint, "--save", "kept/later", "--provider", "anthropic"]
    sets = [word for one in overrides for word in ("--set", one)]
    saved = run_cli([*later, *sets, "--json"], tmp_path, environ)
    assert (saved.returncode, json.loads(saved.stdout)) == (0, {"recording": "kept/later"})
    assert everything(tmp_path / "kept" / "later") == everything(recording), "as the run itself wrote it"

    done = again(recording, tmp_path)
    assert done.as_recorded
    assert [path.name for path in tmp_path.iterdir() if path.name == "state"], "the state folder is another one"

    played = play(
        tmp_path / "team", Team(), recording / "backlog.json", "provider.name=anthropic", ALL_PASS, replay=recording
    )
    assert played.status("A") == "done"


def reviewed_twice(folder: Path, *settings: str, repo: Path | None = None) -> Path:
    team = Team()
    team.good("A")
    team.deliver("A", 1, {"a.py": '"""Docs."""\n\n\ndef value():\n    return 1\n'})
    team.review("A", 1, reviewed("No", "[a.py:1] no docstring"))
    team.review("A", 1, APPROVED)
    play(
        folder, team, write_backlog(folder.parent / "b.csv", "A"), ALL_PASS, *settings, repo=repo, record=folder / "rec"
    )
    return folder / "rec"


def test_other_settings_show_what_is_not_asked_any_more_and_what_nobody_recorded(tmp_path: Path) -> None:
    whole = reviewed_twice(tmp_path / "a")
    secret = make_repo(tmp_path / "secret", {"deploy.ini": f"[aws]\nkey = {LEAKED}\n"})
    short = reviewed_twice(tmp_path / "b", "review.max_iterations=1", repo=secret)
    assert not (short / "base.bundle").exists(), "it holds a secret"
    with pytest.raises(ConfigError, match=r"no base\.bundle: the repository held secrets"):
        again(short, tmp_path)
    git(secret, "bundle", "create", "--quiet", str(short / "base.bundle"), "HEAD", "main")
    kept = everything(whole)
    assert again(whole, tmp_path).as_recorded
    fewer = again(whole, tmp_path, "review.max_iterations=1")
    (story,) = fewer.stories
    assert (fewer.as_recorded, story.before, story.after, story.beyond) == (False, "done", "needs_attention", ())
    assert [str(call) for call in story.omitted] == ["alex delivery T-A-01 2", "reviewer review T-A-01 2"]
    assert everything(whole) == kept

    more = again(short, tmp_path, "review.max_iterations=2", "budget.calls_per_day=1")
    assert not more.paused, "a day of its own has no budget"
    (story,) = more.stories
    assert [str(call) for call in story.beyond] == ["alex delivery T-A-01 2"]
    assert (more.as_recorded, story.after) == (False, "failed")


def test_what_people_answered_is_part_of_a_recording(tmp_path: Path) -> None:
    """A plan that was edited, and one that was turned down; the backlog is as the sprint had it, not as it is now."""
    write_team(tmp_path)
    run = Terminal(tmp_path)
    run.until("US-1 waits for a person", "US-2 waits for a person")
    (tmp_path / "plan.json").write_text(json.dumps(breakdown("US-1", ["us_1.py"])))
    assert person(tmp_path, "edit", "US-1", "--file", "plan.json").returncode == 0
    assert person(tmp_path, "reject", "US-2", "--comment", COMMENT).returncode == 0
    run.until("US-2 waits for a person")
    assert person(tmp_path, "approve", "US-2", "--gate", "2").returncode == 0
    assert run.end() == 0
    backlog = tmp_path / "b.csv"
    backlog.write_text(backlog.read_text().replace("Story US", "Another US"))

    always = ("--set", "gate.mode=always", "--set", ALL_PASS)
    inside = "provider: openai, base_url: 'http://inside.example'"
    others = ("--set", f"provider.fallback=[{{model: f, {inside}}}]", "--set", f"models.strong={{model: s, {inside}}}")
    said = person(tmp_path, "replay", "SP-001", "--save", "rec", *always, *others)
    assert said.returncode == 0, said.stderr
    kept, _ = load(tmp_path / "rec" / "config.yaml", (), plain_environment(), tmp_path)
    assert kept.models.strong is not None
    assert [kept.models.strong.model, *(one.model for one in kept.provider.fallback)] == ["s", "f"]
    assert b"inside.example" not in everything(tmp_path / "rec"), "addresses are left out"
    done = again(tmp_path / "rec", tmp_path)
    assert done.as_recorded
    nobody_asked = again(tmp_path / "rec", tmp_path, "gate.mode=auto")
    assert "mike breakdown 2" in [str(call) for call in nobody_asked.stories[1].omitted]


def test_a_killed_run_that_is_resumed_records_each_exchange_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {"NFR-001": "None"}, more=("--record", "rec"))
    bench.kill_when(lambda: bench.journalled("NFR-001") >= 2)
    assert not (tmp_path / "rec").exists()
    ended = bench.finish()
    assert ended.code == 0, ended.stdout
    entries = team_of(tmp_path / "rec")
    paid = [f"{e['persona']} {e['story']} {e.get('task')} {e['purpose']} {e.get('turn', 1)}" for e in entries]
    assert sorted(paid) == sorted(bench.calls())
    said = bench.command("replay", "rec", "--json")
    told = json.loads(said.stdout)
    assert (said.code, told["as_recorded"], told["same_tree"]) == (0, True, True), said.stderr
    said = bench.command("replay", SPRINT)
    assert (said.code, "1 of 1 story as recorded, the same files" in said.stdout) == (0, True), said.stdout
