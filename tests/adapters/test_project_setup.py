"""`environment.setup`: run once on the base, with the network of fetching; what it makes is in every tree."""

import os
from pathlib import Path

import pytest

from orchestrator.adapters.base_commit import BaseCommit
from orchestrator.adapters.suite_runner import ProjectRunner
from orchestrator.checks.environment import Place, environment_cause
from orchestrator.domain.sandbox import Tier
from orchestrator.domain.testing import RunProblem
from orchestrator.errors import ConfigError
from orchestrator.settings import Environment, Settings
from orchestrator.wiring.runners import project_runner
from tests.package_index import registry
from tests.sandboxes import CONFINED, PATH, sandbox
from tests.support import git, make_repo

FILES = {
    "get.py": "import sys, urllib.request\nprint(urllib.request.urlopen(sys.argv[1]).read().decode())\n",
    "tool.sh": "#!/bin/sh\necho of the base\n",
    "test_it.py": "def test_it():\n    assert 'wide' in open('data/tides.txt').read()\n",
    "other/.keep": "",
}


def runner_in(folder: Path, repo: Path, tier: Tier, setup: list[str], **variables: str) -> ProjectRunner:
    settings = Settings.model_validate({"environment": {"setup": setup}})
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
    cause = environment_cause(report, Place((), ()))
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
