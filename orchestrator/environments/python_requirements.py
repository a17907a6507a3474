"""Collects a project's Python requirements as lines that are safe to pass to pip (pure: text in, values out)."""

import configparser
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from orchestrator.code.manifests.declared import is_usual
from orchestrator.code.manifests.python import logical_lines
from orchestrator.core.paths import is_manifest
from orchestrator.core.value import Value
from orchestrator.environments.interpreters import Interpreter
from orchestrator.environments.python_manifests import (
    Declared,
    Purpose,
    for_development,
    for_tests,
    is_runner,
    is_tool,
    locked_versions,
    purpose,
    read_pyproject,
    read_setup_cfg,
    specifier,
)
from orchestrator.environments.python_test_setups import EVERY, Asked, asked_by_pipelines, asked_by_tools

Read = Callable[[str], str | None]
"""Returns a file's text by its path relative to the project's root; None when no such file can be read inside it."""

_FILES = ("requirements*.txt", "*-requirements.txt", "*_requirements.txt")
_TEST_FOLDERS = ("test", "tests")
FOLDERS = ("requirements", *_TEST_FOLDERS)
"""Folders besides the root that may hold requirements files for tests."""
_ALLOWED_OPTION = re.compile(r"^--(pre|prefer-binary|require-hashes|only-binary[= ](?!\S*:none:)\S+)$")
"""Excludes options that ask for building packages, which never happens here."""
_PASSED_OVER = re.compile(r"^(--extra-index-url|-f|--find-links|--trusted-host|--no-binary|--use-feature)[= ]")
"""Options that only add package sources, or configure builds: without them the user's own sources apply.
`--index-url` and `--no-index`, in contrast, would replace those sources."""
_INDEX = re.compile(r"^(-i|--index-url|--extra-index-url)[= ]\s*(?P<where>\S+)$")
# `-e .`, `.[test]`, `file:.`: also with a blank or `=` behind the option, as pip takes them.
_OWN = re.compile(r"^((-e|--editable)[= ]?\s*)?(file:)?\./?(\[(?P<extras>[^\]]*)\])?$")
"""The project itself, which is installed anyway: `-e .`, `.[test]`."""
_ELSEWHERE = re.compile(
    r"^(?:(?:-e|--editable)[= ]?\s*)?(?P<place>(?:\.|/|[a-z][a-z0-9+]*:)[^\s\[;]*)(\[(?P<extras>[^\]]*)\])?"
)
"""Matches a requirement that is a folder, a file or an address."""
_FOLDER = re.compile(r"^(file:(?=\.))?(?P<folder>[\w.-][^:\\]*)$")
# Hashes behind a requirement, as `pip-compile --generate-hashes` writes them; `packaging` cannot parse them.
_HASHES = re.compile(r"(\s+--hash[= ]\S+)+$")
_MAX_INCLUDES = 50
"""Limit on included files: real projects have a handful."""


class Member(Value):
    """A requirement that is another project of the same repository."""

    told: str
    """Where and how it is required."""
    name: str = ""
    """Normalised name, by which the project is found when there is no `folder`."""
    folder: str = ""
    """Relative to the folder of the project that requires it."""
    extras: tuple[str, ...] = ()


class Requirements(Value):
    """The packages to install. `refusals` are sentences; if there is one, nothing may be installed."""

    lines: tuple[str, ...] = ()
    besides: tuple[str, ...] = ()
    """Those of `lines` for development and tools; one that conflicts with the others is dropped."""
    constraints: tuple[str, ...] = ()
    locked: tuple[str, ...] = ()
    """Constraints from a lock file, dropped when they conflict with the others."""
    refusals: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    """Sentences on packages left out because they do not come from a registry."""
    extras: tuple[str, ...] = ()
    """Requested extras of the project itself, normalised; `lines` includes their requirements."""
    members: tuple[Member, ...] = ()
    without: tuple[str, ...] = ()
    """Packages not installed though others need them: the project itself, whose own tree is tested."""
    requires_python: str = ""
    """The Python versions that the project supports; "" for any."""
    python: Interpreter | None = None
    """The interpreter to install for; None for ours."""
    runner: bool = True
    """True to add pytest and pip unless other packages include them."""


