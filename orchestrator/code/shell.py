"""The steps of a chain of shell commands, and what files set for test runners."""

import configparser
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from posixpath import basename, splitext

from orchestrator.code.parsers import parse_json, parse_toml

_COMPOUND = re.compile(
    r"(?:^|[;&|(])\s*(?:if|then|else|elif|fi|for|while|until|do|done|case|esac|function|select|\{|\}|\[\[)(?=[\s;]|$)"
    r"|\(\s*\)|<<|(?<![&>|])&(?![&>])",
    re.MULTILINE,
)
"""What makes a text more than a chain: compound commands, functions, here documents, jobs in the background."""
_INSTALL = re.compile(
    r"(?:npm[ \t]+(?:install|i|ci|clean-install)|pnpm[ \t]+(?:install|i)|yarn(?:[ \t]+install)?)"
    r"(?:[ \t]+--?(?!g\b|global\b|prefix\b|dir\b|cwd\b)[\w-]+(?:=[\w./-]+)?)*"
)
"""No name of a package: those are read, and asked about, before the command is run."""


def steps(command: str) -> tuple[str, ...]:
    """The steps of a chain of `&&`, `;` and lines, each as it is written; the whole command where it is no plain chain.

    A list with `||` in it is one step. Quotes, comments, substitutions and line continuations are known.
    """
    if _COMPOUND.search(_bare(command)):
        return (command.strip(),)
    found: list[str] = []
    for line in _split(command, ("\n", ";")):
        parts = _split(line, ("&&",))
        found += [line] if len(_split(line, ("||",))) > 1 else parts
    kept = tuple(_joined(step.strip()) for step in found if _bare(step).strip())
    return kept or (command.strip(),)


def _joined(step: str) -> str:
    """Returns the step without the backslash that continued its line."""
    slashes = len(step) - len(step.rstrip("\\"))
    return step[:-1].rstrip() if slashes % 2 else step


def packages_ready(step: str) -> str:
    """Returns the step, or a message in place of a Node manager's installation of package.json.

    Packages are set up before a command runs, and lie in the worktree read-only: npm would fail to write them again.
    """
    return "echo 'the packages of package.json are installed'" if _INSTALL.fullmatch(step.strip()) else step


def script(command: str, token: str, *, at_root: bool = True) -> str:
    """A script for `sh -c` that runs the steps up to the first that fails, and then tells `token` and its number.

    `at_root`: it starts where the packages of package.json were set up.
    """
    told = f'trap \'_rc=$?; [ "$_rc" -eq 0 ] || printf "\\n%s %s\\n" {token} "$_step" >&2\' EXIT'
    known = steps(command)
    at_root = at_root and not any(step.startswith(("cd ", "pushd ")) for step in known)
    shown = [packages_ready(step) if at_root else step for step in known]
    lines = [line for number, step in enumerate(shown) for line in (f"_step={number}", step)]
    return "\n".join(["set -e", told, *lines]) + "\n"


def failed_step(command: str, token: str, output: str) -> tuple[str, str]:
    """The step that a script of `script` told to have failed, "" when it told none, and the output without that."""
    told = re.search(rf"\n?^{re.escape(token)} (\d+)\n?", output, re.MULTILINE)
    if told is None:
        return "", output
    known = steps(command)
    number = int(told[1])
    return (known[number] if number < len(known) else ""), output[: told.start()] + output[told.end() :]


def _bare(text: str) -> str:
    """Returns the text without what stands in quotes and comments."""
    return "".join(char for char, quoted in _marked(text) if not quoted)


def _split(text: str, signs: tuple[str, ...]) -> list[str]:
    """Returns the parts of a text between signs that stand in no quotes, comments or brackets."""
    parts, start, at, depth = [], 0, 0, 0
    quoted = [mark for _, mark in _marked(text)]
    while at < len(text):
        if not quoted[at]:
            depth += (text[at] == "(") - (text[at] == ")")
            sign = next((sign for sign in signs if depth == 0 and text.startswith(sign, at)), None)
            if sign is not None:
                parts.append(text[start:at])
                at = start = at + len(sign)
                continue
        at += 1
    return [*parts, text[start:]]


# What is no command: escapes, quotes (also open ones), comments at the start of a word.
_QUOTED = re.compile(r"\\.|'[^']*'?|\"(?:[^\"\\]|\\.)*\"?|`[^`]*`?|(?:(?<=\s)|(?<![^;&|(]))#[^\n]*", re.DOTALL)


def _marked(text: str) -> list[tuple[str, bool]]:
    """Each character, and whether it stands in quotes, behind a backslash or in a comment."""
    marks = [False] * len(text)
    for found in _QUOTED.finditer(text):
        marks[found.start() : found.end()] = [True] * (found.end() - found.start())
    return list(zip(text, marks, strict=True))


_CUSTOMIZE = frozenset({"sitecustomize.py", "usercustomize.py"})
_HARMLESS = frozenset(
    {"pythonpath", "minversion", "markers", "filterwarnings", "console_output_style", "asyncio_mode"}
    | {"anyio_mode", "timeout", "xfail_strict"}
    | {"asyncio_default_fixture_loop_scope", "asyncio_default_test_loop_scope", "log_cli", "log_level", "log_cli_level"}
)
"""Settings that neither choose tests nor load anything."""
# How much is shown, and checks of the settings themselves.
_HARMLESS_OPTION = re.compile(
    r"^(-q+|-v+|-l|-r[A-Za-z]+|--showlocals|--strict-(markers|config)|--(tb|color|durations|import-mode)=\w+)$"
)


