"""What runs the hostile actions inside a sandbox: a stand-alone program, standard library only.

    python -I -S battery_probe.py FACTS

FACTS is a file with JSON: `facts`, and `cases`, a list of [name, action]. Each action runs in a process of its own. One
JSON object goes to standard output: name → "done", or why it was not."""

import ctypes
import fcntl
import getpass
import json
import os
import pwd
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from typing import Any

LIMIT_S = 5
NUMBERS = {
    "x86_64": {"bpf": 321, "perf_event_open": 298, "keyctl": 250, "userfaultfd": 323},
    "aarch64": {"bpf": 280, "perf_event_open": 241, "keyctl": 219, "userfaultfd": 282},
}
SAME = {"io_uring_setup": 425, "pidfd_getfd": 438}
libc = ctypes.CDLL(None, use_errno=True)


def checked(result: int, *harmless: int) -> None:
    """Raise what the last call of the C library failed with, unless that shows that it was looked at."""
    if result < 0 and ctypes.get_errno() not in harmless:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def call(name: str, *words: Any) -> None:
    """A system call; that its arguments make no sense shows that it is open."""
    number = SAME.get(name) or NUMBERS.get(os.uname().machine, {}).get(name)
    if number is None:
        raise OSError("not known by number here")
    values = [word if isinstance(word, bytes) else ctypes.c_long(word) for word in words]
    checked(libc.syscall(ctypes.c_long(number), *values), 22, 14, 9, 7)


def refused(yes: bool) -> None:
    """An action that is judged by what is found."""
    if yes:
        raise OSError("refused")


def is_open(fd: int) -> bool:
    """Whether the descriptor was there when this program began."""
    return fd in OPEN


def tcp(host: str, port: int) -> None:
    """Connect; a machine that does not answer was reached for all that."""
    with socket.socket() as link:
        link.settimeout(0.5)
        try:
            link.connect((host, port))
        except TimeoutError:
            return


def udp(host: str, port: int) -> int:
    """Send a datagram."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.connect((host, port))
        link.send(b"x")
        link.settimeout(0.3)
        try:
            return len(link.recv(1))
        except TimeoutError:
            return 0


def told(count: int) -> None:
    """Only an answer shows that a datagram on a loopback came to somebody."""
    refused(count == 0)


def unix(kind: int) -> socket.socket:
    """A socket for services of this machine."""
    return socket.socket(socket.AF_UNIX, kind)


def work() -> None:
    """What every build does."""
    os.makedirs("folder/inner")
    with open("folder/inner/a", "w") as file:
        file.write("x")
    os.rename("folder/inner/a", "folder/b")
    os.chmod("folder/b", 0o755)
    os.utime("folder/b")
    os.link("folder/b", "folder/c")
    os.symlink("b", "folder/d")
    for name in ("b", "c", "d"):
        os.unlink(f"folder/{name}")
    os.removedirs("folder/inner")


def programs() -> None:
    """A shell, a pipe, an interpreter."""
    said = subprocess.run(["/bin/sh", "-c", "echo yes | cat"], capture_output=True, check=True).stdout
    code = [sys.executable, "-I", "-S", "-c", "import os; print(len(os.listdir('.')) >= 0)"]
    refused(said != b"yes\n" or subprocess.run(code, capture_output=True, check=True).stdout != b"True\n")


def threads() -> None:
    """A few at once."""
    done: list[int] = []
    running = [threading.Thread(target=done.append, args=(number,)) for number in range(8)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    refused(len(done) != 8)


def temporary() -> None:
    """Where TMPDIR says."""
    with tempfile.TemporaryDirectory() as folder, open(os.path.join(folder, "x"), "w") as file:
        file.write("x")


def pair() -> None:
    """As event loops do."""
    one, other = socket.socketpair()
    one.send(b"x")
    refused(other.recv(1) != b"x")


def user() -> None:
    """As programs ask."""
    refused(getpass.getuser() != "command")


def home() -> None:
    """By the machine's accounts, not by the environment."""
    os.stat(pwd.getpwuid(os.getuid()).pw_dir)


def server() -> None:
    """As tests of servers do."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname(), 1) as link,
    ):
        link.send(b"x")
        refused(listener.accept()[0].recv(1) != b"x")


def tried(deed: str, facts: dict[str, Any]) -> str:
    """What came of one action, in a process of its own."""
    read_end, write_end = os.pipe()
    if (child := os.fork()) == 0:
        signal.alarm(LIMIT_S)
        try:
            os.write(write_end, _came_of(deed, facts).encode())
        finally:  # never goes on as a second probe
            os._exit(0)
    os.close(write_end)
    said = os.read(read_end, 500).decode()
    os.close(read_end)
    status = os.waitpid(child, 0)[1]
    return said or f"ended by signal {os.WTERMSIG(status)}"


def _came_of(deed: str, facts: dict[str, Any]) -> str:
    try:
        exec(deed, {**globals(), "facts": facts, "out": facts["outside"]})
    except (OSError, ValueError, StopIteration, LookupError, subprocess.SubprocessError) as error:
        return f"{type(error).__name__}: {error}"[:120]
    return "done"


def main() -> None:
    """Try every case of the file, in order."""
    with open(sys.argv[1], encoding="utf-8") as file:
        told = json.load(file)
    os.unlink(sys.argv[1])
    print(json.dumps({name: tried(deed, told["facts"]) for name, deed in told["cases"]}))


def _open() -> set[int]:
    found = set()
    for fd in range(3, 256):
        try:
            fcntl.fcntl(fd, fcntl.F_GETFD)
        except OSError:
            continue
        found.add(fd)
    return found


if __name__ == "__main__":
    OPEN = _open()
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    main()
