import asyncio
import fcntl
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

import pytest

from orchestrator.core.suite import CommandResult
from orchestrator.sandbox.command_runner import OUTPUT_KEPT, LimitedCommandRunner
from orchestrator.sandbox.launched import CappedOutput
from orchestrator.sandbox.tier import Sandbox
from orchestrator.settings.model import CommandSettings
from tests.sandboxes import PATH, TIERS, sandbox

LINUX = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


@pytest.fixture(params=TIERS, autouse=True)
def box(request: pytest.FixtureRequest) -> Sandbox:
    """Every test here runs in every tier."""
    return sandbox(request.param)


def limited(box: Sandbox, *, timeout_s: float = 20, **limits: int) -> LimitedCommandRunner:
    return LimitedCommandRunner(CommandSettings(timeout_s=timeout_s, **limits), PATH, sandbox=box)


async def shell(
    runner: LimitedCommandRunner, text: str, cwd: Path, env: Mapping[str, str] | None = None
) -> CommandResult:
    return await runner.run(["/bin/sh", "-c", text], cwd=cwd, env=env)


def marked(mark: str) -> list[int]:
    """Processes (zombies aside) that carry `mark` in their environment or command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "environ").read_bytes() + (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in text and int(folder.name) != os.getpid():
            found.append(int(folder.name))
    return found


@pytest.fixture
def mark() -> str:
    return f"mark{uuid.uuid4().hex}"


async def test_output_exit_code_and_environment_from_nothing(
    box: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hidden-value")
    result = await shell(limited(box), "echo out; echo err >&2; env; pwd; cat; exit 3", tmp_path, {"ADDED": "yes"})
    assert result.exit_code == 3
    assert result.limit is None
    lines = result.output.splitlines()
    assert lines[:2] == ["out", "err"]
    assert lines[-1] == str(tmp_path)
    variables = dict(line.split("=", 1) for line in lines[2:-1])
    assert "SOME_API_KEY" not in variables
    assert variables["ADDED"] == "yes"
    assert variables["PATH"] == PATH
    assert variables["HOME"] == variables["TMPDIR"] != os.environ["HOME"]
    assert not Path(variables["HOME"]).exists(), "the scratch folder is gone"
    assert set(variables) <= {
        *("ADDED", "PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LANG", "CI", "HUSKY", "PWD", "OLDPWD", "SHLVL", "_"),
        *("PYTHONDONTWRITEBYTECODE", "PIP_DISABLE_PIP_VERSION_CHECK", "PIP_NO_INPUT", "ORCHESTRATOR_COMMAND"),
        *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_TERMINAL_PROMPT", "GIT_CEILING_DIRECTORIES"),
    }


async def test_what_cannot_be_started_is_told_with_a_reason(box: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("x")
    runner = limited(box)
    for argv, code in (
        (["no-such-program"], 127),
        ([], 127),
        (["a\0b"], 127),
        (["x" * 300_000], 127),
        (["./data"], 126),
    ):
        result = await runner.run(argv, cwd=tmp_path)
        assert (result.exit_code, bool(result.output)) == (code, True), argv
    assert (await runner.run(["true"], cwd=tmp_path / "absent")).exit_code == 127


async def test_a_signal_is_no_exit_code(box: Sandbox, tmp_path: Path) -> None:
    result = await shell(limited(box), "kill -ABRT $$", tmp_path)
    assert result.exit_code is None
    assert not result.ok
    assert "SIGABRT" in result.output


@LINUX
async def test_detached_survivors_are_gone_when_the_main_process_ends(box: Sandbox, tmp_path: Path, mark: str) -> None:
    text = f"(setsid sh -c 'sleep 60; : {mark}' &) ; sh -c 'sleep 60 & sleep 60' & trap '' TERM; echo done"
    result = await shell(limited(box), text, tmp_path, {"MARK": mark})
    assert result.ok
    assert result.output == "done\n"
    assert result.duration_s < 5, "survivors that hold the pipe do not delay the end"
    assert marked(mark) == []


@LINUX
async def test_a_command_that_never_ends_and_ignores_signals(box: Sandbox, tmp_path: Path, mark: str) -> None:
    text = "trap '' TERM INT HUP; echo begun; (trap '' TERM; setsid sleep 60) & sleep 60; sleep 60"
    result = await shell(limited(box, timeout_s=0.6), text, tmp_path, {"MARK": mark})
    assert (result.limit, result.exit_code, result.output) == ("timeout", None, "begun\n")
    assert 0.6 <= result.duration_s < 5
    assert marked(mark) == []


async def test_endless_output_ends_the_command_and_keeps_head_and_tail(box: Sandbox, tmp_path: Path) -> None:
    result = await shell(limited(box, output_killed_kb=1024), "echo first; yes", tmp_path)
    assert result.limit == "output"
    assert result.exit_code is None
    assert result.output.startswith("first\ny\n")
    assert "bytes left out" in result.output
    assert len(result.output) < OUTPUT_KEPT + 300


@LINUX
async def test_attacks_on_the_launcher_leave_nothing(box: Sandbox, tmp_path: Path, mark: str) -> None:
    attacks = ("kill -9 $PPID", "kill -STOP $PPID; kill -TERM $PPID", "kill -9 0")
    texts = [f"setsid sleep 60 & {attack}; sleep 2" for attack in attacks]
    runs = [asyncio.create_task(shell(limited(box, timeout_s=20), text, tmp_path, {"MARK": mark})) for text in texts]
    await asyncio.sleep(1)
    for run in runs:
        run.cancel()
    for result in await asyncio.gather(*runs, return_exceptions=True):
        assert isinstance(result, asyncio.CancelledError) or (isinstance(result, CommandResult) and not result.ok)
    assert marked(mark) == []


@LINUX
async def test_cancelling_ends_the_tree_before_it_goes_on(box: Sandbox, tmp_path: Path, mark: str) -> None:
    run = asyncio.create_task(shell(limited(box), "setsid sleep 60 & touch begun; sleep 60", tmp_path, {"MARK": mark}))
    while not (tmp_path / "begun").exists():
        await asyncio.sleep(0.02)
    assert marked(mark)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert marked(mark) == []


async def test_many_at_once_stay_apart_and_slots_bound_them(box: Sandbox, tmp_path: Path) -> None:
    runner = LimitedCommandRunner(CommandSettings(), PATH, slots=asyncio.Semaphore(2), sandbox=box)
    text = "mkdir run-$N; set -- run-*; test $# -le 2 || echo crowd; echo $N; sleep 0.1; rmdir run-$N; exit $N"
    results = await asyncio.gather(*(shell(runner, text, tmp_path, {"N": str(n)}) for n in range(6)))
    assert [(result.exit_code, result.output) for result in results] == [(n, f"{n}\n") for n in range(6)]


DAEMON = """
import asyncio, sys
from pathlib import Path
from orchestrator.sandbox.command_runner import LimitedCommandRunner
from orchestrator.settings.model import CommandSettings
lock = open(sys.argv[1], "w")
import fcntl
fcntl.flock(lock, fcntl.LOCK_EX)
from orchestrator.core.suite import Tier
from tests.sandboxes import sandbox
box = sandbox(Tier(sys.argv[5]))
runner = LimitedCommandRunner(CommandSettings(), sys.argv[3], lock_fds=(lock.fileno(),), sandbox=box)
text = "ls /proc/self/fd | wc -l; setsid sleep 60 & sh -c 'sleep 60' & touch begun; sleep 60"
asyncio.run(runner.run(["/bin/sh", "-c", text], cwd=Path(sys.argv[2]), env={"MARK": sys.argv[4]}))
"""


@LINUX
def test_kill_9_of_the_parent_ends_the_tree_and_frees_its_lock_last(box: Sandbox, tmp_path: Path, mark: str) -> None:
    lock = tmp_path / "lock"
    daemon = subprocess.Popen([sys.executable, "-c", DAEMON, str(lock), str(tmp_path), PATH, mark, box.facts.tier])
    try:
        until = time.monotonic() + 10
        while not (tmp_path / "begun").exists() and time.monotonic() < until:
            time.sleep(0.02)
        # In a tier with a namespace of their own, what can be seen of their environment from here differs.
        assert len(marked(mark)) >= 2
    finally:
        daemon.kill()
        daemon.wait()
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert [pid for pid in marked(mark) if b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes()] == []


async def test_the_command_inherits_no_descriptor(box: Sandbox, tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as lock:
        runner = LimitedCommandRunner(CommandSettings(), PATH, lock_fds=(lock.fileno(),), sandbox=box)
        code = "import os; print([fd for fd in range(3, 200) if os.path.exists(f'/dev/fd/{fd}') and fd != 3])"
        result = await runner.run([sys.executable, "-c", code], cwd=tmp_path)
        assert result.output == "[]\n"
        assert os.get_inheritable(lock.fileno()) is False


async def test_a_shared_scratch_folder_is_kept(box: Sandbox, tmp_path: Path) -> None:
    result = await limited(box).run(["/bin/sh", "-c", "echo kept > $TMPDIR/file"], cwd=tmp_path, scratch=tmp_path)
    assert result.ok
    assert (tmp_path / "file").read_text() == "kept\n"


def test_capped_output_keeps_both_ends_at_any_chunking() -> None:
    data = b"".join(b"%06d\n" % number for number in range(1000))
    texts = set()
    for size in (1, 3, 64, 10_000):
        output = CappedOutput(70)
        for start in range(0, len(data), size):
            output.feed(data[start : start + size])
        texts.add(output.text())
        assert output.total == len(data)
    assert texts == {data[:35].decode() + f"\n[... {len(data) - 70} bytes left out ...]\n" + data[-35:].decode()}
    small = CappedOutput(70)
    small.feed("né\n".encode() + b"\xff")
    assert small.text() == "né\n\ufffd"