class Chosen(NamedTuple):
    """Configured extras and groups that replace those for tests; None: none are configured."""

    extras: Sequence[str] | None = None
    groups: Sequence[str] | None = None


def gather(
    files: Sequence[str],
    read: Read,
    setups: Mapping[str, str] | None = None,
    chosen: Chosen | None = None,
    built: Sequence[str] = (),
) -> Requirements:
    """Collects the requirements of every manifest in the project's root, and of `files` in FOLDERS.

    Includes run-time dependencies, and the groups, extras and files for tests and development, by their names; leaves
    out what no test needs (linters, stubs, documentation). `setups` are the texts of files that `SETUPS` matches; their
    installs for tests are added, those of pipelines only if nothing else names a test runner. `chosen` extras and
    groups that no manifest has become refusals, unless only the build knows them. `built` are requirements that the
    build reported.

    Leaves out addresses; a folder becomes one of `members`. Other package indexes become refusals, as do lines that
    cannot be parsed, and includes of files that `is_manifest` does not know: the contract would not see their
    requirements. In `setups` such a line is skipped, because tests mostly work without it.
    """
    collector = _Collector(read, chosen or Chosen())
    for name, reader in (("pyproject.toml", read_pyproject), ("setup.cfg", read_setup_cfg)):
        if name in files:
            collector.manifest(name, reader)
    if "setup.py" not in files:
        collector.require_chosen()
    for line in built:
        collector.require("what the build tells", line)
    development, named = _partitioned(_chosen_files(files), lambda name: purpose(name) is Purpose.DEVELOPMENT)
    for name in named:
        collector.requirements_file(name)
    firm = {*collector.lines}
    collector.develop()
    for name in development:
        collector.requirements_file(name, tools=False)
    collector.asked(asked_by_tools(setups or {}))
    pipelines = asked_by_pipelines(setups or {})
    if any(map(is_runner, collector.lines)):
        # Their extras count nevertheless: many suites skip tests when an extra is missing.
        own = [found["extras"] or "" for line in pipelines.lines if (found := _OWN.match(line))]
        extras = [*pipelines.extras, *(name for one in own for name in one.split(","))]
        pipelines = Asked(extras=tuple(name for name in extras if purpose(name) is not Purpose.OTHER))
    collector.asked(pipelines)
    lines = tuple(dict.fromkeys(collector.lines))
    return Requirements(
        lines=lines,
        besides=tuple(line for line in lines if line not in firm),
        locked=() if "--hash" in "".join(collector.lines) else locked_versions(read),
        constraints=tuple(dict.fromkeys(collector.constraints)),
        refusals=tuple(dict.fromkeys(collector.refusals)),
        left_out=tuple(dict.fromkeys(collector.left_out)),
        extras=tuple(sorted(collector.extras)),
        requires_python=next((one.python for one in collector.declared if one.python), ""),
        members=tuple(dict.fromkeys(collector.members)),
        without=(collector.name,) if collector.name else (),
    )


def _chosen_files(files: Sequence[str]) -> list[str]:
    """Returns the run-time files, and those for tests, else for development: often two outputs of one compiler."""
    named = [name for name in files if any(fnmatchcase(PurePosixPath(name).name, pattern) for pattern in _FILES)]
    root = [name for name in named if "/" not in name]
    held = [name for name in files if name.startswith("requirements/") and name.endswith(".txt")]
    held += [name for name in named if name.startswith(tuple(f"{folder}/" for folder in _TEST_FOLDERS))]
    chosen = for_tests([*root, *held]) or for_development([*root, *held])
    return sorted({*(name for name in root if purpose(name) is Purpose.UNKNOWN), *chosen})


def _partitioned(names: Iterable[str], holds: Callable[[str], bool]) -> tuple[list[str], list[str]]:
    """Returns the names for which `holds` is true, and the others."""
    held = [(name, holds(name)) for name in names]
    return [name for name, one in held if one], [name for name, one in held if not one]


