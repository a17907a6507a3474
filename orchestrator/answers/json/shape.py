"""A contract as the reader needs it: which keys and kinds of values may stand where.

Also a cut answer and the model's continuation of it, as one text.
"""

import json
import re
from functools import cached_property, lru_cache
from typing import Any

from pydantic import BaseModel
from pydantic.errors import PydanticInvalidForJsonSchema

Schema = dict[str, Any]
MAX_ALTERNATIVES = 64  # bounds the work on a hostile answer
_COUNT = re.compile(r"num(?:ber)?(?:_of)?_(\w+)|(\w+?)_count", re.IGNORECASE)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
KINDS: dict[type, str] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


class Shape:
    """One place in a contract: the union of the schemas that may apply there. Resolved lazily, so cycles are fine."""

    def __init__(self, schemas: tuple[Schema, ...], root: Schema) -> None:
        self._root = root
        self._schemas = schemas
        self._alternatives = flattened(schemas, root)

    @cached_property
    def kinds(self) -> frozenset[str]:
        """JSON type names allowed here; empty means anything."""
        found: set[str] = set()
        for schema in self._alternatives:
            kinds = _kinds_of(schema)
            if not kinds:
                return frozenset()
            found |= kinds
        return frozenset(found)

    @cached_property
    def props(self) -> dict[str, "Shape"]:
        """Shape of each named key, aliases (`x-aliases`) included."""
        named: dict[str, list[Schema]] = {}
        for schema in self._alternatives:
            for name, prop in properties(schema).items():
                for spelling in (name, *_aliases(prop)):
                    named.setdefault(spelling, []).append(prop)
        return {name: Shape(tuple(schemas), self._root) for name, schemas in named.items()}

    @cached_property
    def required(self) -> tuple[tuple[str, ...], ...]:
        """Spellings of each required key; empty when several kinds of object are allowed."""
        objects = [schema for schema in self._alternatives if properties(schema)]
        if len(objects) != 1:
            return ()
        props, names = properties(objects[0]), objects[0].get("required")
        names = names if isinstance(names, list | tuple) else ()
        return tuple((name, *_aliases(props.get(name))) for name in names if isinstance(name, str))

    @cached_property
    def required_names(self) -> frozenset[str]:
        """All spellings of all required keys."""
        return frozenset(name for group in self.required for name in group)

    @cached_property
    def items(self) -> "Shape | None":
        """Shape of list items, None when nothing is said."""
        return self._below("items")

    @cached_property
    def counters(self) -> tuple[tuple[str, str], ...]:
        """Pairs of a field that announces how many items a list of objects has, and that list (task_count, tasks).

        A field is told by its name, `<item>_count` or `num_<items>`; `"x-counts": false` in its schema says no.
        """
        listed = {name for name, shape in self.props.items() if shape.lists_objects}
        return tuple(
            (counter, name)
            for counter, shape in self.props.items()
            if shape.kinds & {"integer", "number"} and not shape._silent
            for name in _counted(counter)
            if name in listed
        )

    @cached_property
    def takes_plans(self) -> bool:
        """Whether an action plan may stand in place of this value: its schema says `"x-action-plan": true`."""
        return any(schema.get("x-action-plan") is True for schema in self._alternatives + self._schemas)

    @cached_property
    def _silent(self) -> bool:
        return any(schema.get("x-counts") is False for schema in self._alternatives + self._schemas)

    @cached_property
    def extra(self) -> "Shape | None":
        """Shape of the values of keys that have no name in the contract, None when nothing is said."""
        return self._below("additionalProperties")

    @cached_property
    def choices(self) -> tuple[Any, ...]:
        """The values a `const` or `enum` allows here; empty when any value will do."""
        found: list[Any] = []
        for schema in self._alternatives:
            allowed = [schema["const"]] if "const" in schema else _list(schema.get("enum"))
            if not allowed:
                return ()
            found += allowed
        return tuple(found)

    @cached_property
    def lists_objects(self) -> bool:
        """Whether this is a list whose items the contract describes as objects."""
        return self.items is not None and "object" in self.items.kinds

    def allows(self, kind: str) -> bool:
        """Returns whether a value of this JSON type may stand here."""
        return not self.kinds or kind in self.kinds or (kind == "integer" and "number" in self.kinds)

    def admits(self, value: object) -> bool:
        """Returns whether the contract's choices for this place, if there are any, hold the value."""
        return not self.choices or value in self.choices

    def child(self, key: str) -> "Shape":
        """Shape of the value under `key`."""
        return self.props.get(key) or self.extra or ANYTHING

    def _below(self, keyword: str) -> "Shape | None":
        found = tuple(schema[keyword] for schema in self._alternatives if isinstance(schema.get(keyword), dict))
        return Shape(found, self._root) if found else None


def shape_of(contract: type[BaseModel] | Schema | None) -> Shape:
    """The shape of a contract. Raises TypeError when it is neither a pydantic model, a JSON Schema dict, nor None."""
    if contract is None:
        return ANYTHING
    if isinstance(contract, dict):
        return _shape_of_schema(json.dumps(contract))
    if isinstance(contract, type) and issubclass(contract, BaseModel):
        return _shape_of_model(contract)
    raise TypeError(f"contract must be a pydantic model, a JSON Schema dict or None, not {contract!r}")


