"""What a killed process left is found by its name; what a living one uses is left alone."""

import subprocess
import sys
from pathlib import Path

from orchestrator.environments.kept import begin
from orchestrator.files.atomic_file import leftovers, let_go, make_folder, named, replace_content, stage
from orchestrator.sandbox.command_runner import remove_old_scratch

DYING = """
import os, signal, sys
from pathlib import Path
from orchestrator.files.atomic_file import make_folder, stage
stage(Path(sys.argv[1]), b"half")
print(make_folder("orchestrator-", Path(sys.argv[2])), flush=True)
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
    assert dying.stdout is not None
    folder = Path(dying.stdout.readline().strip())
    dying.communicate()
    (folder / "deep").mkdir()
    assert len(list(leftovers(tmp_path, ".backlog.csv."))) == 1
    mine = stage(target, b"in the making")

    replace_content(target, b"new")
    remove_old_scratch(scratch)

    assert target.read_bytes() == b"new"
    assert {path.name for path in tmp_path.iterdir()} == {"scratch", "backlog.csv", foreign.name, mine.name}
    assert list(scratch.iterdir()) == []


def test_names_of_ours_only(tmp_path: Path) -> None:
    gone, free = named("x-"), make_folder("x-", tmp_path)
    for name in ("x-", "x-12", "x-a-1", f"y-{gone[2:]}", f"{gone[:-1]}", f"{gone}1"):
        (tmp_path / name).touch()
    make_folder("x-", tmp_path)
    let_go(free)
    assert {path.name for path in leftovers(tmp_path, "x-")} == {f"{gone}1", free.name}
    assert list(leftovers(tmp_path / "absent", "x-")) == []


HOLDS = """
import sys
from pathlib import Path
from orchestrator.environments.kept import begin
from orchestrator.files.atomic_file import stage
print(begin(Path(sys.argv[1]) / "kept"), stage(Path(sys.argv[1]) / "backlog.csv", b"half"), sep="\\n", flush=True)
sys.stdin.readline()
"""


def test_another_containers_work_is_left_alone_though_no_process_here_has_its_id(tmp_path: Path) -> None:
    """Its process has a process id of its own there, by which it seems dead, or another's, here."""
    apart = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode:
        apart = []  # this machine has no namespaces: the lock alone is tried
    command = [*apart, sys.executable, "-c", HOLDS, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        scratch, staged = (Path(other.stdout.readline().strip()) for _ in range(2))
        mine = begin(tmp_path / "kept")
        replace_content(tmp_path / "backlog.csv", b"new")
        assert scratch.is_dir()
        assert staged.is_file()
        other.stdin.close()
    assert begin(tmp_path / "kept").parent == mine.parent
    assert (scratch.exists(), mine.exists()) == (False, True), "nobody holds it any more"
    replace_content(tmp_path / "backlog.csv", b"newer")
    assert not staged.exists()
