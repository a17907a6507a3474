"""`answers export` and `answers replay` over the replies of a real sprint."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from orchestrator.cli.main import app
from tests.support import ALL_PASS, Team, breakdown, plain_environment, play, suite_text, task, write_backlog

KEY = "sk-abcdefghijklmnopqrstuvwx"
OWN = "a-key-of-our-own"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a sprint with answers that healed, were cut off, were refused, were repaired and were fine."""
    folder = tmp_path_factory.mktemp("answers")
    team = Team()
    whole = json.dumps(breakdown("HEALED", ["healed.py"], technical_notes=f"use {KEY} and {OWN}"))
    team.say("mike", "HEALED", "breakdown", f"{whole[:-1]},}}")
    team.deliver("HEALED", 1, {"healed.py": "def value():\n    return 1\n"})
    team.say("jordan", "HEALED", "suite", "I would test it.")
    team.say("jordan", "HEALED", "repair", {
        "story_id": "HEALED", "test_file": "tests/test_healed.py", "test_content": suite_text("HEALED"),
        "test_cases": [{"name": "test_healed", "criterion": "it works"}],
    })  # fmt: skip
    plan = json.dumps(breakdown("CUT", ["cut.py"], ["two.py"]))
    team.say("mike", "CUT", "breakdown", plan[: plan.index("Work 2")], stop_reason="max_tokens")
    team.say("mike", "CUT", "breakdown_missing", {"tasks": [task("CUT", 2, ["two.py"])]})
    team.deliver("CUT", 1, {"cut.py": "def value():\n    return 1\n"})
    team.deliver("CUT", 2, {"two.py": "TWO = 2\n"})
    team.suite("CUT", suite_text("CUT"))
    done = play(folder, team, write_backlog(folder / "backlog.csv", "HEALED", "CUT"), ALL_PASS)
    assert (done.status("HEALED"), done.status("CUT")) == ("done", "done")
    return folder


def answers(home: Path, *args: str) -> tuple[int, Any, str]:
    env = plain_environment(ORCHESTRATOR_HOME=str(home / "state"), OPENAI_API_KEY=OWN)
    done = CliRunner().invoke(app, ["answers", *args], env={**dict.fromkeys(os.environ), **env})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    printed = json.loads(done.stdout) if "--json" in args and done.stdout else done.stdout
    return done.exit_code, printed, done.stderr


def test_what_was_not_whole_and_valid_is_exported_without_secrets(home: Path, tmp_path: Path) -> None:
    cases = str(tmp_path / "cases")
    code, told, err = answers(home, "export", cases, "--json")
    names = ["SP-001+CUT+mike+breakdown+1", "SP-001+HEALED+jordan+suite+1", "SP-001+HEALED+mike+breakdown+1"]
    assert (code, sorted(told["written"]), told["kept"], told["redaction_changed"]) == (0, names, [], []), err
    healed = tmp_path / "cases" / names[2]
    files = {path.name: path.read_text() for path in healed.iterdir()}
    assert KEY not in "".join(files.values())
    assert OWN not in "".join(files.values())
    source, extraction = json.loads(files["source.json"]), json.loads(files["extraction.json"])
    assert {name: source[name] for name in ("persona", "purpose", "turn", "redacted", "contract", "provider")} == {
        "persona": "mike", "purpose": "breakdown", "turn": 1, "redacted": True, "contract": "breakdown",
        "provider": "scripted",
    }  # fmt: skip
    assert (extraction["status"], extraction["repairs"][0]["kind"]) == ("repaired", "trailing_comma")
    assert extraction["value"]["technical_notes"] == "use [redacted] and [redacted]"
    assert json.loads(files["contract.json"])["title"] == "BreakdownAnswer"
    assert answers(home, "replay", cases)[:2] == (0, "3 cases: 3 same\n")


def test_stories_and_all_narrow_and_widen(home: Path, tmp_path: Path) -> None:
    _, told, _ = answers(home, "export", str(tmp_path), "--json", "--story", "CUT", "--all", "--sprint", "SP-001")
    assert [name.split("+", 2)[2] for name in told["written"]] == [
        "mike+breakdown+1", "mike+breakdown_missing+1", "alex+delivery+T-CUT-01+1", "alex+delivery+T-CUT-02+1",
        "jordan+suite+1",
    ]  # fmt: skip
    for option, name, nearest in (("--story", "CUTE", "CUT"), ("--sprint", "SP-01", "SP-001")):
        code, _, err = answers(home, "export", str(tmp_path), option, name)
        assert code == 2
        assert f"did you mean {nearest}?" in err
    code, _, err = answers(tmp_path, "export", str(tmp_path))
    assert code == 2
    assert "no reply is kept" in err


def test_a_second_export_leaves_what_is_there_and_says_so(home: Path, tmp_path: Path) -> None:
    answers(home, "export", str(tmp_path))
    code, printed, _ = answers(home, "export", str(tmp_path))
    assert (code, printed.split(" (")[0]) == (0, f"0 written to {tmp_path}, 3 there already")
    text = tmp_path / "SP-001+CUT+mike+breakdown+1" / "text.txt"
    text.write_text("mine")
    code, _, err = answers(home, "export", str(tmp_path))
    assert code == 1
    assert "another case SP-001+CUT+mike+breakdown+1 is there and was left alone" in err
    assert text.read_text() == "mine"
    code, printed, _ = answers(home, "export", str(tmp_path), "--replace")
    assert code == 0
    assert "replaced  SP-001+CUT" in printed
    assert text.read_text() != "mine"


def test_a_replay_tells_what_changed_and_fails_for_the_worse(home: Path, tmp_path: Path) -> None:
    answers(home, "export", str(tmp_path))
    refused = tmp_path / "SP-001+HEALED+jordan+suite+1" / "text.txt"
    refused.write_text('{"test_file": "t.py", "test_content": "", "test_cases": []}')
    code, told, _ = answers(home, "replay", str(tmp_path), "--json")
    assert (code, told["cases"], told["same"], told["better"], told["worse"]) == (0, 3, 2, 1, 0)
    assert (told["changes"][0]["before"]["status"], told["changes"][0]["after"]["status"]) == ("refused", "ok")
    kept = tmp_path / "SP-001+CUT+mike+breakdown+1" / "extraction.json"
    kept.write_text(kept.read_text().replace("Work 1", "Work 7"))
    code, printed, _ = answers(home, "replay", str(tmp_path))
    assert code == 1
    assert "worse      SP-001+CUT+mike+breakdown+1: truncated by layer truncation → truncated" in printed
    assert "differs at tasks[0].description" in printed
    kept.write_text("{")
    code, _, err = answers(home, "replay", str(tmp_path))
    assert code == 2
    assert str(kept) in err
    assert "Traceback" not in err
