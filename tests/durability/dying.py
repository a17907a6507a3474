"""`python -m tests.durability.dying K …`: the orchestrator's command line, which kills itself at its K-th deed.

A deed is an audit event that touches the world: a file opened for writing, renamed or removed, a folder made, a process
started, a database opened. K = 0 never dies. The number of deeds goes to the file $DEEDS at the end.

It never dies between the end of a call and its entry in the reply journal: a kill in those 0.2 ms costs one call, which
is accepted, because no order of the two writes would cost none.
"""

import os
import runpy
import signal
import sys
from pathlib import Path
from typing import Any

DEEDS = frozenset(
    {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod", "subprocess.Popen", "sqlite3.connect"}
)


def _is_deed(event: str, arguments: tuple[Any, ...]) -> bool:
    if event == "open":
        flags = arguments[2]
        return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
    return event in DEEDS


def _keeps_a_reply(arguments: tuple[Any, ...]) -> bool:
    return "/replies/" in str(arguments[0]) and str(arguments[0]).endswith(".tmp")


def main() -> None:
    last, done = int(sys.argv.pop(1)), 0

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal done
        if _is_deed(event, arguments):
            done += 1
            if done >= last > 0 and not _keeps_a_reply(arguments):
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    try:
        runpy.run_module("orchestrator", run_name="__main__", alter_sys=True)
    finally:
        if "DEEDS" in os.environ:
            Path(os.environ["DEEDS"]).write_text(str(done))


if __name__ == "__main__":
    main()
