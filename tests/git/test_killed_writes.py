"""A delivery whose writing was killed half-way: the next attempt starts from the branch."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.git.workspace import GitWorkspace
from tests.git.git_samples import change, open_workspace, snapshot
from tests.support import plain_environment

FILES = {"app/one.py": "OLD = 1\n", "app/two.py": "OLD = 2\n", "README.md": "old\n"}
KILLED = """
import os, signal, sys
from pathlib import Path
from orchestrator.files.safe_files import open_root, write_all

real, left = os.rename, int(sys.argv[2])

def rename(*names, **fds):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    real(*names, **fds)

os.rename = rename
write_all(open_root(Path(sys.argv[1])), [("app/one.py", b"1"), ("new/three.py", b"3"), ("app/two.py", b"2")])
"""


@pytest.mark.parametrize("rename", [1, 2, 4])
def test_what_a_kill_left_is_gone_before_the_next_write(tmp_path: Path, rename: int) -> None:
    async def begin() -> GitWorkspace:
        place = await open_workspace(tmp_path, FILES)
        await place.open("US-1")
        return place

    place = asyncio.run(begin())
    root = place.root("US-1")
    before = snapshot(root)
    command = [sys.executable, "-c", KILLED, str(root), str(rename)]
    done = subprocess.run(command, env=plain_environment(PYTHONPATH=os.pathsep.join(sys.path)), check=False)
    assert done.returncode == -signal.SIGKILL
    assert snapshot(root) != before, "something was left half-way"
    asyncio.run(place.write("US-1", [change("app/two.py", "NEW = 2\n")]))
    assert snapshot(root) == before | {"app/two.py": b"NEW = 2\n"}
    place.close()
