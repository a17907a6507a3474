"""Writes contracts/*.schema.json from the types, and openapi.json: `python -m tests.contracts_tool`."""

import json
from pathlib import Path

from pydantic import BaseModel

from orchestrator.core.analysis import ImprovementPlan
from orchestrator.core.calls.wire import WIRE_SCHEMAS
from orchestrator.core.contract import ArchitectureContract
from orchestrator.core.event import Event
from orchestrator.core.sprint import SprintReport
from orchestrator.server.app import make_routes
from orchestrator.server.openapi import make_document

FOLDER = Path(__file__).parent.parent / "contracts"
OPENAPI = FOLDER / "openapi.json"
DRAFT = "https://json-schema.org/draft/2020-12/schema"
TYPES: dict[str, type[BaseModel]] = {
    **WIRE_SCHEMAS,
    "architecture": ArchitectureContract,
    "report": SprintReport,
    "event": Event,
    "improvement_plan": ImprovementPlan,
}
"""Stem → the type its schema is generated from."""
ANSWERS = frozenset(WIRE_SCHEMAS)


def schema_text(stem: str) -> str:
    """The file's whole text. Answers are described as they are read, the rest as it is written."""
    mode = "validation" if stem in ANSWERS else "serialization"
    schema = TYPES[stem].model_json_schema(mode=mode)
    head = {"$schema": DRAFT, "$id": f"{stem}.schema.json", "title": stem}
    return (
        json.dumps({**head, **{k: v for k, v in schema.items() if k != "title"}}, indent=2, ensure_ascii=False) + "\n"
    )


def openapi_text() -> str:
    """The whole text of the HTTP interface's document."""
    return json.dumps(make_document(make_routes()), indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write every schema, and the document."""
    FOLDER.mkdir(exist_ok=True)
    for stem in TYPES:
        (FOLDER / f"{stem}.schema.json").write_text(schema_text(stem), encoding="utf-8")
    OPENAPI.write_text(openapi_text(), encoding="utf-8")


if __name__ == "__main__":
    main()
