"""`python -m benchmarks.answers.worker NAME`: one reader in a process of its own, asked line by line.

A request is `{"text", "contract", "items", "repeat", "value"}`; the reply `{"value", "cut", "seconds", "cpu"}`, the
value only when it was asked for, `seconds` and `cpu` the best of `repeat` calls. What the reader prints goes nowhere.
"""

import json
import os
import resource
import sys
import time
from typing import Any

from benchmarks.answers.peers import BY_NAME, Clocked, Cut, Read

MEMORY = 4 << 30
"""Bytes of address space a reader may have once it has started: what grows without end ends itself."""
DEPTH = 5
"""Wrappers inside wrappers that are looked through."""


def _plain(value: Any) -> Any:
    """Dictionaries, lists and strings of other classes as the built-in ones."""
    if isinstance(value, dict):
        return {str(key): _plain(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(child) for child in value]
    if isinstance(value, str):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float) else None


def _settled(read: Read, value: Any, contract: str, items: str, depth: int = 0) -> Any:
    """The help that everybody gets: the object with the wanted list out of lists, wrappers and encoded strings."""
    if isinstance(value, str) and depth < DEPTH and value.lstrip()[:1] in ("{", "["):
        again = read(value, contract)
        value = again.value if isinstance(again, Cut | Clocked) else again
    if depth >= DEPTH or not isinstance(value, dict | list) or (isinstance(value, dict) and items in value):
        return value
    inside = list(value) if isinstance(value, list) else list(value.values())
    for child in reversed(inside):
        found = _settled(read, child, contract, items, depth + 1)
        if isinstance(found, dict) and items in found:
            return found
    if isinstance(value, list):
        return next((child for child in reversed(value) if isinstance(child, dict)), None)
    return value


def _answer(read: Read, request: dict[str, Any]) -> dict[str, Any]:
    text, contract = request["text"], request["contract"]
    best = cpu = float("inf")
    value: Any = None
    for _ in range(request.get("repeat", 1)):
        wall, used = time.perf_counter(), time.process_time()
        try:
            value = read(text, contract)
        except Exception:  # noqa: BLE001 - a reader that raises has refused, whatever it raised
            value = None
        cpu = min(cpu, time.process_time() - used)
        best = min(best, time.perf_counter() - wall)
        if isinstance(value, Clocked):
            best, value = value.seconds, value.value
    reply: dict[str, Any] = {"seconds": best, "cpu": cpu, "cut": isinstance(value, Cut)}
    if request.get("value"):
        value = value.value if isinstance(value, Cut) else value
        try:
            reply["value"] = _plain(_settled(read, value, contract, request["items"]))
        except Exception:  # noqa: BLE001 - the second reading of a string may refuse as well
            reply["value"] = None
    return reply


def main() -> None:
    """Answer until the input ends."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        read = BY_NAME[sys.argv[1]].make()
    except Exception as error:  # noqa: BLE001 - told to the table, whatever it is
        replies.write(json.dumps({"error": f"{type(error).__name__}: {error}"}) + "\n")
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    replies.write(json.dumps({"error": None}) + "\n")
    replies.flush()
    for line in sys.stdin:
        try:
            reply = json.dumps(_answer(read, json.loads(line)))
        except RecursionError:
            reply = json.dumps({"seconds": 0.0, "cpu": 0.0, "cut": False, "value": None})
        replies.write(reply + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
