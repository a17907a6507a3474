"""`extract`: the value in a model's text."""

import json
from typing import Annotated, Any

import typer

from orchestrator.answers import Extraction, Status, extract
from orchestrator.app.judge import WHOLE_KINDS, read_whole
from orchestrator.cli.common import Context, Exit, FileArgument, command, command_group, print_json, read_text, say
from orchestrator.core.errors import UnknownName
from orchestrator.core.value import suggest
from orchestrator.settings import packaged

app = command_group()
SUFFIX = ".schema.json"
EXIT_OF = {
    Status.OK: Exit.GOOD,
    Status.REPAIRED: Exit.GOOD,
    Status.TRUNCATED: Exit.TRUNCATED,
    Status.REFUSED: Exit.REFUSED,
}

ContractOption = Annotated[
    str | None,
    typer.Option("--contract", metavar="NAME", help="What the answer must fit: breakdown, delivery, suite, …"),
]


@command(app, "extract", "url", "config", "overrides")
def extract_command(context: Context, file: FileArgument, contract: ContractOption = None) -> int:
    """Extract the value from a model's answer; exit 0: whole, 3: truncated, 4: refused.

    Example: orchestrator extract reply.txt --contract breakdown --json
    """
    text = read_text(file)
    extraction = extract(text, schema_of(contract) if contract is not None else None)
    if extraction.value is None and contract in WHOLE_KINDS:
        extraction = read_whole(text) or extraction
    if context.as_json:
        print_json({"value": extraction.value} | extraction.model_dump(mode="json", exclude={"value"}), exact=True)
    else:
        _show(extraction)
    return EXIT_OF[extraction.status]


def _show(extraction: Extraction) -> None:
    """The value on stdout, how it was found on stderr."""
    if extraction.status is not Status.REFUSED:
        print_json(extraction.value, exact=True)
    kinds = sorted({repair.kind for repair in extraction.repairs})
    repairs = f", {len(extraction.repairs)} repairs ({', '.join(kinds)})" if kinds else ""
    say(f"{extraction.status} by layer {extraction.layer}{repairs}")
    for problem in extraction.problems:
        say(str(problem))


def schema_of(name: str) -> dict[str, Any]:
    """Returns what an answer of this contract must fit. Raises UnknownName naming the nearest. Blocks."""
    folder = packaged("contracts")
    known = sorted(path.name.removesuffix(SUFFIX) for path in folder.glob(f"*{SUFFIX}"))
    if name not in known:
        raise UnknownName(f"unknown contract {name}{suggest(name, known)}")
    schema: dict[str, Any] = json.loads((folder / f"{name}{SUFFIX}").read_text(encoding="utf-8"))
    return schema
