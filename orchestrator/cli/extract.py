"""`extract`: what can be recovered from a model's text, by hand."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rapidfuzz import process

from orchestrator.answers import Extraction, extract
from orchestrator.cli.common import Exit, JsonOption, print_json, say, told
from orchestrator.errors import ConfigError
from orchestrator.settings import packaged

_CODES = {"ok": Exit.GOOD, "repaired": Exit.GOOD, "truncated": Exit.TRUNCATED, "refused": Exit.REFUSED}
_SUFFIX = ".schema.json"


@told
def extract_command(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="The model's text; - reads standard input.")],
    contract: Annotated[str | None, typer.Option(metavar="NAME", help="Stem of a schema in contracts/.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Recover the value a model's text holds, or refuse it; exit code 3 when it was cut off, 4 when refused.

    Example: orchestrator extract answer.txt --contract breakdown --json
    """
    extraction = extract(_text(file), _schema(contract) if contract is not None else None)
    if as_json:
        print_json(extraction.model_dump(mode="json"))
    else:
        _print(extraction)
    raise typer.Exit(_CODES[extraction.status])


def _text(file: str) -> str:
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return data.decode("utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file} is not UTF-8 (byte {error.start}): save it as UTF-8") from error


def _schema(name: str) -> dict[str, Any]:
    folder = packaged("contracts")
    known = sorted(path.name.removesuffix(_SUFFIX) for path in folder.glob(f"*{_SUFFIX}"))
    if name not in known:
        nearest = process.extractOne(name, known)
        raise ConfigError(f"unknown contract {name}" + (f"; did you mean {nearest[0]}?" if nearest else ""))
    schema: dict[str, Any] = json.loads((folder / f"{name}{_SUFFIX}").read_text(encoding="utf-8"))
    return schema


def _print(extraction: Extraction) -> None:
    if extraction.value is not None:
        print_json(extraction.value)
    say(f"{extraction.status} by layer {extraction.layer or '-'}, {len(extraction.repairs)} repairs")
    for repair in extraction.repairs:
        say(f"  {repair.kind} at {repair.offset}: {repair.before!r} -> {repair.after!r}")
    for problem in extraction.problems:
        say(f"  {problem}")
