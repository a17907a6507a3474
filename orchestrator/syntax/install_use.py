"""What one call of a package manager brings: names, and commands that it runs itself."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from orchestrator.syntax.install_names import initializer, names_of
from orchestrator.syntax.install_sources import other_sources, set_by_command
from orchestrator.syntax.install_tools import (
    BINARIES,
    FAR_ONLY,
    FILES_ONLY,
    GROUPS,
    NO_NAMES,
    NPM_LIKE,
    ONE_ONLY,
    PACKAGE_OPTIONS,
    PYTHON_LIKE,
    RUNNERS,
    SAME_AS,
    VALUED,
    VERBS,
)
from orchestrator.syntax.shell_expand import UNKNOWN, shown

_PIP = re.compile(r"^pip(3(\.\d+)?)?$")
_OPTION_VERB: Mapping[str, re.Pattern[str]] = {
    "pacman": re.compile(r"^-(S[yuw]*|U)$"),
    "nix-env": re.compile(r"^(-[a-zA-Z]*i[A-Za-z]*|--install)$"),
    "nix-shell": re.compile(r"^(-p|--packages)$"),
}
_CLUSTER = re.compile(r"^-([qvUI]+)([refitcdw].*)$")
_PACKAGE_OPTION_TOOLS = NPM_LIKE | {"uv", "uvx", "pipx", "pixi"}
_OTHER_VERBS = frozenset(
    {"run", "run-script", "test", "t", "start", "stop", "view", "show", "list", "ls", "uninstall", "remove", "version"}
    | {"publish", "build", "config", "cache", "audit", "outdated", "search", "info", "freeze", "check", "pkg", "help"}
)
_NPM_GROUPS = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies", "overrides")


class Use(NamedTuple):
    """Names that a call brings; commands and lines that it runs; whether more names may come on its input."""

    names: tuple[str, ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()
    lines: tuple[str, ...] = ()
    takes_more: bool = False


class _Sorted(NamedTuple):
    """Words of a call: those that are no options, values of options that name packages."""

    plain: list[str]
    named: list[str]
    doubtful: frozenset[int]


def tool_of(name: str) -> str:
    """The package manager that a command of this name is, by one name for its relatives; "" for another command."""
    name = "pip" if _PIP.match(name) else SAME_AS.get(name, name)
    return name if name in VERBS else ""


def use_of(tool: str, words: Sequence[str]) -> Use:
    """What `tool` brings when it is called with `words`."""
    tool, words = _settled(tool, _apart(words) if tool in PYTHON_LIKE else list(words))
    if told := set_by_command(tool, words):
        return Use(names=(told,))
    found = _sorted(tool, words)
    if tool == "npm" and found.plain[:2] == ["pkg", "set"]:
        return _package_json(words)
    if tool in _OPTION_VERB and any(_OPTION_VERB[tool].match(word) for word in words):
        return Use(_all_names(tool, found.plain), takes_more=True)
    verb, rest = _verb(tool, found)
    if (tool, verb) in RUNNERS:
        behind = words[words.index(verb) + 1 :]
        command = _behind_options(behind, VALUED[tool] | _package_options(tool))
        return Use((*_all_names(tool, found.named), *other_sources(tool, words)), (tuple(command),))
    if UNKNOWN.search(verb) and rest:
        return Use((shown(verb).lower(), *_all_names(tool, rest)))
    if verb not in VERBS[tool] or (tool in {"npx", "npm"} and not {"--no", "--no-install"}.isdisjoint(words)):
        return Use()
    return _installing(tool, verb, words, rest, found.named)


def _installing(tool: str, verb: str, words: list[str], rest: list[str], named: list[str]) -> Use:
    commands: tuple[tuple[str, ...], ...] = ()
    lines: tuple[str, ...] = ()
    if (tool, verb) in ONE_ONLY:
        lines = tuple(_called(words)) if tool in {"npx", "npm"} else ()
        commands = (tuple(rest[0 if named else 1 :]),)
        rest = [] if named else [BINARIES.get(word, word) for word in rest[:1]]
    elif (tool, verb) in FAR_ONLY:
        rest = [word for word in rest[:1] if re.search(r"^(npm|jsr):|://", word) or (tool == "go" and "@" in word)]
    elif (tool, verb) in NO_NAMES or tool in FILES_ONLY:
        rest = []
    elif verb in {"create", "init", "innit"} and tool in NPM_LIKE:
        commands, rest = (tuple(rest[1:]),), [initializer(word) for word in rest[:1]]
    elif tool == "pipx" and verb == "runpip":
        return use_of("pip", rest[1:])
    names = (*_all_names(tool, [*named, *rest]), *other_sources(tool, words))
    return Use(names, commands, lines, takes_more=True)


def _all_names(tool: str, words: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for word in words for name in names_of(tool, word) if name)


def _called(words: Sequence[str]) -> list[str]:
    """What `npx -c "…"` runs."""
    found = [word.partition("=")[2] for word in words if word.startswith("--call=")]
    return found + [words[place + 1] for place, word in enumerate(words[:-1]) if word in {"-c", "--call"}]


def _apart(words: Sequence[str]) -> list[str]:
    """`-qr file` as `-q -r file`."""
    parts = ((match, word) for word in words for match in [_CLUSTER.match(word)])
    return [part for match, word in parts for part in ((f"-{match[1]}", f"-{match[2]}") if match else (word,))]


def _settled(tool: str, words: list[str]) -> tuple[str, list[str]]:
    """`uv pip …` is pip, `uv tool run` is uvx; options stay."""
    plain = _sorted(tool, words).plain
    head = plain[:2]
    if tool == "uv" and head[:1] == ["pip"]:
        return ("pip-sync" if head[1:] == ["sync"] else "pip"), _without(words, plain[: 1 + (head[1:] == ["sync"])])
    if tool == "uv" and head[:1] == ["tool"]:
        return ("uvx", _without(words, head)) if head[1:] == ["run"] else ("pipx", _without(words, ["tool"]))
    return tool, words


def _without(words: Sequence[str], first: Sequence[str]) -> list[str]:
    """`words` without the first of each of `first`."""
    left = list(words)
    for word in first:
        left.remove(word)
    return left


def _package_options(tool: str) -> frozenset[str]:
    return PACKAGE_OPTIONS[tool in NPM_LIKE] if tool in _PACKAGE_OPTION_TOOLS else frozenset()


def _sorted(tool: str, words: Sequence[str]) -> _Sorted:
    plain: list[str] = []
    named: list[str] = []
    doubtful: set[int] = set()
    options, after_option = _package_options(tool), False
    waiting = iter(words)
    for word in waiting:
        option, has_value, value = word.partition("=")
        if not word.startswith("-") or word == "-":
            doubtful.update([len(plain)] if after_option else [])
            plain.append(word)
            after_option = False
        elif option in options:
            named += re.split(r",(?![^\[]*\])", value if has_value else next(waiting, ""))
        elif option in VALUED[tool]:
            _ = None if has_value else next(waiting, "")
        else:
            after_option = not has_value
            attached = [held for held in options if len(held) == 2 and word.startswith(held)]
            named += [word[2:] for _ in attached]
    return _Sorted(plain, named, frozenset(doubtful))


def _verb(tool: str, found: _Sorted) -> tuple[str, list[str]]:
    """The verb and what stands behind it; a word that may be the value of an unknown option is passed over."""
    words = list(enumerate(found.plain))
    if "" in VERBS[tool]:
        return "", found.plain
    while words:
        place, word = words.pop(0)
        if (tool, word) in GROUPS:
            del words[: GROUPS[tool, word]]
            continue
        known = word in VERBS[tool] or (tool, word) in RUNNERS or word in _OTHER_VERBS
        later = [other for _, other in words]
        if known or not (place in found.doubtful or (UNKNOWN.search(word) and not VERBS[tool].isdisjoint(later))):
            return word, later
    return "", []


def _behind_options(words: Sequence[str], valued: frozenset[str]) -> list[str]:
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        at += 2 if words[at] in valued else 1
    return list(words[at:])


def _package_json(words: Sequence[str]) -> Use:
    """`npm pkg set dependencies.x=1 scripts.y="…"`."""
    names: list[str] = []
    lines: list[str] = []
    for word in words:
        key, _, value = word.partition("=")
        group, _, inner = re.sub(r"\[[\"']?|[\"']?\]", ".", key).partition(".")
        inner = inner.strip(".")
        if group == "scripts":
            lines.append(_decoded(value))
        elif group in _NPM_GROUPS and inner and value:
            names += names_of("npm", f"{inner}@{_decoded(value)}")
    return Use(tuple(names), lines=tuple(lines))


def _decoded(value: str) -> str:
    try:
        held = json.loads(value)
    except ValueError:
        return value
    return held if isinstance(held, str) else value
