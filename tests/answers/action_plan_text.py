"""An action plan → the Markdown it is read from: `parse_plan(render_plan(plan))` gives the plan again."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from orchestrator.answers.action_plan import longest_run
from orchestrator.core.action_plan import Action, ActionPlan, Create, Delete, Edit, Execute, Move, Prune, Read, is_url

_PLAIN = re.compile(r"[^\s()<>\[\]\\`*&#%|\"]+")
_TICKS = re.compile(r"`+")


def render_plan(plan: ActionPlan) -> str:
    """The plan as Markdown, each block behind a bar longer than any run of backticks in it.

    Title, metadata, rationale and descriptions stand as they are: they are Markdown of their author, and must not hold
    headings that the plan's own structure knows.
    """
    parts = [f"# {plan.title}".rstrip()]
    if plan.metadata:
        parts.append("\n".join(f"- **{key}:** {value}" for key, value in plan.metadata.items()))
    parts += ["## Rationale", plan.rationale]
    for name, items in plan.lists.items():
        parts += [f"## {name.title()}", "\n".join(f"- {item}" for item in items)]
    parts.append("## Action Plan")
    parts.append("\n\n---\n\n".join("\n\n".join(_action(action)) for action in plan.actions))
    return "\n\n".join(part for part in parts if part) + "\n"


def _action(action: Action) -> Iterator[str]:
    write: Callable[[Any], tuple[list[str], list[str]]] = _WRITERS[type(action)]
    bullets, blocks = write(action)
    yield f"### `{action.verb}`"
    if action.description:
        bullets.insert(0 if isinstance(action, Execute) else 1, f"- **Description:** {action.description}")
    if bullets:
        yield "\n".join(bullets)
    yield from blocks


def _create(action: Create) -> tuple[list[str], list[str]]:
    overwrite = ["- **Overwrite:** true"] if action.overwrite else []
    return [_path("File Path", action.path), *overwrite], [_block(action.content)]


def _edit(action: Edit) -> tuple[list[str], list[str]]:
    blocks = []
    for pair in action.pairs:
        blocks += ["#### FIND:", _block(pair.find), "#### REPLACE:", _block(pair.replace)]
    return [_path("File Path", action.path)], blocks


def _resource(action: Read | Prune) -> tuple[list[str], list[str]]:
    return [_path("Resource", action.resource)], []


def _delete(action: Delete) -> tuple[list[str], list[str]]:
    return [_path("File Path", action.path)], []


def _move(action: Move) -> tuple[list[str], list[str]]:
    return [_path("File Path", action.path), _path("Target", action.target)], []


def _execute(action: Execute) -> tuple[list[str], list[str]]:
    bullets = [f"- **Expected Outcome:** {action.expected_outcome}"] if action.expected_outcome else []
    bullets += [_path("cwd", action.cwd)] if action.cwd != "." else []
    if action.env:
        bullets += ["- **env:**", *(f"  - {_code(f'{name}={value}')}" for name, value in action.env.items())]
    if action.timeout_s is not None:
        bullets.append(f"- **Timeout:** {action.timeout_s:.15g}")
    bullets += ["- **Allow Failure:** true"] if action.allow_failure else []
    return bullets, [_block(f"{action.command}\n" if action.command else "", "shell")]


_WRITERS: dict[type, Callable[[Any], tuple[list[str], list[str]]]] = {
    Create: _create,
    Edit: _edit,
    Read: _resource,
    Prune: _resource,
    Delete: _delete,
    Move: _move,
    Execute: _execute,
}


def _block(text: str, language: str = "") -> str:
    bar = "`" * max(3, longest_run(text) + 1)
    return f"{bar}{language}\n{text}{bar}"


def _code(text: str) -> str:
    """A code span that holds any text."""
    runs = {len(run) for run in _TICKS.findall(text)}
    ticks = "`" * next(length for length in range(1, len(runs) + 2) if length not in runs)
    space = " " if text.startswith(("`", " ")) or text.endswith(("`", " ")) else ""
    return f"{ticks}{space}{text}{space}{ticks}"


def _path(name: str, path: str) -> str:
    if is_url(path) and _PLAIN.fullmatch(path):
        return f"- **{name}:** [{path}]({path})"
    if _PLAIN.fullmatch(path):
        return f"- **{name}:** [{path}](/{path})"
    return f"- **{name}:** {_code(path)}"
