"""Where in its contract a text breaks off: the field that is being read there, and the part of the schema it needs.

Told to the model that is asked to repair the text. Strings cannot be told apart in a broken text, so the keys that the
contract names are followed, not the brackets: good enough to show the right part, never used to read a value.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from orchestrator.answers.json.shape import Schema, flattened, properties
from orchestrator.core.value import Value

SHORT = 1500
"""Characters of a schema that is shown whole."""
_KEY = re.compile(r"""["'“`]?([A-Za-z_][\w-]{0,60})["'”`]?[ \t]{0,8}:""")
_LIST_ENDS = re.compile(r"\}\s*+\]")


class Located(Value):
    """A place in a contract."""

    field: str
    """As `tasks[1].description`; "" when no key of the contract stands before the place."""
    contract: dict[str, Any]
    """The schema; a long one is detailed at that place only and names just the types of everything else."""


@dataclass(slots=True)
class _Level:
    """An object of the contract whose keys may come next."""

    schemas: list[Schema]
    key: str = ""
    """The key it stands under, in the object around it."""
    index: int = -1
    """Number of the list item it is, -1 for no item."""
    seen: list[str] = field(default_factory=list)
    props: dict[str, Schema] = field(init=False)
    """Its properties by name and alias."""

    def __post_init__(self) -> None:
        named = [(name, prop) for schema in self.schemas for name, prop in properties(schema).items()]
        aliases = [(alias, prop) for _, prop in named for alias in prop.get("x-aliases", ())]
        self.props = {**dict(aliases), **dict(named)}


def locate(text: str, offset: int, contract: Schema) -> Located:
    """What of `contract` is being read at `offset` of `text`. Never raises for a broken text; linear."""
    levels = [_Level(list(flattened((contract,), contract)))]
    latest, after, list_ended = "", 0, False
    for match in _KEY.finditer(text, 0, offset):
        name = match[1]
        list_ended = list_ended or _LIST_ENDS.search(text, after, match.start()) is not None
        after = match.end()
        if not any(name in level.props for level in levels):
            continue
        if list_ended and levels[-1].index >= 0:
            levels.pop()
        at = _level_of(levels, name)
        if at < 0:
            continue
        del levels[at + 1 :]
        level, latest, list_ended = levels[at], name, False
        if name in level.seen:
            level.index += 1
            level.seen.clear()
        level.seen.append(name)
        below = _below(level.props[name], contract)
        if below is not None:
            below.key = name
            levels.append(below)
    return Located(field=_path(levels, latest), contract=_shown(levels, latest, contract))


def _level_of(levels: list[_Level], name: str) -> int:
    """The innermost object that has not shown `name`, else the innermost list whose next item `name` begins."""
    known = [at for at in reversed(range(len(levels))) if name in levels[at].props]
    fresh = [at for at in known if name not in levels[at].seen]
    again = [at for at in known if levels[at].index >= 0 and levels[at].seen[:1] == [name]]
    return next(iter([*fresh, *again]), -1)


def _below(prop: Schema, root: Schema) -> _Level | None:
    """The object under a property, or the first item of its list of objects."""
    alternatives = list(flattened((prop,), root))
    objects = [schema for schema in alternatives if properties(schema)]
    if objects:
        return _Level(objects)
    items = [item for schema in alternatives if isinstance(item := schema.get("items"), dict)]
    inside = [schema for item in items for schema in flattened((item,), root) if properties(schema)]
    return _Level(inside, index=0) if inside else None


def _path(levels: list[_Level], latest: str) -> str:
    steps = [f"{level.key}[{level.index}]" if level.index >= 0 else level.key for level in levels[1:]]
    if levels[-1].seen:
        steps.append(latest)
    return ".".join(steps)


def _shown(levels: list[_Level], latest: str, contract: Schema) -> Schema:
    """The contract, whole when it is short or nothing of it was seen."""
    if not latest or len(json.dumps(contract)) <= SHORT:
        return contract
    detail: Schema = {}
    for depth in reversed(range(len(levels))):
        level = levels[depth]
        key = levels[depth + 1].key if depth + 1 < len(levels) else ""
        shown = {name: _brief(prop, contract) for name, prop in _named(level).items()}
        if not key and depth:
            shown = {name: _whole(prop, contract) for name, prop in _named(level).items()}
        elif key or latest in shown:
            name = next((name for name, prop in _named(level).items() if key in (name, *prop.get("x-aliases", ()))), "")
            shown[name or latest] = detail if name else _whole(_named(level)[latest], contract)
        required = [name for schema in level.schemas for name in schema.get("required", ())]
        detail = {"type": "object", "properties": shown} | ({"required": required} if required else {})
        detail = {"type": "array", "items": detail} if level.index >= 0 else detail
    return detail


def _named(level: _Level) -> dict[str, Schema]:
    return {name: prop for schema in level.schemas for name, prop in properties(schema).items()}


def _brief(prop: Schema, root: Schema) -> Schema:
    """Only the types a property may have."""
    kinds = list(dict.fromkeys(str(schema["type"]) for schema in flattened((prop,), root) if "type" in schema))
    return {"type": kinds[0] if len(kinds) == 1 else kinds} if kinds else {}


def _whole(prop: Schema, root: Schema) -> Schema:
    """A property with what it refers to, one level down."""
    alternatives = list(flattened((prop,), root))
    kept = {name: prop[name] for name in ("x-aliases",) if name in prop}
    return {**alternatives[0], **kept} if len(alternatives) == 1 else {"anyOf": alternatives, **kept}


def offset_of(text: str, line: int, column: int) -> int:
    """The 0-based offset of a 1-based place; the end of the text when it has fewer lines."""
    at = 0
    for _ in range(line - 1):
        at = text.find("\n", at) + 1
        if not at:
            return len(text)
    return min(at + column - 1, len(text))
