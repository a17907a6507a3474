"""NFR-001: the storage and the command line."""

import subprocess
import sys
from pathlib import Path
from sqlite3 import IntegrityError

import pytest

from shelf.storage import Database

ROOT = Path(__file__).resolve().parent.parent


def test_version_is_printed() -> None:
    """python -m shelf --version prints the name and the version"""
    answer = subprocess.run(
        [sys.executable, "-m", "shelf", "--version"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert answer.stdout.split() == ["shelf", "1.0.0"]


def test_what_is_stored_stays_and_what_fails_leaves_nothing(tmp_path: Path) -> None:
    """What one run stores is there in the next one, and a change that fails half-way leaves nothing behind"""
    file = tmp_path / "library.db"
    with Database(file) as first:
        first.ensure("CREATE TABLE IF NOT EXISTS notes (words TEXT NOT NULL)")
        first.store("INSERT INTO notes VALUES (?)", "kept")
        with pytest.raises(IntegrityError), first.transaction():
            first.store("INSERT INTO notes VALUES (?)", "half")
            first.store("INSERT INTO notes VALUES (?)", None)
    with Database(file) as second:
        assert [row["words"] for row in second.rows("SELECT words FROM notes")] == ["kept"]
