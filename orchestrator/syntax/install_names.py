"""A word behind an installing verb → the names of what it brings."""

import re
from collections.abc import Sequence
from posixpath import normpath

from packaging.utils import canonicalize_name

from orchestrator.syntax.install_tools import NPM_LIKE, PYTHON_LIKE, VERSION_SIGNS
from orchestrator.syntax.shell_expand import UNKNOWN, shown

_PYTHON_NAME = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[[^\]]*\])?\s*(?P<rest>.*)$", re.DOTALL)
_NPM_NAME = re.compile(r"^((npm|jsr):)?(?P<name>(@[^/@\s]+/)?[^@\s]+)(@(?P<spec>.*))?$", re.DOTALL)
_NPM_SPEC = re.compile(r"^[\^~<>=v*xX\d|., \w+-]*$")
_LOCAL_ARCHIVE = re.compile(r"\.(whl|zip|tar\.gz|tgz)$")


def leaves_project(path: str) -> bool:
    """Whether a path is absolute, a home's, or climbs above where it starts."""
    return path.startswith(("/", "~")) or normpath(path).split("/")[0] == ".."


def names_of(tool: str, word: str) -> Sequence[str]:
    """Normalised names of what `word` brings: none for a place in the project, two for an alias of another package.

    What has no name (an address, a variable, a path that leaves the project) stands as its own text.
    """
    if UNKNOWN.search(word) or "$" in word or "://" in word:
        return (shown(word).lower(),)
    if word.startswith("file:") or (leaves_project(word) and not word.startswith("...")):
        return (word.lower(),)
    if word.startswith(".") or not word:
        return ()
    if tool in NPM_LIKE:
        return _npm(word)
    return _python(word) if tool in PYTHON_LIKE else (_cut(tool, word),)


def _python(word: str) -> Sequence[str]:
    if _LOCAL_ARCHIVE.search(word) or word.endswith("/"):
        return ()
    match = _PYTHON_NAME.match(word)
    if match is not None and match["rest"][:1] == "@" and _NPM_SPEC.match(match["rest"][1:]):
        return (str(canonicalize_name(match["name"])),)
    if match is None or not (match["rest"] == "" or match["rest"][0] in "<>=!~;(,\"'/ "):
        return (word.lower(),)
    if match["rest"].startswith("/"):
        return (word.lower(),) if re.search("[@:]", word) else ()
    return (str(canonicalize_name(match["name"])),)


def _npm(word: str) -> Sequence[str]:
    match = _NPM_NAME.match(word)
    if match is None:
        return (word.lower(),)
    spec = match["spec"] or ""
    if _NPM_SPEC.match(spec):
        return (match["name"].lower(),)
    behind = _NPM_NAME.match(spec) if spec.startswith("npm:") else None
    return (match["name"].lower(), behind["name"].lower() if behind else word.lower())


def _cut(tool: str, word: str) -> str:
    """The name before the version, for tools of neither kind."""
    signs = VERSION_SIGNS.get(tool, "=@")
    name = re.split(f"[{re.escape(signs)}]", word)[0] if signs else word
    return name.lower() or word.lower()


def initializer(word: str) -> str:
    """`npm init vite@4` runs the package create-vite."""
    name = _NPM_NAME.sub(lambda match: match["name"], word).split("@")[0] if not word.startswith("@") else word
    if not name.startswith("@"):
        return name if name.startswith("create-") or "/" in name else f"create-{name}"
    scope, _, inner = name.partition("/")
    inner = inner.split("@")[0]
    return f"{scope}/create-{inner}" if inner else f"{scope}/create"
