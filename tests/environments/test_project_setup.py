"""`environment.setup`, once per base with the network of fetching, and `.build`, in each tree whose files changed."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrator.app.runners import project_runner
from orchestrator.checks.environment import environment_cause
from orchestrator.core.errors import ConfigError
from orchestrator.core.suite import RunProblem, Tier
from orchestrator.environments.base_commit import BaseCommit
from orchestrator.settings import Environment, Settings
from orchestrator.test_runners.suite_runner import ProjectRunner
from tests.package_index import registry
from tests.sandboxes import CONFINED, PATH, sandbox
from tests.support import git, make_repo

FILES = {
    "get.py": "import sys, urllib.request\nprint(urllib.request.urlopen(sys.argv[1]).read().decode())\n",
    "tool.sh": "#!/bin/sh\necho of the base\n",
    "test_it.py": "def test_it():\n    assert 'wide' in open('data/tides.txt').read()\n",
    "other/.keep": "",
}


def runner_in(
    folder: Path, repo: Path, tier: Tier, setup: list[str], build: Sequence[str] = (), **variables: str
) -> ProjectRunner:
    settings = Settings.model_validate({"environment": {"setup": setup, "build": build}})
    environment = Environment(
        config_file=None,
        home=folder / "state",
        base_dir=folder,
        variables={"PATH": PATH, "SOME_API_KEY": "secret", **variables},
    )
    base = BaseCommit(repo / ".git", git(repo, "rev-parse", "HEAD"), repo)
    return project_runner(settings, environment, folder / "environments", sandbox(tier), base=base)


@pytest.mark.parametrize("tier", [CONFINED[0], pytest.param(CONFINED[1], marks=pytest.mark.soak)])
async def test_what_it_fetches_and_makes_once_is_in_every_tree(tier: Tier, tmp_path: Path) -> None:
    repo, outside = make_repo(tmp_path / "repo", FILES), tmp_path / "outside"
    outside.mkdir()
    with registry({"/tides.txt": b"wide\n"}) as server:
        get = f"python get.py {server.url}/tides.txt"
        setup = [
            f"mkdir -p data other/empty && {get} > data/tides.txt && env > data/env.txt && rm get.py",
            "cp tool.sh data/tool && chmod +x data/tool && ln -s tool data/link && sh tool.sh > other/made.txt",
        ]
        runner = runner_in(tmp_path, repo, tier, setup, PIP_INDEX_URL=f"{server.url}/simple")
        first, second = (make_repo(tmp_path / name, FILES) for name in ("first", "second"))
        # A story changes nothing of what is run, keeps its own file, and leads no writing elsewhere.
        (first / "tool.sh").write_text("echo of a story\n")
        (first / "data").mkdir()
        (first / "data" / "tides.txt").write_text("wide by a story\n")
        (first / "other" / ".keep").unlink()
        (first / "other").rmdir()
        (first / "other").symlink_to(outside)
        for root in (first, second):
            report = await runner.run(root, files=["test_it.py"], key=root.name)
            assert report.green, report.output
        assert (first / "data" / "tides.txt").read_text() == "wide by a story\n"
        assert [*outside.iterdir()] == []
        assert (second / "other" / "made.txt").read_text() == "of the base\n"
        assert (second / "other" / "empty").is_dir()
        assert "SOME_API_KEY" not in (second / "data" / "env.txt").read_text()
        assert (second / "get.py").exists(), "what is in the repository stays as it is there"
        git(second, "clean", "-qfdx")  # as a reset of the tree does
        done = await runner.command(second, f"data/link && {get}", key="second")
        assert "of the base" in done.output
        assert not done.ok, "commands of stories have no network"
        assert os.stat(second / "data" / "tool").st_ino != os.stat(first / "data" / "tool").st_ino
        assert [path for path, _ in server.asked] == ["/tides.txt"]
        (repo / "tool.sh").write_text("echo of the next base\n")
        git(repo, "commit", "-qam", "Next")
        fresh = runner_in(tmp_path, repo, tier, setup, PIP_INDEX_URL=f"{server.url}/simple")
        git(second, "clean", "-qfdx")
        assert "of the next base" in (await fresh.command(second, "cat other/made.txt", key="x")).output


async def test_a_failing_command_is_told_with_its_end_and_what_is_missing_by_name(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", FILES)
    runner = runner_in(tmp_path, repo, CONFINED[0], ["echo begun > made", "echo no more; no-such-tool --all"])
    report = await runner.run(repo, key="S")
    assert report.problem is RunProblem.SETUP_FAILED
    told = "environment.setup: `echo no more; no-such-tool --all` failed (exit code 127)"
    assert report.output.splitlines()[-1] == f"{told}; this machine has no `no-such-tool`: install it"
    assert report.output.startswith("no more\n")
    cause = environment_cause(report)
    assert cause is not None
    assert (cause.code, cause.message) == (
        "environment.setup",
        f"the project could not be set up: {report.output.splitlines()[-1]}",
    )
    made = await runner.environment(repo, key="S")
    assert told in made.problem
    assert not (await runner.command(repo, "true", key="S")).ok
    assert not (repo / "made").exists()
    assert [*(tmp_path / "state" / "environments" / "setup").iterdir()] == [], "nothing half-made is left"


def test_a_version_of_python_is_no_number() -> None:
    with pytest.raises((ConfigError, ValueError), match="in quotes"):
        Settings.model_validate({"environment": {"python": 3.10}})


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("sudo apt-get install -y libpq-dev protobuf-compiler", "install libpq-dev protobuf-compiler on this machine"),
        ("make deps && apk --no-cache add git", "install git on this machine"),
    ],
)
def test_system_packages_are_refused_by_name(command: str, said: str) -> None:
    with pytest.raises((ConfigError, ValueError), match=said):
        Settings.model_validate({"environment": {"setup": [command]}})


MAKE = """import pathlib, uuid

