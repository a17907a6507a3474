"""The page where a backlog is handed in, with the backlogs that are watched."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from orchestrator.core.daemon import BacklogState
from orchestrator.settings import Environment
from orchestrator.storage.state_folder import StateFolder


def show_backlogs(backlogs: Iterable[BacklogState], environment: Environment, limit_kb: int) -> dict[str, Any]:
    """Returns what submit.html shows; `limit_kb` is the largest file that is taken."""
    submitted = StateFolder.of(environment).submitted.absolute()
    return {
        "limit_kb": limit_kb,
        "backlogs": [
            {
                **one.model_dump(mode="json"),
                # The others are watched because the command or the configuration names them.
                "submitted_as": Path(one.path).stem if Path(one.path).absolute().parent == submitted else "",
            }
            for one in backlogs
        ],
    }
