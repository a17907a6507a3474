"""A command run over copies of texts, in a folder that is deleted after it."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

_TIMEOUT_S = 20


def run_on_copies(files: Mapping[str, str], command: str) -> str:
    """Returns what `command` writes in a folder that holds `files` (safe relative paths) and nothing else. Blocks."""
    with TemporaryDirectory() as folder:
        for path, text in files.items():
            file = Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())
        try:
            done = subprocess.run(
                ["/bin/sh", "-c", command],
                cwd=folder,
                env={"PATH": os.environ.get("PATH", os.defpath)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    return done.stdout.decode(errors="replace")