for line in pathlib.Path("words.txt").read_text().splitlines():
    name, _, value = line.partition(" ")
    pathlib.Path("made").mkdir(exist_ok=True)
    pathlib.Path("made", f"{name}.py").write_text(f"VALUE = {int(value)}\\n")
pathlib.Path("made", "stamp").write_text(str(uuid.uuid4()))
"""
BUILT = {
    "words.txt": "tide 1\n",
    "make.py": MAKE,
    "test_it.py": "from made.tide import VALUE\n\n\ndef test_it():\n    assert VALUE == int(open('expected').read())\n",
}


@pytest.mark.parametrize("tier", [CONFINED[0], pytest.param(CONFINED[1], marks=pytest.mark.soak)])
async def test_a_build_runs_where_files_have_changed_and_its_files_are_put_back(tier: Tier, tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", BUILT)
    runner = runner_in(tmp_path, repo, tier, ["echo 1 > expected"], ["true", "python make.py"])
    root = make_repo(tmp_path / "root", BUILT)
    stamps = list[str]()
    for _ in range(3):
        report = await runner.run(root, files=["test_it.py"], key="S")
        assert report.green, report.output
        stamps.append((root / "made" / "stamp").read_text())
        git(root, "clean", "-qfdx")  # as a reset of the tree does
    assert len(set(stamps)) == 1, "nothing has changed, nothing is made"
    (root / "words.txt").write_text("tide 12\n")
    report = await runner.run(root, files=["test_it.py"], key="S")
    assert (report.failed, "assert 12 == 1" in report.cases[0].message) == (1, True)
    (root / "words.txt").write_text("tide wide\n")
    report = await runner.run(root, files=["test_it.py"], key="S")
    assert report.problem is RunProblem.BUILD_FAILED
    assert report.output.endswith("environment.build: `python make.py` failed (exit code 1)")
    assert "invalid literal for int() with base 10: 'wide'" in report.output
    assert environment_cause(report) is None, "a story's own files may be why"
    assert "was not run" in (await runner.command(root, "true", key="S")).output
    git(root, "clean", "-qfdx")
    (root / "words.txt").unlink()
    (root / "make.py").write_text("import os\nprint(os.path.exists('made'), end='')\n")
    assert "False" in (await runner.command(root, "python make.py", key="S")).output, "its source is gone"
    other = make_repo(tmp_path / "other", BUILT)
    assert (await runner.run(other, files=["test_it.py"], key="T")).green
    assert (other / "made" / "stamp").read_text() != stamps[0], "each tree has its own"
