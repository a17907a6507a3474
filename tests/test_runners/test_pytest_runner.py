import os
import sys
import textwrap
from pathlib import Path

import pytest

from orchestrator.core.suite import CaseResult, RunProblem, TestReport
from orchestrator.environments.python import PythonEnvironments
from orchestrator.sandbox.command_runner import LimitedCommandRunner
from orchestrator.settings.model import CommandSettings, TestSettings
from orchestrator.test_runners.pytest_runner import PytestRunner
from orchestrator.test_runners.python import import_paths, settings_file
from orchestrator.test_runners.report import Selection
from tests.sandboxes import plain

PATH = "/usr/bin:/bin"


def runner_in(folder: Path, *, timeout_s: float = 30, command: str | None = None) -> PytestRunner:
    commands = CommandSettings(timeout_s=30, memory_mb=512)
    run = LimitedCommandRunner(commands, PATH, sandbox=plain())
    environments = PythonEnvironments(folder / "environments", folder / "layers", run, commands, {})
    return PytestRunner(run, environments, TestSettings(timeout_s=timeout_s, command=command), PATH)


def tree(folder: Path, files: dict[str, str]) -> Path:
    root = folder / "a story's tree"  # blanks and quotes are what paths have
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    root.mkdir(exist_ok=True)
    return root


async def suite(
    folder: Path, files: dict[str, str], names: tuple[str, ...] = (), *, timeout_s: float = 30, whole: bool = False
) -> TestReport:
    root = tree(folder, files)
    before = {path for path in root.rglob("*")}
    chosen = None if whole else ["tests/test_story.py"]
    report = await runner_in(folder, timeout_s=timeout_s).run(root, Selection("story", chosen, names))
    assert {path for path in root.rglob("*")} == before, "a run leaves nothing in the tree"
    return report


GOOD = "def test_good():\n    assert True\n"


async def test_every_result_of_a_suite_that_imports_from_root_and_src(tmp_path: Path) -> None:
    report = await suite(
        tmp_path,
        {
            "shop.py": "def total(): return 3\n",
            "src/cart/__init__.py": "def size(): return 2\n",
            "pytest.py": "raise SystemExit(0)\n",
            "tests/test_story.py": """
                import pytest, shop, cart

                @pytest.mark.parametrize("n", [1, 2, "a::b[c]"])
                def test_numbers(n):
                    print("seen", n)
                    assert shop.total() + cart.size() == 5

                class TestCart:
                    def test_method(self):
                        assert cart.size() == 3, "too small"

                @pytest.fixture
                def broken():
                    raise RuntimeError("no fixture")

                def test_fixture(broken): pass

                @pytest.mark.skip(reason="later")
                def test_skipped(): pass
                """,
        },
        ("test_numbers", "test_method", "test_fixture"),
    )
    assert report.problem is None
    assert {case.id: case.result for case in report.cases} == {
        "tests.test_story::test_numbers[1]": CaseResult.PASSED,
        "tests.test_story::test_numbers[2]": CaseResult.PASSED,
        "tests.test_story::test_numbers[a::b[c]]": CaseResult.PASSED,
        "tests.test_story.TestCart::test_method": CaseResult.FAILED,
        "tests.test_story::test_fixture": CaseResult.ERROR,
        "tests.test_story::test_skipped": CaseResult.SKIPPED,
    }
    assert {case.name for case in report.cases} >= {"test_numbers", "test_method"}
    assert {case.file for case in report.cases} == {"tests/test_story.py"}
    assert "too small" in next(case.message for case in report.cases if case.name == "test_method")
    assert (report.exit_code, report.passed, report.failed, report.green) == (1, 3, 2, False)
    assert "too small" in report.output


async def test_green_needs_every_expected_name_to_have_run(tmp_path: Path) -> None:
    files = {"tests/test_story.py": GOOD + "import pytest\n@pytest.mark.xfail\ndef test_weak(): assert False\n"}
    good = await suite(tmp_path, files, ("test_good",))
    assert good.green
    weak = await suite(tmp_path, files, ("test_good", "test_weak", "test_absent"))
    assert (weak.problem, weak.missing_names) == (RunProblem.MISSING_NAMES, ("test_weak", "test_absent"))
    assert not weak.green


LIES = {
    "hang": ("import time\ndef test_good():\n    time.sleep(60)\n", RunProblem.TIMEOUT),
    "abort": ("import os\ndef test_good():\n    os.abort()\n", RunProblem.NO_REPORT),
    "early exit": ("import os\ndef test_good():\n    os._exit(0)\n", RunProblem.NO_REPORT),
    "quits": ("def test_good():\n    raise SystemExit(0)\n\ndef test_last():\n    pass\n", None),
    "exit at import": ("raise SystemExit(0)\n" + GOOD, RunProblem.INTERNAL_ERROR),
    "no tests": ("def helper():\n    pass\n", RunProblem.NO_TESTS),
    "pytest.exit": (GOOD + "import pytest\ndef test_last():\n    pytest.exit('bye', 0)\n", RunProblem.MISSING_NAMES),
    "exit after": (GOOD + "import atexit, os\natexit.register(os._exit, 0)\n", RunProblem.MISSING_NAMES),
    "broken": ("def test_good(:\n", RunProblem.MISSING_NAMES),
    "memory": ("def test_good():\n    x = [bytearray(10**7) for _ in range(10**4)]\n", None),
}


