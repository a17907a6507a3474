"""What steps return or raise, as the JSON that the engine's database takes."""

import asyncio
import base64
import json
import zlib
from typing import Any

from orchestrator.core import errors
from orchestrator.core.errors import OrchestratorError, ProviderError
from orchestrator.core.finding import Finding
from orchestrator.engine.database import EngineDatabase

# Below, deflating saves less than the row itself takes.
DEFLATED = 1024
"""Bytes of JSON from which data is deflated."""
# Below, a look for what the sprint has already costs more than it saves.
LARGE = 8 * 1024
"""Bytes of JSON from which data is kept in parts that the workflows of a sprint share."""
# Exceptions lose their class when a durable step is replayed (decisions.md#errors): they are recorded as data.
_CLASSES: dict[str, type[OrchestratorError]] = {
    cls.__name__: cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, OrchestratorError)
}

_DETAILS: dict[type[OrchestratorError], tuple[str, ...]] = {
    errors.FromProvider: ("provider_name", "original_message"),
    ProviderError: ("kind", "code"),
    errors.TransientProviderError: ("retry_after_s",),
    errors.SprintLocked: ("pid",),
}
"""Further attributes of an error family besides message and findings."""


def pack(error: OrchestratorError) -> dict[str, Any]:
    """Returns the class name, message, findings and details of `error`, JSON-able."""
    packed: dict[str, Any] = {"class": type(error).__name__, "message": error.message}
    packed["findings"] = [finding.model_dump(mode="json") for finding in error.findings]
    return packed | {name: getattr(error, name) for name in _details(type(error))}


def unpack(packed: dict[str, Any]) -> OrchestratorError:
    """Returns the error that `pack` was given, as the same class."""
    cls = _CLASSES.get(packed["class"], OrchestratorError)
    findings = [Finding.model_validate(finding) for finding in packed["findings"]]
    details = {name: packed[name] for name in _details(cls)}
    return cls(packed["message"], findings=findings, **details)


def _details(cls: type[OrchestratorError]) -> list[str]:
    return [name for family, names in _DETAILS.items() if issubclass(cls, family) for name in names]


class Results:
    """What the steps of a sprint's workflows return, in a form that the engine's database takes."""

    def __init__(self, database: EngineDatabase, sprint: str) -> None:
        self._database, self._sprint = database, sprint

    async def store(self, data: dict[str, Any]) -> dict[str, Any]:
        """Returns JSON-able `data` as it is recorded; `load` gives it back."""
        data, text = storable(data)
        if len(text) < LARGE:
            return data
        return {"parts": await asyncio.to_thread(self._database.keep, self._sprint, text)}

    async def load(self, data: dict[str, Any]) -> dict[str, Any]:
        """Returns what `store` was given."""
        if set(data) != {"parts"}:
            return restored(data)
        original: dict[str, Any] = json.loads(await asyncio.to_thread(self._database.read, self._sprint, data["parts"]))
        return original


def storable(data: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Returns `data` in a form that `restored` gives back, and as JSON.

    A model's text may hold half a surrogate pair, which no database takes as UTF-8 and the engine's serializer does not
    escape: such data travels as escaped JSON text. What takes more than a little travels deflated.
    """
    text = json.dumps(data, ensure_ascii=False)
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        text = json.dumps(data)
        encoded, data = text.encode(), {"escaped": text}
    if DEFLATED <= len(encoded) < LARGE:
        data = {"deflated": base64.b64encode(zlib.compress(encoded, level=1)).decode("ascii")}
    return data, encoded


def restored(data: dict[str, Any]) -> dict[str, Any]:
    """Returns what `storable` was given."""
    if set(data) == {"escaped"}:
        text = data["escaped"]
    elif set(data) == {"deflated"}:
        text = zlib.decompress(base64.b64decode(data["deflated"]))
    else:
        return data
    original: dict[str, Any] = json.loads(text)
    return original
