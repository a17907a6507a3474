"""`prune`: what is too old or too much is given up."""

import asyncio
from typing import Annotated

import typer

from orchestrator.cli.common import ConfigOption, JsonOption, SetOption, configured, print_json, say, told
from orchestrator.domain.retention import Gone, Pruned, Why

_WHY = {
    Why.AGE: "older than retention.days",
    Why.SIZE: "the state folder is larger than retention.max_mb",
    Why.CUT_SHORT: "an earlier prune of it was cut short",
    Why.TREES: "finished: only worktrees and environments",
}


def size_text(count: int) -> str:
    """A number of bytes for people."""
    return f"{count / 1024 / 1024:.1f} MB"


@told
def prune_command(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go and how much it frees.")] = False,
    config: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove what is kept of finished sprints and analyses that are too old or take too much room.

    Record, report and result branch of a sprint stay, and so do the branches of stories that were not done. A sprint
    that is not finished, a backlog and your repository are never touched.

    Example: orchestrator prune --dry-run --set retention.days=30
    """
    # Imported here: it brings git, databases and locks, and --help needs none of them.
    from orchestrator.wiring.retention import prune

    settings, environment = configured(config, overrides)
    pruned = asyncio.run(prune(environment, settings, dry_run=dry_run))
    if as_json:
        print_json({**pruned.model_dump(mode="json"), "freed_bytes": pruned.freed_bytes})
        return
    for line in _lines(pruned):
        print(line)
    for name in pruned.skipped:
        why = "" if " " in name else ": somebody is at work on it"
        say(f"warning: {name} is left as it is{why}")


def _lines(pruned: Pruned) -> list[str]:
    lines = [
        f"{one.kind} {one.name}: {_WHY[one.why]}{_ended(one)}, {size_text(one.freed_bytes)}" for one in pruned.gone
    ]
    what = "would be freed" if pruned.dry_run else "freed"
    lines.append(f"about {size_text(pruned.freed_bytes)} {what}" if pruned.gone else "nothing is too old or too much")
    if pruned.over:
        lines.append("the state folder is still larger than retention.max_mb: nothing else in it is finished")
    return lines


def _ended(one: Gone) -> str:
    return f", ended {one.ended:%Y-%m-%d}" if one.ended else ""
