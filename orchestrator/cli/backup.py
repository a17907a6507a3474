"""`backup` and `restore`: the state folder as one file, and back."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.common import (
    ConfigOption,
    JsonOption,
    SetOption,
    UrlOption,
    configured,
    fail,
    print_json,
    say,
    told,
)
from orchestrator.cli.through import daemon_for
from orchestrator.domain.backup import BackupHeader

STREAM = "-"


@told
def backup_command(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="The file to write; -: standard output.")],
    url: UrlOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write everything that a state folder cannot get again into one file, also while sprints run in it.

    The file holds every prompt and reply and the key of the masks: it is for its owner alone, and a daemon hands it to
    nobody without its token. Backlogs and your repository are not in it; worktrees and environments are made again.

    Example: orchestrator backup before-the-upgrade.tar.gz
    """
    # Imported here: it brings git and databases, and --help needs none of them.
    from orchestrator.wiring.backup import backed_up

    _, environment = configured(config, overrides)
    if file == STREAM and (sys.stdout.isatty() or as_json):
        fail("standard output is for the backup: name a file, or send it elsewhere without --json")
    target = sys.stdout.buffer if file == STREAM else Path(file)
    done = backed_up(environment, target, daemon_for(environment, url))
    if as_json:
        print_json(done.model_dump(mode="json"))
        return
    where = f"{done.path}: {done.size_bytes / 1024 / 1024:.1f} MB, " if done.path else ""
    lines = [f"{where}{done.files} files of {done.header.home}", *_told(done.header)]
    lines.append("it holds every prompt and reply and the key of the masks: keep it as you keep those")
    for line in lines:
        say(line) if file == STREAM else print(line)


@told
def restore_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `backup` wrote.")],
    home: Annotated[Path | None, typer.Option(metavar="DIR", help="The state folder; default: the configured.")] = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a backup the state folder, which must be empty: checked first, then whole or not at all.

    With DATABASE_URL set, the backup's tables go into that database, which must hold no sprints.

    Example: orchestrator restore before-the-upgrade.tar.gz
    """
    from orchestrator.wiring.restore import restore

    _, environment = configured(config, overrides)
    if home is not None:
        environment = environment.model_copy(update={"home": home.absolute()})
    done = asyncio.run(restore(environment, file, lambda warning: say(f"warning: {warning}")))
    if as_json:
        print_json(done.model_dump(mode="json"))
        return
    print(f"{done.home}: {done.files} files of {done.header.created:%Y-%m-%d %H:%M:%S} UTC")
    for line in _told(done.header):
        print(line)
    if any(one.going_on for one in done.header.sprints):
        print("what was asked after the backup is asked again; branches that were pushed since then are ahead of it")


def _told(header: BackupHeader) -> list[str]:
    going_on = [one.sprint for one in header.sprints if one.going_on]
    count = len(header.sprints) - len(going_on)
    lines = [f"finished sprints: {count}"]
    if going_on:
        lines.append(f"not finished: {', '.join(going_on)}; the command that began one goes on with it")
    return lines
