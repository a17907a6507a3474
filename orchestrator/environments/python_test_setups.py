"""Reads how tox, nox, hatch and pipelines set up a project's tests (pure; nothing is run).

Their installs are adopted; variables and commands only go into a proposal for a person. None of these files is a
manifest that a contract closes, so the caller reads them from a commit that no story has written: see `BaseCommit`.
Ignores what cannot be parsed."""

import ast
import configparser
import itertools
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from orchestrator.code.manifests.python import logical_lines
from orchestrator.code.parsers import parse_toml, parse_yaml
from orchestrator.environments.python_manifests import Purpose, for_tests, is_tool, package_of, purpose

_PYTHON = f"py{sys.version_info.major}{sys.version_info.minor}"
_FACTORS = frozenset({"py", "py3", _PYTHON, "test", "tests"})
"""Factors of the tox environment that usually runs tests."""
_FACTOR = re.compile(r"^(?P<factors>[\w,!{}.-]+):\s+(?P<line>.*)$")
_REFERENCE = re.compile(r"\{\[(?P<section>[^\]]+)\](?P<key>\w+)\}")
RUNS_TESTS = re.compile(r"\b(pytest|py\.test|unittest|nosetests|nose2)\b")
_VALUED = frozenset(
    {"-c", "--constraint", "-i", "--index-url", "--extra-index-url", "-f", "--find-links", "-t", "--target"}
    | {"-p", "--python", "--prefix", "--only", "--only-group", "--without"}
)
"""Options of installers whose next word is not a package."""
_UV_RUN = {"--with": "line", "--extra": "extra", "--group": "group"}
"""Options of `uv run` that name packages, extras and groups."""
_MAKEFILES = ("Makefile", "GNUmakefile", "makefile", "justfile", "Justfile")
_SETTING_UP = frozenset({"install", "setup", "develop", "dev", "bootstrap", "init", "sync", "deps", "requirements"})
"""Words in the names of targets that install requirements of tests."""
_MANAGERS = frozenset({"poetry", "pdm", "hatch", "pipenv"})
_INSTALLERS = frozenset({"pip", "setuptools", "wheel", "build", "uv"}) | _MANAGERS
ERRORS = (
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    RecursionError,
    SyntaxError,
    configparser.Error,
)


EVERY = "*"
"""Stands for all extras."""
_HATCH_TEST = ("pytest", "pytest-mock", "pytest-rerunfailures", "pytest-xdist[psutil]", "coverage[toml]")
"""Default packages of hatch's test environment (https://hatch.pypa.io/latest/config/internal/testing/)."""
Said = tuple[str, str]
"""One setting of a file: a kind and its text. `line` (as in requirements files, with `-r x` and `.[extra]`), `extra`
and `group` are installed; `env` (`NAME=value`), `command` and `python` describe the setup of tests."""


class Asked(NamedTuple):
    """The packages, extras and groups to install."""

    lines: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


def asked_by_tools(texts: Mapping[str, str]) -> Asked:
    """Returns what tox, nox and hatch install for tests, without installers; `texts` by path in the project."""
    found = [one for name in _READERS if name in texts for one in said_by(name, texts[name])]
    return _asked(one for one in found if one[0] != "line" or package_of(one[1]) not in _MANAGERS)


def asked_by_pipelines(texts: Mapping[str, str]) -> Asked:
    """Returns the installs of jobs in GitHub's workflows, and of targets of make and just, that run tests."""
    found = [one for path in sorted(texts) if path not in _READERS for one in said_by(path, texts[path])]
    return _asked(one for one in found if one[0] != "line" or not is_tool(one[1]))


def _asked(said: Iterable[Said]) -> Asked:
    found = [*said]
    return Asked(*(tuple(text for one, text in found if one == kind) for kind in ("line", "extra", "group")))