@pytest.mark.parametrize("lie", LIES)
async def test_suites_that_lie_are_never_green(lie: str, tmp_path: Path) -> None:
    text, problem = LIES[lie]
    timeout_s = 1.5 if lie == "hang" else 30
    report = await suite(tmp_path, {"tests/test_story.py": text}, ("test_good", "test_last"), timeout_s=timeout_s)
    assert not report.green
    if problem is not None:
        assert report.problem is problem, report.output
    if lie == "broken":
        assert "SyntaxError" in report.cases[0].message


async def test_the_projects_own_settings_count_and_no_others(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    (tmp_path / "conftest.py").write_text("raise RuntimeError('not of this project')\n")
    files = {
        "lib/deep.py": "VALUE = 1\n",
        "tests/test_story.py": "import deep\ndef test_good():\n    assert deep.VALUE\n",
        "tests/test_other.py": GOOD,
        "pyproject.toml": "[tool.pytest.ini_options]\npythonpath = ['lib']\naddopts = '-k good'\n",
    }
    report = await suite(tmp_path, files, ("test_good",), whole=True)
    assert report.green, report.output
    assert report.passed == 2
    (tmp_path / "a story's tree" / "pyproject.toml").unlink()
    again = await suite(tmp_path, {}, ("test_good",))
    assert "No module named 'deep'" in again.output


async def test_missing_tests(tmp_path: Path) -> None:
    root = tree(tmp_path, {"tests/cart.test.js": "test"})
    runner = runner_in(tmp_path)
    assert (await runner.run(root, Selection("story"))).problem is RunProblem.NO_TESTS
    assert (await runner.run(root, Selection("story", ["tests/test_gone.py"]))).problem is RunProblem.NO_TESTS


async def test_refused_requirements_stop_suite_and_command(tmp_path: Path) -> None:
    root = tree(tmp_path, {"requirements.txt": "--index-url https://a.example/simple\n", "tests/test_story.py": GOOD})
    runner = runner_in(tmp_path)
    report = await runner.run(root, Selection("story", ["tests/test_story.py"]))
    assert report.problem is RunProblem.INSTALL_FAILED
    assert "--index-url https://a.example/simple" in report.output
    result = await runner.command(root, "touch ran", key="story")
    assert not result.ok
    assert "--index-url https://a.example/simple" in result.output
    assert not (root / "ran").exists()


async def test_commands_run_with_our_interpreter_and_cannot_install_into_it(tmp_path: Path) -> None:
    root = tree(tmp_path, {"answer.py": "print(6 * 7)\n"})
    result = await runner_in(tmp_path).command(
        root, "python answer.py && echo $PIP_TARGET && command -v python", key="s"
    )
    assert result.ok
    value, target, python = result.output.splitlines()
    assert (value, python) == ("42", f"{Path(sys.executable).parent}/python")
    assert not Path(target).exists()
    assert str(Path(target).parent) not in {sys.prefix, os.getcwd()}


def test_settings_file_and_import_paths() -> None:
    files = {
        "pyproject.toml": "[tool.ruff]\n",
        "tox.ini": "[tox]\n[pytest]\npythonpath = lib 'with blank'\n",
        "setup.cfg": "[tool:pytest]\npythonpath = b\n",
    }
    assert settings_file(list(files), files.get) == "tox.ini"
    assert import_paths("tox.ini", files["tox.ini"]) == ("lib", "with blank")
    assert import_paths("setup.cfg", files["setup.cfg"]) == ("b",)
    files["pyproject.toml"] = "[tool.pytest]\npythonpath = ['a']\n"
    assert settings_file(list(files), files.get) == "pyproject.toml"
    assert import_paths("pyproject.toml", files["pyproject.toml"]) == ("a",)
    assert import_paths("pytest.toml", "[pytest]\npythonpath = ['c']\n") == ("c",)
    assert settings_file(["pytest.ini", *files], {**files, "pytest.ini": ""}.get) == "pytest.ini"
    assert settings_file(["README.md"], files.get) is None
    for broken in ("[tool.pytest", "tool = 3", "[tool.pytest]\npythonpath = 3", "[tool.pytest]\npythonpath = 'a \"'"):
        assert import_paths("pyproject.toml", broken) == ()
    assert import_paths("pytest.ini", "nonsense") == ()


async def test_a_failure_is_told_from_the_root_with_its_values_whole(tmp_path: Path) -> None:
    report = await suite(
        tmp_path,
        {
            "shop.py": "import json\n\n\ndef read(text):\n    return json.loads(text)\n",
            "tests/test_story.py": """
                import shop

                def test_values():
                    assert shop.read('{"a": 1}') == {f"key_{n}": f"value {n}" for n in range(30)}

                def test_library():
                    shop.read("{")
                """,
        },
    )
    values, library = (case.message for case in report.cases)
    assert "'key_29': 'value 29'" in values, "no value is cut off"
    assert str(tmp_path) not in values + library + report.output
    assert "shop.py:5: in read\n    return json.loads(text)" in library
    assert "in loads\n" not in library
    assert values.startswith("tests/test_story.py:5: in test_values\n"), "the error stands once"
    assert library.count("json.decoder.JSONDecodeError") == 1
