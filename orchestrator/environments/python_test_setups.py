"""What the tools that run a project's tests install for them: tox, nox, hatch and pipelines (pure; nothing is run).

None of these files is a manifest that a contract closes, so whoever hands in their texts takes them from a commit that
no story has written: see `BaseCommit`. What cannot be understood asks for nothing."""

import ast
import configparser
import itertools
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from orchestrator.environments.python_manifests import Purpose, for_tests, is_tool, logical_lines, package_of, purpose

_PYTHON = f"py{sys.version_info.major}{sys.version_info.minor}"
_FACTORS = frozenset({"py", "py3", _PYTHON, "test", "tests"})
"""Of tox's environment in which tests are run as a rule."""
_FACTOR = re.compile(r"^(?P<factors>[\w,!{}.-]+):\s+(?P<line>.*)$")
_REFERENCE = re.compile(r"\{\[(?P<section>[^\]]+)\](?P<key>\w+)\}")
RUNS_TESTS = re.compile(r"\b(pytest|py\.test|unittest|nosetests|nose2)\b")
_VALUED = frozenset(
    {"-c", "--constraint", "-i", "--index-url", "--extra-index-url", "-f", "--find-links", "-t", "--target"}
    | {"-p", "--python", "--prefix", "--only", "--only-group", "--without"}
)
"""Options of installers whose next word is no package."""
_UV_RUN = ("--with", "--extra", "--group")
"""Options of `uv run` that name packages, extras and groups."""
_MAKEFILES = ("Makefile", "GNUmakefile", "makefile", "justfile", "Justfile")
_SETTING_UP = frozenset({"install", "setup", "develop", "dev", "bootstrap", "init", "sync", "deps", "requirements"})
"""Words in the names of targets that install what tests need."""
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
    yaml.YAMLError,
)


EVERY = "*"
"""An extra that stands for all of them."""
_HATCH_TEST = ("pytest", "pytest-mock", "pytest-rerunfailures", "pytest-xdist[psutil]", "coverage[toml]")
"""What hatch's own environment for tests has by itself (https://hatch.pypa.io/latest/config/internal/testing/)."""


@dataclass(frozen=True)
class Asked:
    """What is asked for: lines as in requirements files (`-r x` and `.[extra]` among them), and extras and groups."""

    lines: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    def __add__(self, other: "Asked") -> "Asked":
        return Asked(self.lines + other.lines, self.extras + other.extras, self.groups + other.groups)


def asked_by_tools(texts: Mapping[str, str]) -> Asked:
    """What tox, nox and hatch install for tests, less what installs it; `texts` by path in the project."""
    found = Asked()
    for name, read in _READERS.items():
        if name in texts:
            found += _understood(read, texts[name])
    lines = tuple(line for line in found.lines if package_of(line) not in _MANAGERS)
    return Asked(lines, found.extras, found.groups)


def asked_by_pipelines(texts: Mapping[str, str]) -> Asked:
    """What the jobs of GitHub's workflows and the targets of make and just install that run tests."""
    found = Asked()
    for path in sorted(texts):
        if path.startswith(".github/workflows/"):
            found += _understood(_workflow, texts[path])
        elif path in _MAKEFILES:
            found += _understood(_makefile, texts[path])
    return Asked(tuple(line for line in found.lines if not is_tool(line)), found.extras, found.groups)


def _understood(read: Any, text: str) -> Asked:
    try:
        found: Asked = read(text)
        return found
    except ERRORS:
        return Asked()


def _tox_ini(text: str) -> Asked:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.read_string(text)
    found = Asked()
    for section in ("testenv", *(f"testenv:{name}" for name in sorted(_FACTORS))):
        lines, extras, groups = (list(tox_lines(parser, section, key)) for key in _TOX_KEYS)
        found += Asked(tuple(lines), tuple(_split(extras)), tuple(_split(groups)))
        for key in ("commands_pre", "commands"):
            for words in _shell_lines("\n".join(tox_lines(parser, section, key))):
                found += _command(words)
    return found


_TOX_KEYS = ("deps", "extras", "dependency_groups")


