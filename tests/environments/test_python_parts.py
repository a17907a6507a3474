"""Several Python projects in one repository, each tested in its own environment."""

import sys
from pathlib import Path

from orchestrator.environments.python import EnvironmentResult, PythonEnvironments
from orchestrator.sandbox.command_runner import LimitedCommandRunner
from orchestrator.settings.model import CommandSettings, TestSettings
from orchestrator.test_runners.pytest_runner import PytestRunner
from orchestrator.test_runners.python import Part, part_of, parts
from orchestrator.test_runners.report import Selection
from tests.environments.projects import write_tree
from tests.environments.test_python_environment import PATH
from tests.sandboxes import plain

FILES = {
    "pyproject.toml": "[project]\nname = 'root'\n",
    "tests/requirements.txt": "responses\n",
    "tests/test_it.py": "def test_root():\n    pass\n",
    "services/a/pyproject.toml": "[tool.pytest.ini_options]\nmarkers = ['slow']\naddopts = '--strict-markers'\n",
    "services/a/src/a.py": "VALUE = 1\n",
    "services/a/data.txt": "1",
    "services/a/tests/test_it.py": """import pytest, a

class TestA:
    @pytest.mark.slow
    def test_a(self):
        assert open("data.txt").read() == str(a.VALUE)
""",
    "services/b/setup.py": "from setuptools import setup\nsetup()\n",
    "services/b/test_b.py": "def test_b():\n    assert False\n",
}


class Own(PythonEnvironments):
    """Our own interpreter for all."""

    async def ensure(self, root: Path, key: str, part: str = "") -> EnvironmentResult:
        self.asked = [*getattr(self, "asked", []), part]
        return EnvironmentResult(python=Path(sys.executable), own=True)


async def test_each_part_of_a_suite_runs_in_its_own_environment_and_folder(tmp_path: Path) -> None:
    root, settings = write_tree(tmp_path / "root", FILES), CommandSettings()
    runner = LimitedCommandRunner(settings, PATH, sandbox=plain())
    environments = Own(tmp_path / "kept", tmp_path / "layers", runner, settings, {})
    suites = PytestRunner(runner, environments, TestSettings(), PATH)
    whole = await suites.run(root, Selection("US-1", expected=["test_root", "test_a", "test_b"]))
    assert (whole.problem, whole.passed, whole.failed, whole.exit_code) == (None, 2, 1, 1), whole.output
    assert environments.asked == ["", "services/a", "services/b"]
    assert {case.file for case in whole.cases} == {name for name in FILES if "test_" in name}
    environments.asked = []
    one = [case for case in whole.cases if case.name == "test_a"]
    assert (await suites.run(root, Selection("US-1", only=one))).green
    assert (await suites.run(root, Selection("US-1", ["services/a/tests/test_it.py"]))).green
    assert environments.asked == ["services/a", "services/a"]


def test_the_nearest_manifest_counts_that_is_not_the_tests_own(tmp_path: Path) -> None:
    root = write_tree(tmp_path, FILES)
    assert part_of(root, "tests/test_it.py") == ""
    assert part_of(root, "services/a/tests/unit/test_it.py") == "services/a"
    assert parts(root, ["tests/test_it.py"], ()) == [Part("", ("tests/test_it.py",))]
    (root / "pytest.ini").write_text("[pytest]\ntestpaths = tests\n")
    assert parts(root, None, ()) == [Part("")], "its people leave the others out"
