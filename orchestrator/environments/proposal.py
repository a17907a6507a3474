"""The `environment:` section that `init` proposes, from files in which a project's people say how it is set up (pure).

What these files install for tests is taken anyway (`python_test_setups`); here is the rest: variables, the interpreter,
and commands, which are proposed and never taken over without a person's word."""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

from orchestrator.code.data import without_comments
from orchestrator.code.parsers import parse_json
from orchestrator.core.value import Value
from orchestrator.environments.python_manifests import is_tool
from orchestrator.environments.python_test_setups import (
    ERRORS,
    RUNS_TESTS,
    SETUPS,
    Said,
    commands_in,
    said_by,
    variables_in,
)
from orchestrator.settings.sections import system_packages

_DEVCONTAINERS = ("devcontainer.json", ".devcontainer.json")
_DEVCONTAINER_COMMANDS = ("onCreateCommand", "updateContentCommand", "postCreateCommand")
_OTHERS = re.compile(r"^(PATH|HOME|TMPDIR|CI|FORCE_COLOR|PY_COLORS)$|^(PIP|UV|TOX|NOX|COVERAGE|CODECOV|GITHUB|RUNNER)_")
"""Variables that belong to the tools, or that every command gets."""
_TOOLS = re.compile(
    r"^(?:python\d?\s+-m\s+)?(pip3?|uv|poetry|pdm|hatch|pipenv|conda|tox|nox|pre-commit|coverage|codecov|build|twine|git|"
    r"echo|cat|ls|set|export|env|source|\.|if|for|while|case|fi|done|else)(?:\s|$)"
)
"""Prefixes of commands that install packages, which happens anyway, or that tests do not need."""
_OPEN = re.compile(r"\$\{|GITHUB_|[{}]")
"""Matches a placeholder that only the tool can fill in."""
_FOLDER = re.compile(r"^cd \S+ && ")
_PYTHON_IMAGE = re.compile(r"\bpython:(?:\d+-)?(3\.\d+)")


class Line(NamedTuple):
    """One line of a file: `NAME=value` of a variable, a command, or a version of Python."""

    text: str
    source: str
    """`path:line`."""


class Proposal(Value):
    """The settings found in the files."""

    python: Line | None = None
    env: tuple[Line, ...] = ()
    commands: tuple[Line, ...] = ()
    system: tuple[Line, ...] = ()
    """System packages that this machine needs."""


def is_read(path: str) -> bool:
    """Returns whether a file with this path in the repository is read for the proposal."""
    name = PurePosixPath(path).name
    own = "/" not in path or path.startswith((".github/workflows/", ".devcontainer/"))
    return (
        own and path.isprintable() and (SETUPS.search(path) is not None or name in {*_DEVCONTAINERS, ".python-version"})
    )


def propose(texts: Mapping[str, str]) -> Proposal:
    """Returns a proposal from texts by path. Ignores what cannot be parsed."""
    found: dict[str, dict[str, Line]] = {"python": {}, "env": {}, "command": {}, "system": {}}
    for path in sorted(texts, key=lambda path: path.startswith(".github/")):  # local files take precedence over CI
        for kind, text in _read(path, texts[path]):
            line = _kept(kind, text.strip().removeprefix("- ").strip()) if kind in found else None
            if line is not None:
                kind, text = line
                key = text.partition("=")[0] if kind == "env" else text
                found[kind].setdefault(key, Line(text, _place(path, texts[path], text, kind)))
    python, env, commands, system = (tuple(lines.values()) for lines in found.values())
    return Proposal(python=next(iter(python), None), env=env, commands=commands, system=system)


def section(found: Proposal, installed: Collection[str], *, take: bool) -> str:
    """Returns the text to append to config.yaml, "" for nothing; without `take`, commands are commented out.

    `installed` are the versions of Python on this machine.
    """
    live, aside = list[str](), list[str]()
    if found.python is not None:
        there = any(f"{version}.".startswith(f"{found.python.text}.") for version in installed)
        note = "" if there else "; not installed here"
        (live if there else aside).append(f'  python: "{found.python.text}"  # {found.python.source}{note}')
    for number, line in enumerate(found.env):
        name, _, value = line.text.partition("=")
        live += ["  env:"] * (number == 0) + [f"    {name}: {_quoted(value)}  # {line.source}"]
    if found.commands:
        listed = ["  setup:", *(f"    - {_quoted(line.text)}  # {line.source}" for line in found.commands)]
        (live if take else aside).extend(listed)
    needed = [f"# This machine must have: {line.text}  # {line.source}" for line in found.system]
    if not live and not aside and not needed:
        return ""
    head = ["", "# How the repository's files set the project up. What they install for tests is taken anyway."]
    if aside and found.commands and not take:
        head.append(
            "# Look at the commands before you take out their marks: they run once on the base commit, confined."
        )
    begin = ["environment:"] if live else ["#environment:"] if aside else []
    return "\n".join([*head, *begin, *live, *(f"#{line}" for line in aside), *needed, ""])


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _kept(kind: str, text: str) -> tuple[str, str] | None:
    if kind == "python":
        return (kind, text) if re.fullmatch(r"3\.\d+(\.\d+)?", text) else None
    if not text.isprintable() or not text or _OPEN.search(text):
        return None
    if kind == "env":
        name = text.partition("=")[0]
        return (kind, text) if re.fullmatch(r"[A-Za-z_]\w*", name) and not _OTHERS.match(name) else None
    if (named := system_packages(text)) is not None:
        return ("system", named) if named else None
    first = _FOLDER.sub("", text)
    if RUNS_TESTS.search(text) or _TOOLS.match(first) or is_tool(first.split()[0]):
        return None
    return kind, text


def _place(path: str, text: str, said: str, kind: str) -> str:
    """Returns its place: the first line with its words."""
    words = said.partition("=")[0] if kind == "env" else _FOLDER.sub("", said)
    wanted = re.compile(r"\W+".join(map(re.escape, words.split())))
    number = next((number for number, line in enumerate(text.splitlines(), 1) if wanted.search(line)), None)
    return path if number is None else f"{path}:{number}"


def _read(path: str, text: str) -> list[Said]:
    name = PurePosixPath(path).name
    if name in _DEVCONTAINERS:
        try:
            return [*_devcontainer(text)]
        except ERRORS:  # an invalid file proposes nothing
            return []
    return [("python", line) for line in text.splitlines()[:1]] if name == ".python-version" else said_by(path, text)


def _devcontainer(text: str) -> Iterator[Said]:
    data = parse_json(without_comments(text))
    for table in ("containerEnv", "remoteEnv"):
        yield from variables_in(data.get(table))
    for key in _DEVCONTAINER_COMMANDS:
        yield from commands_in(data.get(key))
    versions = [str(one.get("version")) for name, one in data.get("features", {}).items() if "/python" in name]
    if image := _PYTHON_IMAGE.search(str(data.get("image", ""))):
        versions.append(image[1])
    yield from (("python", version) for version in versions)