class _Collector:
    def __init__(self, read: Read, chosen: Chosen) -> None:
        self.read = read
        self._chosen = chosen
        self.lines: list[str] = []
        self.constraints: list[str] = []
        self.refusals: list[str] = []
        self.left_out: list[str] = []
        self.members: list[Member] = []
        self.extras = {canonicalize_name(name) for name in chosen.extras or ()}
        self.declared: list[Declared] = []
        self._development: list[tuple[str, str]] = []
        self._seen: set[tuple[str, bool]] = set()

    @property
    def name(self) -> str:
        """The project's own name, "" when its manifests do not state it."""
        return next((one.name for one in self.declared if one.name), "")

    def refuse(self, name: str, reason: str) -> None:
        self.refusals.append(f"{name}: {reason}")

    def _elsewhere(self, name: str, line: str, place: str, package: str, extras: Iterable[str]) -> None:
        told = f"{name}: `{line[:200]}`"
        if place and not _FOLDER.match(place):
            self.left_out.append(left_out(told))
        else:
            names = tuple(sorted(canonicalize_name(one) for one in extras if one))
            member = Member(told=told, name=package, folder=place.removeprefix("file:"), extras=names)
            self.members.append(member)

    def manifest(self, name: str, reader: Callable[[str], Declared]) -> None:
        text = self.read(name)
        if text is None:
            self.refuse(name, "it cannot be read")
            return
        try:
            declared = reader(text)
            extras = _among(declared.extras, self._chosen.extras, for_tests)
            groups = _among(declared.groups, self._chosen.groups, for_tests)
            lines = [*declared.dependencies, *declared.lines(extras=extras, groups=groups)]
            extras = [] if self._chosen.extras is not None else for_development(declared.extras)
            groups = [] if self._chosen.groups is not None else for_development(declared.groups)
            self._development += [(name, one) for one in declared.lines(extras=extras, groups=groups, tools=False)]
        except (ValueError, TypeError, AttributeError, LookupError, configparser.Error) as error:
            self.refuse(name, f"it cannot be parsed ({str(error)[:200]})")
            return
        self.declared.append(declared)
        for line in lines:
            self.require(name, line, constraint=False)

    def develop(self) -> None:
        """Adds requirements that manifests have under names like `dev`."""
        for name, line in self._development:
            self.require(name, line, constraint=False)

    def require_chosen(self) -> None:
        """Refuses chosen names that no manifest has."""
        for kind, names in self._chosen._asdict().items():
            there = {one for declared in self.declared for one in getattr(declared, kind)}
            if unknown := [name for name in names or () if canonicalize_name(name) not in there]:
                self.refuse(
                    f"environment.{kind}",
                    f"no manifest has {', '.join(unknown)}; there are {', '.join(sorted(there)) or 'none'}",
                )

    def requirements_file(self, name: str, *, constraint: bool = False, tools: bool = True) -> None:
        """Adds a requirements file. Without `tools`, leaves out tools and files that no test needs."""
        if (name, constraint) in self._seen:
            return
        self._seen.add((name, constraint))
        text = self.read(name) if len(self._seen) <= _MAX_INCLUDES else None
        if text is None:
            self.refuse(name, "it cannot be read, lies outside the project or is one include too many")
            return
        for line in logical_lines(text):
            if tools or constraint or not is_tool(line):
                self._line(name, line, constraint, tools)

    def asked(self, asked: Asked) -> None:
        """Adds the installs of a tool's settings; skips lines that would be refused."""
        before = list(self.refusals), list(self.left_out), list(self.members)
        for line in asked.lines:
            self._line("", line, constraint=False, tools=True)
        every = [one for held in self.declared for one in held.extras if purpose(one) is not Purpose.OTHER]
        self._own_extras([name for name in asked.extras if name != EVERY] + (every if EVERY in asked.extras else []))
        for declared in self.declared:
            groups = [name for name in map(canonicalize_name, asked.groups) if name in declared.groups]
            with suppress(LookupError):  # an included group is missing: skipped
                for line in declared.lines(groups=groups):
                    self.require("", line, constraint=False)
        self.refusals, self.left_out, self.members = before

    def _own_extras(self, extras: Sequence[str]) -> None:
        fresh = {canonicalize_name(name.strip()) for name in extras if name.strip()} - self.extras
        self.extras |= fresh
        for declared in self.declared:
            for line in declared.lines(extras=sorted(fresh)):
                self.require("pyproject.toml", line, constraint=False)

    def _line(self, name: str, line: str, constraint: bool, tools: bool) -> None:
        included = re.match(r"^(-r|--requirement|-c|--constraint)[= ]?\s*(\S+)$", line)
        index = _INDEX.match(line)
        if included:
            self._included(name, line, included[2], constraint or included[1] in {"-c", "--constraint"}, tools)
        elif own := _OWN.match(line):
            self._own_extras((own["extras"] or "").split(","))
        elif place := _ELSEWHERE.match(line):
            self._elsewhere(name, line, place["place"], "", (place["extras"] or "").split(","))
        elif line.startswith("-"):
            if _ALLOWED_OPTION.match(line):
                self.lines.append(line)
            elif index is not None and is_usual(index["where"]):
                pass  # pip-compile writes the default index into its output
            elif _PASSED_OVER.match(line):
                self.left_out.append(left_out(f"{name}: `{line[:200]}`"))
            else:
                self.refuse(name, f"the option `{line[:200]}` is not allowed")
        else:
            self.require(name, line, constraint)

    def _included(self, name: str, line: str, included: str, only_versions: bool, tools: bool) -> None:
        path = _joined(name, included)
        if path is None:
            self.refuse(name, f"`{line[:200]}` leads out of the project")
        elif not only_versions and not is_manifest(path):
            self.refuse(name, f"`{line[:200]}` includes a file that is not named like requirements-x.txt")
        elif tools or only_versions or purpose(path) is not Purpose.OTHER:
            self.requirements_file(path, constraint=only_versions, tools=tools)

    def require(self, name: str, line: str, constraint: bool = False) -> None:
        bare = _HASHES.sub("", line).strip()
        try:
            parsed = Requirement(bare)
        except InvalidRequirement:
            self.refuse(name, f"`{line[:200]}` is no plain requirement (name, version, marker)")
            return
        package = canonicalize_name(parsed.name)
        place = next((one.places[package] for one in self.declared if package in one.places), parsed.url)
        if package in {one.name for one in self.declared}:
            self._own_extras(sorted(parsed.extras))
        elif place is not None:
            self._elsewhere(name, line, place, package, parsed.extras)
        else:
            (self.constraints if constraint else self.lines).append(line.strip())


def requirement_line(name: str, version: str) -> str:
    """Returns a requirement with a version as in package.json (`^1.2`, `~1.2`, `*`) or Python; invalid for others."""
    with suppress(ValueError, InvalidRequirement):  # neither npm's form nor Python's
        return str(Requirement(f"{name}{specifier(version.removeprefix('v'))}"))
    return name


def left_out(told: str) -> str:
    """Returns the sentence on a requirement that is not installed; `told` as in `Member`."""
    return f"{told} was left out, only packages of a registry and projects of the repository are installed"


def _among(
    declared: Collection[str], chosen: Sequence[str] | None, usual: Callable[[Iterable[str]], list[str]]
) -> list[str]:
    names = [canonicalize_name(name) for name in chosen or ()]
    return usual(declared) if chosen is None else [name for name in names if name in declared]


def _joined(including: str, included: str) -> str | None:
    """Returns the path of an included file relative to the root, or None when it is outside the root."""
    parts: list[str] = []
    if included.startswith("/") or ":" in included or "\\" in included:
        return None
    for part in (*PurePosixPath(including).parent.parts, *PurePosixPath(included).parts):
        if part == ".." and not parts:
            return None
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)
