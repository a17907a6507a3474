"""Signals that come while the program is still importing itself."""

import subprocess
import sys

import pytest

from tests.support import plain_environment

BEGINNING = """
import os, signal, sys
from importlib.abc import MetaPathFinder

class Signalled(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "typer":  # what the commands are made of
            signal.raise_signal(getattr(signal, sys.argv[2]))

sys.meta_path.insert(0, Signalled())
from orchestrator.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("command", "signal", "code", "said"),
    [
        ("serve", "SIGTERM", 0, ""),
        ("serve", "SIGINT", 0, ""),
        ("run", "SIGINT", 130, ""),
        ("run", "SIGTERM", -15, ""),
    ],
)
def test_a_signal_within_the_imports_ends_it_as_it_would_later(command: str, signal: str, code: int, said: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", BEGINNING, command, signal],
        env=plain_environment(), capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, said, "")
