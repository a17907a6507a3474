"""The `environment:` section that `init` proposes, from files in which a project's people say how it is set up (pure).

What these files install for tests is taken anyway (`python_test_setups`); here is the rest: variables, the interpreter,
and commands, which are proposed and never taken over without a person's word."""

import ast
import configparser
import json
import re
import shlex
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import yaml

from orchestrator.code.data import without_comments
from orchestrator.core.value import Value
from orchestrator.environments.python_manifests import for_tests, is_tool
from orchestrator.environments.python_test_setups import ERRORS, RUNS_TESTS, SETUPS, tox_lines
from orchestrator.settings.sections import system_packages

_DEVCONTAINERS = ("devcontainer.json", ".devcontainer.json")
_DEVCONTAINER_COMMANDS = ("onCreateCommand", "updateContentCommand", "postCreateCommand")
_OTHERS = re.compile(r"^(PATH|HOME|TMPDIR|CI|FORCE_COLOR|PY_COLORS)$|^(PIP|UV|TOX|NOX|COVERAGE|CODECOV|GITHUB|RUNNER)_")
"""Variables that are the tools' own, or each command's."""
_TOOLS = re.compile(
    r"^(?:python\d?\s+-m\s+)?(pip3?|uv|poetry|pdm|hatch|pipenv|conda|tox|nox|pre-commit|coverage|codecov|build|twine|git|"
    r"echo|cat|ls|set|export|env|source|\.|if|for|while|case|fi|done|else)(?:\s|$)"
)
"""How commands begin that install packages, which is done anyway, or do nothing for tests."""
_OPEN = re.compile(r"\$\{|GITHUB_|[{}]")
"""Names something that only the tool knows which runs it."""
_FOLDER = re.compile(r"^cd \S+ && ")
_PYTHON_IMAGE = re.compile(r"\bpython:(?:\d+-)?(3\.\d+)")


class Line(NamedTuple):
    """What one line of a file says: `NAME=value` of a variable, a command, or a version of Python."""

    text: str
    source: str
    """`path:line`."""


class Proposal(Value):
    """What the files say."""

    python: Line | None = None
    env: tuple[Line, ...] = ()
    commands: tuple[Line, ...] = ()
    system: tuple[Line, ...] = ()
    """Packages that this machine must have."""


def is_read(path: str) -> bool:
    """Whether a file with this path in the repository may say something."""
    name = PurePosixPath(path).name
    own = "/" not in path or path.startswith((".github/workflows/", ".devcontainer/"))
    return (
        own and path.isprintable() and (SETUPS.search(path) is not None or name in {*_DEVCONTAINERS, ".python-version"})
    )


def propose(texts: Mapping[str, str]) -> Proposal:
    """From texts by their paths. What cannot be understood says nothing."""
    found: dict[str, dict[str, Line]] = {"python": {}, "env": {}, "command": {}, "system": {}}
    for path in sorted(texts, key=lambda path: path.startswith(".github/")):  # people's own words count more than CI's
        for kind, text in _read(path, texts[path]):
            line = _kept(kind, text.strip().removeprefix("- ").strip())
            if line is not None:
                kind, text = line
                key = text.partition("=")[0] if kind == "env" else text
                found[kind].setdefault(key, Line(text, _place(path, texts[path], text, kind)))
    python, env, commands, system = (tuple(lines.values()) for lines in found.values())
    return Proposal(python=next(iter(python), None), env=env, commands=commands, system=system)


