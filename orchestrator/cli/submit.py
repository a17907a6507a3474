"""`submit`: hand a backlog to a daemon, which watches it from then on."""

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.common import ConfigOption, JsonOption, SetOption, UrlOption, configured, print_json, say, told
from orchestrator.cli.logline import safe
from orchestrator.cli.plan import tell
from orchestrator.cli.through import daemon_for
from orchestrator.domain.daemon import Submitted
from orchestrator.domain.words import counted
from orchestrator.errors import ConfigError

FORMS = {".csv": "csv", ".yaml": "yaml", ".yml": "yaml", ".json": "json"}
"""Suffix → what the daemon is told that the file is."""


@told
def submit_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The backlog: CSV, YAML or JSON.")],
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Its name there; default: the file's, without its end.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show waves, problems and calls there; nothing is handed in.")
    ] = False,
    url: UrlOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Hand a backlog to the daemon at --url (ORCHESTRATOR_URL), or to the one of the state folder.

    It is checked before anything of it counts: what is wrong is told with exit code 2, and the daemon goes on with what
    it had. A backlog of the same name is replaced; stories that are at work go on.

    Example: orchestrator submit backlog.csv --url https://daemon.example.org
    """
    environment = configured(config, overrides)[1]
    form, content = _read(file)
    daemon = daemon_for(environment, url)
    if daemon is None:
        raise ConfigError(
            f"no daemon answers for {environment.home}: start one with `orchestrator serve`, or name one with --url"
        )
    called = name if name is not None else file.stem
    if dry_run:
        raise typer.Exit(tell(daemon.dry_run(called, form, content), as_json=as_json))
    _tell_submitted(daemon.submit(called, form, content), as_json=as_json)


def _read(file: Path) -> tuple[str, bytes]:
    """What the daemon is told that the file is, and what it holds."""
    form = FORMS.get(file.suffix.lower())
    if form is None:
        raise ConfigError(f"{file} has no suffix that says what it is: use one of {', '.join(FORMS)}")
    try:
        return form, file.read_bytes()
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read {file}: {getattr(error, 'strerror', None) or error}") from error


def _tell_submitted(done: Submitted, *, as_json: bool) -> None:
    for warning in done.warnings:
        say(f"warning: {warning}" + (f"; {warning.fix}" if warning.fix else ""))
    if as_json:
        print_json(done.model_dump(mode="json"))
        return
    what = "replaces what was there" if done.replaced else "is new there"
    print(
        safe(f"backlog {done.name} with {counted(done.stories, 'story', 'stories')} {what}, and is watched from now on")
    )
