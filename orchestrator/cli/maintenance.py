"""`prune`: the state folder made smaller."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich import filesize

from orchestrator.cli.common import Context, Exit, command, command_group, print_json, say
from orchestrator.settings import Settings

app = command_group()


@command(app, "prune")
def prune_command(
    context: Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be deleted and freed.")] = False,
) -> int:
    """Delete finished sprints and analyses that are older than retention.days.

    Report and result branch of a sprint stay. A sprint that is not finished, a backlog and your repository are never
    touched. A daemon uses its own settings, except for --set retention.days.

    Example: orchestrator prune --dry-run --set retention.days=30
    """
    pruned = context.sprints.prune(_limits(context.settings, context.overrides), dry_run=dry_run)
    if context.as_json:
        print_json(pruned.model_dump(mode="json"))
        return Exit.GOOD
    for one in pruned.gone:
        ended = f"ended {one.ended:%Y-%m-%d}" if one.ended else "an earlier prune of it was cut short"
        print(f"{one.kind} {one.name}: {ended}, {filesize.decimal(one.freed_bytes)}")
    what = "would be freed" if dry_run else "freed"
    print(f"about {filesize.decimal(pruned.freed_bytes)} {what}" if pruned.gone else "nothing is too old")
    for name in pruned.skipped:
        why = "" if " " in name else ": a process works on it"
        say(f"warning: {name} is left as it is{why}")
    return Exit.GOOD


def _limits(settings: Settings, overrides: Sequence[str]) -> dict[str, float | None]:
    """Returns the limits that the command line sets."""
    # A daemon has its own: only what was typed replaces it.
    named = {text.partition("=")[0].strip() for text in overrides}
    return {"days": settings.retention.days} if named & {"retention", "retention.days"} else {}
