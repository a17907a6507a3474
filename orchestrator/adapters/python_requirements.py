"""Which Python distributions a project asks for, as lines that are safe to hand to pip (pure: text in, values out)."""

import configparser
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from orchestrator.adapters.poetry_requirements import poetry_lines
from orchestrator.domain.base import Value
from orchestrator.domain.file_kinds import is_manifest

Read = Callable[[str], str | None]
"""Text of a file by its path relative to the project's root; None when there is no such readable file inside it."""

TEST_GROUPS = frozenset({"test", "tests", "testing", "dev"})
"""Groups and extras that hold what tests need."""
_FILES = ("requirements*.txt", "*-requirements.txt")
_ALLOWED_OPTION = re.compile(r"^--(pre|prefer-binary|require-hashes|only-binary[= ](?!\S*:none:)\S+)$")
"""Packages are never built here, so nothing may ask for that."""
_HASHES = re.compile(r"(\s+--hash[= ]\S+)+$")
_MAX_INCLUDES = 50


class Requirements(Value):
    """What to install. `refusals` are sentences; when there is any, nothing may be installed."""

    lines: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()


def gather(root_files: Sequence[str], read: Read) -> Requirements:
    """Collect the requirements of every manifest in the project's root.

    Run-time dependencies, and the groups or extras test, tests, testing and dev. Only plain requirements are taken:
    other package indexes, URLs, paths and editable installs become refusals, as does what cannot be understood, and the
    inclusion of a file that `is_manifest` does not know: the contract would not see what it asks for.
    """
    collector = _Collector(read)
    for name in sorted(root_files):
        if any(fnmatchcase(name, pattern) for pattern in _FILES):
            collector.requirements_file(name, constraint=False)
    for name, lines_of in (("pyproject.toml", _pyproject_lines), ("setup.cfg", _setup_cfg_lines)):
        text = read(name) if name in root_files else None
        if name in root_files and text is None:
            collector.refuse(name, "it cannot be read")
        if text is not None:
            collector.manifest(name, text, lines_of)
    return Requirements(
        lines=tuple(dict.fromkeys(collector.lines)),
        constraints=tuple(dict.fromkeys(collector.constraints)),
        refusals=tuple(dict.fromkeys(collector.refusals)),
    )


class _Collector:
    def __init__(self, read: Read) -> None:
        self.read = read
        self.lines: list[str] = []
        self.constraints: list[str] = []
        self.refusals: list[str] = []
        self._seen: set[tuple[str, bool]] = set()

    def refuse(self, name: str, reason: str) -> None:
        self.refusals.append(f"{name}: {reason}")

    def manifest(self, name: str, text: str, lines_of: Callable[[str], list[str]]) -> None:
        try:
            for line in lines_of(text):
                self._requirement(name, line, constraint=False)
        except (ValueError, TypeError, AttributeError, LookupError, configparser.Error) as error:
            self.refuse(name, f"it cannot be understood ({str(error)[:200]})")

    def requirements_file(self, name: str, *, constraint: bool) -> None:
        if (name, constraint) in self._seen:
            return
        self._seen.add((name, constraint))
        text = self.read(name) if len(self._seen) <= _MAX_INCLUDES else None
        if text is None:
            self.refuse(name, "it cannot be read, lies outside the project or is one include too many")
            return
        for line in _logical_lines(text):
            self._line(name, line, constraint)

    def _line(self, name: str, line: str, constraint: bool) -> None:
        included = re.match(r"^(-r|--requirement|-c|--constraint)[= ]?\s*(\S+)$", line)
        if included:
            path = _joined(name, included[2])
            only_versions = constraint or included[1] in {"-c", "--constraint"}
            if path is None:
                self.refuse(name, f"`{line[:200]}` leads out of the project")
            elif not only_versions and not is_manifest(path):
                self.refuse(name, f"`{line[:200]}` includes a file that is not named like requirements-x.txt")
            else:
                self.requirements_file(path, constraint=only_versions)
        elif line.startswith("-"):
            if _ALLOWED_OPTION.match(line):
                self.lines.append(line)
            else:
                self.refuse(name, f"the option `{line[:200]}` is not allowed")
        else:
            self._requirement(name, line, constraint)

    def _requirement(self, name: str, line: str, constraint: bool) -> None:
        bare = _HASHES.sub("", line).strip()
        try:
            parsed = Requirement(bare)
        except InvalidRequirement:
            self.refuse(name, f"`{line[:200]}` is no plain requirement (name, version, marker)")
            return
        if parsed.url is not None:
            self.refuse(name, f"`{line[:200]}` names a URL")
            return
        (self.constraints if constraint else self.lines).append(line.strip())


def _logical_lines(text: str) -> Iterator[str]:
    """Lines as pip reads them: continued ones joined, comments and blank lines left out."""
    joined = re.sub(r"\\\r?\n", " ", text.removeprefix("\ufeff"))
    for raw in joined.splitlines():
        line = re.sub(r"(^|\s+)#.*$", "", raw).strip()
        if line:
            yield line


def _joined(including: str, included: str) -> str | None:
    """Path of an included file relative to the root, or None when it climbs out."""
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


def _pyproject_lines(text: str) -> list[str]:
    data = tomllib.loads(text)
    project: dict[str, Any] = data.get("project", {})
    lines = [
        *_texts(project.get("dependencies", [])),
        *_extras(project),
        *_dependency_groups(data.get("dependency-groups", {})),
    ]
    poetry = data.get("tool", {}).get("poetry")
    return lines + (poetry_lines(poetry, TEST_GROUPS) if poetry is not None else [])


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise TypeError("dependencies must be a list of texts")
    return value


def _extras(project: Mapping[str, Any]) -> list[str]:
    """Requirements of the extras for tests; `name[extra]` of the project itself stands for that extra's own lines."""
    extras = {canonicalize_name(name): lines for name, lines in project.get("optional-dependencies", {}).items()}
    own = canonicalize_name(str(project.get("name", "")))
    waiting, seen, found = [name for name in extras if name in TEST_GROUPS], set[str](), list[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for line in _texts(extras.get(name, [])):
            parsed = Requirement(line) if own and canonicalize_name(line[: len(own)]) == own else None
            if parsed is not None and canonicalize_name(parsed.name) == own:
                waiting += [canonicalize_name(extra) for extra in parsed.extras]
            else:
                found.append(line)
    return found


def _dependency_groups(groups: Mapping[str, Any]) -> list[str]:
    by_name = {canonicalize_name(name): entries for name, entries in groups.items()}
    waiting, seen, found = [name for name in by_name if name in TEST_GROUPS], set[str](), list[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for entry in by_name[canonicalize_name(name)]:
            if isinstance(entry, Mapping):
                waiting.append(canonicalize_name(str(entry["include-group"])))
            else:
                found += _texts([entry])
    return found


def _setup_cfg_lines(text: str) -> list[str]:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    lines = parser.get("options", "install_requires", fallback="")
    extras = parser["options.extras_require"] if parser.has_section("options.extras_require") else {}
    texts = [lines, *(value for name, value in extras.items() if name in TEST_GROUPS)]
    # `file:` points at requirements files, which are read anyway.
    return [line for text in texts for line in _logical_lines(text) if not line.startswith("file:")]