def flattened(schemas: tuple[Schema, ...], root: Schema) -> tuple[Schema, ...]:
    """Returns the schemas that may apply, references and unions resolved; bounded, so that cycles end."""
    # A stack, reversed: alternatives come out in the order in which they are written.
    waiting = list(reversed(schemas))
    done: list[Schema] = []
    seen: set[int] = set()
    while waiting and len(seen) < MAX_ALTERNATIVES:
        schema = waiting.pop()
        if id(schema) in seen:
            continue
        seen.add(id(schema))
        target = _resolved(schema.get("$ref"), root)
        parts = [part for word in ("anyOf", "oneOf", "allOf") for part in _list(schema.get(word))]
        if target is not None:
            waiting.append(target)
        waiting.extend(part for part in reversed(parts) if isinstance(part, dict))
        if target is None and (not parts or properties(schema)):
            done.append(schema)
    return tuple(done)


def _resolved(ref: object, root: Schema) -> Schema | None:
    if not isinstance(ref, str) or not ref.startswith("#"):
        return None
    node: Any = root
    for part in ref[1:].split("/")[1:]:
        node = node.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(node, dict) else None
    return node if isinstance(node, dict) else None


def _kinds_of(schema: Schema) -> set[str]:
    kind = schema.get("type")
    named = {kind} if isinstance(kind, str) else {k for k in _list(kind) if isinstance(k, str)}
    if not named and "const" in schema:
        named = {KINDS.get(type(schema["const"]), "object")}
    if not named and "enum" in schema:
        named = {KINDS.get(type(choice), "object") for choice in _list(schema["enum"])}
    return named or ({"object"} if properties(schema) else set())


def properties(schema: Schema) -> dict[str, Schema]:
    """Returns the named properties of a schema that are schemas themselves."""
    props = schema.get("properties")
    if not isinstance(props, dict):
        return {}
    return {name: prop for name, prop in props.items() if isinstance(prop, dict)}


def _aliases(prop: Schema | None) -> list[str]:
    return [name for name in _list((prop or {}).get("x-aliases")) if isinstance(name, str)]


def _counted(counter: str) -> tuple[str, ...]:
    """Names of the lists whose length a field of this name tells; () for a field that counts nothing."""
    match = _COUNT.fullmatch(_HUMP.sub("_", counter))
    if match is None:
        return ()
    noun = (match[1] or match[2]).lower()
    return (noun, f"{noun}s", f"{noun}es")


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


@lru_cache(maxsize=64)
def _shape_of_schema(schema: str) -> Shape:
    """Returns the shape of a schema written as JSON: its content is the key, because a dict may change."""
    parsed = json.loads(schema)
    return Shape((parsed,), parsed)


@lru_cache(maxsize=64)
def _shape_of_model(model: type[BaseModel]) -> Shape:
    try:
        schema = model.model_json_schema()
    except PydanticInvalidForJsonSchema as error:
        raise TypeError(f"contract {model.__name__} has no JSON Schema: {error.message}") from error
    return Shape((schema,), schema)


ANYTHING = Shape(({},), {})
"""The shape of no contract, and of every place a contract leaves open."""


RESUMED = re.compile(
    r"\n[^{}\[\]\n\"]{0,60}[\[(]?\b(?:continu(?:ing|ed|ation)|continue (?:from|with|here|where)"
    r"|resum(?:ing|ed)|picking up|here is the rest|the rest of|cont['.)\]]|part \d)(?![\w(=.])"
    r"[^{}\n\"]{0,120}[^\w\s;][ \t*_]*\n",
    re.IGNORECASE,
)
"""A line in words that says that an answer which was broken off goes on: it is part of no string."""
_WORDS = ("continu", "cont'", "cont.", "cont)", "cont]", "resum", "picking up", "the rest", "part ")
MAX_OVERLAP = 2000
"""Characters of repeated text that are looked for at the seam; models repeat a line or two, not pages."""

_FIRST = 8
"""Characters of a repeated text that are looked for first."""


def may_resume(text: str) -> bool:
    """Returns whether RESUMED can match somewhere: it is slow, and most texts have none of its words."""
    small = text.lower()
    return any(word in small for word in _WORDS)


def join(cut: str, continuation: str) -> str:
    """`cut` followed by `continuation`, with what the continuation repeats of the cut's end left out once."""
    return cut + continuation[overlap(cut, continuation) :]


def overlap(cut: str, continuation: str) -> int:
    """Returns how many characters at the start of `continuation` repeat the end of `cut`: the most, up to MAX_OVERLAP.

    Looked for where its first characters stand, at most MAX_OVERLAP places.
    """
    head, tail = continuation[:MAX_OVERLAP], cut[-MAX_OVERLAP:]
    first = head[:_FIRST]
    # The longest repetition begins earliest in the tail, so the first place that fits is the answer.
    at = tail.find(first, max(0, len(tail) - len(head)))
    while at >= 0:
        if head.startswith(tail[at:]):
            return len(tail) - at
        at = tail.find(first, at + 1)
    shorter = range(min(len(first), len(tail)), 0, -1)
    return next((length for length in shorter if tail.endswith(head[:length])), 0)
