"""`extract`: the value inside a model's text, or why there is none."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from orchestrator.answers import Extraction, Status, extract
from orchestrator.cli.common import Exit, JsonOption, fail, print_json, say
from orchestrator.errors import UnknownName
from orchestrator.wiring.schemas import schema_of

EXIT_OF = {
    Status.OK: Exit.GOOD,
    Status.REPAIRED: Exit.GOOD,
    Status.TRUNCATED: Exit.TRUNCATED,
    Status.REFUSED: Exit.REFUSED,
}

FileArgument = Annotated[str, typer.Argument(metavar="FILE|-", help="The text; - reads standard input.")]
ContractOption = Annotated[
    str | None,
    typer.Option("--contract", metavar="NAME", help="What the answer must fit: breakdown, delivery, suite, …"),
]


def extract_command(file: FileArgument, contract: ContractOption = None, as_json: JsonOption = False) -> None:
    """Print the value in a model's answer; exit 0 whole, 3 truncated, 4 refused.

    Example: orchestrator extract reply.txt --contract breakdown --json
    """
    extraction = extract(text_of(file), _schema_of(contract) if contract is not None else None)
    if as_json:
        print_json({"value": extraction.value} | extraction.model_dump(mode="json", exclude={"value"}), exact=True)
    else:
        _show(extraction)
    raise typer.Exit(EXIT_OF[extraction.status])


def text_of(file: str) -> str:
    """The file's text, or standard input's for `-`; ends with exit code 2 when it cannot be read."""
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except (OSError, ValueError) as error:
        fail(f"cannot read {file}: {getattr(error, 'strerror', None) or error}")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        fail(f"{file} is not UTF-8 (byte {error.start})")


def _schema_of(name: str) -> dict[str, Any]:
    try:
        return schema_of(name)
    except UnknownName as error:
        fail(error.message)


def _show(extraction: Extraction) -> None:
    """The value on stdout, how it was found on stderr."""
    if extraction.status is not Status.REFUSED:
        print_json(extraction.value, exact=True)
    kinds = sorted({repair.kind for repair in extraction.repairs})
    repairs = f", {len(extraction.repairs)} repairs ({', '.join(kinds)})" if kinds else ""
    say(f"{extraction.status} by layer {extraction.layer}{repairs}")
    for problem in extraction.problems:
        say(str(problem))
