"""Projects that are installed by their own backend, here one that lies in their tree."""

import asyncio
import shutil
from pathlib import Path

import pytest

from orchestrator.core.suite import Tier
from orchestrator.environments.python import PythonEnvironments
from orchestrator.sandbox.command_runner import LimitedCommandRunner
from orchestrator.settings.model import CommandSettings, TestSettings
from orchestrator.settings.sections import EnvironmentSettings
from orchestrator.test_runners.pytest_runner import PytestRunner
from orchestrator.test_runners.report import Selection
from tests.environments.test_python_environment import PATH, PYTEST, wheel
from tests.sandboxes import CONFINED, sandbox

BACKEND = """import os, pathlib, zipfile

def build_editable(folder, settings=None, metadata=None):
    version = os.environ["SETUPTOOLS_SCM_PRETEND_VERSION"]
    here = pathlib.Path.cwd()
    (here / "src" / "itself" / "_version.py").write_text(f"version = {version!r}\\n")
    info, name = f"itself-{version}.dist-info", f"itself-{version}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as archive:
        archive.writestr("_itself.pth", f"{here}/src\\n")
        told = ["Metadata-Version: 2.1", "Name: itself", f"Version: {version}", "Requires-Dist: tiny", ""]
        archive.writestr(f"{info}/METADATA", "\\n".join(told))
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr(f"{info}/entry_points.txt", "[console_scripts]\\nitself = itself:main\\n")
        archive.writestr(f"{info}/RECORD", "")
    return name
"""
PYPROJECT = """[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
SUITE = """import importlib.metadata
import subprocess

import tiny
from itself._version import version


def test_itself():
    assert importlib.metadata.version("itself") == version
    assert subprocess.run(["itself"], capture_output=True, text=True).stdout == "main\\n"
"""


def project(folder: Path) -> Path:
    root = folder / "root"
    files = {
        "pyproject.toml": PYPROJECT,
        "backend.py": BACKEND,
        "src/itself/__init__.py": "def main():\n    print('main')\n",
        "test_itself.py": SUITE,
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def suites_in(folder: Path, tier: Tier, own: EnvironmentSettings | None = None, **env: str) -> PytestRunner:
    links = folder / "links"
    links.mkdir(exist_ok=True)
    wheel(links, "tiny", "1.0", "")
    for name in ("pytest", "pluggy", "iniconfig", "packaging", "pygments"):
        wheel(links, name, PYTEST if name == "pytest" else "99.0", "")
    settings = CommandSettings()
    own = own or EnvironmentSettings(env=env)
    runner = LimitedCommandRunner(settings, PATH, sandbox=sandbox(tier), variables=own.env)
    variables = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(links)}
    environments = PythonEnvironments(folder / "environments", folder / "layers", runner, settings, variables, own=own)
    return PytestRunner(runner, environments, TestSettings(), PATH)


@pytest.mark.parametrize("tier", [CONFINED[0], pytest.param(CONFINED[1], marks=pytest.mark.soak)])
async def test_its_metadata_programs_and_generated_files_are_there(tier: Tier, tmp_path: Path) -> None:
    root, suites = project(tmp_path), suites_in(tmp_path, tier)
    code = "python -c \"import runpy; found = runpy.run_path('test_itself.py'); found['test_itself']()\""
    done = await suites.command(root, code, key="US-1")
    assert done.ok, done.output
    await asyncio.to_thread((root / "src/itself/_version.py").unlink)  # as a reset of the tree does
    done = await suites.command(root, code, key="US-1")
    assert done.ok, done.output


async def test_a_project_that_cannot_be_built_is_tried_without(tmp_path: Path) -> None:
    root, suites = project(tmp_path), suites_in(tmp_path, CONFINED[0])
    (root / "backend.py").write_text("def build_editable(*_):\n    raise SystemExit('no compiler here')\n")
    shutil.rmtree(root / "src")
    (root / "test_itself.py").write_text("def test_itself():\n    assert False\n")
    report = await suites.run(root, Selection("US-1", ["test_itself.py"]))
    assert report.failed == 1
    assert report.output.startswith("[the project itself could not be built:")
    assert "no compiler here" in report.output


@pytest.mark.parametrize(
    "left",
    ["fifo", *(pytest.param(one, marks=pytest.mark.soak) for one in ("no metadata", "no zip", "nonsense", "a hole"))],
)
async def test_whatever_a_build_leaves_is_told_and_ends(left: str, tmp_path: Path) -> None:
    root, suites = project(tmp_path), suites_in(tmp_path, CONFINED[0])
    text = BACKEND.replace('"Requires-Dist: tiny"', '"Requires-Dist: ;;", "Requires-Dist: tiny"')
    if left == "fifo":
        text = "import os\n\ndef build_editable(folder, *_):\n    os.mkfifo(os.path.join(folder, 'answer.json'))\n"
        text += "    os.set_blocking(1, False)\n    os.write(1, b'left a pipe')\n    os._exit(0)\n"
    elif left == "no metadata":
        text = BACKEND.replace("METADATA", "NOTHING")
    elif left == "no zip":
        text = BACKEND.replace("    return name", "    open(os.path.join(folder, name), 'w').close()\n    return name")
    elif left == "a hole":
        text = BACKEND.replace("    return name", "    os.unlink(os.path.join(folder, name))\n    return name")
    (root / "backend.py").write_text(text)
    (root / "pyproject.toml").write_text(PYPROJECT)
    (root / "test_itself.py").write_text("def test_itself():\n    assert False\n")
    report = await asyncio.wait_for(suites.run(root, Selection("US-1", ["test_itself.py"])), 60)
    assert report.failed == 1
    assert report.output.startswith("[the project itself could not be built:")


async def test_what_people_set_is_there_for_builds_and_commands(tmp_path: Path) -> None:
    root = project(tmp_path)
    with (root / "backend.py").open("a") as file:
        file.write("import os\nos.environ['COLOUR']\n")
    asked = 'python -c "import importlib.metadata as found; found.version(\'itself\')" && test "$COLOUR" = blue'
    assert not (await suites_in(tmp_path, CONFINED[0]).command(root, asked, key="US-1")).ok
    done = await suites_in(tmp_path, CONFINED[0], COLOUR="blue").command(root, asked, key="US-1")
    assert done.ok, done.output


async def test_projects_of_the_same_repository_are_installed_too(tmp_path: Path) -> None:
    root = tmp_path / "whole"
    root.mkdir()
    project(tmp_path).rename(root / "lib")
    (root / "requirements.txt").write_text("-e ./lib\n")
    asked = 'test "$(itself)" = main && python -c "import tiny, itself._version"'
    done = await suites_in(tmp_path, CONFINED[0]).command(root, asked, key="US-1")
    assert done.ok, done.output
