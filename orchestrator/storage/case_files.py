"""Cases as folders: text.txt, contract.json, extraction.json, source.json in a folder per case."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from orchestrator.core.case import Case, CaseSource, CaseWritten, Seen
from orchestrator.core.errors import ConfigError
from orchestrator.files.atomic_file import replace_folder

V = TypeVar("V", bound=BaseModel)
TEXT, CONTRACT, EXTRACTION, SOURCE = "text.txt", "contract.json", "extraction.json", "source.json"
FILES = (TEXT, CONTRACT, EXTRACTION, SOURCE)


def write_case(folder: Path, case: Case, extraction: Mapping[str, Any], *, replace: bool = False) -> CaseWritten:
    """Keep a case in `folder`. Another one of its name stays unless `replace`. Raises ConfigError for the disk."""
    files = {
        TEXT: case.text.encode("utf-8", "surrogatepass"),
        CONTRACT: _dump(case.contract),
        EXTRACTION: _dump(extraction),
        SOURCE: _dump(case.source.model_dump(mode="json")),
    }
    place = folder / case.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = place.exists()
        if there and all(_bytes(place / name) == content for name, content in files.items()):
            return CaseWritten.UNCHANGED
        if there and not replace:
            return CaseWritten.KEPT
        replace_folder(place, files.items())
    except OSError as error:
        raise ConfigError(f"cannot write the case {place}: {error.strerror or error}") from error
    return CaseWritten.REPLACED if there else CaseWritten.WRITTEN


def read_cases(folder: Path) -> Iterator[Case]:
    """Yields the cases of a folder by name. Raises ConfigError for a damaged file or no cases."""
    try:
        entries = sorted(entry for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    except OSError as error:
        raise ConfigError(f"cannot read {folder}: {error.strerror}") from error
    places = [entry for entry in entries if any((entry / name).exists() for name in FILES)]
    if not places:
        raise ConfigError(f"{folder} holds no case; `orchestrator answers export {folder}` writes some")
    for place in places:
        yield _case(place)


def _case(place: Path) -> Case:
    contract = _json(place / CONTRACT)
    if contract is not None and not isinstance(contract, dict):
        raise ConfigError(f"{place / CONTRACT} is damaged: a contract is an object or null")
    return Case.model_construct(
        name=place.name,
        text=_text(place / TEXT),
        contract=contract,
        seen=_value(Seen, place / EXTRACTION),
        source=_value(CaseSource, place / SOURCE),
    )


def _value(kind: type[V], path: Path) -> V:
    try:
        return kind.model_validate(_json(path))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "it"
        raise ConfigError(f"{path} is damaged: {where}: {first['msg']}") from error


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "surrogatepass")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is damaged: it is no UTF-8 (byte {error.start})") from error


def _json(path: Path) -> Any:
    try:
        return json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is damaged: {error}") from error


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _dump(value: Any) -> bytes:
    # ASCII, because a model's text may hold half a surrogate pair.
    return f"{json.dumps(value, indent=1)}\n".encode()