def said_by(path: str, text: str) -> list[Said]:
    """Returns the settings of a file of the project."""
    read = _workflow if path.startswith(".github/workflows/") else _READERS.get(path)
    read = _makefile if path in _MAKEFILES else read
    try:
        return [*read(text)] if read is not None else []
    except ERRORS:  # an invalid file adds nothing
        return []


def variables_in(table: Any) -> Iterator[Said]:
    """Yields the settings in a table of variables."""
    for name, value in table.items() if isinstance(table, Mapping) else ():
        if isinstance(value, str | int | float):
            yield "env", f"{name}={str(value).lower() if isinstance(value, bool) else value}"


def commands_in(value: Any) -> Iterator[Said]:
    """Yields the commands of a text with one per line, of a list of texts or words, or of a table of these."""
    if isinstance(value, Mapping):
        for one in value.values():
            yield from commands_in(one)
    elif isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        yield "command", shlex.join(value)
    elif isinstance(value, str):
        lines = re.sub(r"\\\n\s*", "", value).splitlines()
        if not any(re.match(r"\s*(if|for|while|case|function)\b", line) for line in lines):
            yield from (("command", line) for line in lines if not line.lstrip().startswith("#"))


_TOX_KEYS = {"deps": "line", "extras": "extra", "dependency_groups": "group"}


def _tox_ini(text: str) -> Iterator[Said]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.read_string(text)
    for section in ("testenv", *(f"testenv:{name}" for name in sorted(_FACTORS))):
        for key, kind in _TOX_KEYS.items():
            lines = [*_tox_lines(parser, section, key)]
            yield from ((kind, one) for one in (lines if kind == "line" else _split(lines)))
        for key in ("commands_pre", "commands"):
            yield from _installs("\n".join(_tox_lines(parser, section, key)))
    for key in ("setenv", "set_env"):
        for line in _tox_lines(parser, "testenv", key):
            name, _, value = line.partition("=")
            yield "env", f"{name.strip()}={value.strip()}"
    yield from (("command", line) for line in _tox_lines(parser, "testenv", "commands_pre"))


def _tox_lines(parser: configparser.ConfigParser, section: str, key: str, depth: int = 0) -> Iterator[str]:
    """Yields the lines that apply in the plain environment, resolving references to other sections."""
    for written in logical_lines(parser.get(section, key, fallback="")):
        conditional = _FACTOR.match(written)
        if conditional and not _is_active(conditional["factors"]):
            continue
        line = conditional["line"] if conditional else written
        reference = _REFERENCE.fullmatch(line)
        if reference and depth < 5:
            yield from _tox_lines(parser, reference["section"], reference["key"], depth + 1)
        else:
            yield re.sub(r"\{(toxinidir|tox_root)\}/", "", line)


def _is_active(factors: str) -> bool:
    """Returns whether all factors are active; only plain factors are supported, not `py{311,312}-tests`."""
    return any(one in _FACTORS or (one[:1] == "!" and one[1:] not in _FACTORS) for one in factors.split(","))


def _tox_toml(data: Mapping[str, Any]) -> Iterator[Said]:
    if isinstance(legacy := data.get("legacy_tox_ini"), str):
        yield from _tox_ini(legacy)
        return
    base = data.get("env_run_base", {})
    for table in (base, *(held for name, held in data.get("env", {}).items() if name in _FACTORS)):
        for key, kind in _TOX_KEYS.items():
            yield from ((kind, re.sub(r"\{tox_root\}/", "", one)) for one in _texts(table.get(key)))
    yield from variables_in(base.get("set_env"))
    for words in base.get("commands_pre", ()):
        yield from commands_in(words)


