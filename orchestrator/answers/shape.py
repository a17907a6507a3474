"""A contract as the reader needs it: which keys and kinds of values may stand where, and how well a value fits."""

from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from pydantic import BaseModel
from pydantic.errors import PydanticInvalidForJsonSchema

Schema = dict[str, Any]
MAX_ALTERNATIVES = 64
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
        self._alternatives = _flattened(schemas, root)

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
            for name, prop in _properties(schema).items():
                for spelling in (name, *_aliases(prop)):
                    named.setdefault(spelling, []).append(prop)
        return {name: Shape(tuple(schemas), self._root) for name, schemas in named.items()}

    @cached_property
    def required(self) -> tuple[tuple[str, ...], ...]:
        """Spellings of each required key; empty when several kinds of object are allowed."""
        objects = [schema for schema in self._alternatives if _properties(schema)]
        if len(objects) != 1:
            return ()
        props, names = _properties(objects[0]), objects[0].get("required")
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
    def extra(self) -> "Shape | None":
        """Shape of the values of keys that have no name in the contract, None when nothing is said."""
        return self._below("additionalProperties")

    @cached_property
    def lists_objects(self) -> bool:
        """Whether this is a list whose items the contract describes as objects."""
        return self.items is not None and "object" in self.items.kinds

    def allows(self, kind: str) -> bool:
        """Whether a value of this JSON type may stand here."""
        return not self.kinds or kind in self.kinds or (kind == "integer" and "number" in self.kinds)

    def child(self, key: str) -> "Shape":
        """Shape of the value under `key`."""
        return self.props.get(key) or self.extra or ANYTHING

    def _below(self, keyword: str) -> "Shape | None":
        found = tuple(schema[keyword] for schema in self._alternatives if isinstance(schema.get(keyword), dict))
        return Shape(found, self._root) if found else None


class Fit(NamedTuple):
    """How well a value fits, best last when compared."""

    present: int
    """Required keys that are there (under any spelling)."""
    typed: int
    """Required keys whose value has an allowed type."""
    inner: bool
    """Every item of the required lists of objects shows its own required keys."""
    whole: bool
    """All required keys are there with the right types."""


def shape_of(contract: type[BaseModel] | Schema | None) -> Shape:
    """The shape of a contract. Raises TypeError when it is neither a pydantic model, a JSON Schema dict, nor None."""
    if contract is None:
        return ANYTHING
    if isinstance(contract, dict):
        return Shape((contract,), contract)
    if isinstance(contract, type) and issubclass(contract, BaseModel):
        return _shape_of_model(contract)
    raise TypeError(f"contract must be a pydantic model, a JSON Schema dict or None, not {contract!r}")


def fit(value: object, shape: Shape) -> Fit | None:
    """How well `value` answers the contract; None when it shows nothing of it and so is no answer."""
    if shape is ANYTHING:
        filled = bool(value) and (isinstance(value, dict) or _holds_object(value))
        return Fit(int(filled), 0, filled, True) if isinstance(value, dict | list) else None
    if isinstance(value, list):
        return Fit(1, 1, _items_fit(value, shape), True) if "array" in shape.kinds else None
    if not isinstance(value, dict) or not shape.allows("object") or not shows(value, shape):
        return None
    present = typed = 0
    inner = True
    for spellings in shape.required:
        name = next((spelling for spelling in spellings if spelling in value), None)
        if name is None:
            continue
        present += 1
        below = shape.child(name)
        typed += below.allows(KINDS.get(type(value[name]), "object"))
        inner = inner and _items_fit(value[name], below)
    return Fit(present, typed, inner, present == typed == len(shape.required))


def shows(keys: Any, shape: Shape) -> bool:
    """Whether a container of keys holds one the contract requires (any named one when none is required)."""
    groups = shape.required or (tuple(shape.props),)
    return not any(groups) or any(name in keys for group in groups for name in group)


def has_gap(value: object, shape: Shape) -> bool:
    """Whether an ellipsis as a string stands among the items of the contract's lists of objects."""
    if not isinstance(value, dict):
        return False
    return any(
        is_ellipsis(item)
        for name, items in value.items()
        if isinstance(items, list) and name in shape.props and shape.props[name].lists_objects
        for item in items
    )


def is_ellipsis(item: object) -> bool:
    """Whether a list item only says that items were left out."""
    return isinstance(item, str) and item[:20].lstrip().startswith(("...", "…"))


def _holds_object(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(item, dict) for item in value)


def _items_fit(value: object, shape: Shape) -> bool:
    items = shape.items
    if not isinstance(value, list) or items is None:
        return True
    needed = items.required
    return all(
        all(any(name in item for name in group) for group in needed)
        if isinstance(item, dict)
        else items.allows(KINDS.get(type(item), "object"))
        for item in value
    )


def _flattened(schemas: tuple[Schema, ...], root: Schema) -> tuple[Schema, ...]:
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
        if target is None and (not parts or _properties(schema)):
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
    return named or ({"object"} if _properties(schema) else set())


def _properties(schema: Schema) -> dict[str, Schema]:
    props = schema.get("properties")
    if not isinstance(props, dict):
        return {}
    return {name: prop for name, prop in props.items() if isinstance(prop, dict)}


def _aliases(prop: Schema | None) -> list[str]:
    return [name for name in _list((prop or {}).get("x-aliases")) if isinstance(name, str)]


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


@lru_cache(maxsize=64)
def _shape_of_model(model: type[BaseModel]) -> Shape:
    try:
        schema = model.model_json_schema()
    except PydanticInvalidForJsonSchema as error:
        raise TypeError(f"contract {model.__name__} has no JSON Schema: {error.message}") from error
    return Shape((schema,), schema)


ANYTHING = Shape(({},), {})
"""The shape of no contract, and of every place a contract leaves open."""
