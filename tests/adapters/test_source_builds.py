"""Python packages that have no wheel: built where that is allowed, left out and told where it is not or fails."""

import asyncio
from pathlib import Path

import pytest

from orchestrator.adapters.command_runner import LimitedCommandRunner
from orchestrator.adapters.install_scripts import InstallScripts
from orchestrator.adapters.python_installer import Installer
from orchestrator.adapters.python_layers import PythonLayers, notes_on
from orchestrator.adapters.python_requirements import Requirements
from orchestrator.settings.model import CommandSettings
from tests.adapters.test_python_environment import PATH, wheel
from tests.adapters.test_python_project import BACKEND, PYPROJECT
from tests.package_index import packed
from tests.sandboxes import CONFINED, sandbox

OWN = BACKEND.replace("build_editable", "build_wheel").replace(
    'os.environ["SETUPTOOLS_SCM_PRETEND_VERSION"]', "pathlib.Path('version').read_text()"
)


def sourced(links: Path, version: str, backend: str = OWN) -> None:
    """A package that its own backend builds, of which there is no wheel."""
    told = f"Metadata-Version: 2.2\nName: itself\nVersion: {version}\nRequires-Dist: tiny\n"
    files = {"pyproject.toml": PYPROJECT, "backend.py": backend, "version": version, "PKG-INFO": told}
    files["src/itself/__init__.py"] = ""
    (links / f"itself-{version}.tar.gz").write_bytes(packed({f"itself-{version}/{k}": v for k, v in files.items()}))


@pytest.fixture
def layers(tmp_path: Path) -> PythonLayers:
    (tmp_path / "links").mkdir()
    wheel(tmp_path / "links", "tiny", "1.0", "")
    sourced(tmp_path / "links", "1.0")
    runner = LimitedCommandRunner(CommandSettings(), PATH, sandbox=sandbox(CONFINED[0]))
    installer = Installer({"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "links")}, {}, None)
    return PythonLayers(tmp_path / "layers", runner, installer, 100)


async def made(layers: PythonLayers, scripts: InstallScripts, *lines: str) -> tuple[set[str], str]:
    found = await layers.ensure(Requirements(lines=lines, runner=False), scripts)
    assert isinstance(found, Path), found
    there = await asyncio.to_thread(lambda: {path.name for path in found.glob("venv/lib/python*/site-packages/*")})
    return {"itself-1.0.dist-info", "tiny"} & there, "\n".join(await asyncio.to_thread(notes_on, found))


async def test_what_the_base_names_is_built_and_another_is_told(layers: PythonLayers) -> None:
    known = InstallScripts("auto", {"Itself"})
    assert await made(layers, known, "itself", "tiny") == ({"itself-1.0.dist-info", "tiny"}, "")
    there, told = await made(layers, InstallScripts("auto"), "itself", "tiny")
    assert there == {"tiny"}
    assert told.startswith("`itself` was left out: it has no ready-made package (wheel) for this machine, and")
    base, wanted = (Requirements(lines=lines, runner=False) for lines in (("tiny",), ("itself", "tiny")))
    assert (await layers.check_new(base, wanted, known)).had
    refused = await layers.check_new(base, wanted, InstallScripts("never", {"itself"}))
    assert (refused.closed, refused.setting) == (("itself",), "environment.install_scripts: [itself]")
    assert (await layers.check_new(wanted, wanted, InstallScripts("never"))).had, "the project has it itself"


async def test_one_that_cannot_be_built_is_left_out_with_its_reason(layers: PythonLayers, tmp_path: Path) -> None:
    text = "def build_wheel(*_):\n    raise SystemExit('no compiler here')\n"
    await asyncio.to_thread(sourced, tmp_path / "links", "1.0", text)
    there, told = await made(layers, InstallScripts(("itself",)), "itself", "tiny")
    assert there == {"tiny"}
    assert told.startswith("`itself` was left out: it could not be built: ")
    assert "no compiler here" in told
    await asyncio.to_thread(sourced, tmp_path / "links", "1.0")
    assert (await made(layers, InstallScripts(("itself",)), "itself", "tiny"))[0] == {"tiny"}, "not tried again here"
    again = PythonLayers(layers._folder, layers._runner, layers._installer, 100)
    assert (await made(again, InstallScripts(("itself",)), "itself", "tiny"))[0] == {"itself-1.0.dist-info", "tiny"}
