"""How a command with a loopback of its own reaches our proxy: it opens the port there and sends it out to us.

A socket belongs to the network that it was made in, whoever holds it, so nothing has to run inside beside the command.
"""

import sys

from orchestrator.adapters.sandbox.tier import Door

_PROGRAM = """\
import os, socket, sys
with socket.socket(fileno=int(sys.argv[1])) as door, socket.create_server(("127.0.0.1", int(sys.argv[2]))) as listener:
    socket.send_fds(door, [b"."], [listener.fileno()])
os.execv(sys.argv[3], sys.argv[3:])
"""


def through(door: Door) -> tuple[str, ...]:
    """What stands before a command line, whose program is named by its whole path."""
    return (sys.executable, "-I", "-S", "-c", _PROGRAM, str(door.fd), str(door.port))
