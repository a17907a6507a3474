"""How well a value fits a contract: what the choice among candidates goes by."""

from typing import Any, NamedTuple, TypeGuard

from orchestrator.answers.shape import ANYTHING, KINDS, Shape


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


def surely_whole(value: object, shape: Shape) -> TypeGuard[dict[str, Any]]:
    """A quick look at a plain answer: True only when `fit` says whole, with every item of its lists; False may be.

    What it costs is part of the price of every answer that was valid from the start.
    """
    if type(value) is not dict or not shape.aliases.isdisjoint(value):
        return False
    for name, types, items, needed in shape.essentials:
        member = value.get(name, shape)
        if type(member) not in types:
            return False
        if items is not None and type(member) is list and not _items_hold(member, items, needed):
            return False
    return bool(shape.essentials)


def _items_hold(members: list[Any], types: frozenset[type], needed: frozenset[str]) -> bool:
    if not types.issuperset(map(type, members)):
        return False
    for item in members if needed else ():
        if type(item) is dict:
            if not needed <= item.keys():
                return False
        elif dict in types:  # a string among objects may say that others were left out: only the slow look knows
            return False
    return True


def fit(value: object, shape: Shape) -> Fit | None:
    """How well `value` answers the contract; None when it shows nothing of it and so is no answer."""
    if surely_whole(value, shape):
        return Fit(len(shape.required), len(shape.required), True, True)
    if shape is ANYTHING:
        filled = bool(value) and (isinstance(value, dict) or _holds_object(value))
        return Fit(int(filled), 0, filled, True) if isinstance(value, dict | list) else None
    if isinstance(value, list):
        fits = _items_fit(value, shape)
        return Fit(int(fits), 1, fits, fits) if "array" in shape.kinds else None
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
        typed += _typed(value[name], below)
        inner = inner and _items_fit(value[name], below)
    if present and not typed:
        return None
    return Fit(present, typed, inner, present == typed == len(shape.required))


def shows(keys: Any, shape: Shape) -> bool:
    """Whether a container of keys holds one the contract requires (any named one when none is required)."""
    groups = shape.required or (tuple(shape.props),)
    return (
        (not shape.required and not keys) or not any(groups) or any(name in keys for group in groups for name in group)
    )


def _holds_object(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(item, dict) for item in value)


def _typed(value: object, shape: Shape) -> bool:
    """Whether a value has an allowed type and is no list of other things where the contract lists objects."""
    if not shape.allows(KINDS.get(type(value), "object")) or not shape.admits(value):
        return False
    items = shape.items if isinstance(value, list) and value else None
    return items is None or any(items.allows(KINDS.get(type(item), "object")) for item in value)  # type: ignore[attr-defined]


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
