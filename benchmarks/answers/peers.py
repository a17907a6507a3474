"""What reads JSON out of a text: ours, the standard library, and packages; each as a function of text and contract.

Imported by the worker under the peers' own interpreter, so nothing of the project may be imported at the top.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

Read = Callable[[str, str], Any]
"""Text and contract (stem of a schema in contracts/) → a value, or whatever the reader raises."""
HERE = Path(__file__).parent
CONTRACTS = HERE.parents[1] / "contracts"


class Cut:
    """A value that its reader calls not whole."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Clocked:
    """A value and the seconds its reader took, when the reader runs elsewhere and must clock itself."""

    def __init__(self, value: Any, seconds: float) -> None:
        self.value = value
        self.seconds = seconds


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A reader, and where it comes from."""

    name: str
    make: Callable[[], Read]
    package: str = ""
    """Its line in peers.txt, without the version; empty when nothing has to be installed."""
    schema: bool = False
    """It is told what the answer looks like."""


@cache
def schema_of(contract: str) -> dict[str, Any]:
    """The JSON Schema of a contract."""
    schema: dict[str, Any] = json.loads((CONTRACTS / f"{contract}.schema.json").read_text(encoding="utf-8"))
    return schema


def _ours() -> Read:
    from orchestrator.answers import Status, extract

    def read(text: str, contract: str) -> Any:
        found = extract(text, schema_of(contract))
        return Cut(found.value) if found.status is Status.TRUNCATED else found.value

    return read


def _strict() -> Read:
    return lambda text, contract: json.loads(text)


def _scan() -> Read:
    """Fifteen lines that many programs have: every object that the standard library can read, the last one wins."""
    decoder = json.JSONDecoder(strict=False)

    def read(text: str, contract: str) -> Any:
        found, at = [], text.find("{")
        while at >= 0:
            try:
                value, at = decoder.raw_decode(text, at)
                found.append(value)
            except ValueError:
                at += 1
            at = text.find("{", at)
        return found

    return read


def _json_repair(**options: Any) -> Callable[[], Read]:
    def make() -> Read:
        import json_repair

        return lambda text, contract: json_repair.loads(text, **options)

    return make


def _without_choices(schema: Any) -> Any:
    """The schema for a reader that refuses whatever an `anyOf` allows: types, the first choice, or anything.

    Without defaults, too: it would fill them in, and what is asked for is what the text says.
    """
    if isinstance(schema, list):
        return [_without_choices(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "anyOf" not in schema:
        return {name: _without_choices(part) for name, part in schema.items() if name != "default"}
    choices = [part for part in schema["anyOf"] if part != {"type": "null"}]
    if len(choices) == 1 and choices[0].get("type") in ("string", "integer"):
        return {"type": [choices[0]["type"], "null"]}
    return _without_choices(choices[0]) if len(choices) < 3 else {}


def _json_repair_schema() -> Read:
    import json_repair

    schemas = {contract: _without_choices(schema_of(contract)) for contract in ("breakdown", "delivery", "suite")}
    return lambda text, contract: json_repair.loads(text, schema=schemas[contract])


def _loads(module: str) -> Callable[[], Read]:
    def make() -> Read:
        loads = __import__(module).loads
        return lambda text, contract: loads(text)

    return make


def _demjson() -> Read:
    import demjson3

    return lambda text, contract: demjson3.decode(text, strict=False)


def _jiter() -> Read:
    import jiter

    return lambda text, contract: jiter.from_json(text.encode(), partial_mode="on")


def _pydantic(partial: bool) -> Callable[[], Read]:
    def make() -> Read:
        from pydantic_core import from_json

        return lambda text, contract: from_json(text, allow_partial=partial)

    return make


def _langchain() -> Read:
    from langchain_core.utils.json import parse_json_markdown

    return lambda text, contract: parse_json_markdown(text)


def _llm_json_repair() -> Read:
    import llm_json_repair

    return lambda text, contract: llm_json_repair.parse_json(text).data


def _llm_json_utils() -> Read:
    import llm_json_utils

    def read(text: str, contract: str) -> Any:
        found = llm_json_utils.repair_json(text)
        return json.loads(found) if isinstance(found, str) else found

    return read


def _safe() -> Read:
    import safe_json_repair

    def read(text: str, contract: str) -> Any:
        found = safe_json_repair.repair_json(text)
        return found.value if found.ok else None

    return read


def _baml() -> Read:
    sys.path.insert(0, os.environ["BENCH_BAML"])
    os.environ.setdefault("BAML_LOG", "off")
    from baml_client import b

    readers = {"breakdown": b.parse.ReadBreakdown, "delivery": b.parse.ReadDelivery, "suite": b.parse.ReadSuite}

    def read(text: str, contract: str) -> Any:
        value = readers[contract](text).model_dump()
        for optional in ("notes", "story_id"):
            if value.get(optional, "") is None:
                del value[optional]
        return value

    return read


def _npm_jsonrepair() -> Read:
    node = subprocess.Popen(
        ["node", str(HERE / "jsonrepair.js")],
        cwd=os.environ["BENCH_NODE"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )

    def read(text: str, contract: str) -> Any:
        assert node.stdin is not None
        assert node.stdout is not None
        node.stdin.write(json.dumps(text).encode() + b"\n")
        node.stdin.flush()
        repaired, seconds = json.loads(node.stdout.readline())
        return Clocked(None if repaired is None else json.loads(repaired), seconds)

    return read


OURS = Peer(name="orchestrator.answers", make=_ours, schema=True)
FROM_JSON = Peer(name="pydantic_core.from_json", make=_pydantic(partial=False), package="pydantic_core")
JSON_REPAIR = Peer(name="json_repair", make=_json_repair(), package="json_repair")
PEERS = (
    OURS,
    Peer(name="npm jsonrepair", make=_npm_jsonrepair, package="npm:jsonrepair"),
    Peer(name="fast-json-repair", make=_loads("fast_json_repair"), package="fast_json_repair"),
    JSON_REPAIR,
    Peer(name="json_repair, stream_stable", make=_json_repair(stream_stable=True), package="json_repair"),
    Peer(name="json_repair, schema", make=_json_repair_schema, package="json_repair", schema=True),
    Peer(name="baml-py, schema", make=_baml, package="baml-py", schema=True),
    Peer(name="repairjson", make=_loads("repairjson"), package="repairjson"),
    Peer(name="safe-json-repair", make=_safe, package="safe-json-repair"),
    Peer(name="llm-json-utils", make=_llm_json_utils, package="llm_json_utils"),
    Peer(name="llm-json-repair", make=_llm_json_repair, package="llm-json-repair"),
    Peer(name="dirtyjson", make=_loads("dirtyjson"), package="dirtyjson"),
    Peer(name="demjson3", make=_demjson, package="demjson3"),
    Peer(name="json5", make=_loads("json5"), package="json5"),
    Peer(name="partial-json-parser", make=_loads("partial_json_parser"), package="partial-json-parser"),
    Peer(name="jiter, partial", make=_jiter, package="jiter"),
    Peer(name="pydantic_core, partial", make=_pydantic(partial=True), package="pydantic_core"),
    Peer(name="langchain-core", make=_langchain, package="langchain-core"),
    Peer(name="json.loads", make=_strict),
    Peer(name="json raw_decode at each {", make=_scan),
)
"""In the order they are measured in."""
BY_NAME = {peer.name: peer for peer in (*PEERS, FROM_JSON)}
