"""What a process of many threads held for a while goes back to the system."""

import json
import subprocess
import sys
from textwrap import dedent

import pytest

from orchestrator.files import process

PROGRAM = """
    import ctypes, json, sys, threading
    from orchestrator.adapters import allocator

    bounded = allocator.be_thrifty() if sys.argv[1] == "few" else False
    together = threading.Barrier(24)

    def work():
        together.wait()  # all at once, so that each begins to allocate while the others do
        kept = [ctypes.create_string_buffer(3000) for _ in range(300)]
        together.wait()

    threads = [threading.Thread(target=work) for _ in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    library = ctypes.CDLL(None)
    allocator.give_back()
    library.fflush(None)
    read, write = __import__("os").pipe()
    library.fdopen.restype = ctypes.c_void_p
    stream = ctypes.c_void_p(library.fdopen(write, b"w"))
    reader = open(read)
    got = []
    thread = threading.Thread(target=lambda: got.append(reader.read()))
    thread.start()
    library.malloc_info(0, stream)
    library.fclose(stream)
    thread.join()
    print(json.dumps([bounded, got[0].count("<heap nr=")]))
"""


def arenas(how: str) -> tuple[bool, int]:
    program = [sys.executable, "-c", dedent(PROGRAM), how]
    done = subprocess.run(program, capture_output=True, text=True, check=True, timeout=60)
    bounded, count = json.loads(done.stdout)
    return bounded, count


@pytest.mark.skipif(process._glibc() is None, reason="another C library than glibc")
def test_many_threads_share_a_few_arenas() -> None:
    assert arenas("many")[1] > process.ARENAS
    assert arenas("few") == (True, process.ARENAS)


def test_without_glibc_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not process.be_thrifty()
    process.give_back()
