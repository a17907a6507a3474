"""The wheel holds all that a run reads, works far from the sources, and nothing is written where it is installed."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support import git

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parent.parent
TRAVELS = ("config.yaml", "system_prompts", "contracts", "examples/library", "examples/init")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built wheel, unpacked as an installation would; the dependencies are those of this environment."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    place = folder / "site-packages"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place)
    return place


def call(installed: Path, cwd: Path, *args: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(cwd), "PYTHONPATH": str(installed), "PYTHONSAFEPATH": "1"}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    done = subprocess.run(
        [sys.executable, *args], cwd=cwd, env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


def files(folder: Path) -> set[str]:
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    return {path for path in found if "__pycache__" not in path}


def test_every_tracked_file_that_a_run_reads_travels(installed: Path) -> None:
    travelled = files(installed / "orchestrator/_packaged")
    assert set(git(ROOT, "ls-files", *TRAVELS).splitlines()) == travelled
    assert not [name for name in files(installed) if "__pycache__" in name]


def test_it_works_from_outside_the_sources(installed: Path, tmp_path: Path) -> None:
    where = call(installed, tmp_path, "-c", "import orchestrator; print(orchestrator.__file__)").stdout
    assert Path(where.strip()).is_relative_to(installed)
    (tmp_path / "answer.txt").write_text('{"story_id": "US-1", "tasks": [],}', encoding="utf-8")
    before = files(installed)
    extracted = call(
        installed, tmp_path, "-m", "orchestrator", "extract", "answer.txt", "--contract", "breakdown", "--json"
    )
    assert json.loads(extracted.stdout)["status"] == "repaired"
    call(installed, tmp_path, "-m", "orchestrator", "init", "new")
    waves = call(installed, tmp_path, "-m", "orchestrator", "run", "new/backlog.csv", "--dry-run", "--json")
    assert json.loads(waves.stdout)["problems"] == []
    assert files(installed) == before


@pytest.mark.soak
def test_the_demo_runs_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    before = files(installed)
    ended = call(installed, tmp_path, "-m", "orchestrator", "demo")
    assert "8 done" in ended.stdout
    assert [line.partition(": ")[0] for line in ended.stdout.splitlines()[-2:]] == [
        "Look around",
        "Its board, for a browser",
    ]
    assert files(installed) == before
