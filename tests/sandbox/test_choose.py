import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestrator.core.errors import ConfigError
from orchestrator.core.suite import Access, SandboxFacts, Tier
from orchestrator.sandbox import choose
from orchestrator.sandbox import tier as sandbox_tier
from orchestrator.sandbox.choose import ACTIONS, open_sandbox, self_test
from orchestrator.sandbox.command_runner import LimitedCommandRunner
from orchestrator.sandbox.tier import Command, Confined
from orchestrator.settings.model import CommandSettings
from orchestrator.settings.sections import SandboxSettings
from tests.sandboxes import CONFINED, PATH, sandbox


@pytest.fixture
def bare_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither bubblewrap nor Landlock."""
    monkeypatch.setattr(choose, "find_bwrap", lambda: None)
    monkeypatch.setattr(choose, "abi_version", lambda: 0)
    monkeypatch.setattr(choose, "_passed", {})
    monkeypatch.setattr(sys, "platform", "linux")


@pytest.mark.usefixtures("bare_machine")
async def test_where_nothing_confines_a_run_is_refused_unless_plain_was_asked_for() -> None:
    with pytest.raises(ConfigError, match=r"cannot be confined .* What to do: install .*sandbox\.mode=plain") as told:
        await open_sandbox(SandboxSettings(), PATH)
    assert "bubblewrap is not there" in told.value.message
    assert "Landlock is too old" in told.value.message
    asked = await open_sandbox(SandboxSettings(mode="plain"), PATH)
    assert (asked.facts.tier, asked.facts.note) == (Tier.PLAIN, "asked for by name")


async def test_where_there_is_no_bubblewrap_it_is_landlock(monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox(Tier.LANDLOCK)
    monkeypatch.setattr(choose, "find_bwrap", lambda: None)
    monkeypatch.setattr(choose, "_passed", {})
    assert (await open_sandbox(SandboxSettings(), PATH)).facts.tier is Tier.LANDLOCK


async def test_without_libseccomp_no_tier_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object, **__: object) -> bytes:
        raise RuntimeError("Unable to find libseccomp")

    monkeypatch.setattr(choose, "program", gone)
    monkeypatch.setattr(choose, "_passed", {})
    with pytest.raises(ConfigError, match="Unable to find libseccomp"):
        await open_sandbox(SandboxSettings(), PATH)


class Open:
    """As a tier whose every guard is broken."""

    own_loopback = False
    facts = SandboxFacts(tier=Tier.LANDLOCK)

    @contextmanager
    def confined(self, command: Command) -> Iterator[Confined]:
        yield Confined(command.argv, command.env)


async def test_the_self_test_tells_what_a_tier_does_not_hold() -> None:
    told = await self_test(LimitedCommandRunner(CommandSettings(), PATH, sandbox=Open()), Open.facts)
    assert told == f"a command in it {', '.join(ACTIONS[:3])}"


class Broken(Open):
    """As a machine on which bubblewrap is there and may not work."""

    @contextmanager
    def confined(self, command: Command) -> Iterator[Confined]:
        yield Confined(("/bin/sh", "-c", "echo no permission >&2; exit 1"), command.env)


async def test_the_self_test_tells_why_a_tier_cannot_run_anything() -> None:
    told = await self_test(
        LimitedCommandRunner(CommandSettings(), PATH, sandbox=Broken()), SandboxFacts(tier=Tier.LANDLOCK)
    )
    assert told == "a command cannot be run in it: no permission"


@pytest.mark.parametrize("tier", CONFINED)
async def test_a_command_that_cannot_be_confined_is_not_run(tier: Tier, tmp_path: Path) -> None:
    runner = LimitedCommandRunner(CommandSettings(), PATH, sandbox=sandbox(tier))
    for env in (
        {"LD_PRELOAD": str(tmp_path / "absent.so")},
        {"BASH_ENV": "x", "ENV": "y", "PYTHONPATH": str(tmp_path)},
    ):
        assert (await runner.run(["/bin/sh", "-c", "echo fine"], cwd=tmp_path, env=env)).output.endswith("fine\n")
    gone = await runner.run(["/bin/sh", "-c", "echo ran"], cwd=tmp_path / "absent")
    assert (gone.exit_code, "ran" in gone.output) == (127, False)


@pytest.mark.parametrize("tier", CONFINED)
async def test_what_a_command_wrote_is_ours_again_and_only_named_places_can_be_read(tier: Tier, tmp_path: Path) -> None:
    tree, beside, closed = tmp_path / "tree", tmp_path / "beside", tmp_path / "closed"
    for folder in (tree, beside, closed):
        folder.mkdir()
        (folder / "file").write_text("x")
    closed.chmod(0o700)
    runner = LimitedCommandRunner(CommandSettings(), PATH, sandbox=sandbox(tier))
    text = f"mkdir -p a/b; echo y > a/b/c; echo z >> file; cat {beside}/file; cat {closed}/file; : > {beside}/file"
    refused = await runner.run(["/bin/sh", "-c", text], cwd=tree)
    assert not refused.ok
    assert "x" not in refused.output.replace("such file", "").split()
    allowed = await runner.run(["/bin/sh", "-c", text], cwd=tree, access=Access(readable=(beside, closed)))
    assert allowed.output.startswith("xx")
    assert (beside / "file").read_text() == "x"
    assert {path.stat().st_uid for path in (tree, *tree.rglob("*"))} == {tmp_path.stat().st_uid}
    assert (tree / "a" / "b" / "c").read_text() == "y\n"
    assert tree.stat().st_mode & 0o7777 == 0o755


def test_an_application_below_a_folder_of_the_system_stays_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("usr/bin", "usr/src/app/state", "usr/src/other", "opt/tool"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr(sandbox_tier, "SYSTEM", (f"{tmp_path}/usr", f"{tmp_path}/opt", f"{tmp_path}/lib"))
    everything = {str(tmp_path / name) for name in ("usr", "opt", "lib")}
    assert set(sandbox_tier.system()) == everything
    found = {path.removeprefix(f"{tmp_path}/") for path in sandbox_tier.system((tmp_path / "usr/src/app",))}
    assert found == {"usr/bin", "usr/src/other", "opt", "lib"}
    assert set(sandbox_tier.system((tmp_path.parent,))) == everything, "what lies above says nothing of the folders"


def test_a_folder_on_path_that_is_closed_to_us_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    tmp_path.chmod(0)
    us = os.geteuid()
    try:
        os.seteuid(us or 65534)  # nothing is closed to root
        assert tmp_path / "bin" not in sandbox_tier.tools(str(tmp_path / "bin"))
    finally:
        os.seteuid(us)
        tmp_path.chmod(0o700)
