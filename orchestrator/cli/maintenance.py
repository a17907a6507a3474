"""`prune`: the state folder made smaller."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich import filesize

from orchestrator.cli.common import Context, Exit, command, command_group, print_json, say
from orchestrator.core.sprint import Gone, Pruned, Why
from orchestrator.settings import Settings

app = command_group()
_WHY = {
    Why.AGE: "older than retention.days",
    Why.SIZE: "the state folder is larger than retention.max_mb",
    Why.CUT_SHORT: "an earlier prune of it was cut short",
    Why.TREES: "finished: only worktrees and environments",
}


@command(app, "prune")
def prune_command(
    context: Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be deleted and freed.")] = False,
) -> int:
    """Delete what is kept of finished sprints and analyses: what is too old or takes too much disk space.

    Record, report and result branch of a sprint stay, and so do the branches of stories that were not done. A sprint
    that is not finished, a backlog and your repository are never touched. A daemon uses its own settings, except for
    --set retention.days and --set retention.max_mb.

    Example: orchestrator prune --dry-run --set retention.days=30
    """
    pruned = context.sprints.prune(_limits(context.settings, context.overrides), dry_run=dry_run)
    if context.as_json:
        print_json(pruned.model_dump(mode="json"))
        return Exit.GOOD
    for line in _lines(pruned):
        print(line)
    for name in pruned.skipped:
        why = "" if " " in name else ": a process works on it"
        say(f"warning: {name} is left as it is{why}")
    return Exit.GOOD


def _limits(settings: Settings, overrides: Sequence[str]) -> dict[str, float | None]:
    """Returns the limits that the command line sets."""
    # A daemon has its own limits: only those that were typed replace them.
    named = {text.partition("=")[0].strip() for text in overrides}
    kept = settings.retention
    limits = {"days": kept.days, "max_mb": kept.max_mb}
    return {name: limit for name, limit in limits.items() if named & {"retention", f"retention.{name}"}}


def _lines(pruned: Pruned) -> list[str]:
    size = filesize.decimal
    lines = [f"{one.kind} {one.name}: {_WHY[one.why]}{_ended(one)}, {size(one.freed_bytes)}" for one in pruned.gone]
    what = "would be freed" if pruned.dry_run else "freed"
    lines.append(f"about {size(pruned.freed_bytes)} {what}" if pruned.gone else "nothing is too old or too much")
    if pruned.over:
        lines.append("the state folder is still larger than retention.max_mb: nothing else in it is finished")
    return lines


def _ended(one: Gone) -> str:
    return f", ended {one.ended:%Y-%m-%d}" if one.ended else ""
