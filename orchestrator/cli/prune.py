"""`prune`: what is too old or too much is given up."""

import asyncio
from collections.abc import Sequence
from typing import Annotated

import typer

from orchestrator.cli.common import ConfigOption, JsonOption, SetOption, UrlOption, configured, print_json, say, told
from orchestrator.cli.through import daemon_for
from orchestrator.domain.retention import Gone, Pruned, Why
from orchestrator.settings import Settings

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
    url: UrlOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove what is kept of finished sprints and analyses that are too old or take too much room.

    Record, report and result branch of a sprint stay, and so do the branches of stories that were not done. A sprint
    that is not finished, a backlog and your repository are never touched. A daemon goes by its own settings, and by
    what is given with --set retention.days and --set retention.max_mb.

    Example: orchestrator prune --dry-run --set retention.days=30
    """
    # Imported here: it brings git, databases and locks, and --help needs none of them.
    from orchestrator.wiring.retention import prune

    settings, environment = configured(config, overrides)
    daemon = daemon_for(environment, url)
    if daemon is not None:
        pruned = daemon.prune(_limits(settings, overrides or ()), dry_run=dry_run)
    else:
        pruned = asyncio.run(prune(environment, settings, dry_run=dry_run))
    if as_json:
        print_json(pruned.model_dump(mode="json"))
        return
    for line in _lines(pruned):
        print(line)
    for name in pruned.skipped:
        why = "" if " " in name else ": somebody is at work on it"
        say(f"warning: {name} is left as it is{why}")


def _limits(settings: Settings, overrides: Sequence[str]) -> dict[str, float | None]:
    """What the command line says of how much is kept."""
    named = {text.partition("=")[0].strip() for text in overrides}
    kept = settings.retention
    limits = {"days": kept.days, "max_mb": kept.max_mb}
    return {name: limit for name, limit in limits.items() if named & {"retention", f"retention.{name}"}}


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
