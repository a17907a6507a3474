"""Packages as plans and failures name them: requirements, where a version points to, names in prose."""

import re
from collections.abc import Iterable, Mapping

from packaging.utils import canonicalize_name

from orchestrator.code.manifests.distributions import (
    is_node_builtin,
    is_python_builtin,
    npm_package,
    python_distribution,
)
from orchestrator.code.manifests.manifest import read_manifest
from orchestrator.core.breakdown import PackageDependencies

# `express@^4`, `flask>=2`, `@scope/x 1.0`, `uvicorn[standard]`, with a marker of Python behind a semicolon.
_REQUIREMENT = re.compile(
    r"^(?P<name>@[a-z0-9~][\w.~-]*/[\w.~-]+|[A-Za-z0-9][\w.-]*)\s*(\[[^\]]*\])?\s*"
    r"(@\s*(?P<at>[^\s;]+)|(?P<pin>(===?|[<>!~]=?|\^)[^;@]*)|[: ]\s*(?P<bare>[\^~]?v?\d[\w.*+-]*))?\s*(;.*)?$",
    re.IGNORECASE,
)
_NONE = frozenset({"", "none", "n/a", "na", "-", "null", "nothing"})
# In prose only a word that is called a package counts: "the `leftpad` library", "npm package leftpad".
_SPOKEN = re.compile(
    r"[`'\"](?P<before>@?[A-Za-z0-9][\w./-]*)[`'\"]\s+(?:npm |pip |third-party )?(?:package|library|dependency)\b"
    r"|\b(?:npm|pip|third-party) (?:package|library|dependency) [`'\"]?(?P<behind>@?[A-Za-z0-9][\w./-]*\w)",
    re.IGNORECASE,
)
# An install command in prose; `-r` and `-e` name no package.
_INSTALLED = re.compile(
    r"\b(?:pip3?|uv|npm|pnpm|yarn|bun|poetry|pdm|pipenv)\s+(?:install|add|i)\s+(?!-[re]\b)(?:-\S+\s+)*"
    r"(?P<name>@?[A-Za-z0-9][\w./-]*\w)",
    re.IGNORECASE,
)
_NO_MODULE = re.compile(r"No module named '([A-Za-z_][\w.]*)'")
_NO_PACKAGE = re.compile(r"Cannot find (?:module|package) '(@?[A-Za-z0-9][\w./-]*)'")
_ALIAS = re.compile(r"^npm:(?P<name>@?[^@\s]+)(@[^/\s]*)?$")
# A scheme; a path, an address of git without a scheme, `user/repository`, an archive.
_ELSEWHERE = re.compile(
    r"^[a-z][a-z0-9+.-]*:|^(\.\.?([/\\]|$)|~?[/\\]|\S+@\S+:|\S+[/\\]\S+$|\S+\.(tgz|tar\.gz|whl|zip)$)",
    re.IGNORECASE,
)
_REQUIREMENT_CAP, _TEXT_CAP = 200, 5000
"""Characters that are read: what is longer is no requirement, or repeats itself."""


def requirement(text: str) -> tuple[str, str] | None:
    """(name, version) of a requirement such as `express@^4.18.0` or `flask>=2`, else None; no version: `*`."""
    text = " ".join(text[:_REQUIREMENT_CAP].split())
    match = _REQUIREMENT.match(text)
    if match is None or text.lower() in _NONE:
        return None
    return match["name"], (match["at"] or match["pin"] or match["bare"] or "*").strip()


def read_packages(value: object) -> tuple[PackageDependencies, list[str]]:
    """Packages from {dependencies, devDependencies}, a flat map or a list; and the entries that name no package."""
    ignored: list[str] = []
    if isinstance(value, Mapping) and {"dependencies", "devDependencies"} & set(value):
        normal, dev = (_group(value.get(name), ignored) for name in ("dependencies", "devDependencies"))
        return PackageDependencies(dependencies=normal, devDependencies=dev), ignored
    return PackageDependencies(dependencies=_group(value, ignored)), ignored


def _group(value: object, ignored: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    pairs: list[tuple[object, object]]
    if isinstance(value, Mapping):
        pairs = [(str(name), version) for name, version in value.items()]
    else:
        entries = value if isinstance(value, list) else [value]
        pairs = [
            (one["name"], one.get("version")) if isinstance(one, Mapping) and "name" in one else (one, None)
            for one in entries
        ]
    for name, version in pairs:
        read = requirement(name) if isinstance(name, str) else None
        if read is not None:
            found[read[0]] = read[1] if package_source(*read) else _stated(version) or read[1]
        elif name is not None and str(name).strip().lower() not in _NONE:
            ignored.append(str(name)[:120])
    return found


def _stated(version: object) -> str:
    """Returns the version in what stands behind a name: a text, a number, or a table as package managers know them."""
    if isinstance(version, Mapping):
        sources = (version.get(how) for how in ("git", "url", "path", "file", "registry", "index", "source"))
        places = (place for place in sources if isinstance(place, str) and place.strip())
        version = next((place if ":" in place else f"file:{place}" for place in places), version.get("version"))
    return str(version).strip() if isinstance(version, str | int | float) else ""


def package_source(name: str, version: str) -> str:
    """What a version says beyond a version: an address, a path, another package's name; "" for a mere version."""
    stated = version.split(";")[0].strip()
    alias = _ALIAS.match(stated)
    if stated.startswith("workspace:") or (alias and alias["name"].lower() == name.lower()):
        return ""
    return stated if "://" in stated or _ELSEWHERE.match(stated) else ""


def normal_names(names: Iterable[str]) -> frozenset[str]:
    """Every name in the forms it may be compared in: lower case (npm) and PEP 503 (Python).

    A plan does not say which ecosystem a name is of.
    """
    lowered = {name.strip().lower() for name in names if name.strip()}
    return frozenset(lowered | {str(canonicalize_name(name)) for name in lowered})


def spoken_packages(text: str) -> tuple[str, ...]:
    """Packages that a text installs or calls a package; lower case, each once."""
    found = [match["name"] for match in _INSTALLED.finditer(text[:_TEXT_CAP])]
    spoken = [match["before"] or match["behind"] for match in _SPOKEN.finditer(text[:_TEXT_CAP])]
    # "Use the `json` library": every environment has it.
    found += [name for name in spoken if not (is_python_builtin(name) or is_node_builtin(name))]
    return tuple(dict.fromkeys(name.lower() for name in found))


def missing_packages(text: str) -> tuple[str, ...]:
    """Returns the packages that an analysis, a review or a failed run says are missing; each once.

    A Python module stands for the distribution that usually brings it.
    """
    text = text[-_TEXT_CAP:]
    tops = (match[1].split(".")[0] for match in _NO_MODULE.finditer(text))
    found = [python_distribution(top) for top in tops if not is_python_builtin(top)]
    found += [npm_package(match[1]) for match in _NO_PACKAGE.finditer(text)]
    return tuple(dict.fromkeys((*spoken_packages(text), *found)))


def dependencies_of(path: str, text: str) -> frozenset[str]:
    """Normalised names that the manifest at `path` declares; what cannot be read declares nothing. Never raises.

    Use `read_manifest` where an unreadable manifest must be noticed (its `problems`).
    """
    return read_manifest(path, text).dependencies
