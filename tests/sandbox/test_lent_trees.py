"""The tree of a command that runs as a user of its own: lent to it, and ours again."""

import asyncio
import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path

import pytest

from orchestrator.core.suite import Access, Tier
from orchestrator.files.users import COMMANDS, DAC_READ_SEARCH, FIRST, can_change_user, given, is_slot
from orchestrator.sandbox import landlock
from orchestrator.sandbox.command_runner import LimitedCommandRunner
from orchestrator.sandbox.landlock import LandlockSandbox
from orchestrator.settings.model import CommandSettings
from orchestrator.storage.state_folder import StateFolder
from tests.sandboxes import PATH, TIERS, plain, sandbox

pytestmark = pytest.mark.skipif(not can_change_user(), reason="commands are of our own user here")
FAR = 200
"""A user whom no command of another test is."""


@pytest.mark.parametrize("guarded", [True, False])
@pytest.mark.parametrize("tier", TIERS)
async def test_a_command_works_on_its_folder_as_on_one_of_its_own(tier: Tier, guarded: bool, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir(mode=0o700)
    for name in ("one", "tree/inside"):
        (tmp_path / name).write_text("ours")
    os.link(tree / "inside", tree / "again")
    os.link(tmp_path / "one", tree / "elsewhere")
    if guarded:
        (tree / ".git").write_text("gitdir: nowhere")
    script = "echo new > again && touch n && ! echo x > elsewhere && ! mv .git taken"
    if not guarded or tier is Tier.NAMESPACES:
        script += " && touch -d @1 . && chmod 700 ."  # `tar x` and `cp -a` do
    runner = LimitedCommandRunner(CommandSettings(), PATH, sandbox=sandbox(tier))
    result = await runner.run(["sh", "-c", script], cwd=tree)
    assert result.ok, result.output
    assert (tree / "inside").read_text() == "new\n"
    assert (tmp_path / "one").read_text() == "ours"
    assert {path.stat().st_uid for path in (tree, *tree.iterdir())} == {os.geteuid()}
    assert stat.S_IMODE(tree.stat().st_mode) == 0o700


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


async def test_a_command_of_root_is_not_root_where_nothing_else_is_confined(tmp_path: Path) -> None:
    runner = LimitedCommandRunner(CommandSettings(), PATH, sandbox=plain())
    result = await runner.run(["sh", "-c", "id -u; grep -E 'Prm|Bnd|NoNew' /proc/self/status"], cwd=tmp_path)
    user, *rows = result.output.split()
    assert is_slot(int(user))
    changes = ~(1 << DAC_READ_SEARCH)  # it may look, where our interpreter or the tree is closed to others
    assert [int(row, 16) & changes for row in rows[1::2]] == [0, 0, 1]


async def test_temporary_folders_stay_closed_where_a_link_leads_to_work_in_them() -> None:
    box = plain()
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        os.chmod(place, 0o777)
        (tree := Path(place, "tree")).mkdir()
        linked = Path(f"/proc/self/root{tree}")
        result = await LimitedCommandRunner(CommandSettings(), PATH, sandbox=box).run(
            ["sh", "-c", "touch made; touch ../beside"], cwd=linked
        )
        made, beside = (tree / "made").exists(), Path(place, "beside").exists()
    assert (made, beside) == (True, "changes of files elsewhere" not in box.facts.holds), result.output


async def test_what_a_command_of_our_own_user_puts_in_the_place_of_git_is_gone(tmp_path: Path) -> None:
    sandbox(Tier.LANDLOCK)
    (tmp_path / ".git").write_text("gitdir: ours")
    box = await asyncio.to_thread(LandlockSandbox, PATH, as_user=False)
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


def test_what_a_killed_process_lent_comes_back_with_the_next_command(tmp_path: Path) -> None:
    (tmp_path / ".git").touch()
    tmp_path.chmod(0o755)
    killed = given(tmp_path, FIRST + FAR)
    killed.__enter__()  # and never left
    (tmp_path / "made").touch()
    os.chown(tmp_path / "made", FIRST + FAR, FIRST + FAR)
    assert tmp_path.stat().st_mode & stat.S_ISVTX
    with given(tmp_path, FIRST + FAR + 1):
        assert (tmp_path / "made").stat().st_uid == FIRST + FAR + 1
    found = tmp_path.stat()
    assert (found.st_uid, stat.S_IMODE(found.st_mode), found.st_gid) == (os.geteuid(), 0o755, os.getegid())
    assert (tmp_path / "made").stat().st_uid == os.geteuid()


def test_where_root_cannot_look_everywhere_commands_pass_the_state_folder_and_nobody_else_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sandbox(Tier.LANDLOCK)
    monkeypatch.setattr(landlock, "has", lambda *_: False)  # as in a container
    monkeypatch.setattr(landlock, "tools", lambda _: ())  # our interpreter may lie where root alone can look
    home = Path(tempfile.mkdtemp(dir="/tmp")).resolve()
    tree = home / "sprints" / "tree"
    tree.mkdir(parents=True)
    try:
        box = LandlockSandbox("/usr/bin:/bin", places=(home,))
        assert "own user" in box.facts.holds
        runner = LimitedCommandRunner(CommandSettings(), "/usr/bin:/bin", sandbox=box)
        result = asyncio.run(runner.run(["sh", "-c", f"id -u; touch {tree}/made; ls {home} || echo closed"], cwd=tree))
        user, *_, last = result.output.splitlines()
        assert (is_slot(int(user)), last, (tree / "made").exists()) == (True, "closed", True)
        found = home.stat()
        assert (stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid) == (0o710, 0, COMMANDS)
        assert StateFolder(home).make() is None
        assert home.stat().st_gid == COMMANDS
    finally:
        shutil.rmtree(home)


def test_where_temporary_files_are_closed_to_other_users_commands_stay_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sandbox(Tier.LANDLOCK)
    monkeypatch.setattr(landlock, "has", lambda *_: False)
    monkeypatch.setattr(landlock, "_out_of_reach", lambda own, _: any("closed" in str(path) for path in own))
    assert "own user" in LandlockSandbox(PATH).facts.holds
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "closed"))
    assert "own user" in LandlockSandbox(PATH).facts.missing
