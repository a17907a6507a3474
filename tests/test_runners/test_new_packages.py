"""Whether packages that a plan brings can be had is asked of real installers, and nothing is installed."""

import json
from pathlib import Path

import pytest

from orchestrator.sandbox.command_runner import LimitedCommandRunner
from orchestrator.settings.model import CommandSettings
from orchestrator.settings.sections import SandboxSettings
from orchestrator.test_runners.suite_runner import ProjectRunner
from tests.environments.projects import project_runner
from tests.environments.test_python_environment import sourced, wheel
from tests.package_index import registry
from tests.sandboxes import plain
from tests.support import needs_node
from tests.test_runners.test_suite_runner import PATH

PAGE = {
    "name": "left",
    "dist-tags": {"latest": "1.2.0"},
    "versions": {
        "1.2.0": {"name": "left", "version": "1.2.0", "dist": {"tarball": "http://x/left.tgz", "shasum": "0"}}
    },
}


def project_in(folder: Path, npm: str, *, tries: bool = True) -> ProjectRunner:
    rules = SandboxSettings.model_validate({"registries": {"npm": npm or None}})
    variables = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder / "links"), "HOME": str(folder)}
    run = LimitedCommandRunner(CommandSettings(), PATH, sandbox=plain())
    return project_runner(folder, run, None, variables, path=PATH, rules=rules, tries=tries)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "links").mkdir()
    for version in ("1.0", "1.4", "2.0"):
        wheel(tmp_path / "links", "tiny", version, "", needs="other")
    wheel(tmp_path / "links", "other", "1.0", "")
    sourced(tmp_path / "links", "source", "1.0")
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


async def test_of_a_python_project(root: Path, tmp_path: Path) -> None:
    (root / "requirements.txt").write_text("other<9\n")
    project = project_in(tmp_path, "http://127.0.0.1:9/")

    async def refusal(**packages: str) -> str:
        return (await project.new_packages(root, packages, ())).refusal

    assert await refusal(tiny="^1.0", Other="99", sqlite3="*") == "", "the last two are there"
    assert await refusal(tiny="latest") == ""
    assert "tiny>=1.5,<1.6" in await refusal(tiny="~1.5")
    assert "absent" in await refusal(tiny="*", absent="*")
    closed = await project.new_packages(root, {"tiny": "*", "source": "*"}, ())
    assert closed.closed == ("source",)
    assert closed.setting == "environment.install_scripts: [auto, source]"
    assert not (tmp_path / "layers").exists(), "nothing is kept"
    assert not (tmp_path / "python").exists()

    (root / "requirements.txt").write_text("other>9\n")
    found = await project.new_packages(root, {"tiny": "*"}, ())
    assert "other>9" in found.refusal
    assert found.base_too
    assert (await project_in(tmp_path, "", tries=False).new_packages(root, {"absent": "*"}, ())).refusal == ""


@needs_node
async def test_of_a_node_project_and_of_one_of_both_kinds(root: Path, tmp_path: Path) -> None:
    with registry({"/left": json.dumps(PAGE).encode()}) as server:
        project = project_in(tmp_path, server.url)

        async def refusal(files: tuple[str, ...] = (), **packages: str) -> str:
            return (await project.new_packages(root, packages, files)).refusal

        assert await refusal(left="*", tiny="*") == "", "no manifest says what they are"
        (root / "package.json").write_text('{"devDependencies": {}}')
        assert "E404" in await refusal(left="*", tiny="*")
        assert await refusal(("requirements.txt",), left="*", tiny="*") == "", "one of each"
        assert "nowhere" in await refusal(("requirements.txt",), left="*", nowhere="*")
