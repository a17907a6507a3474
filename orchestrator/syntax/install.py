"""Which packages a shell command line would install."""

import re
from collections.abc import Iterator, Sequence
from posixpath import normpath

from packaging.utils import canonicalize_name

from orchestrator.domain.file_kinds import is_manifest
from orchestrator.syntax.install_tools import (
    BINARIES,
    INTERPRETER_VALUED,
    INTERPRETERS,
    KEYWORDS,
    NPM_LIKE,
    ONE_ONLY,
    OTHER_SOURCES,
    PACKAGE_OPTIONS,
    RUNNERS,
    SHELLS,
    VALUED,
    VERBS,
    WRAPPERS,
)
from orchestrator.syntax.shell import simple_commands

FROM_INPUT = "names read from standard input"
"""Stands for the packages that `xargs` would hand on."""
_MAX_NESTING = 6
_ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*\+?=")
_PIP = re.compile(r"^pip(3(\.\d+)?)?$")
_PYTHON = re.compile(r"^(python|pypy|py)(3(\.\d+)?)?$")
_LITERAL = re.compile(r"""(["'])(?P<text>.*?)\1""", re.DOTALL)
_PYTHON_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*")
_NPM_NAME = re.compile(r"^((npm|jsr):)?(?P<name>(@[^/@\s]+/)?[^@\s]+)")
_LOCAL_ARCHIVE = re.compile(r"\.(whl|zip|tar\.gz|tgz)$")


def install_targets(command: str) -> tuple[str, ...]:
    """Names of the packages that `command` installs or adds, normalised, each once, in order.

    Knows pip (also `python -m pip`, `uv pip`), pipx, uv, uvx, poetry, pdm, pipenv, rye, conda; npm, npx, pnpm, yarn,
    bun and deno with what they run or create from a package; looks behind `&&`, `;`, `|`, keywords, wrappers such as
    `env` and `timeout`, `sh -c "…"`, `eval`, `poetry run` and literals of `python -c` and `node -e`. Local paths inside
    the project and requirement files that are manifests are no packages. What has no name (a URL, a variable, another
    index, a requirement file that is no manifest, a path that leaves the project) stands as its own text.
    """
    return tuple(dict.fromkeys(_in_line(command, 0)))


def _in_line(command: str, depth: int) -> Iterator[str]:
    if depth > _MAX_NESTING:
        return
    for words in simple_commands(command):
        yield from _in_command(words, depth)


def _in_command(words: Sequence[str], depth: int) -> Iterator[str]:
    rest, piped = _bare(words)
    if not rest or depth > _MAX_NESTING:
        return
    name, rest = rest[0].rsplit("/", 1)[-1], rest[1:]
    if name in SHELLS:
        yield from _in_line(_behind_flag(rest, "c"), depth + 1)
    elif name in {"eval", "watch"}:
        yield from _in_line(" ".join(rest), depth + 1)
    elif _PYTHON.match(name) or name in INTERPRETERS:
        yield from _interpreted(name, rest, depth)
    else:
        yield from _by_tool("pip" if _PIP.match(name) else name, rest, depth, piped=piped)


def _bare(words: Sequence[str]) -> tuple[list[str], bool]:
    """The command behind keywords, settings of variables and wrappers; whether `xargs` is among them."""
    rest = [word.lstrip("@-+") if place == 0 else word for place, word in enumerate(words)]  # make's line prefixes
    piped = False
    while rest:
        name = rest[0].rsplit("/", 1)[-1]
        if rest[0] in KEYWORDS or _ASSIGNMENT.match(rest[0]) or not rest[0]:
            rest.pop(0)
        elif name in WRAPPERS:
            piped = piped or name == "xargs"
            split = _behind_flag(rest, "S") if name == "env" else ""
            rest = (
                [*split.split(), *rest[rest.index(split) + 1 :]] if split else _behind_options(rest[1:], WRAPPERS[name])
            )
            if name == "timeout":
                rest = rest[1:]
        else:
            break
    return rest, piped


def _behind_options(words: Sequence[str], valued: frozenset[str]) -> list[str]:
    at = 0
    while at < len(words) and (words[at].startswith("-") and words[at] != "-"):
        at += 2 if words[at] in valued else 1
    return list(words[at:])


def _behind_flag(words: Sequence[str], letter: str) -> str:
    """The word behind a cluster of short options that holds `letter`: what `sh -ec …` runs."""
    for place, word in enumerate(words[:-1]):
        if re.match(rf"^-[A-Za-z]*{letter}[A-Za-z]*$", word):
            return words[place + 1]
    return ""


def _interpreted(name: str, words: Sequence[str], depth: int) -> Iterator[str]:
    """`python -m pip …`, and the literals of `python -c` or `node -e`, alone and as the words of one command."""
    python = _PYTHON.match(name) is not None
    skipped = False
    for place, word in enumerate(words):
        if skipped:
            skipped = False
            continue
        if python and word.startswith("-m"):
            module = [word[2:]] if len(word) > 2 else []
            yield from _in_command([*module, *words[place + 1 :]], depth + 1)
            return
        if word in ({"-c"} if python else {"-e", "--eval", "-p", "--print", "-pe"}):
            code = words[place + 1] if place + 1 < len(words) else ""
            literals = [match["text"] for match in _LITERAL.finditer(code)]
            for line in (*literals, " ".join(literals), *([f"pip {' '.join(literals)}"] if "pip" in code else [])):
                yield from _in_line(line, depth + 1)
            return
        if not word.startswith("-"):
            return
        skipped = word in INTERPRETER_VALUED