def _hatch(data: Mapping[str, Any]) -> Iterator[Said]:
    """Reads the environment for tests; without one, the default environment without tools."""
    envs = data.get("envs", {})
    names = ["hatch-test"] if "hatch-test" in envs else for_tests(envs)
    for name in names or ["default"]:
        table = envs.get(name, {})
        own = _HATCH_TEST if name == "hatch-test" and "dependencies" not in table else ()
        lines = [*own, *_texts(table.get("dependencies")), *_texts(table.get("extra-dependencies"))]
        yield from (("line", line) for line in lines if names or not is_tool(line))
        yield from (("extra", one) for one in _texts(table.get("features")))
        yield from (("group", one) for one in _texts(table.get("dependency-groups")))
        yield from variables_in(table.get("env-vars"))
        for key in ("pre-install-commands", "post-install-commands"):
            for line in table.get(key, ()):
                yield from commands_in(line)


def _pyproject(text: str) -> Iterator[Said]:
    tool = parse_toml(text).get("tool", {})
    yield from (("group", one) for one in _texts(tool.get("uv", {}).get("default-groups")))  # what `uv sync` installs
    yield from _tox_toml(tool.get("tox", {}))
    yield from _hatch(tool.get("hatch", {}))


def _noxfile(text: str) -> Iterator[Said]:
    """Reads the session that runs tests; of several, the first one named so."""
    sessions = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and any("session" in ast.unparse(one) for one in node.decorator_list):
            commands = [_nox_command(call) for call in ast.walk(node) if isinstance(call, ast.Call)]
            if any(RUNS_TESTS.search(" ".join(words)) for words in commands if words[:2] != ["pip", "install"]):
                sessions[node.name] = (node, commands)
    named = for_tests(sessions) or [name for name in sessions if purpose(name) is not Purpose.OTHER]
    if named:
        node, commands = sessions[named[0]]
        for words in commands:
            yield from _installed_by(words)
        yield from _before_nox_tests(node)


def _nox_command(call: ast.Call) -> list[str]:
    """Returns the words of `session.install(…)` and `session.run(…)` that are literals."""
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    words = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    if method == "install":
        return ["pip", "install", *words]
    if method == "dependency_groups":  # of nox.project
        return ["uv", "sync", *(f"--group={word}" for word in words)]
    return words if method in {"run", "run_always", "run_install"} else []


def _before_nox_tests(session: ast.FunctionDef) -> Iterator[Said]:
    """Yields its variables, and the commands before the tests."""
    for statement in session.body:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]).startswith("session.env["):
            target = statement.targets[0]
            assert isinstance(target, ast.Subscript)
            with suppress(ValueError):  # not a literal
                yield "env", f"{ast.literal_eval(target.slice)}={ast.literal_eval(statement.value)}"
        if isinstance(call, ast.Call) and ast.unparse(call.func) in {"session.run", "session.run_always"}:
            words = [str(one.value) if isinstance(one, ast.Constant) else "${" for one in call.args]
            if RUNS_TESTS.search(" ".join(words)):
                return
            yield "command", shlex.join(words)


def _workflow(text: str) -> Iterator[Said]:
    """Reads the jobs that run tests; of the first one also the variables, and the commands before the tests."""
    data, first = parse_yaml(text), True
    for job in data.get("jobs", {}).values():
        steps = job.get("steps", ())
        scripts = [script if isinstance(script := step.get("run"), str) else "" for step in steps]
        if not any(map(RUNS_TESTS.search, scripts)):
            continue
        for script in scripts:
            yield from _installs(script)
        if first:
            yield from variables_in(data.get("env"))
            yield from variables_in(job.get("env"))
            yield from _before_tests(steps, scripts)
        first = False


def _before_tests(steps: Iterable[Mapping[str, Any]], scripts: Iterable[str]) -> Iterator[Said]:
    for step, script in zip(steps, scripts, strict=True):
        if RUNS_TESTS.search(script):
            yield from variables_in(step.get("env"))
            return
        folder = step.get("working-directory")
        for kind, line in commands_in(script):
            yield kind, f"cd {folder} && {line}" if folder and folder != "." else line


