"""The wheel holds all that a run reads, works far from the sources, and nothing is written where it is installed."""

import json
import os
import platform
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from orchestrator.files.source_commit import RECORD, read_commit
from tests.support import git

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parent.parent
TRAVELS = ("config.yaml", "system_prompts", "contracts", "examples/library", "examples/init")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a `uv tool install` of the built wheel; the dependencies are those of this environment."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    left_out = folder / "left-out.txt"
    left_out.write_text("".join(f"{Requirement(line).name}\n" for line in project["dependencies"]), encoding="utf-8")
    variables = {"HOME": folder, "UV_TOOL_DIR": folder / "tools", "UV_TOOL_BIN_DIR": folder / "bin"}
    install = [Path(sys.executable).with_name("uv"), "tool", "install", "--quiet", "--offline", "--no-config"]
    subprocess.run(
        [*install, "--excludes", left_out, "--python", sys.executable, wheel],
        env={"PATH": os.environ["PATH"]} | {name: str(path) for name, path in variables.items()},
        check=True,
    )
    [place] = (folder / "tools/sprint-orchestrator").glob("lib/*/site-packages")
    (place / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return place


def call(installed: Path, cwd: Path, *args: str, **variables: str) -> str:
    """What the tool prints, started as an installation's user starts it."""
    program = installed.parents[4] / "bin/orchestrator"
    environment = {"PATH": os.environ["PATH"], "HOME": str(cwd), "PYTHONDONTWRITEBYTECODE": "1"} | variables
    done = subprocess.run(
        [program, *args], cwd=cwd, env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def files(folder: Path) -> set[str]:
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    return {path for path in found if "__pycache__" not in path}


def test_every_tracked_file_that_a_run_reads_travels(installed: Path) -> None:
    travelled = files(installed / "orchestrator/_packaged")
    assert {*git(ROOT, "ls-files", *TRAVELS).splitlines(), RECORD} == travelled
    assert not [name for name in files(installed) if "__pycache__" in name]


def test_it_works_from_outside_the_sources(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "answer.txt").write_text('{"story_id": "US-1", "tasks": [],}', encoding="utf-8")
    before = files(installed)
    assert call(installed, tmp_path, "--version").split(", ")[1:] == [
        f"commit {read_commit(ROOT)}",
        f"Python {platform.python_version()}\n",
    ]
    extracted = call(installed, tmp_path, "extract", "answer.txt", "--contract", "breakdown", "--json")
    assert json.loads(extracted)["status"] == "repaired"
    call(installed, tmp_path, "init", "new")
    waves = call(installed, tmp_path, "run", "new/backlog.csv", "--dry-run", "--json")
    assert json.loads(waves)["problems"] == []
    assert files(installed) == before


@pytest.mark.parametrize(
    ("shell", "typed"),
    [
        ("bash", {"COMP_WORDS": "orchestrator sta", "COMP_CWORD": "1"}),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "orchestrator sta"}),
        ("fish", {"_TYPER_COMPLETE_ARGS": "orchestrator sta", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}),
    ],
)
def test_the_shell_completes_commands(installed: Path, tmp_path: Path, shell: str, typed: dict[str, str]) -> None:
    assert "status" in call(installed, tmp_path, **typed, _ORCHESTRATOR_COMPLETE=f"complete_{shell}")


@pytest.mark.soak
def test_the_demo_runs_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    before = files(installed)
    ended = call(installed, tmp_path, "demo")
    assert "8 done" in ended
    assert [line.partition(": ")[0] for line in ended.splitlines()[-2:]] == [
        "Look around",
        "Its board, for a browser",
    ]
    assert files(installed) == before
