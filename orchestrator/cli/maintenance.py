"""`prune`, `backup` and `restore`: the state folder made smaller, as one file, and back."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich import filesize

from orchestrator.cli.common import Context, Exit, command, command_group, fail, print_json, say
from orchestrator.core.daemon import BackupHeader
from orchestrator.core.sprint import Gone, Pruned, Why
from orchestrator.settings import Settings

app = command_group()
STREAM = "-"
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


@command(app, "backup")
def backup_command(
    context: Context,
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="The file to write; -: standard output.")],
) -> int:
    """Back the state folder up into one file, also while sprints run in it.

    The file holds every prompt and reply and the key of the masks: only its owner can read it, and a daemon sends it
    only for its token. Backlogs and your repository are not in it; worktrees and environments are made again.

    Example: orchestrator backup before-the-upgrade.tar.gz
    """
    if file == STREAM and (sys.stdout.isatty() or context.as_json):
        fail("standard output is for the backup: name a file, or send it elsewhere without --json")
    done = context.sprints.backup(sys.stdout.buffer if file == STREAM else Path(file))
    if context.as_json:
        print_json(done.model_dump(mode="json"))
        return Exit.GOOD
    where = f"{done.path}: {filesize.decimal(done.size_bytes)}, " if done.path else ""
    lines = [f"{where}{done.files} files of {done.header.home}", *_sprint_lines(done.header)]
    lines.append("it holds every prompt and reply and the key of the masks: keep it as you keep those")
    for line in lines:
        say(line) if file == STREAM else print(line)
    return Exit.GOOD


@command(app, "restore", "url")
def restore_command(
    context: Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `backup` wrote.")],
    home: Annotated[Path | None, typer.Option(metavar="DIR", help="The state folder; default: the configured.")] = None,
    repo: Annotated[
        list[str] | None, typer.Option(metavar="DIR|OLD=NEW", help="The repository of its sprints; repeatable.")
    ] = None,
    backlog: Annotated[
        list[str] | None, typer.Option(metavar="FILE|OLD=NEW", help="The backlog of its sprints; repeatable.")
    ] = None,
) -> int:
    """Restore a backup into an empty state folder: it is checked first, then restored whole or not at all.

    Into another folder than it was, it needs --repo for the repositories of its sprints, and --backlog for backlogs
    that lie in none of these: no sprint writes to a path that was not given. With DATABASE_URL set, the backup's tables
    go into that database, which must hold no sprints.

    Example: orchestrator restore before-the-upgrade.tar.gz --repo ~/src/shop
    """
    from orchestrator.maintenance.restore import restore

    environment = context.environment
    if home is not None:
        environment = environment.model_copy(update={"home": home.absolute()})
    work = restore(
        environment, file, lambda warning: say(f"warning: {warning}"), repos=repo or (), backlogs=backlog or ()
    )
    done = asyncio.run(work)
    if context.as_json:
        print_json(done.model_dump(mode="json"))
        return Exit.GOOD
    print(f"{done.home}: {done.files} files of {done.header.created:%Y-%m-%d %H:%M:%S} UTC")
    for line in _sprint_lines(done.header):
        print(line)
    if any(one.going_on for one in done.header.sprints):
        print("what was asked after the backup is asked again; branches that were pushed since then are ahead of it")
    return Exit.GOOD


def _sprint_lines(header: BackupHeader) -> list[str]:
    going_on = [one.sprint for one in header.sprints if one.going_on]
    count = len(header.sprints) - len(going_on)
    lines = [f"finished sprints: {count}"]
    if going_on:
        lines.append(f"not finished: {', '.join(going_on)}; the command that began one resumes it")
    return lines
