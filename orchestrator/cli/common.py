"""Shared parts of all commands: options for configuration, daemon and JSON, exit codes, output and error output."""

import inspect
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, ParamSpec, TextIO, TypeVar

import typer

from orchestrator.app.trust import load_settings
from orchestrator.core.errors import UserError
from orchestrator.core.event import Event
from orchestrator.core.secrets import redact, redacted
from orchestrator.core.value import escape_json, printable
from orchestrator.settings import Environment, Settings

HEALINGS: Mapping[str, str] = {
    "answer_healed": "healed",
    "answer_repaired_by_model": "healed",
    "breakdown_completed": "healed",
    "delivery_completed": "healed",
    "plan_mended": "healed",
    "answer_sent_back": "sent back",
    "answer_given_up": "given up",
    "call_retried": "retried",
    "failure_analysed": "analysed",
    "service_away": "waits",
    "model_switched": "switched",
}
"""Event name → the word that tells a healing in the plain output."""


def safe(text: str) -> str:
    """Returns a foreign text for people: without secrets and control sequences of terminals."""
    return printable(redact(text))


def cut(text: str, most: int = 100) -> str:
    """Returns the first line of a foreign text, not longer than `most` characters."""
    line = text.split("\n", 1)[0]
    return line if len(line) <= most else f"{line[:most]}…"


def plain_line(event: Event) -> str:
    """Returns the event for people: time, story, what happened, with its healing named."""
    healing = HEALINGS.get(event.name)
    story = event.story or event.sprint
    text = cut(safe(event.message), 400)
    return f"{event.time:%H:%M:%S}  {story:<10}  {f'[{healing}] ' if healing else ''}{text}"


if TYPE_CHECKING:
    from orchestrator.client.daemon import Daemon
    from orchestrator.client.local import LocalFolder

P = ParamSpec("P")
R = TypeVar("R")


def command_group(**more: Any) -> typer.Typer:
    """Returns an empty group for the commands of a module."""
    return typer.Typer(add_completion=False, pretty_exceptions_enable=False, **more)


class Exit(IntEnum):
    """Exit codes of the process."""

    GOOD = 0
    NOT_DONE = 1
    USAGE = 2
    TRUNCATED = 3
    REFUSED = 4
    FULL = 75
    INTERRUPTED = 130


ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Configuration, merged over defaults; default: ./config.yaml."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="A.B=VALUE", help="Set one setting; VALUE is YAML; repeatable."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else on stdout.")]
SprintOption = Annotated[str | None, typer.Option("--sprint", metavar="ID", help="The sprint; default: the latest.")]
UrlOption = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="Use this daemon; default: ORCHESTRATOR_URL; here: the state folder.",
    ),
]


FileArgument = Annotated[str, typer.Argument(metavar="FILE|-", help="The text; - reads standard input.")]
GateOption = Annotated[
    int | None,
    typer.Option("--gate", metavar="N", min=0, max=2**31, help="Only if this is still the open question."),
]


@dataclass(frozen=True)
class Context:
    """The first parameter of every command."""

    config: Path | None = None
    overrides: tuple[str, ...] = ()
    url: str | None = None
    as_json: bool = False

    @cached_property
    def _loaded(self) -> tuple[Settings, Environment]:
        return load_settings(self.config, self.overrides)

    @property
    def settings(self) -> Settings:
        """The settings of this command. Raises ConfigError."""
        return self._loaded[0]

    @property
    def environment(self) -> Environment:
        """The environment of this command. Raises ConfigError."""
        return self._loaded[1]

    @cached_property
    def sprints(self) -> "Daemon | LocalFolder":
        """The daemon that carries the command out, or the state folder; see `client.discovery.connect`."""
        from orchestrator.client.discovery import connect

        return connect(self.environment, self.settings, self.url)

    @property
    def daemon(self) -> "Daemon | None":
        """The daemon that is named, for commands about the place where they are given. Raises ConfigError."""
        from orchestrator.client.discovery import connect_named

        return connect_named(self.environment, self.url)


# Option → its type and its default, in the order of --help.
_SHARED: dict[str, tuple[Any, Any]] = {
    "url": (UrlOption, None),
    "config": (ConfigOption, None),
    "overrides": (SetOption, None),
    "as_json": (JsonOption, False),
}


def command(
    app: typer.Typer, name: str, *without: str
) -> Callable[[Callable[..., int | None]], Callable[..., int | None]]:
    """Registers a function as a command that has the shared options, less those in `without`.

    The function gets a Context before its own options and returns the exit code, None for 0. An error that its user
    can mend becomes one message on stderr and exit code 2.
    """

    def register(function: Callable[..., int | None]) -> Callable[..., int | None]:
        shared = {option: given for option, given in _SHARED.items() if option not in without}

        @wraps(function)
        def run(**given: Any) -> None:
            chosen = {option: given.pop(option) for option in shared}
            context = Context(**{**chosen, "overrides": tuple(chosen.get("overrides") or ())})
            raise typer.Exit(report_errors(function)(context, **given) or Exit.GOOD)

        keyword = inspect.Parameter.KEYWORD_ONLY
        own = [one.replace(kind=keyword) for one in list(inspect.signature(function).parameters.values())[1:]]
        # Typer reads options from the signature, so that the shared ones are added there.
        more = [
            inspect.Parameter(option, keyword, default=default, annotation=kind)
            for option, (kind, default) in shared.items()
        ]
        run.__signature__ = inspect.Signature([*own, *more])  # type: ignore[attr-defined]  # what typer makes options of
        app.command(name)(run)
        return function

    return register


def say(message: str) -> None:
    """Prints one line for people on stderr, if it is read at all; what it quotes is made safe."""
    try:
        print(safe(message), file=sys.stderr, flush=True)
    except BrokenPipeError:
        silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """Discards what is still written to a closed pipe, at exit too."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def print_json(value: Any, *, exact: bool = False) -> None:
    """Prints one JSON document on stdout, without what looks like a secret unless it has to be `exact`."""
    text = json.dumps(value if exact else redacted(value), indent=2, ensure_ascii=False)
    print(escape_json(text), flush=True)


def fail(message: str, code: Exit = Exit.USAGE) -> NoReturn:
    """Ends with a message on stderr."""
    say(f"error: {message}")
    raise typer.Exit(code)


def report_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Decorates a command: user errors become one message on stderr and exit code 2, without a traceback."""

    @wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except UserError as error:
            fail(explain(error))

    return wrapped


def explain(error: UserError) -> str:
    """Returns the message, with the findings that it does not hold already, one per line."""
    lines = [error.message]
    for finding in error.findings:
        if finding.message not in error.message:
            lines.append(f"  {finding}" + (f"; {finding.fix}" if finding.fix else ""))
    return "\n".join(lines)


def find_own_command() -> str:
    """Returns how a shell here starts this program: by its name, or by its path where PATH does not lead to it."""
    own, found = Path(sys.executable).with_name("orchestrator"), shutil.which("orchestrator")
    leads = found is not None and Path(found).resolve() == own.resolve()
    return "orchestrator" if leads or not own.exists() else shlex.quote(str(own))


def split_names(given: str | None) -> tuple[str, ...]:
    """Returns the names that an option holds, separated by commas."""
    return tuple(name.strip() for name in (given or "").split(",") if name.strip())


def read_text(file: str) -> str:
    """Returns the file's text, or standard input's for `-`; ends with exit code 2 when it cannot be read."""
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except (OSError, ValueError) as error:
        fail(f"cannot read {file}: {getattr(error, 'strerror', None) or error}")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        fail(f"{file} is not UTF-8 (byte {error.start})")
