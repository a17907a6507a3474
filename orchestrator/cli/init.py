"""`init`: a configuration and a backlog to start with."""

import asyncio
import json
import shlex
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

    In a repository the backlog has no rows: add your stories, and name a model in config.yaml. Nothing is overwritten.

    Example: orchestrator init my-project
    """
    # Imported here: --help needs none of it.
    from orchestrator.app.init import start

    written = asyncio.run(start(folder, process_variables()))
    move = "" if folder == Path() else f"cd {shlex.quote(str(folder))} && "
    next_command = f"{move}{find_own_command()} run backlog.csv --dry-run"
    if context.as_json:
        print_json({"written": [str(path) for path in written], "next": next_command})
        return Exit.GOOD
    for path in written:
        print(f"wrote {path}")
    if any(path.name == "team.jsonl" for path in written):
        print("the example runs without a model: its team is scripted (team.jsonl)")
    else:
        print("add your stories to backlog.csv, and name a model in config.yaml (provider)")
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
