"""What a killed process left is found by its name; what a living one uses is left alone."""

import os
import subprocess
import sys
from pathlib import Path

from orchestrator.files.atomic_file import is_alive, leftovers, named, replace_content, stage
from orchestrator.sandbox.command_runner import remove_old_scratch

DYING = """
import os, signal, sys, tempfile
from pathlib import Path
from orchestrator.files.atomic_file import stage
from orchestrator.files.atomic_file import named
stage(Path(sys.argv[1]), b"half")
print(tempfile.mkdtemp(prefix=named("orchestrator-"), dir=sys.argv[2]), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_next_write_removes_what_a_kill_left_beside_the_file(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    target = tmp_path / "backlog.csv"
    target.write_bytes(b"old")
    foreign = tmp_path / ".backlog.csv.draft.tmp"
    foreign.write_bytes(b"not ours")
    command = [sys.executable, "-c", DYING, str(target), str(scratch)]
    dying = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    # Not collected yet: a zombie counts as dead.
    assert dying.stdout is not None
    folder = Path(dying.stdout.readline().strip())
    while is_alive(dying.pid):
        pass
    (folder / "deep").mkdir()
    assert len(list(leftovers(tmp_path, ".backlog.csv."))) == 1
    mine = stage(target, b"in the making")

    replace_content(target, b"new")
    remove_old_scratch(scratch)

    assert target.read_bytes() == b"new"
    assert {path.name for path in tmp_path.iterdir()} == {"scratch", "backlog.csv", foreign.name, mine.name}
    assert list(scratch.iterdir()) == []
    dying.communicate()


def test_names_of_ours_only(tmp_path: Path) -> None:
    (tmp_path / f"{named('x-')}1").touch()
    for name in ("x-", "x-12", "x-a-1", "y-999999999-1", f"x-{2**80}-1", "x-999999999-1"):
        (tmp_path / name).touch()
    assert {path.name for path in leftovers(tmp_path, "x-")} == {f"x-{2**80}-1", "x-999999999-1"}
    assert list(leftovers(tmp_path / "absent", "x-")) == []
    assert is_alive(os.getpid())
