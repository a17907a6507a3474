"""Methods of classes in a file that two sides changed: what either has must be in what brings them together."""

import ast
import re
from collections.abc import Iterator, Sequence

from orchestrator.domain.delivery import Delivery
from orchestrator.domain.findings import Finding, Where, major
from orchestrator.domain.gitfacts import Conflict
from orchestrator.syntax import javascript_tree, python_source

_MEMBERS = frozenset({"method_definition", "field_definition", "public_field_definition", "abstract_method_signature"})
Method = tuple[str, str]
"""Class and name."""


def check_methods(delivery: Delivery, conflicts: Sequence[Conflict], task: str) -> Iterator[Finding]:
    """Major for a public method that a side has and the delivered file has not; never raises.

    One that either side took out of the base, or that `task` names, may be gone. One whose class is gone counts as kept
    by its name alone.
    """
    texts: dict[str, str] = {change.path: change.content for change in delivery.files}
    for one in conflicts:
        for owner, name in _lost(one, texts.get(one.path, "")):
            if re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", task):
                continue
            yield major(
                "delivery.lost_export",
                f"`{one.path}` lost the method `{owner}.{name}`, which one side has",
                where=Where(file=one.path, story=delivery.story_id, task=delivery.task_id),
                fix=f"Keep `{owner}.{name}` as it was.",
            )


def _lost(one: Conflict, text: str) -> list[Method]:
    result, story = (set(_methods(one.path, side)) for side in (one.result, one.story))
    wanted = (result | story) - (set(_methods(one.path, one.base or "")) - (result & story))
    kept = set(_methods(one.path, text)) if wanted else set()
    if not kept:  # nothing can be read of it, or no class is left: other checks say so
        return []
    owners, names = {owner for owner, _ in kept}, {name for _, name in kept}
    return sorted(
        (owner, name)
        for owner, name in wanted - kept
        if not name.startswith(("_", "#")) and (owner in owners or name not in names)
    )


def _methods(path: str, text: str) -> Iterator[Method]:
    if path.lower().endswith((".py", ".pyi")):
        tree = python_source.parse(text)
        yield from _of_python(tree.body if tree is not None else ())
    elif path.lower().endswith(javascript_tree.SUFFIXES):
        yield from _of_javascript(path, text)


def _of_python(body: Sequence[ast.stmt]) -> Iterator[Method]:
    for owner in python_source.top_level(body):
        if not isinstance(owner, ast.ClassDef):
            continue
        for member in python_source.top_level(owner.body):
            if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
                yield owner.name, member.name
            elif isinstance(member, ast.Assign):
                yield from ((owner.name, target.id) for target in member.targets if isinstance(target, ast.Name))


def _of_javascript(path: str, text: str) -> Iterator[Method]:
    for body in javascript_tree.everything(javascript_tree.root(text, path)):
        if body.type != "class_body" or body.parent is None:
            continue
        owner = javascript_tree.short_text(body.parent.child_by_field_name("name"))
        for member in body.named_children:
            named = member.child_by_field_name("name") or member.child_by_field_name("property")
            if member.type in _MEMBERS and named is not None:
                yield owner or "class", javascript_tree.short_text(named)
