"""Makes an environment in a process of its own; test_python_killed.py ends it at a moment.

Arguments: the folder of what is kept, the project, the registry, and the moment: patterns that audited events have to
match one after the other; at the last one this process is killed.
"""

import asyncio
import os
import re
import signal
import sys
from pathlib import Path

from orchestrator.environments.python import EnvironmentResult, PythonEnvironments
from orchestrator.sandbox.command_runner import LimitedCommandRunner
from orchestrator.sandbox.tier import Sandbox
from orchestrator.settings.model import CommandSettings
from tests.sandboxes import plain


async def ensure(kept: Path, root: Path, registry: str, box: Sandbox | None = None) -> EnvironmentResult:
    """As one sprint does."""
    settings = CommandSettings(timeout_s=60, install_timeout_s=60)
    runner = LimitedCommandRunner(settings, "/usr/bin:/bin", sandbox=box or plain())
    variables = {"PIP_INDEX_URL": f"{registry}/simple", "HOME": "/nonexistent"}
    environments = PythonEnvironments(kept / "environments", kept / "layers", runner, settings, variables)
    return await environments.ensure(root, "US-1")


def die_at(moment: list[str]) -> None:
    """At the last of these events; nothing can be done about it then."""
    left = [re.compile(pattern) for pattern in moment]

    def see(event: str, args: tuple[object, ...]) -> None:
        if left and left[0].search(f"{event} {args}"):
            del left[0]
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(see)


if __name__ == "__main__":
    if len(sys.argv) > 4:
        die_at(sys.argv[4:])
    found = asyncio.run(ensure(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
    print(found.problem or found.note or found.python)