def _by_tool(tool: str, words: list[str], depth: int, *, piped: bool) -> Iterator[str]:
    tool, words = _settled(tool, words)
    if tool not in VERBS:
        return
    rest, named, never = _without_options(words, tool)
    verb = "" if "" in VERBS[tool] else (rest.pop(0) if rest else "")
    if tool == "yarn" and verb in {"global", "workspace"}:
        rest = rest[1:] if verb == "workspace" else rest
        verb = rest.pop(0) if rest else ""
    if (tool, verb) in RUNNERS:
        yield from (name for name in (_named(tool, word) for word in named) if name)
        behind = words[words.index(verb) + 1 :]
        yield from _in_command(_behind_options(behind, VALUED[tool] | PACKAGE_OPTIONS[tool in NPM_LIKE]), depth + 1)
        return
    if verb not in VERBS[tool] or never:
        return
    if (tool, verb) in ONE_ONLY:
        yield from _in_line(_behind_flag(words, "c") if tool in {"npx", "npm"} else "", depth + 1)
        rest = [] if named else [BINARIES.get(word, word) for word in rest[:1]]
    if verb in {"create", "init", "innit"} and tool in NPM_LIKE:
        rest = [_initializer(word) for word in rest[:1]]
    yield from (name for name in (_named(tool, word) for word in (*named, *rest)) if name)
    yield from _other_sources(tool, words)
    if piped:
        yield FROM_INPUT


def _settled(tool: str, words: list[str]) -> tuple[str, list[str]]:
    """`uv pip …` is pip, `uv tool run` is uvx, `conda`'s relatives are conda."""
    plain = _behind_options(words, frozenset())
    if tool == "uv" and plain[:1] == ["pip"]:
        return "pip", plain[1:]
    if tool == "uv" and plain[:1] == ["tool"]:
        return ("uvx", plain[2:]) if plain[1:2] == ["run"] else ("pipx", plain[1:])
    if tool in {"poetry", "pdm"} and plain[:1] == ["self"]:
        return tool, plain[1:]
    return {"mamba": "conda", "micromamba": "conda", "pnpx": "npx", "bunx": "npx"}.get(tool, tool), words


def _without_options(words: Sequence[str], tool: str) -> tuple[list[str], list[str], bool]:
    """(words that are no options, values of options that name packages, whether installing is ruled out)."""
    kept: list[str] = []
    named: list[str] = []
    waiting = iter(words)
    for word in waiting:
        option, has_value, value = word.partition("=")
        if not word.startswith("-") or word == "-":
            kept.append(word)
        elif option in PACKAGE_OPTIONS[tool in NPM_LIKE]:
            named.append(value if has_value else next(waiting, ""))
        elif option in VALUED[tool] and not has_value:
            next(waiting, "")
    never = tool in {"npx", "npm"} and not {"--no", "--no-install"}.isdisjoint(words)
    return kept, named, never


def _other_sources(tool: str, words: Sequence[str]) -> Iterator[str]:
    """Requirement files that are no manifests, sources other than the usual one, editable addresses."""
    for place, word in enumerate(words):
        option, has_value, value = word.partition("=")
        if tool not in NPM_LIKE and re.match(r"^-r[^=]", word):
            option, has_value, value = "-r", "=", word[2:]
        following = value if has_value else (words[place + 1] if place + 1 < len(words) else "")
        if option in {"-r", "--requirement", "--requirements", "--file"} and tool not in NPM_LIKE:
            if "://" in following or not is_manifest(normpath(following)):
                yield f"-r {following}".strip()
        elif option in {"-e", "--editable"} and tool not in NPM_LIKE:
            yield from filter(None, [_python_name(following)] if "://" in following else [])
        elif option in OTHER_SOURCES and "://" in following:
            yield f"{option} {following}"


def _initializer(word: str) -> str:
    """`npm init vite@4` runs the package create-vite."""
    name = _NPM_NAME.sub(lambda match: match["name"], word).split("@")[0] if not word.startswith("@") else word
    if not name.startswith("@"):
        return name if name.startswith("create-") or "/" in name else f"create-{name}"
    scope, _, inner = name.partition("/")
    inner = inner.split("@")[0]
    return f"{scope}/create-{inner}" if inner else f"{scope}/create"


def _named(tool: str, word: str) -> str:
    if "$" in word or "://" in word:
        return word.lower()
    if word.startswith(("/", "~", "..", "file:")) and not word.startswith("..."):
        return word.lower()
    return _npm_name(word) if tool in NPM_LIKE else _python_name(word)


def _python_name(word: str) -> str:
    if "://" in word:
        return word.lower()
    if word.startswith(".") or _LOCAL_ARCHIVE.search(word):
        return ""
    match = _PYTHON_NAME.match(word)
    return canonicalize_name(match[0]) if match else word.lower()


def _npm_name(word: str) -> str:
    if word.startswith("."):
        return ""
    match = _NPM_NAME.match(word)
    return match["name"].lower() if match else word.lower()