def section(found: Proposal, installed: Collection[str], *, take: bool) -> str:
    """The text for the end of config.yaml, "" for nothing; without `take`, commands stand in comments.

    `installed` are the versions of Python here.
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
    """Where it stands: the first line with its words."""
    words = said.partition("=")[0] if kind == "env" else _FOLDER.sub("", said)
    wanted = re.compile(r"\W+".join(map(re.escape, words.split())))
    number = next((number for number, line in enumerate(text.splitlines(), 1) if wanted.search(line)), None)
    return path if number is None else f"{path}:{number}"


def _read(path: str, text: str) -> list[tuple[str, str]]:
    name = PurePosixPath(path).name
    read = _workflow if path.startswith(".github/workflows/") else _READERS.get(name)
    try:
        return [] if read is None else list(read(text))
    except ERRORS:
        return []


def _variables(table: Any) -> Iterator[tuple[str, str]]:
    for name, value in table.items() if isinstance(table, Mapping) else ():
        if isinstance(value, str | int | float):
            yield "env", f"{name}={str(value).lower() if isinstance(value, bool) else value}"


def _commands(value: Any) -> Iterator[tuple[str, str]]:
    """Of a text with a command per line, of a list of texts or of words, and of a table of these."""
    if isinstance(value, Mapping):
        for one in value.values():
            yield from _commands(one)
    elif isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        yield "command", shlex.join(value)
    elif isinstance(value, str):
        lines = re.sub(r"\\\n\s*", "", value).splitlines()
        if not any(re.match(r"\s*(if|for|while|case|function)\b", line) for line in lines):
            yield from (("command", line) for line in lines if not line.lstrip().startswith("#"))


def _tox_ini(text: str) -> Iterator[tuple[str, str]]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.read_string(text)
    for key in ("setenv", "set_env"):
        for line in tox_lines(parser, "testenv", key):
            name, _, value = line.partition("=")
            yield "env", f"{name.strip()}={value.strip()}"
    yield from (("command", line) for line in tox_lines(parser, "testenv", "commands_pre"))


def _tox_toml(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    base = data.get("env_run_base", {})
    yield from _variables(base.get("set_env"))
    for words in base.get("commands_pre", ()):
        yield from _commands(words)


def _hatch(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    envs = data.get("envs", {})
    for name in for_tests(envs) or ["default"]:
        table = envs.get(name, {})
        yield from _variables(table.get("env-vars"))
        for key in ("pre-install-commands", "post-install-commands"):
            for line in table.get(key, ()):
                yield from _commands(line)


def _pyproject(text: str) -> Iterator[tuple[str, str]]:
    tool = tomllib.loads(text).get("tool", {})
    yield from _tox_toml(tool.get("tox", {}))
    yield from _hatch(tool.get("hatch", {}))


def _noxfile(text: str) -> Iterator[tuple[str, str]]:
    """Of the first session that runs tests: what it runs before them, and its variables."""
    for node in ast.parse(text).body:
        if not isinstance(node, ast.FunctionDef) or not RUNS_TESTS.search(ast.unparse(node)):
            continue
        for statement in node.body:
            call = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]).startswith("session.env["):
                target = statement.targets[0]
                assert isinstance(target, ast.Subscript)
                yield "env", f"{ast.literal_eval(target.slice)}={ast.literal_eval(statement.value)}"
            if isinstance(call, ast.Call) and ast.unparse(call.func) in {"session.run", "session.run_always"}:
                words = [ast.literal_eval(one) if isinstance(one, ast.Constant) else "${" for one in call.args]
                if RUNS_TESTS.search(" ".join(words)):
                    return
                yield "command", shlex.join(words)


def _workflow(text: str) -> Iterator[tuple[str, str]]:
    """Of the first job that runs tests: its variables, and what is run before them."""
    data = yaml.safe_load(text)
    for job in data.get("jobs", {}).values():
        steps = job.get("steps", ())
        scripts = [script if isinstance(script := step.get("run"), str) else "" for step in steps]
        if not any(map(RUNS_TESTS.search, scripts)):
            continue
        yield from _variables(data.get("env"))
        yield from _variables(job.get("env"))
        for step, script in zip(steps, scripts, strict=True):
            if RUNS_TESTS.search(script):
                yield from _variables(step.get("env"))
                return
            folder = step.get("working-directory")
            for kind, line in _commands(script):
                yield kind, f"cd {folder} && {line}" if folder and folder != "." else line


def _devcontainer(text: str) -> Iterator[tuple[str, str]]:
    data = json.loads(without_comments(text))
    for table in ("containerEnv", "remoteEnv"):
        yield from _variables(data.get(table))
    for key in _DEVCONTAINER_COMMANDS:
        yield from _commands(data.get(key))
    versions = [str(one.get("version")) for name, one in data.get("features", {}).items() if "/python" in name]
    if image := _PYTHON_IMAGE.search(str(data.get("image", ""))):
        versions.append(image[1])
    yield from (("python", version) for version in versions)


_READERS: Mapping[str, Callable[[str], Iterator[tuple[str, str]]]] = {
    "tox.ini": _tox_ini,
    "setup.cfg": _tox_ini,
    "tox.toml": lambda text: _tox_toml(tomllib.loads(text)),
    "pyproject.toml": _pyproject,
    "hatch.toml": lambda text: _hatch(tomllib.loads(text)),
    "noxfile.py": _noxfile,
    ".python-version": lambda text: (("python", line) for line in text.splitlines()[:1]),
    **dict.fromkeys(_DEVCONTAINERS, _devcontainer),
}