def runner_settings(path: str, text: str) -> Mapping[str, str]:
    """Setting → value of what a file says of test runners, harmless settings left out. Never raises.

    That is the pytest section of a pyproject.toml or setup.cfg, what a build installs for every interpreter or test run
    (`pytest11`, `.pth`), and the sections of Node's runners in a package.json. Of `addopts` only the options that are
    not harmless count. A text that cannot be read has none. A module that every interpreter imports as it starts, the
    tester's too, is one setting as a whole.
    """
    if basename(path).lower() in _CUSTOMIZE and text.strip():
        return {splitext(basename(path))[0]: text}
    if basename(path).lower() == "package.json":
        return _node_settings(text)
    reader = {"pyproject.toml": _from_toml, "setup.cfg": _from_ini}.get(basename(path).lower())
    try:
        section = dict(reader(text)) if reader else {}
    except (ValueError, TypeError, AttributeError, RecursionError, configparser.Error):
        return {}
    options = " ".join(_options(section.pop("addopts", "")))
    found = {name: _plain(value) for name, value in section.items() if name not in _HARMLESS}
    return found | ({"addopts": options} if options else {}) | _built_in(basename(path).lower(), text)


_BUILD_FILE = re.compile(r"setup\.(py|cfg)|manifest\.in|meson\.build|entry_points\.txt|\w*(build|backend)\w*\.py")
_BUILT_IN = re.compile(r"pytest11|\.pth\b")


def _built_in(name: str, text: str) -> dict[str, str]:
    """Plugins of pytest and `.pth` files that the texts of a build name."""
    if name == "pyproject.toml":
        try:
            return dict(_built_in_toml(parse_toml(text.removeprefix("\ufeff")), ""))
        except (ValueError, RecursionError):
            return {}
    builds = _BUILD_FILE.fullmatch(name) or (name.endswith(".py") and "build_wheel" in text)
    lines = [line.strip() for line in text.splitlines()] if builds else []
    # The plugins of a section stand below its name.
    named = [" ".join(lines[at : at + 3]) for at, line in enumerate(lines) if _BUILT_IN.search(line)]
    return {"pytest11 or .pth": "\n".join(named)} if named else {}


def _built_in_toml(value: object, place: str) -> Iterator[tuple[str, str]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, entry in entries:
        inner = f"{place}.{name}".lstrip(".")
        if _BUILT_IN.search(str(name)):
            yield inner, _plain(entry)
        else:
            yield from _built_in_toml(entry, inner)
    if isinstance(value, str) and _BUILT_IN.search(value):
        yield place, value


_NODE_RUNNERS = ("jest", "vitest", "mocha", "ava", "jasmine", "tap", "babel")
_HARMLESS_NODE = re.compile(
    r"testTimeout|timeout|slow|verbose|bail|fail(-?[fF]ast)?|maxWorkers|maxConcurrency|concurrency|workerThreads|exit"
    r"|colors?|displayName|(clear|reset|restore)Mocks|recursive|check-?[lL]eaks|globals|notify\w*|errorOnDeprecated"
    r"|(collectC|c)overage(?!Provider)\w*|moduleFileExtensions|\$schema"
)
_OF_PACKAGES = frozenset({"preset", "presets", "testEnvironment", "transform"})
"""Settings that usually name a package, for which the contract has rules of its own."""


def _node_settings(text: str) -> Mapping[str, str]:
    try:
        held = parse_json(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return {}
    sections = {one: held.get(one) for one in _NODE_RUNNERS} if isinstance(held, dict) else {}
    found: dict[str, str] = {}
    for section, settings in sections.items():
        named = settings if isinstance(settings, dict) else {"": settings}
        for name, value in named.items():
            told = json.dumps(value, sort_keys=True)
            is_package = name in _OF_PACKAGES and not re.search(r'"(?!\^|\\)(\.|/|[^"]*<rootDir>)', told)
            if value not in (None, [], {}) and not is_package and not _HARMLESS_NODE.fullmatch(name):
                found[f"{section}.{name}".rstrip(".")] = told
    return found


def _from_toml(text: str) -> Mapping[str, object]:
    section = dict(parse_toml(text.removeprefix("\ufeff")).get("tool", {}).get("pytest", {}))
    return section | dict(section.pop("ini_options", {}))


def _from_ini(text: str) -> Mapping[str, object]:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text.removeprefix("\ufeff"))
    return dict(parser["tool:pytest"]) if parser.has_section("tool:pytest") else {}


def _options(value: object) -> Iterator[str]:
    words = [str(word) for word in value] if isinstance(value, list) else shlex.split(str(value))
    yield from (word for word in words if not _HARMLESS_OPTION.match(word))


def _plain(value: object) -> str:
    return " ".join(str(entry) for entry in value) if isinstance(value, list) else " ".join(str(value).split())
