"""The tree of a command: its own to work in, and ours again when the command has ended."""

import ctypes
import sys
from pathlib import Path

import pytest

from orchestrator.core.suite import Access, Tier
from orchestrator.sandbox.command_runner import LimitedCommandRunner
from orchestrator.settings.model import CommandSettings
from tests.sandboxes import PATH, TIERS, sandbox

RIGHTS = """
import ctypes
prctl = ctypes.CDLL(None).prctl
print(sum(max(0, prctl(23, number, 0, 0, 0)) for number in range(64)), prctl(39, 0, 0, 0, 0))
"""
"""Capabilities that a process may still get, and whether a program's owner gives it none."""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no capabilities")
@pytest.mark.parametrize("tier", TIERS)
async def test_a_command_of_root_has_none_of_its_capabilities(tier: Tier, tmp_path: Path) -> None:
    if ctypes.CDLL(None).prctl(23, 0, 0, 0, 0) != 1 or ctypes.CDLL(None).geteuid():
        pytest.skip("we have none ourselves")
    runner = LimitedCommandRunner(CommandSettings(), PATH, sandbox=sandbox(tier))
    result = await runner.run([sys.executable, "-I", "-c", RIGHTS], cwd=tmp_path)
    assert result.output == "0 1\n"


@pytest.mark.parametrize("tier", TIERS)
async def test_a_command_starts_in_a_folder_that_is_closed_to_others(tier: Tier, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir(mode=0o700)
    runner = LimitedCommandRunner(CommandSettings(), PATH, sandbox=sandbox(tier))
    # access(2) is what programs ask that look for their settings upwards.
    asks = f"import os; print(os.access('{inner}/made', os.R_OK))"
    words = ["sh", "-c", f'pwd; touch made; {sys.executable} -c "{asks}"']
    result = await runner.run(words, cwd=inner, access=Access(tree=tmp_path))
    assert (result.exit_code, result.output) == (0, f"{inner}\nTrue\n")


async def test_what_a_command_of_our_own_user_puts_in_the_place_of_git_is_gone(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: ours")
    box = sandbox(Tier.LANDLOCK)
    runner = LimitedCommandRunner(CommandSettings(), PATH, sandbox=box)
    result = await runner.run(["sh", "-c", "rm .git; mkdir .git; touch .git/config; chmod 500 ."], cwd=tmp_path)
    assert result.ok, result.output
    assert (tmp_path / ".git").read_text() == "gitdir: ours"


async def test_a_command_may_see_its_tree_at_a_path_without_hidden_folders(tmp_path: Path) -> None:
    tree = tmp_path / ".state" / "US-1"
    (tree / "inner").mkdir(parents=True)
    (tree / ".git").write_text("gitdir: nowhere")
    runner = LimitedCommandRunner(CommandSettings(), PATH, sandbox=sandbox(Tier.NAMESPACES))
    words = ["sh", "-c", "pwd; pwd -P; echo new > made; ! rm ../.git; ! echo x > ../.git"]
    access = Access(tree=tree, plain_path=True)
    result = await runner.run(words, cwd=tree / "inner", access=access)
    assert result.ok, result.output
    assert result.output.startswith("/project/inner\n/project/inner\n")
    assert result.seen_at == Path("/project")
    assert ((tree / "inner/made").read_text(), (tree / ".git").read_text()) == ("new\n", "gitdir: nowhere")
    (tmp_path / "open").mkdir()
    result = await runner.run(["pwd"], cwd=tmp_path / "open", access=Access(plain_path=True))
    assert (result.output, result.seen_at) == (f"{tmp_path}/open\n", None)
