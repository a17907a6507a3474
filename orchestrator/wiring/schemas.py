"""The packaged schemas of answers, by the names that `extract` takes."""

import json
from typing import Any

from rapidfuzz import process

from orchestrator.errors import UnknownName
from orchestrator.settings import packaged

SUFFIX = ".schema.json"


def schema_of(name: str) -> dict[str, Any]:
    """What an answer of this contract must fit. Raises UnknownName naming the nearest. Blocks."""
    folder = packaged("contracts")
    known = sorted(path.name.removesuffix(SUFFIX) for path in folder.glob(f"*{SUFFIX}"))
    if name not in known:
        nearest = process.extractOne(name, known)
        raise UnknownName(f"unknown contract {name}" + (f"; did you mean {nearest[0]}?" if nearest else ""))
    schema: dict[str, Any] = json.loads((folder / f"{name}{SUFFIX}").read_text(encoding="utf-8"))
    return schema
