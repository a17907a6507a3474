import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.cli.main import app
from orchestrator.settings import packaged
from tests.answers.cases import PLAN, PLAN_TEXT

KEYS = {"value", "status", "layer", "repairs", "complete", "candidates", "problems"}


def run(*arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["extract", *arguments], input=stdin)
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize(
    ("text", "code", "status"),
    [
        (PLAN_TEXT, 0, "ok"),
        (PLAN_TEXT.replace("Show", "Show\n"), 0, "repaired"),
        (PLAN_TEXT[:-8], 3, "truncated"),
        ('{"detected": false}', 4, "refused"),
        ("", 4, "refused"),
    ],
)
def test_exit_codes_and_the_json_object(text: str, code: int, status: str) -> None:
    found_code, out, _ = run("-", "--contract", "breakdown", "--json", stdin=text.encode())
    found = json.loads(out)
    assert (found_code, found["status"], set(found)) == (code, status, KEYS)
    assert (found["value"] is None) == (status == "refused")


def test_every_repair_and_problem_has_its_keys(tmp_path: Path) -> None:
    reply = tmp_path / "reply.txt"
    reply.write_text("{'a': 1, \"a\": 2}", encoding="utf-8")
    _, out, _ = run(str(reply), "--json")
    found = json.loads(out)
    assert found["repairs"] == [{"kind": "quotes", "offset": 1, "before": "'a'", "after": "a string in double quotes"}]
    assert found["problems"][0]["where"]["column"] == 10


def test_without_json_the_value_stands_alone_on_stdout() -> None:
    code, out, err = run("-", "--contract", "breakdown", stdin=f"So:\n{PLAN_TEXT}".encode())
    assert (code, json.loads(out)) == (0, PLAN)
    assert err.startswith("ok by layer scan")


@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        (["missing.txt"], b"", "cannot read missing.txt"),
        (["."], b"", "cannot read ."),
        (["-"], b"\xff{}", "not UTF-8 (byte 0)"),
        (["-", "--contract", "brakdown"], b"{}", "did you mean breakdown?"),
        (["-", "--contract", "../contracts/breakdown"], b"{}", "unknown contract"),
    ],
)
def test_what_cannot_be_used_is_exit_2(arguments: list[str], stdin: bytes, message: str) -> None:
    code, out, err = run(*arguments, stdin=stdin)
    assert (code, out) == (2, "")
    assert message in err


def test_every_contract_can_be_named() -> None:
    for path in packaged("contracts").glob("*.schema.json"):
        assert run("-", "--contract", path.name.removesuffix(".schema.json"), stdin=b"none")[0] == 4
