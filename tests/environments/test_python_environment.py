import asyncio
import importlib.metadata
import io
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from orchestrator.core.suite import Tier
from orchestrator.environments.python import PythonEnvironments
from orchestrator.sandbox.command_runner import LimitedCommandRunner
from orchestrator.sandbox.tier import Sandbox
from orchestrator.settings.model import CommandSettings
from orchestrator.settings.sections import SandboxSettings
from tests.sandboxes import CONFINED, plain, sandbox

PATH = "/usr/bin:/bin"
OFFLINE = ("PIP_NO_INDEX", "PIP_FIND_LINKS")
PYTEST = importlib.metadata.version("pytest")


def wheel(folder: Path, name: str, version: str, code: str, pth: str = "", needs: str = "") -> None:
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{name}/__init__.py", code)
        if pth:
            archive.writestr(f"{name}.pth", pth)
        required = f"Requires-Dist: {needs}\n" if needs else ""
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{required}")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


def sourced(folder: Path, name: str, version: str) -> None:
    """A package that must be built."""
    text = f"Metadata-Version: 2.2\nName: {name}\nVersion: {version}\n".encode()
    with tarfile.open(folder / f"{name}-{version}.tar.gz", "w:gz") as archive:
        entry = tarfile.TarInfo(f"{name}-{version}/PKG-INFO")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text))


def environments_in(
    folder: Path, links: Path, box: Sandbox | None = None
) -> tuple[PythonEnvironments, LimitedCommandRunner]:
    settings = CommandSettings(install_env=OFFLINE, timeout_s=60, install_timeout_s=100)
    runner = LimitedCommandRunner(settings, PATH, sandbox=box or plain())
    variables = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(links), "SOME_API_KEY": "hidden-value"}
    return PythonEnvironments(folder, folder.with_name("layers"), runner, settings, variables), runner


@pytest.mark.parametrize("tier", [CONFINED[0], pytest.param(CONFINED[1], marks=pytest.mark.soak)])
async def test_an_environment_is_made_kept_mended_and_cannot_see_ours(tier: Tier, tmp_path: Path) -> None:
    links, root = tmp_path / "links", tmp_path / "root"
    links.mkdir()
    root.mkdir()
    wheel(links, "tiny", "1.5", "VALUE = 5\n")
    # A package whose file of paths runs whenever an interpreter starts beside it: also within the installer.
    marker = tmp_path / "marker"
    trick = f"import os, socket; os.access('{links}', os.R_OK) and open('{marker}', 'a').write('ran')\n"
    wheel(links, "tiny", "1.0", "VALUE = 0\n", pth=trick)
    wheel(links, "pytest", PYTEST, "")
    (root / "requirements.txt").write_text("tiny\n-c limits.txt\nabsent; python_version < '3'\n")
    (root / "limits.txt").write_text("tiny[odd]<1.3\n")
    environments, runner = environments_in(tmp_path / "environments", links, sandbox(tier))

    first, second = await asyncio.gather(environments.ensure(root, "US-1"), environments.ensure(root, "US-1"))
    assert first.problem is None, f"{first.problem}\n{first.output}"
    assert first.python == second.python == tmp_path / "environments" / "US-1" / "venv" / "bin" / "python"
    assert not first.own
    code = (
        "import tiny, importlib.util as u; print(tiny.VALUE, *(u.find_spec(n) is None for n in ('pytest', 'pydantic')))"
    )
    seen = await runner.run([str(first.python), "-c", code], cwd=root, access=first.access)
    assert seen.output.endswith("0 False True\n"), seen.output
    await runner.run([str(first.python), "-m", "pip", "uninstall", "-y", "tiny"], cwd=root, access=first.access)
    seen = await runner.run([str(first.python), "-c", code], cwd=root, access=first.access)
    assert seen.output.endswith("0 False True\n"), "nobody takes away what is installed"
    assert not marker.exists(), "what came with a package was never run where it could reach anything"

    links.rename(tmp_path / "gone")
    assert (await environments.ensure(root, "US-1")).python == first.python, "nothing changed, nothing is installed"
    other = await environments.ensure(root, "US-2")
    assert other.python == tmp_path / "environments" / "US-2" / "venv" / "bin" / "python", "what is there is shared"
    seen = await runner.run([str(other.python), "-c", code], cwd=root, access=other.access)
    assert seen.output.endswith("0 False True\n"), seen.output
    (tmp_path / "gone").rename(links)

    (root / "requirements.txt").write_text("tiny>=9\n")
    (tmp_path / "layers" / ".begun-0123456789abcdef-1" / "venv").mkdir(parents=True)  # somebody was killed
    failed = await environments.ensure(root, "US-1")
    assert failed.python is None
    assert "tiny>=9" in failed.output
    assert len([*(tmp_path / "layers").iterdir()]) == 1, "nothing half-made is left"