def _makefile(text: str) -> Iterator[Said]:
    """Reads the targets that run tests, or whose names mean testing or setup, such as `install`."""
    recipe, counts = list[str](), False
    for line in [*re.sub(r"\\\n", " ", text).splitlines(), "end:"]:
        if line[:1] in {"\t", " "}:
            recipe.append(re.sub(r"\{\{.*?\}\}", "", line.strip().lstrip("@-")))
        elif target := re.match(r"([\w.-]+)[^:=]*:(?!=)", line):
            script = "\n".join(recipe)
            if counts or RUNS_TESTS.search(script):
                yield from _installs(script)
            recipe, counts = [], bool(_SETTING_UP & {*re.split(r"[-_.]", target[1])})


def _installs(script: str) -> Iterator[Said]:
    """Yields the installs of commands without variables."""
    for line in re.split(r"\n|&&|;", re.sub(r"\\\n", " ", script)):
        if "$" not in line:
            with suppress(ValueError):  # unbalanced quotes
                yield from _installed_by(shlex.split(line, comments=True))


def _installed_by(words: Sequence[str]) -> Iterator[Said]:
    """Yields the installs of one command line of pip, `uv pip`, `uv sync`, pdm or poetry."""
    if words[:2] == ["uv", "pip"] or (words[1:3] == ["-m", "pip"] and words[0].startswith("python")):
        words = words[1 if words[0] == "uv" else 2 :]
    tool, verb, rest = (words[0] if words else ""), (words[1] if len(words) > 1 else ""), words[2:]
    if tool in {"pip", "pip3"} and verb == "install":
        yield from _pip(rest)
    elif (tool, verb) == ("uv", "sync") or (tool in {"pdm", "poetry"} and verb in {"install", "sync"}):
        yield from _pip([word for word in rest if word.startswith("-") or word in _values(rest)])
    elif (tool, verb) == ("uv", "run") and RUNS_TESTS.search(" ".join(rest)):
        told = [(before, after) for word in rest for before, _, after in [word.partition("=")] if after]
        told += itertools.pairwise(rest)
        yield from ((_UV_RUN[option], value) for option, value in told if option in _UV_RUN)
        yield from [("extra", EVERY)] if "--all-extras" in rest else []


def _values(words: Sequence[str]) -> set[str]:
    return {after for word, after in itertools.pairwise(words) if word.startswith("-")}


def _pip(words: Sequence[str]) -> Iterator[Said]:
    waiting = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
    while waiting:
        word = waiting.pop(0)
        if word in {"-r", "--requirement"} and waiting:
            yield "line", f"-r {waiting.pop(0)}"
        elif word in {"--group", "--with", "-G"} and waiting:
            yield from (("group", one) for one in waiting.pop(0).split(","))
        elif word == "--all-extras":
            yield "extra", EVERY
        elif word in {"--extra", "--extras", "-E"} and waiting:
            yield from (("extra", one) for one in waiting.pop(0).split(","))
        elif word.startswith("-G"):  # pdm's -Gtest
            yield "group", word[2:]
        elif word.startswith("-e."):
            yield "line", word
        elif word in _VALUED and waiting:
            waiting.pop(0)
        elif not word.startswith("-") and word not in _INSTALLERS:
            yield "line", word


def _split(lines: Sequence[str]) -> list[str]:
    return [word for line in lines for word in re.split(r"[,\s]+", line) if word]


def _texts(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


_READERS: Mapping[str, Callable[[str], Iterator[Said]]] = {
    "tox.ini": _tox_ini,
    "setup.cfg": _tox_ini,
    "tox.toml": lambda text: _tox_toml(parse_toml(text)),
    "pyproject.toml": _pyproject,
    "hatch.toml": lambda text: _hatch(parse_toml(text)),
    "noxfile.py": _noxfile,
}
"""Readers by file name."""
SETUPS = re.compile(rf"(^|/)({'|'.join(map(re.escape, [*_READERS, *_MAKEFILES]))}|\.github/workflows/[^/]+\.ya?ml)$")
"""Paths of the files that are read here."""
