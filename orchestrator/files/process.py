"""The clock of a process, and its end when it must do nothing more."""

import json
import os
from contextlib import suppress
from datetime import UTC, datetime

REPLACED, FULL = 70, 75
"""Exit codes (EX_SOFTWARE, EX_TEMPFAIL): another process has taken our place; there is no room on a disk."""


def end_at_once(why: str, code: int = REPLACED) -> None:
    """Ends this process with a last log line: it must do nothing more, or cannot."""
    line = {"timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"), "level": "error"}
    told = json.dumps({**line, "message": f"{why}: the process ends itself", "event": "process_ended"})
    with suppress(OSError):  # stdout may be closed
        os.write(1, f"{told}\n".encode())
    os._exit(code)


class SystemClock:
    """`ports.Clock` on the machine's time."""

    def now(self) -> datetime:
        """Aware UTC."""
        return datetime.now(UTC)
