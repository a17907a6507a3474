"""What actions may name: safe paths, resources that are there, commands that are some. Pure."""

from collections.abc import Iterator

from orchestrator.checks.action_plan_world import Walked
from orchestrator.domain.action_plan import Action, Execute, Prune, Read, is_url
from orchestrator.domain.findings import Finding, Where, major
from orchestrator.domain.paths import unsafe_reason


def place(action: Action, line: int = 0) -> Where:
    """The action's place in the plan."""
    return Where(line=line or action.line or None, field=f"{action.verb} {action.subject[:200]}")


def unsafe(action: Action, path: str) -> Finding | None:
    """A finding for a path that may never be written, however it is asked for."""
    reason = unsafe_reason(path)
    if reason is None:
        return None
    message = f"`{path[:200]}` is unsafe: {reason}"
    fix = "Give the path from the repository's root, with `/`."
    return major("delivery.unsafe_path", message, where=place(action), fix=fix)


def missing(action: Action, path: str, walked: Walked) -> Finding:
    """A finding for a file that is not there."""
    if path in walked.world.folders or path.rstrip("/") in walked.world.folders:
        message, fix = f"`{path}` is a folder", "Name one file."
    elif path in walked.changes:
        message, fix = f"`{path}` was taken away by an earlier action", "Leave one of the two actions out."
    else:
        near = walked.world.near(path)
        message = f"`{path}` does not exist" + (f"; `{near}` does" if near else "")
        fix = "Name an existing file, or CREATE this one."
    return major("plan.missing", message, where=place(action), fix=fix)


def unread(action: Action, path: str) -> Finding:
    """A finding for a file whose author has not seen it."""
    message = f"`{path}` was not shown in this turn, so nobody can know what it holds now"
    fix = f"READ `{path}` first, alone, and change it in the next turn."
    return major("plan.unread", message, where=place(action), fix=fix)


def read(action: Read, walked: Walked) -> Iterator[Finding]:
    """A page is not fetched here; a file must be there."""
    if not is_url(action.resource):
        yield from _local(action, action.resource, walked)


def prune(action: Prune, walked: Walked) -> Iterator[Finding]:
    """What is to be left out must have been shown."""
    context = walked.world.context
    if context is not None and action.resource not in context:
        message = f"`{action.resource[:200]}` is not in the context"
        fix = "PRUNE only what was shown, spelled as it was shown."
        yield major("plan.not_shown", message, where=place(action), fix=fix)
    elif context is None and not is_url(action.resource):
        yield from _local(action, action.resource, walked)


def _local(action: Action, path: str, walked: Walked) -> Iterator[Finding]:
    reason = unsafe_reason(path)
    if reason is not None and not (path.endswith("/") and unsafe_reason(path.rstrip("/")) is None):
        message = f"`{path[:200]}` is no file of the repository: {reason}"
        fix = "Name a file by its path from the repository's root, or a page by its https address."
        yield major("plan.resource", message, where=place(action), fix=fix)
    elif not walked.exists(path):
        yield missing(action, path, walked)


def execute(action: Execute, walked: Walked) -> Iterator[Finding]:
    """A command must be one, and run inside the tree."""
    if not action.command.strip() or "\0" in action.command:
        fix = "Write the command in the code block, or leave the action out."
        yield major("plan.command", "EXECUTE has no command that could be run", where=place(action), fix=fix)
    reason = unsafe_reason(action.cwd) if action.cwd != "." else None
    if reason is not None:
        message = f"`cwd` leads out of the repository: {reason}"
        fix = "Name a folder below the repository's root, or leave `cwd` out."
        yield major("plan.cwd", message, where=place(action), fix=fix)
    elif action.cwd != "." and walked.exists(action.cwd):
        fix = "Name a folder below the repository's root, or leave `cwd` out."
        yield major("plan.cwd", f"`cwd` is a file: `{action.cwd}`", where=place(action), fix=fix)
