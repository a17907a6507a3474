"""Which packages a shell command installs, by the verbs of package managers; no shell is interpreted."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from posixpath import basename
from typing import NamedTuple

from packaging.utils import canonicalize_name

INSTALLERS = frozenset(
    {"pip", "setuptools", "wheel", "npm", "uv", "poetry", "pdm", "pipenv", "pipx", "hatch", "rye", "pip-tools"}
    | {"virtualenv", "build", "twine", "pnpm", "yarn", "corepack"}
)
"""What manages or builds packages may be installed whatever else is allowed: no program imports it."""
_PYTHON: Mapping[str, str] = {
    "pip": "install", "pipx": "install inject", "pipenv": "install", "poetry": "add", "pdm": "add", "rye": "add",
    "uv": "add", "uv pip": "install", "uv tool": "install", "conda": "install create", "mamba": "install create",
    "pixi": "add",
}  # fmt: skip
_NODE: Mapping[str, str] = {
    "npm": "install i add", "pnpm": "add install i", "yarn": "add", "yarn global": "add", "bun": "add install i a",
    "deno": "add install",
}  # fmt: skip
_OTHER: Mapping[str, str] = {
    "cargo": "add install", "go": "get install", "gem": "install i", "bundle": "add", "composer": "require",
    "luarocks": "install", "apt": "install", "apt-get": "install", "aptitude": "install", "apk": "add",
    "dnf": "install", "yum": "install", "zypper": "install in", "brew": "install", "choco": "install",
    "snap": "install", "winget": "install", "scoop": "install", "port": "install",
}  # fmt: skip
_VERBS = {tool: frozenset(verbs.split()) for tool, verbs in {**_PYTHON, **_NODE, **_OTHER}.items()}
# Options that take the word behind them, of any tool; `-p` and its kind stand alone in Node's.
_VALUED = frozenset(
    {"--requirement", "--constraint", "--target", "--prefix", "--root", "--python", "--group", "--directory", "-C"}
    | {"--index-url", "--extra-index-url", "--index", "--default-index", "--find-links", "--extra", "--only-binary"}
    | {"--no-binary", "--filter", "--cwd", "--dir", "--registry", "--virtual", "--version", "--features", "--git", "-G"}
    | {"--path", "--branch", "--tag", "--rev", "--channel", "--name", "--file", "--lockfile-version", "--with"}
    | {"--project", "--workspace", "--cache-dir", "--config-settings", "--timeout", "--trusted-host", "-n", "-F", "-w"}
)
_VALUED_SHORT = frozenset({"-r", "-c", "-t", "-i", "-f", "-p", "-e", "--editable", "-v"})
_ADDRESS = re.compile(r"://|^git\+|^git@|github:")
_ARCHIVE = re.compile(r"\.(whl|tgz|tar\.\w+|zip|deb|rpm|gem|egg)$")
_PLAIN = re.compile(r"@?[A-Za-z0-9_][\w.+/-]*")
# These only speak of what stands behind them.
_SAYS = frozenset({"echo", "printf", "grep", "command", "which", "type", "man", "git"})
_COMMENT = re.compile(r"(?:(?<=\s)|^)#[^\n]*")
_SHELL_OPTION = re.compile(r"-\w*c")
_DEPTH = 4
MOST_CHARS = 50_000
"""Of a text that is read: a longer one is no command that anybody wrote."""


class Installs(NamedTuple):
    """What a command installs, each name once and in order."""

    packages: tuple[str, ...] = ()
    """Names, normalised as their registry does it; addresses and foreign indexes as they stand."""
    unclear: tuple[str, ...] = ()
    """Commands that install what cannot be known from their words."""


def read_installs(text: str) -> Installs:
    """Returns what the shell commands in `text` install: a tool, an installing verb and the names behind it.

    Never raises.
    """
    names: dict[str, None] = {}
    unclear: dict[str, None] = {}
    for words in _commands(text[:MOST_CHARS], 0):
        for name in _named(words):
            names[name] = None
            if not name:
                unclear[" ".join(words)[:160]] = None
    return Installs(tuple(name for name in names if name), tuple(unclear))


def _commands(text: str, depth: int) -> Iterator[list[str]]:
    """Yields the words of each simple command, also of those that `sh -c` is given."""
    lexer = shlex.shlex(_COMMENT.sub("", text.replace("\\\n", " ")), posix=True, punctuation_chars="();|&<>\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    words: list[str] = []
    redirected = False
    try:
        for word in lexer:
            if re.fullmatch(r"[();|&\n]+|[<>]\(", word):
                yield words
                words = []
            elif re.fullmatch(r"[<>&]+", word):
                words = words[:-1] if words and words[-1].isdigit() else words
                redirected = True
            elif redirected:
                redirected = False
            elif words and _SHELL_OPTION.fullmatch(words[-1]) and " " in word and depth < _DEPTH:
                yield from _commands(word, depth + 1)
            else:
                words.append(word)
    except ValueError:  # a quote that is never closed: the shell runs nothing of it
        return
    yield words


def _named(words: Sequence[str]) -> Iterator[str]:
    """Yields the names that a simple command installs, "" where they cannot be known."""
    if not words or basename(words[0]) in _SAYS:
        return
    for at, word in enumerate(words):
        tool = re.sub(r"^(pip|gem)[\d.]+$", r"\1", re.sub(r"\.(exe|cmd|bat)$", "", _tool(word)))
        rest = _behind_options(words, at + 1, tool)
        if rest < len(words) and f"{tool} {words[rest]}" in _VERBS:
            tool = f"{tool} {words[rest]}"
            rest = _behind_options(words, rest + 1, tool)
        if rest < len(words) and words[rest] in _VERBS.get(tool, ()):
            yield from _packages(tool, words[rest + 1 :])
            return


def _tool(word: str) -> str:
    """Returns the tool that a word names: `/usr/bin/pip`, `$PIP`, `${NPM:-npm}`."""
    variable = re.fullmatch(r"\$\{?(\w+?)(?:[:?-][^}]*)?\}?", word)
    return (variable[1] if variable else basename(word.replace("\\", "/"))).rpartition("`")[2].lower()


def _behind_options(words: Sequence[str], at: int, tool: str) -> int:
    while at < len(words) and words[at].startswith("-"):
        at += 2 if _takes_value(tool, words[at]) else 1
    return at


def _takes_value(tool: str, option: str) -> bool:
    return option in _VALUED or (option in _VALUED_SHORT and tool not in _NODE)


def _packages(tool: str, words: Sequence[str]) -> Iterator[str]:
    at = 0
    while at < len(words):
        word, value = words[at], "".join(words[at + 1 : at + 2])
        if word.startswith("-"):
            option, _, given = word.partition("=")
            at += 1 if given or not _takes_value(tool, option) else 2
            if "index" in option and _ADDRESS.search(given or value):
                yield f"{option} {given or value}"
            continue
        at += 1
        if not word.startswith((".", "/", "~", "file:")) and ("://" in word or not _ARCHIVE.search(word)):
            yield from _name(tool, word)


def _name(tool: str, word: str) -> Iterator[str]:
    node = tool in _NODE
    if _ADDRESS.search(word) or (node and re.match(r"[\w.-]+/[\w.-]+(#|$)", word)):
        yield word
        return
    text = re.sub(r"^(.+@)?(npm|jsr):", "", word) if node else word
    name = re.split(r"(?<!^)[@=<>~!:;\[\s^]", text, maxsplit=1)[0]
    if tool in _PYTHON and "/" in name:
        return
    known = _PLAIN.fullmatch(name)
    yield "" if not known else str(canonicalize_name(name)) if tool in _PYTHON else name.lower() if node else name
