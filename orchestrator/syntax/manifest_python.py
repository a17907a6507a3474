"""Requirement files, Pipfile and conda's environments: what they ask for."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping

import yaml
from packaging.utils import canonicalize_name

from orchestrator.syntax.manifest_found import Found, table
from orchestrator.syntax.manifest_pyproject import named, read_pixi
from orchestrator.syntax.python_index import is_usual

_HARMLESS_OPTIONS = ("--hash", "--no-binary", "--only-binary", "--prefer-binary", "--pre", "--no-index")
_INCLUDE = re.compile(r"^(?P<how>-r|--requirement|-c|--constraint)[ =]?\s*(?P<file>\S+)$")
_EDITABLE = re.compile(r"^(-e|--editable)[ =]?\s*(?P<what>.+)$")
_EGG = re.compile(r"[#&]egg=([A-Za-z0-9._-]+)")
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*")
_LOCAL = re.compile(r"^(\.$|\./|\.\[)")
_INDEX = re.compile(r"^(-i|--index-url|--extra-index-url|--find-links|-f)[ =]\s*(?P<where>\S+)$")
_CONDA_NAME = re.compile(r"^((?P<channel>[^\s:]+)::)?(?P<name>[A-Za-z0-9_][\w.-]*)")
_MAX_YAML = 200_000


def read_pipfile(text: str) -> Found:
    """What a Pipfile declares. Raises ValueError when it is no TOML."""
    data = tomllib.loads(text)
    found = Found()
    for key, held in data.items():
        if key in {"source", "requires", "scripts", "pipenv"} or not isinstance(held, Mapping):
            continue
        named(held, found)
    for entry in data.get("source", []) if isinstance(data.get("source"), list) else []:
        where = entry.get("url") if isinstance(entry, Mapping) else entry
        if not is_usual(str(where)):
            found.sources.add(f"index {where}".lower())
    found.scripts.update({name: str(line) for name, line in table(data, "scripts").items()})
    return found


def read_pixi_toml(text: str) -> Found:
    """What pixi.toml declares. Raises ValueError when it is no TOML."""
    found = Found()
    read_pixi(tomllib.loads(text), found)
    return found


def read_environment(text: str, folder: str) -> Found:
    """What a conda environment declares. Raises ValueError when it cannot be read."""
    data = _yaml(text)
    found = Found()
    entries = data.get("dependencies")
    if entries is not None and not isinstance(entries, list):
        raise ValueError("its dependencies are no list")
    for entry in entries or ():
        if isinstance(entry, Mapping):
            for line in _plain(entry.get("pip"), found):
                _requirement_line(line, folder, found)
        else:
            for spec in _plain([entry], found):
                _conda(spec, found)
    for channel in _plain(data.get("channels"), found):
        found.channel(channel)
    return found


def _yaml(text: str) -> Mapping[str, object]:
    """The mapping that a YAML text holds, an empty one for anything else."""
    if len(text) > _MAX_YAML:
        raise ValueError("it is too long")
    try:
        data = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())[:200]) from error
    return data if isinstance(data, Mapping) else {}


def _plain(entries: object, found: Found) -> Iterator[str]:
    """The texts of a list; what is none is told."""
    for entry in entries if isinstance(entries, list) else [] if entries is None else [entries]:
        if isinstance(entry, str):
            yield entry.strip()
        else:
            found.bad.append("an entry is no text")


def _conda(entry: str, found: Found) -> None:
    match = _CONDA_NAME.match(entry)
    if match is None or "://" in entry:
        found.names.add(entry.lower())
        return
    if match["channel"]:
        found.channel(match["channel"])
    if match["name"].lower() not in {"python", "pip"}:
        found.names.add(str(canonicalize_name(match["name"])))


def read_requirements(text: str, folder: str) -> Found:
    """What a requirement file declares."""
    found = Found()
    for line in _logical_lines(text.splitlines()):
        _requirement_line(line, folder, found)
    return found


def _logical_lines(lines: Iterable[str]) -> Iterator[str]:
    held = ""
    for line in lines:
        if line.rstrip().endswith("\\") and not line.lstrip().startswith("#"):
            held += line.rstrip()[:-1] + " "
            continue
        yield re.sub(r"(^|\s)#.*$", "", held + line).strip()
        held = ""
    yield held.strip()


def _requirement_line(line: str, folder: str, found: Found) -> None:
    include = _INCLUDE.match(line)
    if include and include["how"] in {"-r", "--requirement"}:
        found.included(include["file"], folder, "-r")
        return
    if include and "://" not in include["file"] and not include["file"].startswith(("/", "~", "..")):
        return
    if not line or line.startswith(_HARMLESS_OPTIONS) or line == "--require-hashes":
        return
    index = _INDEX.match(line)
    if index and is_usual(index["where"]):
        return
    editable = _EDITABLE.match(line)
    what = editable["what"].strip() if editable else re.split(r"\s--", line)[0].strip()
    if line.startswith("-") and not editable:
        found.names.add(line.lower())
    elif egg := _EGG.search(what):
        name = str(canonicalize_name(egg[1]))
        found.names.add(name)
        found.sources.add(f"{name} @ {what}".lower())
    elif not _LOCAL.match(what):
        if "://" in what.split(" @ ")[0] or not _NAME.match(what):
            found.names.add(what.lower())
        else:
            found.requirement(what)
