import asyncio
import os
import sys
from pathlib import Path

import pytest

from orchestrator.core.errors import ConfigError
from orchestrator.environments.interpreters import chosen_interpreter, fitting_interpreter, installed, our_interpreter
from orchestrator.settings.sections import EnvironmentSettings
from tests.environments.test_python_environment import wheel
from tests.environments.test_python_project import project, suites_in
from tests.sandboxes import CONFINED

OURS = "{}.{}".format(*sys.version_info)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Programs that answer as Pythons do, and one that does not run."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for version in ("3.10.4", "3.98.1", "3.98.2", "3.99.0rc1"):
        folder = tmp_path / ".pyenv" / "versions" / version / "bin"
        folder.mkdir(parents=True)
        answer = f'["cpython", "{folder}/python", "{version} (main)", "{folder.parent}"]'
        (folder / "python").write_text(f"#!/bin/sh\necho '{answer}'\n")
        (folder / "python").chmod(0o755)
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "python3.97").write_text("#!/bin/sh\nexit 127\n")
    (bin_folder / "python3.97").chmod(0o755)
    (bin_folder / "snake").symlink_to(tmp_path / ".pyenv/versions/3.98.1/bin/python")
    return str(bin_folder)


def test_what_people_name_is_looked_for(path: str) -> None:
    assert chosen_interpreter("", path) == chosen_interpreter(OURS, path) == our_interpreter()
    found = [str(chosen_interpreter(asked, path).number) for asked in ("3.98", "python3.98", "3.98.1", "snake")]
    assert found == ["3.98.2", "3.98.2", "3.98.1", "3.98.1"]
    assert str(chosen_interpreter(f"{path}/snake", path).number) == "3.98.1"
    with pytest.raises(ConfigError, match=r"environment.python: `3.97` is not installed; there are 3.10.4, .*3.99.0"):
        chosen_interpreter("3.97", path)
    with pytest.raises(ConfigError, match="too old"):
        chosen_interpreter("3.10", path)


def test_what_an_interpreter_may_read_is_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("bin", "lib", ".ssh"):
        (tmp_path / name).mkdir()
    program = tmp_path / "bin" / "python3.98"
    for kind in ("cpython", "pypy"):
        program.write_text(f'#!/bin/sh\necho \'["{kind}", "{program}", "3.98.1 (main)", "{tmp_path}"]\'\n')
        program.chmod(0o755)
        os.utime(program, (len(kind), len(kind)))
        found = [one for one in installed(f"{tmp_path}/bin") if one.program == str(program)]
        readable = [(str(program), f"{tmp_path}/bin", f"{tmp_path}/lib")] if kind == "cpython" else []
        assert [one.readable for one in found] == readable
    monkeypatch.chdir(tmp_path)
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    installed("bin:")
    assert not (tmp_path / "ran").exists(), "a folder of PATH that is not absolute is anybody's"


def test_a_project_that_excludes_ours_gets_one_that_it_allows(path: str) -> None:
    assert fitting_interpreter("", path) == fitting_interpreter(">=3.8", path) == our_interpreter()
    found = fitting_interpreter(">=3.97,<3.99", path)
    assert found is not None
    assert str(found.number) == "3.98.2"
    assert fitting_interpreter("<3.11", path) is None, "one is there, and it is too old for us"
    with pytest.raises(ConfigError, match=r"the project is for Python >=4 .* and there are 3.*environment.python"):
        fitting_interpreter(">=4", path)


async def test_packages_project_and_commands_are_the_other_pythons(tmp_path: Path) -> None:
    # Looked for here and not at import: each of them is started.
    known = await asyncio.to_thread(installed, os.environ["PATH"])
    others = [one for one in known if not one.ours and one.number.minor > 11]
    if not others:
        pytest.skip("no other Python is installed here")
    root, other = project(tmp_path), others[-1]
    (tmp_path / "links").mkdir()
    wheel(tmp_path / "links", "newer", "1.0", "")
    told = f"Requires-Dist: newer ; python_version >= '3.{other.number.minor}'"
    backend = (root / "backend.py").read_text()
    (root / "backend.py").write_text(backend.replace('"Requires-Dist: tiny"', f'"Requires-Dist: tiny", "{told}"'))
    asked = "python -c \"import sys, tiny, newer, importlib.metadata as m; print(m.version('itself'), sys.version)\""
    done = await suites_in(tmp_path, CONFINED[0], own=EnvironmentSettings(python=other.program)).command(
        root, asked, key="US-1"
    )
    assert done.ok, done.output
    assert done.output == f"0.0.0 {other.version}\n"
    wrong = suites_in(tmp_path, CONFINED[0], own=EnvironmentSettings(python="3.77"))
    assert "`3.77` is not installed" in (await wrong.command(root, asked, key="US-1")).output