async def test_the_versions_of_a_lock_are_taken_unless_it_is_older_than_the_manifests(tmp_path: Path) -> None:
    links, root = tmp_path / "links", tmp_path / "root"
    links.mkdir()
    root.mkdir()
    sourced(links, "old", "1.0")
    for version in ("1.0", "2.0"):
        wheel(links, "tiny", version, f"VALUE = {version}\n")
    for version in ("7.0.0", PYTEST):
        wheel(links, "pytest", version, f"__version__ = '{version}'\n")
    lock = "[[package]]\nname = 'tiny'\nversion = '1.0'\n[[package]]\nname = 'pytest'\nversion = '7.0.0'\n"
    (root / "poetry.lock").write_text(lock)
    environments, runner = environments_in(tmp_path / "environments", links)
    code = "import pytest, tiny; print(tiny.VALUE, pytest.__version__)"

    async def seen(lines: str) -> tuple[str, str]:
        (root / "requirements.txt").write_text(lines)
        found = await environments.ensure(root, "US-1")
        told = await runner.run([str(found.python), "-c", code], cwd=root, access=found.access)
        return told.output, found.note

    assert await seen("tiny\n") == ("1.0 7.0.0\n", "")
    output, note = await seen("tiny>1\n-e ../other\n")
    assert output == "2.0 7.0.0\n", "the other versions of the lock still count"
    assert "the versions of the lock file that conflict with" in note
    assert "tiny==1.0" in note, "the installer's own words"
    assert "`-e ../other` was left out" in note
    output, note = await seen("tiny\nold\n")
    assert output == "1.0 7.0.0\n", "one that has no wheel keeps no other from being there"
    assert note.startswith("`old` was left out: it has no ready-made package (wheel)")


async def test_no_dependencies_our_interpreter_and_refusals_nothing(tmp_path: Path) -> None:
    environments, _ = environments_in(tmp_path / "environments", tmp_path)
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\ndependencies = []\n")
    own = await environments.ensure(tmp_path, "US-1")
    assert (own.python, own.own, own.problem) == (Path(sys.executable), True, None)
    (tmp_path / "requirements.txt").write_text("--no-index\n")
    refused = await environments.ensure(tmp_path, "US-1")
    assert refused.python is None
    assert "--no-index" in (refused.problem or "")
    assert not (tmp_path / "environments").exists()
    for key in ("..", ".", "a/b", ""):
        with pytest.raises(ValueError, match="cannot name"):
            await environments.ensure(tmp_path, key)


async def test_only_packages_of_the_list_are_asked_for(tmp_path: Path) -> None:
    runner = LimitedCommandRunner(CommandSettings(), PATH, sandbox=plain())
    rules = SandboxSettings(packages=("Flask_*", "six"))
    environments = PythonEnvironments(tmp_path / "kept", tmp_path / "layers", runner, CommandSettings(), {}, rules)
    (tmp_path / "requirements.txt").write_text("--pre\nsix>=1\nflask.login[x]==1 ; python_version > '3'\nevil-six\n")
    refused = await environments.ensure(tmp_path, "US-1")
    assert (refused.problem or "").count("is not on the list") == 1
    assert "`evil-six`" in (refused.problem or "")
    (tmp_path / "requirements.txt").unlink()
    (tmp_path / "pyproject.toml").write_text("[build-system]\nrequires = ['evil-build']\n")
    assert "`evil-build` is not on the list" in (await environments.ensure(tmp_path, "US-1")).note
