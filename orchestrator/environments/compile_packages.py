"""Compiles what a layer has to bytecode. Run by the interpreter of its environment: standard library.

Arguments: the folder, and the beginning of its files' paths with what will stand there once the layer is in its place.
`python -m compileall -j 0` does the same with a third more work: it hands each file to a process by itself."""

import compileall
import os
import sys

_MOST = 8
"""Processes; with more of them a container's limit on processes and its disk are what is waited for."""


def main() -> None:
    """One process per processor. A file that cannot be compiled is no error: it is one for whoever imports it."""
    folder, begun, placed = sys.argv[1:]
    walked = os.walk(folder)
    files = [os.path.join(place, name) for place, _, names in walked for name in names if name.endswith(".py")]
    files.sort(key=os.path.getsize)  # so that each process has as much to do
    count = min(len(os.sched_getaffinity(0)), _MOST) if hasattr(os, "sched_getaffinity") else 1
    for number in range(count):
        if os.fork() == 0:
            for file in files[number::count]:
                compileall.compile_file(file, quiet=2, stripdir=begun, prependdir=placed)
            os._exit(0)
    for _ in range(count):
        os.wait()


if __name__ == "__main__":
    main()
