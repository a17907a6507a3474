"""Which packages a shell command line would install."""

import re
import shlex
from collections.abc import Sequence

from packaging.utils import canonicalize_name

_SEPARATORS = re.compile(r"&&|\|\||[;|&\n()]")
_PIP = re.compile(r"^(.*/)?pip(3(\.\d+)?)?$")
_PYTHON = re.compile(r"^(.*/)?(python|py)(3(\.\d+)?)?$")
_VERBS = {
    "pip": {"install", "download", "wheel"},
    "pipx": {"install", "run", "inject"},
    "poetry": {"add"},
    "pdm": {"add"},
    "uv": {"add"},
    "npm": {"install", "i", "add", "in", "ins", "inst", "isntall", "exec"},
    "pnpm": {"add", "install", "i", "dlx"},
    "yarn": {"add", "dlx"},
    "bun": {"add", "install", "i"},
    "npx": {""},
}
_NPM_LIKE = frozenset({"npm", "pnpm", "yarn", "bun", "npx"})
_PYTHON_VALUED = frozenset(
    {"-r", "--requirement", "-c", "--constraint", "-e", "--editable", "-t", "--target", "-i", "--index-url", "-f"}
    | {"--extra-index-url", "--find-links", "--prefix", "--root", "--python", "--python-version", "--platform", "--src"}
    | {"--implementation", "--abi", "--group", "-G", "--cache-dir", "--log", "--proxy", "--timeout", "--retries"}
    | {"--cert", "--trusted-host", "--progress-bar", "--upgrade-strategy", "--no-binary", "--only-binary", "--index"}
)
_NPM_VALUED = frozenset({"--prefix", "--registry", "-w", "--workspace", "--cache", "-C", "--dir", "--filter", "--cwd"})
_WRAPPERS = frozenset({"sudo", "env", "exec", "time", "nice", "command", "nohup", "xargs", "RUN"})
_PYTHON_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*")
_NPM_NAME = re.compile(r"^(npm:)?(?P<name>(@[^/@\s]+/)?[^@\s]+)")


def install_targets(command: str) -> tuple[str, ...]:
    """Names of the packages that `command` installs or adds, normalised, each once, in order.

    Knows pip (also `python -m pip`, `uv pip`), pipx, uv, poetry, pdm, npm, npx, pnpm, yarn and bun; looks behind `&&`,
    `;`, `|`, `sh -c "…"` and variable settings. Requirement files and local paths are no packages; a URL stands as its
    own text. A line that no shell would accept is split at blanks instead.
    """
    found: dict[str, None] = {}
    for part in _SEPARATORS.split(command.replace("\\\n", " ").replace("$(", "\n").replace("`", "\n")):
        found.update(dict.fromkeys(_targets(_words(part))))
    for inner in re.findall(r"""\s-l?c\s+(?:"([^"]*)"|'([^']*)')""", command):
        found.update(dict.fromkeys(install_targets(inner[0] or inner[1])))
    return tuple(found)


def _words(part: str) -> list[str]:
    try:
        return shlex.split(part, comments=True)
    except ValueError:
        return part.replace('"', " ").replace("'", " ").split()


def _targets(words: Sequence[str]) -> list[str]:
    rest = [word.lstrip("@-+") if place == 0 else word for place, word in enumerate(words)]  # make's line prefixes
    while rest and (rest[0] in _WRAPPERS or re.match(r"^[A-Za-z_]\w*=", rest[0]) or rest[0].startswith("-")):
        rest.pop(0)
    tool, rest = _tool(rest)
    if tool not in _VERBS:
        return []
    rest = _without_options(rest, _NPM_VALUED if tool in _NPM_LIKE else _PYTHON_VALUED)
    verb = "" if tool == "npx" else (rest.pop(0) if rest else "")
    if tool == "yarn" and verb == "global" and rest:
        verb = rest.pop(0)
    if verb not in _VERBS[tool]:
        return []
    one_only = (tool, verb) in {("npx", ""), ("npm", "exec"), ("pnpm", "dlx"), ("yarn", "dlx"), ("pipx", "run")}
    names = (_npm_name(word) if tool in _NPM_LIKE else _python_name(word) for word in (rest[:1] if one_only else rest))
    return [name for name in names if name]


def _tool(words: list[str]) -> tuple[str, list[str]]:
    """The package manager a command line starts with, and the words behind it."""
    if not words:
        return "", []
    first, rest = words[0], words[1:]
    if _PYTHON.match(first):
        while rest and rest[0] != "-m" and rest[0].startswith("-"):
            rest = rest[1:]
        return ("pip", rest[2:]) if rest[:2] == ["-m", "pip"] else ("", [])
    if _PIP.match(first):
        return "pip", rest
    name = first.rsplit("/", 1)[-1]
    if name == "uv" and rest[:1] == ["pip"]:
        return "pip", rest[1:]
    return name, rest


def _without_options(words: Sequence[str], valued: frozenset[str]) -> list[str]:
    kept: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word.startswith("-"):
            skip = word in valued
        elif word.startswith((">", "<", "2>")):
            skip = word in {">", ">>", "<", "2>"}
        else:
            kept.append(word)
    return kept


def _python_name(word: str) -> str:
    if "://" in word:
        return word.lower()
    if word.startswith((".", "/", "~", "$")) or re.search(r"\.(whl|zip|tar\.gz|tgz)$", word):
        return ""
    match = _PYTHON_NAME.match(word)
    return canonicalize_name(match[0]) if match else ""


def _npm_name(word: str) -> str:
    if "://" in word:
        return word.lower()
    match = _NPM_NAME.match(word)
    if match is None or word.startswith((".", "/", "~", "$", "file:")):
        return ""
    return match["name"].lower()
