"""`python -m tests.durability.boundaries POINT N WORDS...`: the command line, which kills itself at a boundary.

A boundary lies right before or right behind something that lasts: a reply in the journal, a step in the engine's
database, an event in the log, a moved ref, cells in the backlog, a record, a report. It dies at the N-th one of POINT.
"""

import functools
import os
import runpy
import signal
import sys
from collections.abc import Callable
from typing import Any

from dbos._sys_db import SystemDatabase

from orchestrator.backlogs.csv import CsvBacklog
from orchestrator.git.mirror import Mirror
from orchestrator.storage.event_store import EventStore
from orchestrator.storage.reply_journal import WorkflowJournal
from orchestrator.storage.state_folder import StateFolder

LASTING: dict[str, tuple[type, str]] = {
    "journal": (WorkflowJournal, "record_reply"),
    "failure": (WorkflowJournal, "record_failure"),
    "step": (SystemDatabase, "record_operation_result"),
    "outcome": (SystemDatabase, "update_workflow_outcome"),
    "event": (EventStore, "_insert"),
    "ref": (Mirror, "update"),
    "cells": (CsvBacklog, "write"),
    "record": (StateFolder, "save"),
    "report": (StateFolder, "save_report"),
}
"""What lasts → where it is made to."""
POINTS = tuple(f"{when}-{what}" for what in LASTING for when in ("before", "behind"))
REPEATS = "before-journal"
"""The one point at which a paid call is lost: its reply has arrived and is written down nowhere."""


def _dying(kept: Callable[..., Any], die: Callable[[str], None], what: str) -> Callable[..., Any]:
    if what == "ref":

        @functools.wraps(kept)
        async def slowly(*args: Any, **kwargs: Any) -> Any:
            die(f"before-{what}")
            result = await kept(*args, **kwargs)
            die(f"behind-{what}")
            return result

        return slowly

    @functools.wraps(kept)
    def at_once(*args: Any, **kwargs: Any) -> Any:
        die(f"before-{what}")
        result = kept(*args, **kwargs)
        die(f"behind-{what}")
        return result

    return at_once


def main() -> None:
    point, left = sys.argv.pop(1), int(sys.argv.pop(1))
    assert point in POINTS, point

    def die(here: str) -> None:
        nonlocal left
        if here == point:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    for what, (home, name) in LASTING.items():
        setattr(home, name, _dying(getattr(home, name), die, what))
    runpy.run_module("orchestrator", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
