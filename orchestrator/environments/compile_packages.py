"""Compiles what a layer has to bytecode. Run by the interpreter of its environment: standard library.

Arguments: the folder, the prefix of its files' paths, and the prefix that replaces it once the layer is in place.
`python -m compileall -j 0` does the same with a third more work: it passes each file to a process separately."""

import compileall
import os
import sys

_MOST = 8
"""Processes; with more, a container's process limit and its disk become the bottleneck."""


def main() -> None:
    """Compiles with one process per processor. Skips a file that cannot be compiled: only importing it is an error."""
    folder, scratch, placed = sys.argv[1:]
    walked = os.walk(folder)
    files = [os.path.join(place, name) for place, _, names in walked for name in names if name.endswith(".py")]
    files.sort(key=os.path.getsize)  # gives each process about the same amount of work
    count = min(len(os.sched_getaffinity(0)), _MOST) if hasattr(os, "sched_getaffinity") else 1
    for number in range(count):
        if os.fork() == 0:
            for file in files[number::count]:
                compileall.compile_file(file, quiet=2, stripdir=scratch, prependdir=placed)
            os._exit(0)
    for _ in range(count):
        os.wait()


if __name__ == "__main__":
    main()
