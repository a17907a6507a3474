"""The examples of docs/development/extending.md, applied to a copy of the package as they stand, work."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.providers.http_server import Answer, model_server
from tests.support import plain_environment

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/development/extending.md"
BLOCK = re.compile(
    r"^```python\n# (orchestrator/\S+\.py)(?:, (above|below): ([^\n]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
MOST_FILES, MOST_LINES = 3, 60


class Block(NamedTuple):
    """A part of an example: a new file, or lines beside one of an existing file."""

    path: str
    side: str
    """above | below, or "" for a new file."""
    line: str
    text: str

    def apply(self, folder: Path) -> None:
        file = folder / self.path
        if not self.side:
            assert not file.exists(), f"{self.path} is there already"
            file.write_text(self.text, encoding="utf-8")
            return
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        places = [number for number, line in enumerate(lines) if line.split("  #")[0].strip() == self.line]
        assert len(places) == 1, f"{self.path} has {len(places)} lines {self.line!r}"
        lines.insert(places[0] + (self.side == "below"), self.text)
        file.write_text("".join(lines), encoding="utf-8")


def examples() -> dict[str, list[Block]]:
    """Title → the blocks below it."""
    _, *sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {section.split("\n", 1)[0]: [Block(*found) for found in BLOCK.findall(section)] for section in sections}


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with all examples in it."""
    folder = tmp_path_factory.mktemp("extended")
    shutil.copytree(ROOT / "orchestrator", folder / "orchestrator", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "system_prompts", folder / "system_prompts")
    shutil.copy(ROOT / "config.yaml", folder)
    shutil.copy(ROOT / "pyproject.toml", folder)
    for blocks in examples().values():
        for block in blocks:
            block.apply(folder)
    return folder


def python(extended: Path, cwd: Path, *words: str, **variables: str) -> str:
    """What a Python that has the extended package prints."""
    environment = plain_environment(PYTHONPATH=str(extended), PYTHONDONTWRITEBYTECODE="1", **variables)
    done = subprocess.run(
        [sys.executable, "-W", "error", *words], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_block_is_an_example_and_none_is_long() -> None:
    found = examples()
    assert sum(map(len, found.values())) == PAGE.read_text(encoding="utf-8").count("```python\n")
    sizes = {  # files, lines with something in them
        title: (
            len({block.path for block in blocks}),
            sum(bool(line.strip()) for block in blocks for line in block.text.splitlines()),
        )
        for title, blocks in found.items()
    }
    assert {title: size for title, size in sizes.items() if size[0] > MOST_FILES or size[1] > MOST_LINES} == {}


def test_the_examples_are_written_as_the_rest_of_the_code_is(extended: Path) -> None:
    changed = {block.path for blocks in examples().values() for block in blocks}
    for words in (["check"], ["format", "--check"]):
        command = [sys.executable, "-m", "ruff", *words, "--no-cache", *changed]
        done = subprocess.run(command, cwd=extended, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


ASK = """
import asyncio, sys
from pathlib import Path
from orchestrator.core.calls.exchange import Prompt, Segment, TurnKey
from orchestrator.files.process import SystemClock
from orchestrator.providers.routing import open_providers
from orchestrator.settings import load
from orchestrator.settings.options import ModelOptions

names = ("provider.name=ollama", "provider.model=small")
settings, environment = load(None, names, {"OLLAMA_BASE_URL": sys.argv[1]}, Path())
provider = open_providers(ModelOptions(), settings, environment, SystemClock())
key = TurnKey(persona="mike", story="US-1", task=None, purpose="breakdown")
segments = (Segment(name="role", text="You plan."), Segment(name="task", text="Plan it."))
print(asyncio.run(provider.complete(Prompt(key=key, turn=1, segments=segments))).model_dump_json())
"""


def test_the_provider_answers(extended: Path, tmp_path: Path) -> None:
    said = {"model": "small:1b", "message": {"role": "assistant", "content": "A plan."}, "done_reason": "stop"}
    with model_server(Answer(body={**said, "prompt_eval_count": 7, "eval_count": 3})) as server:
        reply = json.loads(python(extended, tmp_path, "-c", ASK, server.url))
    assert [asked.path for asked in server.asked] == ["/api/chat"]
    assert [one["content"] for one in server.asked[0].body["messages"]] == ["You plan.", "Plan it."]
    told = (reply["text"], reply["stop_reason"], reply["model"], reply["provider"], reply["usage"]["input"])
    assert told == ("A plan.", "end_turn", "small:1b", "ollama", 7)


def test_the_check_finds(extended: Path, tmp_path: Path) -> None:
    content = "def look():\n    # never leave breakpoint() in\n    breakpoint()\n"
    (tmp_path / "delivery.json").write_text(json.dumps({"files": [{"path": "look.py", "content": content}]}))
    printed = python(
        extended, tmp_path, "-m", "orchestrator", "check", "delivery", "delivery.json", "--repo", ".", "--json"
    )
    found = [(one["code"], one["where"]["line"]) for one in json.loads(printed)["findings"]]
    assert found == [("delivery.debugger", 3)]


def test_the_format_is_read(extended: Path, tmp_path: Path) -> None:
    (tmp_path / "backlog.toml").write_text(
        '[[stories]]\nid = "US-1"\ntitle = "Lend"\nacceptance_criteria = ["it is lent"]\n'
        '\n[[stories]]\nid = "US-2"\ntitle = "Return"\n'
        'depends_on = ["US-1"]\nacceptance_criteria = ["it is back"]\n'
    )
    waves = json.loads(python(extended, tmp_path, "-m", "orchestrator", "run", "backlog.toml", "--dry-run", "--json"))
    assert waves["problems"] == []
    assert waves["waves"] == [["US-1"], ["US-2"]]


RUN = """
import asyncio, sys
from pathlib import Path
from orchestrator.app.runners import project_runner, sandbox_for
from orchestrator.settings import load

async def main():
    settings, environment = load(None, ("sandbox.mode=plain",), {"PATH": sys.argv[1]}, Path())
    runner = project_runner(settings, environment, Path("environments"), await sandbox_for(settings, environment))
    print((await runner.run(Path("tree"), key="k")).model_dump_json())
    print((await runner.run(Path("tree"), files=["test_good.sh"], key="k")).model_dump_json())

asyncio.run(main())
"""


def test_the_runner_runs(extended: Path, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/test_good.sh").write_text("test 1 = 1\n")
    (tmp_path / "tree/test_bad.sh").write_text("echo here; exit 3\n")
    whole, own = (json.loads(line) for line in python(extended, tmp_path, "-c", RUN, os.environ["PATH"]).splitlines())
    assert {case["file"]: case["result"] for case in whole["cases"]} == {
        "test_good.sh": "passed", "test_bad.sh": "failed",
    }  # fmt: skip
    assert own["problem"] is None


def test_the_command_runs(extended: Path, tmp_path: Path) -> None:
    settings = ("--set", "provider.name=openai", "--set", "provider.model=m")
    printed = python(extended, tmp_path, "-m", "orchestrator", "seats", *settings, "--json")
    assert json.loads(printed)["alex"] == "openai m"
    assert "seats" in python(extended, tmp_path, "-m", "orchestrator", "--help")
