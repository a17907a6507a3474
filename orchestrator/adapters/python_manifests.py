"""What pyproject.toml and setup.cfg say that a project needs, by extras and groups (pure: text in, values out)."""

import configparser
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from orchestrator.adapters.poetry_requirements import poetry_extras, poetry_groups, specifier
from orchestrator.adapters.python_test_names import Purpose, is_tool, purpose


@dataclass(frozen=True, kw_only=True)
class Include:
    """`{include-group = "name"}` in a group."""

    group: str


Entries = Sequence[str | Include]


@dataclass(frozen=True, kw_only=True)
class Declared:
    """The requirements of one manifest; names of extras and groups are normalised."""

    name: str = ""
    """The project's own, normalised, under which its lists may name its extras (`name[extra]`)."""
    dependencies: Sequence[str] = ()
    extras: Mapping[str, Entries] = field(default_factory=dict)
    groups: Mapping[str, Entries] = field(default_factory=dict)
    python: str = ""
    """Which versions of Python it is for (`requires-python`)."""
    places: Mapping[str, str] = field(default_factory=dict)
    """Where requirements come from that are in no registry, by name: a folder, an address, "" for the workspace."""

    def lines(self, *, extras: Iterable[str] = (), groups: Iterable[str] = (), tools: bool = True) -> list[str]:
        """What these extras and groups ask for, and those they name; without `tools`, none that no test needs.

        Raises LookupError when one that is included is not there.
        """
        seen = set[tuple[str, str]]()
        waiting = [*(("group", canonicalize_name(one)) for one in groups), *(("extra", one) for one in extras)]
        found: list[str] = []
        while waiting:
            kind, name = waiting.pop(0)
            if (kind, name) in seen:
                continue
            seen.add((kind, name))
            for entry in self.groups[name] if kind == "group" else self.extras.get(canonicalize_name(name), ()):
                named = [("group", canonicalize_name(entry.group))] if isinstance(entry, Include) else self._own(entry)
                waiting += [one for one in named if tools or purpose(one[1]) is not Purpose.OTHER]
                if not named and isinstance(entry, str) and (tools or not is_tool(entry)):
                    found.append(entry)
        return found

    def _own(self, line: str) -> list[tuple[str, str]]:
        if not self.name or not canonicalize_name(line).startswith(self.name):
            return []
        try:
            parsed = Requirement(line)
        except InvalidRequirement:
            return []
        return [("extra", one) for one in parsed.extras] if canonicalize_name(parsed.name) == self.name else []


def read_pyproject(text: str) -> Declared:
    """Of the standard's tables, and of poetry's, pdm's and uv's. Raises ValueError, TypeError, AttributeError."""
    data = tomllib.loads(text)
    project: dict[str, Any] = data.get("project", {})
    tool = data.get("tool", {})
    poetry = tool.get("poetry", {})
    groups = _named(data.get("dependency-groups", {}))
    older = (_pdm(tool.get("pdm", {})), poetry_groups(poetry), {"dev": tool.get("uv", {}).get("dev-dependencies", [])})
    for held in older:
        for name, lines in _named(held).items():
            groups[name] = [*groups.get(name, ()), *lines]
    main = groups.pop("", ())
    return Declared(
        name=canonicalize_name(str(project.get("name") or poetry.get("name") or "")),
        dependencies=[*_texts(project.get("dependencies", [])), *(one for one in main if isinstance(one, str))],
        extras=_named(project.get("optional-dependencies", {})) | _named(poetry_extras(poetry)),
        groups=groups,
        python=str(project.get("requires-python") or _poetry_python(poetry)),
        places=_places(tool.get("uv", {}).get("sources", {})),
    )


def read_setup_cfg(text: str) -> Declared:
    """Raises configparser.Error."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    extras = parser["options.extras_require"] if parser.has_section("options.extras_require") else {}
    return Declared(
        name=canonicalize_name(parser.get("metadata", "name", fallback="")),
        dependencies=_cfg_lines(parser.get("options", "install_requires", fallback="")),
        extras={canonicalize_name(name): _cfg_lines(value) for name, value in extras.items()},
        python=parser.get("options", "python_requires", fallback=""),
    )


def logical_lines(text: str) -> Iterator[str]:
    """Lines as pip reads them: continued ones joined, comments and blank lines left out."""
    joined = re.sub(r"\\\r?\n", " ", text.removeprefix("\ufeff"))
    for raw in joined.splitlines():
        line = re.sub(r"(^|\s+)#.*$", "", raw).strip()
        if line:
            yield line


def _poetry_python(poetry: Mapping[str, Any]) -> str:
    """Its versions as a specifier; "" for alternatives (`^3.8 || ^4.0`), of which ours may be any."""
    told = poetry.get("dependencies", {}).get("python", "")
    return specifier(told) if isinstance(told, str) and "|" not in told else ""


def _places(sources: Mapping[str, Any]) -> dict[str, str]:
    """Of several places for one name, which differ by markers, the first. Indexes are no places."""
    found: dict[str, str] = {}
    for name, value in sources.items():
        source = value[0] if isinstance(value, list) else value
        if source.get("workspace"):
            found[canonicalize_name(name)] = ""
        elif place := next((source[key] for key in ("path", "git", "url") if key in source), ""):
            found[canonicalize_name(name)] = str(place)
    return found


def _cfg_lines(value: str) -> list[str]:
    # `file:` points at requirements files, which are read anyway.
    return [line for line in logical_lines(value) if not line.startswith("file:")]


def _named(held: Mapping[str, Any]) -> dict[str, Entries]:
    return {canonicalize_name(name): _entries(entries) for name, entries in held.items()}


def _entries(value: Any) -> Entries:
    if not isinstance(value, list):
        raise TypeError("dependencies must be a list of texts")
    return [Include(group=str(one["include-group"])) if isinstance(one, Mapping) else _texts([one])[0] for one in value]


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise TypeError("dependencies must be a list of texts")
    return value


def _pdm(pdm: Mapping[str, Any]) -> dict[str, list[str]]:
    """Without `-e file:///${PROJECT_ROOT}/…`, which are folders of the repository."""
    held = pdm.get("dev-dependencies", {})
    return {name: [line for line in lines if not line.startswith("-e")] for name, lines in held.items()}