def tox_lines(parser: configparser.ConfigParser, section: str, key: str, depth: int = 0) -> Iterator[str]:
    """The lines that hold in the plain environment, with what they refer to in other sections."""
    for written in logical_lines(parser.get(section, key, fallback="")):
        conditional = _FACTOR.match(written)
        if conditional and not _is_active(conditional["factors"]):
            continue
        line = conditional["line"] if conditional else written
        reference = _REFERENCE.fullmatch(line)
        if reference and depth < 5:
            yield from tox_lines(parser, reference["section"], reference["key"], depth + 1)
        else:
            yield re.sub(r"\{(toxinidir|tox_root)\}/", "", line)


def _is_active(factors: str) -> bool:
    """`py{311,312}-tests` is left out: only factors of one word are understood."""
    return any(one in _FACTORS or (one[:1] == "!" and one[1:] not in _FACTORS) for one in factors.split(","))


def _tox_toml(data: Mapping[str, Any]) -> Asked:
    if isinstance(legacy := data.get("legacy_tox_ini"), str):
        return _tox_ini(legacy)
    found = Asked()
    named = [held for name, held in data.get("env", {}).items() if name in _FACTORS]
    for table in (data.get("env_run_base", {}), *named):
        lines, extras, groups = (_texts(table.get(key)) for key in _TOX_KEYS)
        found += Asked(tuple(re.sub(r"\{tox_root\}/", "", line) for line in lines), tuple(extras), tuple(groups))
    return found


def _hatch(data: Mapping[str, Any]) -> Asked:
    """Of its environment for tests; of the default one where that is all there is, without tools."""
    envs = data.get("envs", {})
    names = ["hatch-test"] if "hatch-test" in envs else for_tests(envs)
    found = Asked()
    for name in names or ["default"]:
        table = envs.get(name, {})
        own = _HATCH_TEST if name == "hatch-test" and "dependencies" not in table else ()
        lines = [*own, *_texts(table.get("dependencies")), *_texts(table.get("extra-dependencies"))]
        kept = tuple(line for line in lines if names or not is_tool(line))
        found += Asked(kept, tuple(_texts(table.get("features"))), tuple(_texts(table.get("dependency-groups"))))
    return found


def _pyproject(text: str) -> Asked:
    tool = tomllib.loads(text).get("tool", {})
    usual = Asked(groups=tuple(_texts(tool.get("uv", {}).get("default-groups"))))  # what `uv sync` installs
    return usual + _tox_toml(tool.get("tox", {})) + _hatch(tool.get("hatch", {}))


def _noxfile(text: str) -> Asked:
    """Of the session that runs tests; of several, of the first that is called so."""
    sessions = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and any("session" in ast.unparse(one) for one in node.decorator_list):
            commands = [_nox_command(call) for call in ast.walk(node) if isinstance(call, ast.Call)]
            if any(RUNS_TESTS.search(" ".join(words)) for words in commands if words[:2] != ["pip", "install"]):
                sessions[node.name] = commands
    named = for_tests(sessions) or [name for name in sessions if purpose(name) is not Purpose.OTHER]
    found = Asked()
    for words in sessions[named[0]] if named else ():
        found += _command(words)
    return found


def _nox_command(call: ast.Call) -> list[str]:
    """The words of `session.install(…)` and `session.run(…)`; those that are no literals are left out."""
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    words = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    if method == "install":
        return ["pip", "install", *words]
    if method == "dependency_groups":  # of nox.project
        return ["uv", "sync", *(f"--group={word}" for word in words)]
    return words if method in {"run", "run_always", "run_install"} else []


def _workflow(text: str) -> Asked:
    found = Asked()
    for job in yaml.safe_load(text).get("jobs", {}).values():
        scripts = [step["run"] for step in job.get("steps", ()) if isinstance(step.get("run"), str)]
        if any(RUNS_TESTS.search(script) for script in scripts):
            for line in (line for script in scripts for line in _shell_lines(script)):
                found += _command(line)
    return found


