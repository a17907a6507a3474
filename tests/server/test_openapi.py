"""The document of the HTTP interface: committed as it is generated, complete, and what the daemon really serves."""

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.server.app import make_routes
from orchestrator.server.openapi import make_document
from tests.contracts_tool import OPENAPI, openapi_text
from tests.server.stand import Stand, running


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty state folder does here."""
    return tmp_path / "state"


METHODS = {"get", "put", "post", "delete"}


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    """The document, as it is generated."""
    return make_document(make_routes())


def test_the_committed_document_is_generated_from_the_routes() -> None:
    assert OPENAPI.read_text(encoding="utf-8") == openapi_text(), "run: python -m tests.contracts_tool"


def test_every_operation_says_what_it_is_and_what_it_answers(made: dict[str, Any]) -> None:
    tags = {tag["name"] for tag in made["tags"]}
    operations = [
        (path, operation) for path, item in made["paths"].items() for name, operation in item.items() if name in METHODS
    ]
    assert len({operation["operationId"] for _, operation in operations}) == len(operations)
    for path, operation in operations:
        assert set(operation["tags"]) <= tags
        assert operation["summary"]
        assert operation["description"]
        assert any(code.startswith("2") for code in operation["responses"])
        open_to_all = path in {"/healthz", "/readyz"}
        assert (operation.get("security") == []) is open_to_all
        assert open_to_all or {"401", "403"} <= set(operation["responses"])
        for parameter in operation.get("parameters", ()):
            assert parameter.get("description") or parameter["name"] in {"sprint", "story", "task", "persona"}
        assert "HTTPValidationError" not in json.dumps(operation)


async def test_it_is_served_as_it_is_committed(stand: Stand) -> None:
    async with running(stand) as daemon:
        served = await daemon.client.get("/api/v1/openapi.json")
        assert served.json() == json.loads(OPENAPI.read_text(encoding="utf-8"))
