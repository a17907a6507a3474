"""Options, exit codes and error output that every command shares."""

import json
import os
import sys
from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, NoReturn, ParamSpec, TextIO, TypeVar

import typer

from orchestrator.cli.logline import safe
from orchestrator.domain.redaction import redacted
from orchestrator.errors import UserError
from orchestrator.settings import Environment, Settings, load

P = ParamSpec("P")
R = TypeVar("R")


class Exit(IntEnum):
    """What the process tells its caller."""

    GOOD = 0
    NOT_DONE = 1
    USAGE = 2
    TRUNCATED = 3
    REFUSED = 4
    INTERRUPTED = 130


ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Configuration; else ./config.yaml; merged over defaults."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="A.B=VALUE", help="Set one name; VALUE is YAML; repeatable."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")]
SprintOption = Annotated[str | None, typer.Option("--sprint", metavar="ID", help="The sprint; default: the latest.")]
UrlOption = Annotated[
    str | None,
    typer.Option(
        "--url", metavar="URL", help="Ask this daemon; default: ORCHESTRATOR_URL, else one alive here; here: none."
    ),
]


def configured(config: Path | None, overrides: Sequence[str] | None) -> tuple[Settings, Environment]:
    """Settings and environment of this command. Raises ConfigError."""
    return load(config, overrides or ())


def say(message: str) -> None:
    """One line for people, on stderr, when somebody reads it; what it quotes is made safe."""
    try:
        print(safe(message), file=sys.stderr, flush=True)
    except BrokenPipeError:
        silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """Let what is still written to a closed pipe, at exit too, go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def print_json(value: Any, *, exact: bool = False) -> None:
    """One JSON document on stdout, without what looks like a secret unless it has to be `exact`."""
    print(json.dumps(value if exact else redacted(value), indent=2, ensure_ascii=False), flush=True)


def fail(message: str, code: Exit = Exit.USAGE) -> NoReturn:
    """End with a message on stderr."""
    say(f"error: {message}")
    raise typer.Exit(code)


def told(command: Callable[P, R]) -> Callable[P, R]:
    """A command whose user errors become one message on stderr and exit code 2, without a traceback."""

    @wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except UserError as error:
            fail(explain(error))

    return wrapped


def explain(error: UserError) -> str:
    """The message, with the findings that it does not hold already, one per line."""
    lines = [error.message]
    for finding in error.findings:
        if finding.message not in error.message:
            lines.append(f"  {finding}" + (f"; {finding.fix}" if finding.fix else ""))
    return "\n".join(lines)
