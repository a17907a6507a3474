from pathlib import Path

import pytest

from orchestrator.environments.base_commit import BaseCommit, BaseFacts, version_of
from orchestrator.environments.python import PythonEnvironments
from orchestrator.sandbox.command_runner import LimitedCommandRunner
from orchestrator.settings.model import CommandSettings
from tests.environments.test_python_environment import PATH, PYTEST, wheel
from tests.sandboxes import plain
from tests.support import git, make_repo


async def test_only_what_the_base_says_counts(tmp_path: Path) -> None:
    files = {"tox.ini": "[testenv]\ndeps = pytest\n", "a/noxfile.py": "", "a/.github/workflows/x.yml": "", "b.txt": ""}
    repo = make_repo(tmp_path / "repo", files)
    base = git(repo, "rev-parse", "HEAD").strip()
    git(repo, "tag", "v1.2")
    (repo / "tox.ini").write_text("[testenv]\ndeps = evil\n")
    git(repo, "commit", "-q", "-a", "-m", "Next")
    git(repo, "tag", "v1.3")
    facts = await BaseCommit(repo / ".git", base, repo).facts()
    assert facts.setups == {path: text for path, text in files.items() if path != "b.txt"}
    assert facts.version == "1.2"
    assert facts.below("a") == {"noxfile.py": "", ".github/workflows/x.yml": ""}
    assert (await BaseCommit(repo / ".git", base, tmp_path / "gone").facts()).version == ""
    assert await BaseCommit(tmp_path / "none", "", repo).facts() == BaseFacts()


async def test_a_story_brings_no_package_by_a_file_that_is_no_manifest(tmp_path: Path) -> None:
    for name, version in (("tiny", "1.0"), ("pytest", PYTEST)):
        wheel(tmp_path, name, version, "")
    repo = make_repo(tmp_path / "repo", {"tox.ini": "[testenv]\ndeps = tiny\n"})
    base = BaseCommit(repo / ".git", git(repo, "rev-parse", "HEAD"), repo)
    (repo / "tox.ini").write_text("[testenv]\ndeps = absent\n")
    (repo / "noxfile.py").write_text("@session\ndef tests(session):\n    session.install('absent', 'pytest')\n")
    settings, variables = CommandSettings(), {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
    runner = LimitedCommandRunner(settings, PATH, sandbox=plain())
    layers = tmp_path / "layers"
    found = await PythonEnvironments(tmp_path / "kept", layers, runner, settings, variables, base=base).ensure(
        repo, "S"
    )
    assert found.problem is None
    assert [path.read_text() for path in layers.glob("*/requirements.txt")] == ["tiny\n"]


@pytest.mark.parametrize(
    ("tag", "version"),
    [("v1.2.0", "1.2.0"), ("humanize-4.9", "4.9"), ("pkg/v2.0rc1", "2.0rc1"), ("latest", ""), ("", ""), ("2.x", "")],
)
def test_version_of_a_tag(tag: str, version: str) -> None:
    assert version_of(tag) == version
