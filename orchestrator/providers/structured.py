"""Structured output: which prompts are sent with the schema of their answer, and what a service made of it."""

import json
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache
from typing import Any

from orchestrator.core.calls.exchange import Prompt, StopReason
from orchestrator.core.calls.wire import WIRE_SCHEMAS
from orchestrator.providers.refusals import Refusal, one_line
from orchestrator.settings import WireStructured


class Place(StrEnum):
    """What a service does with a schema."""

    HEAD = "head"
    """It stands before the prompt: a prefix that was cached under another schema, or none, is not found again."""
    BESIDE = "beside"
    """It constrains what is generated and is no part of the prompt: it costs no token and no share of a cache."""


PLACES: tuple[tuple[str, Place], ...] = (
    (r"^anthropic |\.openai\.com/|\.azure\.com/", Place.HEAD),
    # The vendors' models behind a gateway. The names of open models differ: gpt-oss.
    (r"[/.](claude|gpt-\d|chatgpt|o\d|gemini)[^/]*$", Place.HEAD),
    ("", Place.BESIDE),
)
"""Pattern of `PROVIDER .HOST/MODEL` → what is done there with a schema; the first that is found counts.

`wire.structured` overrides it."""

SHARED = "project"
"""The segment up to which prompts of different answers have the same text: without it there is nothing to share."""

OR_LOOK = "_or_look"
LOOK = {"type": "object", "properties": {"read": {"type": "array", "items": {"type": "string"}}}, "required": ["read"]}
ANY_TYPE = ("string", "number", "boolean", "object", "array", "null")
_NOISE = frozenset({"title", "default"})
_NAMED = frozenset({"properties", "$defs"})
# Of vendors and servers, for a field or a schema that they do not take; llama.cpp's names the grammar alone.
_REFUSAL = re.compile(r"response_format|text\.format|schema|output.?(config|format)|structured|grammar", re.IGNORECASE)
_REFUSED = frozenset({400, 422, 500, 501})
_THOUGHT = "</think>"


@cache
def answer_schema(name: str) -> Mapping[str, Any]:
    """Returns a schema of contracts/ without what no service reads: titles, defaults, our own keywords.

    A name that ends with `OR_LOOK` stands for the answer, or what asks for files in its place.

    Not to be changed: all calls share it.
    """
    schema: dict[str, Any] = trimmed(WIRE_SCHEMAS[name.removesuffix(OR_LOOK)].model_json_schema())
    if not name.endswith(OR_LOOK):
        return schema
    parts = schema.pop("$defs", {})
    return {"$defs": parts, "anyOf": [schema, LOOK]}


def trimmed(schema: Any) -> Any:
    """Returns a schema without titles, defaults and our own keywords; one that takes any value says so."""
    if isinstance(schema, list):
        return [trimmed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: {name: trimmed(one) for name, one in value.items()} if key in _NAMED else trimmed(value)
        for key, value in schema.items()
        if key not in _NOISE and not key.startswith("x-")
    }
    # llama.cpp reads an empty schema as an object.
    return kept or {"type": list(ANY_TYPE)}


@cache
def is_closed(name: str) -> bool:
    """Returns whether every object in the schema has known keys, so that it can be made strict and accepts the same."""
    text = json.dumps(answer_schema(name))
    return "additionalProperties" not in text and json.dumps(ANY_TYPE) not in text


class Structured:
    """Of one model at one address: which prompts get a schema, what was refused, what is still to be told of it."""

    def __init__(self, service: str, wanted: Callable[[str], WireStructured], *, takes_open: bool) -> None:
        """`service`: as `PLACES` has it. `wanted`: persona → its setting. `takes_open`: whether schemas need not be
        closed."""
        self._place = next(place for pattern, place in PLACES if re.search(pattern, service))
        self._wanted, self._takes_open = wanted, takes_open
        self._refused: dict[str, str] = {}
        """Schema → why it is not sent."""
        self._told: set[tuple[str, str, str]] = set()

    def name(self, prompt: Prompt) -> str | None:
        """Returns the name of the schema that is sent with a prompt; None for none."""
        name = self._chosen(prompt)
        return None if name in self._refused else name

    def _chosen(self, prompt: Prompt) -> str | None:
        name, wanted = prompt.schema_name, self._wanted(prompt.key.persona)
        if name not in WIRE_SCHEMAS or prompt.answer_form == "any" or wanted == "never":
            return None
        name += OR_LOOK * (prompt.answer_form == "json_or_look")
        if wanted == "auto" and self._place is Place.HEAD:
            shares = any(segment.name == SHARED and segment.text.strip() for segment in prompt.segments)
            return None if shares or not is_closed(name) else name
        if not self._takes_open and not is_closed(name):
            self._refused[name] = "it has parts without a fixed shape, and the service takes no such schema"
        return name

    def refuses(self, name: str | None, refusal: Refusal) -> bool:
        """Returns whether the schema that was sent is what a service does not take: it is left out from now on."""
        said = (refusal.param, *refusal.complaints)
        if name is None or refusal.status not in _REFUSED or not any(map(_REFUSAL.search, said)):
            return False
        self._refused[name] = one_line(refusal.text)
        return True

    def untold(self, prompt: Prompt, text: str, stop: StopReason) -> str:
        """Returns what is to be told, once per persona and schema, of an answer that came without the wanted
        constraint; "" when there is nothing."""
        name = self._chosen(prompt)
        if name is None:
            return ""
        if name in self._refused:
            what = f"the schema of {name} is not sent: {self._refused[name]}"
        elif stop in {StopReason.END_TURN, StopReason.UNKNOWN} and text.strip() and not _is_json(text):
            what = f"the schema of {name} was taken and not kept to: what came is no JSON"
        else:
            return ""
        if (told := (prompt.key.persona, name, what)) in self._told:
            return ""
        self._told.add(told)
        return what


def _is_json(text: str) -> bool:
    """Returns whether a text is JSON and nothing else, apart from what a model thought before it."""
    try:
        json.loads(text.rpartition(_THOUGHT)[2])
    except (ValueError, RecursionError):
        return False
    return True
