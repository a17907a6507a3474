"""`init`: a configuration and a backlog to start with."""

import asyncio
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.common import Context, Exit, command, command_group, find_own_command, print_json, safe
from orchestrator.settings import process_variables

app = command_group()


@command(app, "init", "url", "config", "overrides")
def init_command(
    context: Context,
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="An empty or new folder, or a repository.")] = Path(),
) -> int:
    """Write a commented config.yaml, an example backlog.csv and a scripted team that builds it.

    In a repository, configuration and backlog are proposed from its files.

    Nothing is overwritten. Setup commands found in the repository are used only if you agree, otherwise commented out.

    Example: orchestrator init my-project
    """
    # Imported here: --help needs no parser of other people's sources.
    from orchestrator.app.init import start

    # A question needs a person at both ends of it.
    asked = None if context.as_json or not sys.stdin.isatty() else _take
    started = asyncio.run(start(folder, process_variables(), asked))
    move = "" if folder == Path() else f"cd {shlex.quote(str(folder))} && "
    next_command = f"{move}{find_own_command()} run backlog.csv --dry-run"
    if context.as_json:
        written = [str(path) for path in started.written]
        found, keys = list(started.found), started.keys
        print_json({"written": written, "files": started.files, "found": found, "keys": keys, "next": next_command})
        return Exit.GOOD
    if started.files:
        print(f"read {started.files} files{': ' if started.found else ''}{', '.join(started.found)}")
    for path in started.written:
        print(f"wrote {path}")
    if started.files:
        print("the backlog has one row, the foundation: correct it and add your stories")
        print("before you run it, name a model in config.yaml (provider)")
    else:
        print("the example runs without a model: its team is scripted (team.jsonl)")
    for provider, variable in started.keys.items():
        print(f"{variable} is set: a real model needs only the lines `name: {provider}` and `model:` in config.yaml")
    print(f"next: {next_command}")
    return Exit.GOOD


@command(app, "trust", "url", "config", "overrides")
def trust_command(
    context: Context,
    file: Annotated[Path, typer.Argument(metavar="[FILE]", help="The configuration.")] = Path("config.yaml"),
) -> int:
    """Trust a configuration that a repository brought, as long as its content stays the same.

    Settings that git tracks decide where keys are sent and what runs on this machine: they count only once they are
    trusted. What the file sets is printed. The trust is kept in the home folder, by the SHA-256 of the content.

    Example: orchestrator trust config.yaml
    """
    from orchestrator.app.trust import give_trust
    from orchestrator.settings import named_settings

    digest, named = give_trust(file, process_variables()), named_settings(file)
    if context.as_json:
        print_json({"file": str(file), "sha256": digest, "sets": named})
        return Exit.GOOD
    for name, value in named.items():
        print(safe(f"  {name}: {json.dumps(value, ensure_ascii=False)}"))
    print(f"{file} is trusted with the settings above, until it changes")
    return Exit.GOOD


def _take(commands: Sequence[str]) -> bool:
    print("the repository's files set it up with:", *(f"  {command}" for command in commands), sep="\n")
    return typer.confirm("Run these once per base commit, confined (environment.setup)?", default=False)
