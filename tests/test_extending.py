"""The examples of docs/development/extending.md, applied to a copy of the package as they stand, work."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support import plain_environment

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/development/extending.md"
BLOCK = re.compile(
    r"^```python\n# (orchestrator/\S+\.py)(?:, (above|below): ([^\n]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


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