def _makefile(text: str) -> Asked:
    """Of the targets that run tests or whose names are for that or for setting up, such as `install`."""
    found, recipe, counts = Asked(), list[str](), False
    for line in [*re.sub(r"\\\n", " ", text).splitlines(), "end:"]:
        if line[:1] in {"\t", " "}:
            recipe.append(re.sub(r"\{\{.*?\}\}", "", line.strip().lstrip("@-")))
        elif target := re.match(r"([\w.-]+)[^:=]*:(?!=)", line):
            script = "\n".join(recipe)
            if counts or RUNS_TESTS.search(script):
                for words in _shell_lines(script):
                    found += _command(words)
            recipe, counts = [], bool(_SETTING_UP & {*re.split(r"[-_.]", target[1])})
    return found


def _shell_lines(script: str) -> Iterator[list[str]]:
    """Commands without variables."""
    for line in re.split(r"\n|&&|;", re.sub(r"\\\n", " ", script)):
        if "$" not in line:
            try:
                yield shlex.split(line, comments=True)
            except ValueError:
                continue


def _command(words: Sequence[str]) -> Asked:
    """What one command line installs: of pip, `uv pip`, `uv sync`, pdm and poetry."""
    if words[:2] == ["uv", "pip"] or (words[1:3] == ["-m", "pip"] and words[0].startswith("python")):
        words = words[1 if words[0] == "uv" else 2 :]
    tool, verb, rest = (words[0] if words else ""), (words[1] if len(words) > 1 else ""), words[2:]
    if tool in {"pip", "pip3"} and verb == "install":
        return _pip(rest)
    if (tool, verb) == ("uv", "sync") or (tool in {"pdm", "poetry"} and verb in {"install", "sync"}):
        return _pip([word for word in rest if word.startswith("-") or word in _values(rest)])
    if (tool, verb) == ("uv", "run") and RUNS_TESTS.search(" ".join(rest)):
        told = [(before, after) for word in rest for before, _, after in [word.partition("=")] if after]
        told += itertools.pairwise(rest)
        lines, extras, groups = ([value for option, value in told if option == name] for name in _UV_RUN)
        return Asked(tuple(lines), (*extras, *([EVERY] if "--all-extras" in rest else [])), tuple(groups))
    return Asked()


def _values(words: Sequence[str]) -> set[str]:
    return {after for word, after in itertools.pairwise(words) if word.startswith("-")}


def _pip(words: Sequence[str]) -> Asked:
    lines, extras, groups = list[str](), list[str](), list[str]()
    waiting = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
    while waiting:
        word = waiting.pop(0)
        if word in {"-r", "--requirement"} and waiting:
            lines.append(f"-r {waiting.pop(0)}")
        elif word in {"--group", "--with", "-G"} and waiting:
            groups += waiting.pop(0).split(",")
        elif word == "--all-extras":
            extras.append(EVERY)
        elif word in {"--extra", "--extras", "-E"} and waiting:
            extras += waiting.pop(0).split(",")
        elif word.startswith("-G"):  # pdm's -Gtest
            groups.append(word[2:])
        elif word.startswith("-e."):
            lines.append(word)
        elif word in _VALUED and waiting:
            waiting.pop(0)
        elif not word.startswith("-") and word not in _INSTALLERS:
            lines.append(word)
    return Asked(tuple(lines), tuple(extras), tuple(groups))


def _split(lines: Sequence[str]) -> list[str]:
    return [word for line in lines for word in re.split(r"[,\s]+", line) if word]


def _texts(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


_READERS = {
    "tox.ini": _tox_ini,
    "setup.cfg": _tox_ini,
    "tox.toml": lambda text: _tox_toml(tomllib.loads(text)),
    "pyproject.toml": _pyproject,
    "hatch.toml": lambda text: _hatch(tomllib.loads(text)),
    "noxfile.py": _noxfile,
}
"""By the file's name."""
SETUPS = re.compile(rf"(^|/)({'|'.join(map(re.escape, [*_READERS, *_MAKEFILES]))}|\.github/workflows/[^/]+\.ya?ml)$")
"""Paths of the files that are read here."""
