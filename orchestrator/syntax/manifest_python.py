"""Python's manifests: pyproject.toml of every tool, Pipfile, setup.cfg, setup.py and requirement files."""

import ast
import configparser
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping

from packaging.utils import canonicalize_name

from orchestrator.syntax.manifest_found import Found, table
from orchestrator.syntax.python_source import parse

BUILD_BACKENDS = frozenset(
    {"setuptools", "wheel", "hatchling", "hatch-vcs", "setuptools-scm", "flit-core", "poetry-core", "pdm-backend"}
    | {"uv-build", "pip"}
)
"""What `[build-system] requires` may name without being a dependency of the project."""
_HARMLESS_OPTIONS = ("--hash", "--no-binary", "--only-binary", "--prefer-binary", "--pre")
_INCLUDE = re.compile(r"^(?P<how>-r|--requirement|-c|--constraint)[ =]?\s*(?P<file>\S+)$")
_EDITABLE = re.compile(r"^(-e|--editable)[ =]?\s*(?P<what>.+)$")
_EGG = re.compile(r"[#&]egg=([A-Za-z0-9._-]+)")
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*")
_LOCAL = re.compile(r"^(\.$|\./|\.\[)")
_SETUP_LISTS = ("install_requires", "tests_require", "setup_requires")


def read_pyproject(text: str, folder: str) -> Found:
    """What pyproject.toml declares, for whichever tool. Raises ValueError when it is no TOML."""
    data = tomllib.loads(text)
    found = Found()
    project, tool = table(data, "project"), table(data, "tool")
    found.requirements(project.get("dependencies"), "project.dependencies")
    groups = [table(project, "optional-dependencies"), table(data, "dependency-groups")]
    groups.append(table(table(tool, "pdm"), "dev-dependencies"))
    for group, entries in (pair for held in groups for pair in held.items()):
        found.requirements(entries, group)
    for name in ("uv", "rye"):
        found.requirements(table(tool, name).get("dev-dependencies"), f"tool.{name}.dev-dependencies")
    for name, settings in table(table(tool, "hatch"), "envs").items():
        for key in ("dependencies", "extra-dependencies"):
            entries = settings.get(key) if isinstance(settings, Mapping) else None
            found.requirements(entries, f"tool.hatch.envs.{name}.{key}")
    _poetry(table(tool, "poetry"), found)
    _indexes(tool, found)
    for key, value in table(table(table(tool, "setuptools"), "dynamic"), "dependencies").items():
        for file in value if isinstance(value, list) else [value]:
            found.included(str(file), folder, key)
    backend = Found()
    backend.requirements(table(data, "build-system").get("requires"), "build-system.requires")
    found.names |= backend.names - BUILD_BACKENDS
    found.sources |= backend.sources
    found.bad += backend.bad
    for scripts in (table(project, "scripts"), table(project, "gui-scripts"), table(table(tool, "poetry"), "scripts")):
        found.scripts.update({name: "" for name in scripts})
    return found


def _poetry(poetry: Mapping[str, object], found: Found) -> None:
    tables = [table(poetry, "dependencies"), table(poetry, "dev-dependencies"), table(poetry, "requires-plugins")]
    tables += [table(group, "dependencies") for group in table(poetry, "group").values()]
    for held in tables:
        _named(held, found)


def _named(held: Mapping[str, object], found: Found) -> None:
    """A table of name = version, or name = {version, git, url, path …}."""
    for name, spec in held.items():
        if name.lower() == "python":
            continue
        plain = str(canonicalize_name(name))
        found.names.add(plain)
        for how in ("git", "url", "path", "file"):
            where = spec.get(how) if isinstance(spec, Mapping) else None
            if isinstance(where, str) and (how in {"git", "url"} or where.startswith(("/", "~", ".."))):
                found.sources.add(f"{plain} @ {where}".lower())


def _indexes(tool: Mapping[str, object], found: Found) -> None:
    """Other places that packages come from, and single packages that come from elsewhere."""
    _named(table(table(tool, "uv"), "sources"), sources := Found())
    found.sources |= sources.sources
    for name, key in (("uv", "index"), ("poetry", "source"), ("pdm", "source")):
        entries = table(tool, name).get(key)
        for entry in entries if isinstance(entries, list) else []:
            found.sources.add(f"index {entry.get('url') if isinstance(entry, Mapping) else entry}".lower())


def read_pipfile(text: str) -> Found:
    """What a Pipfile declares. Raises ValueError when it is no TOML."""
    data = tomllib.loads(text)
    found = Found()
    for key in ("packages", "dev-packages"):
        _named(table(data, key), found)
    for entry in data.get("source", []) if isinstance(data.get("source"), list) else []:
        if isinstance(entry, Mapping):
            found.sources.add(f"index {entry.get('url')}".lower())
    return found


def read_setup_cfg(text: str, folder: str) -> Found:
    """What setup.cfg declares. Raises configparser.Error when it is none."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    found = Found()
    entries = [parser.get("options", key, fallback="") for key in _SETUP_LISTS]
    if parser.has_section("options.extras_require"):
        entries += [value for _, value in parser.items("options.extras_require")]
    for entry in entries:
        for line in _setup_lines(entry):
            if line.startswith("file:"):
                for file in line.removeprefix("file:").split(","):
                    found.included(file.strip(), folder, "file:")
            else:
                found.requirement(line)
    return found


def _setup_lines(entry: str) -> Iterator[str]:
    """A list that dangles, or one line whose `;` part requirements where no marker follows it."""
    for line in (line.split(" #")[0].strip() for line in entry.splitlines()):
        if ";" in line and not re.search(r";[^;]*(==|!=|<|>|\bin\b)[^;]*['\"]", line):
            yield from (part.strip() for part in line.split(";") if part.strip())
        elif line and not line.startswith("#"):
            yield line


def read_setup_py(text: str) -> Found:
    """What setup.py hands to `setup(…)` as literals; what is computed is told as bad. Raises ValueError."""
    tree = parse(text)
    if tree is None:
        raise ValueError("it does not compile")
    found = Found()
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        for keyword in call.keywords:
            if keyword.arg in {*_SETUP_LISTS, "extras_require"}:
                _setup_value(keyword.arg, keyword.value, found)
    return found


def _setup_value(name: str, value: ast.expr, found: Found) -> None:
    try:
        held = ast.literal_eval(value)
    except (ValueError, TypeError, RecursionError):
        found.bad.append(f"`{name}` is computed, so nothing is known about what it asks for")
        return
    for entries in held.values() if isinstance(held, dict) else [held]:
        found.requirements(entries.splitlines() if isinstance(entries, str) else list(entries or ()), name)


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
