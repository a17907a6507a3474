"""Python packages that have no wheel: built where that is allowed, left out and told where it is not or fails."""

import asyncio
import json
from pathlib import Path

import pytest

from orchestrator.core.suite import Tier
from orchestrator.environments.base_commit import InstallScripts
from orchestrator.environments.python_installer import Installer
from orchestrator.environments.python_layers import PythonLayers, notes_on
from orchestrator.environments.python_requirements import Requirements
from orchestrator.sandbox.command_runner import LimitedCommandRunner
from orchestrator.sandbox.fetch_proxy import FetchNetwork
from orchestrator.settings.model import CommandSettings
from tests.environments.test_python_environment import PATH, wheel
from tests.environments.test_python_project import BACKEND, PYPROJECT
from tests.package_index import packed, registry
from tests.sandboxes import CONFINED, TIERS, sandbox

OWN = BACKEND.replace("build_editable", "build_wheel").replace(
    'os.environ["SETUPTOOLS_SCM_PRETEND_VERSION"]', "pathlib.Path('version').read_text()"
)


def sourced(links: Path, version: str, backend: str = OWN) -> None:
    """A package that its own backend builds, of which there is no wheel."""
    told = f"Metadata-Version: 2.2\nName: itself\nVersion: {version}\nRequires-Dist: tiny\n"
    files = {"pyproject.toml": PYPROJECT, "backend.py": backend, "version": version, "PKG-INFO": told}
    files["src/itself/__init__.py"] = ""
    (links / f"itself-{version}.tar.gz").write_bytes(packed({f"itself-{version}/{k}": v for k, v in files.items()}))


HOSTILE = r"""
import json, os, pathlib, urllib.request

home, found = pathlib.Path(os.environ["OUTSIDE"]).parent, []

def tried(name, attempt):
    try:
        if attempt():
            found.append(name)
    except BaseException:
        pass

def other_environments():
    return any(b"SOME_API_KEY" in read(path) for path in pathlib.Path("/proc").glob("[0-9]*/environ"))

def read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""

def got(url, proxy):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": proxy} if proxy else {}))
    return opener.open(url, timeout=3).status == 200

port, proxy = os.environ["PORT"], os.environ.get("http_proxy")
tried("sources", lambda: (home / "root" / "secret.py").read_text())
tried("keys", lambda: (home / ".netrc").read_text())
tried("processes", other_environments)
tried("signals", lambda: os.kill(int(os.environ["OTHER"]), 0) is None)
tried("outside", lambda: (home / "outside" / "left").write_text("x"))
tried("layers", lambda: (home / "layers" / "other" / "x").write_text("x"))
tried("loopback", lambda: got(f"http://127.0.0.1:{port}/", None))
tried("loopback by the proxy", lambda: proxy and got(f"http://127.0.0.1:{port}/", proxy))
tried("private by the proxy", lambda: proxy and got("http://169.254.169.254/latest/meta-data/", proxy))
report = json.dumps({"found": found, "environment": dict(os.environ)})
"""


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
    return {"itself-1.0.dist-info", "tiny"} & there, "\n".join((await asyncio.to_thread(notes_on, found)).told)


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
    again = PythonLayers(tmp_path / "layers", layers._runner, layers._installer, 100)
    assert (await made(again, InstallScripts(("itself",)), "itself", "tiny"))[0] == {"itself-1.0.dist-info", "tiny"}


@pytest.mark.parametrize("tier", [TIERS[0], *(pytest.param(tier, marks=pytest.mark.soak) for tier in TIERS[1:])])
async def test_a_hostile_build_gets_nothing(tier: Tier, tmp_path: Path) -> None:
    place = 'archive.writestr("_itself.pth"'
    backend = HOSTILE + OWN.replace(place, f'archive.writestr("itself_told.json", report)\n        {place}')
    for name in ("outside", "links", "root", "layers/other"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / ".netrc").write_text("password")
    (tmp_path / "root" / "secret.py").write_text("x")
    wheel(tmp_path / "links", "tiny", "1.0", "")
    await asyncio.to_thread(sourced, tmp_path / "links", "1.0", backend)
    other = await asyncio.create_subprocess_exec("sleep", "600", env={"PATH": PATH, "SOME_API_KEY": "of another"})
    try:
        with registry({"/": b"private"}) as private:
            machine = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "links"), "SOME_API_KEY": "hidden"}
            runner = LimitedCommandRunner(CommandSettings(), PATH, sandbox=sandbox(tier), network=FetchNetwork(machine))
            told = {"OUTSIDE": str(tmp_path / "outside"), "OTHER": str(other.pid)}
            told["PORT"] = private.place.partition(":")[2]
            installer = Installer(machine, told, None)
            packages = PythonLayers(tmp_path / "layers", runner, installer, 100)
            found = await packages.ensure(Requirements(lines=("itself",), runner=False), InstallScripts(("itself",)))
    finally:
        other.kill()
        await other.wait()
    assert isinstance(found, Path), found
    report = next(found.glob("venv/lib/python*/site-packages/itself_told.json"))
    said = json.loads(await asyncio.to_thread(report.read_text))
    assert "SOME_API_KEY" not in said["environment"]
    if tier is Tier.PLAIN:  # so these are what the others keep it from
        assert {"sources", "keys", "loopback"} <= {*said["found"]}
        return
    assert said["found"] == []
    assert private.asked == []
    assert list((tmp_path / "outside").iterdir()) == []
