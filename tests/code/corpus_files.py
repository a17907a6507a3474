"""Sound and broken files as models write them, by language, and what was done to the broken ones."""

import json
from pathlib import Path

FOLDER = Path(__file__).parent / "corpus"
SOUND = sorted(FOLDER.glob("*/sound/*"))
EXPECTED: dict[str, int | None] = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
"""Broken file → the line where it was broken; None where a reader could not tell either."""


def text_of(path: Path) -> str:
    """What stands in a file of the corpus."""
    return path.read_text(encoding="utf-8")
