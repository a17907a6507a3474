"""The Python of a project's environment: real ones that are installed, and programs that say they are one."""

import sys
from pathlib import Path

import pytest

from orchestrator.adapters.command_runner import LimitedCommandRunner
from orchestrator.adapters.pytest_runner import PytestRunner
from orchestrator.adapters.python_environment import PythonEnvironments
from orchestrator.adapters.python_interpreters import OLDEST, OWN, Interpreter, choose_python, installed
from orchestrator.checks.environment import Place, environment_cause
from orchestrator.domain.sandbox import Tier
from orchestrator.settings.environment import EnvironmentSettings
from orchestrator.settings.model import CommandSettings, TestSettings
from tests.adapters.test_python_environment import PATH, PYTEST, wheel
from tests.adapters.test_python_project import project
from tests.sandboxes import CONFINED, sandbox

SUITE = """import importlib.metadata
import sys

import tiny


def test_itself():
    assert sys.version_info[:2] == {minor}
    assert importlib.metadata.version("itself")
"""


@pytest.fixture
def other() -> Interpreter:
    """An installed one that is not ours, or the test is skipped."""
    found = [one for one in installed(PATH) if one.version.rpartition(".")[0] not in {OWN.markers["python_version"]}]
    fitting = [one for one in found if tuple(map(int, one.version.split("."))) > tuple(map(int, OLDEST.split(".")))]
    return fitting[-1] if fitting else pytest.skip("no other Python is installed")


def suites_in(folder: Path, tier: Tier, python: str | None) -> PytestRunner:
    links = folder / "links"
    links.mkdir(exist_ok=True)
    wheel(links, "tiny", "1.0", "")
    settings = CommandSettings()
    runner = LimitedCommandRunner(settings, PATH, sandbox=sandbox(tier))
    variables = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(links), "PATH": PATH}
    own = EnvironmentSettings(python=python)
    environments = PythonEnvironments(folder / "environments", folder / "layers", runner, settings, variables, own=own)
    return PytestRunner(runner, environments, TestSettings(), PATH)


@pytest.mark.parametrize("tier", [CONFINED[0], pytest.param(CONFINED[1], marks=pytest.mark.soak)])
async def test_an_installed_one_that_the_project_asks_for_builds_installs_and_runs_it(
    tier: Tier, other: Interpreter, tmp_path: Path
) -> None:
    root = project(tmp_path)
    for name in ("pytest", "pluggy", "iniconfig", "packaging", "pygments"):
        (tmp_path / "links").mkdir(exist_ok=True)
        wheel(tmp_path / "links", name, PYTEST if name == "pytest" else "99.0", "")
    minor = other.markers["python_version"]
    with (root / "pyproject.toml").open("a") as file:
        file.write(
            f"[project]\nname = 'itself'\ndynamic = ['version', 'dependencies']\nrequires-python = '=={minor}.*'\n"
        )
    backend = (root / "backend.py").read_text()
    needs = f"Requires-Dist: tiny; python_version == '{minor}'\\\\n"
    (root / "backend.py").write_text(backend.replace("Requires-Dist: tiny", needs[:-3]))
    (root / "test_itself.py").write_text(SUITE.format(minor=tuple(map(int, minor.split(".")))))
    code = "python -c \"import runpy; found = runpy.run_path('test_itself.py'); found['test_itself']()\""
    suites = suites_in(tmp_path, tier, None)
    made = await suites.environment(root, "S")
    assert made.because == f"Python {other.version}: pyproject.toml asks for Python =={minor}.*", made.problem
    done = await suites.command(root, code, key="S")
    assert done.ok, f"{made.note}\n{done.output}"
    ours = suites_in(tmp_path, tier, OWN.version)
    assert not (await ours.command(root, code, key="S")).ok, "people's word counts more than the manifest's"
    said = await ours.command(root, "python -c 'import sys; print(*sys.version_info[:2])'", key="S")
    assert said.output == f"{sys.version_info.major} {sys.version_info.minor}\n"


@pytest.mark.soak
@pytest.mark.usefixtures("open_network")
async def test_a_suite_runs_with_it_and_pytest_from_the_index(other: Interpreter, tmp_path: Path) -> None:
    settings = CommandSettings()
    runner = LimitedCommandRunner(settings, PATH, sandbox=sandbox(CONFINED[0]))
    own = EnvironmentSettings(python=other.markers["python_version"])
    environments = PythonEnvironments(tmp_path / "made", tmp_path / "layers", runner, settings, {"PATH": PATH}, own=own)
    suites = PytestRunner(runner, environments, TestSettings(), PATH)
    root = tmp_path / "root"
    root.mkdir()
    (root / "test_it.py").write_text(
        f"import sys\ndef test_it():\n    assert sys.version.startswith('{other.version}')\n"
    )
    report = await suites.run(root, files=["test_it.py"], expected_names=["test_it"], key="S")
    assert report.green, report.output


def program(folder: Path, name: str, version: str) -> None:
    """A program that says it is this version of Python."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f'#!/bin/sh\necho \'["{folder / name}", "{version}"]\'\n')
    (folder / name).chmod(0o755)


def test_the_setting_then_ours_then_the_newest_that_fits(tmp_path: Path) -> None:
    there = tmp_path / "bin"
    for name, version in (
        ("python3.8", "3.8.2"),
        ("python3.97", "3.97.1"),
        ("python3.98", "3.98.0"),
        ("odd", "3.96.5"),
    ):
        program(there, name, version)
    program(there, "python3.95", "broken")
    path, root = f"{there}:/usr/bin", tmp_path / "root"
    root.mkdir()

    def chosen(asked: str | None, text: str = "", name: str = "pyproject.toml") -> tuple[str, str]:
        (root / name).write_text(text)
        found = choose_python(asked, root, path)
        (root / name).unlink()
        return found.python.version, found.problem or found.because

    assert chosen(None) == chosen(None, "[project]\nrequires-python = '>=3.8'\n") == (OWN.version, "")
    newest = "Python 3.98.0: pyproject.toml asks for Python >=3.97"
    assert chosen(None, "[project]\nrequires-python = '>=3.97'\n") == ("3.98.0", newest)
    assert chosen(None, "[tool.poetry.dependencies]\npython = '~3.97'\n")[0] == "3.97.1"
    assert chosen(None, "[options]\npython_requires = <3.98,>=3.97\n", "setup.cfg")[0] == "3.97.1"
    assert chosen("3.97") == ("3.97.1", "Python 3.97.1: environment.python is 3.97")
    assert chosen("odd")[0] == chosen(str(there / "odd"))[0] == "3.96.5"
    for asked, text, said in (
        ("3.90", "", "environment.python is 3.90, which is not installed. Installed here: 3."),
        ("3.95", "", "environment.python is 3.95, which is not installed"),
        ("3.8.2", "", f"tests cannot be run with Python 3.8.2, only with {OLDEST} or newer"),
        (None, "[project]\nrequires-python = '<3.9'\n", "pyproject.toml asks for Python <3.9. Installed here: 3."),
    ):
        version, problem = chosen(asked, text)
        assert version == OWN.version
        assert said in problem


async def test_one_that_is_not_installed_is_told_before_anything_is(tmp_path: Path) -> None:
    root = project(tmp_path)
    report = await suites_in(tmp_path, CONFINED[0], "3.99").run(root, key="S")
    cause = environment_cause(report, Place((), ()))
    assert cause is not None
    assert cause.code == "environment.interpreter"
    assert "environment.python is 3.99, which is not installed" in cause.message
    assert not (tmp_path / "layers").exists()
