"""Adds packages to the manifests of a project, as an engineer would: a line where its like stand."""

import json
import re
from collections.abc import Mapping, Sequence
from posixpath import basename, dirname, join

from packaging.utils import canonicalize_name

from orchestrator.code.manifests.manifest import Manifest, read_manifest
from orchestrator.core.paths import is_manifest

__all__ = ["Manifest", "dependencies_of", "is_manifest", "read_manifest"]


def dependencies_of(path: str, text: str) -> frozenset[str]:
    """Normalised names that the manifest at `path` declares; what cannot be read declares nothing. Never raises.

    Use `read_manifest` where an unreadable manifest must be noticed (its `problems`).
    """
    return read_manifest(path, text).dependencies


_SCRIPTS = (".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".vue", ".svelte", ".astro")
_PYTHON = ("pyproject.toml", "requirements.txt")
_PROJECT = re.compile(r"^\[project\][ \t]*(#.*)?\n", re.MULTILINE)
_LISTED = re.compile(r"(?<![\w-])dependencies\s*=\s*\[(?P<first>[ \t]*\n?)")
_POETRY = re.compile(r"^\[tool\.poetry\.dependencies\][ \t]*\n", re.MULTILINE)
_TABLE = re.compile(r"^\[", re.MULTILINE)


def add_packages(packages: Mapping[str, str], texts: Mapping[str, str], near: Sequence[str]) -> dict[str, str]:
    """Returns path → new text of the manifests that declare `packages` (name → version) then.

    `texts` are the project's manifests; one that declares a package already stays. `near` are files that use them: the
    manifest nearest to these is taken, and a new one where the project has none of their kind.
    """
    declared = {name for path, text in texts.items() for name in read_manifest(path, text).dependencies}
    lacking = {
        name: version
        for name, version in packages.items()
        if declared.isdisjoint({name.lower(), str(canonicalize_name(name))})
    }
    if not lacking:
        return {}
    of_node = [path for path in near if path.lower().endswith(_SCRIPTS)]
    node = bool(of_node) and not any(path.endswith(".py") for path in near)
    path = _nearest(("package.json",) if node else _PYTHON, texts, of_node if node else near)
    text = texts.get(path, "")
    return {path: _package_json(text, lacking) if node else _python(path, text, lacking)}


def _nearest(names: Sequence[str], texts: Mapping[str, str], near: Sequence[str]) -> str:
    """Returns the manifest in the deepest folder above the first of `near`; of several the one that can take a line."""
    folder = dirname(near[0]) if near else ""
    while True:
        here = [join(folder, name) for name in names]
        found = [path for path in here if path in texts and _takes(path, texts[path])]
        if found or not folder:
            return (found or [names[-1]])[0]
        folder = dirname(folder)


def _takes(path: str, text: str) -> bool:
    if basename(path) != "pyproject.toml":
        return is_manifest(path)
    computed = re.search(r"^dynamic\s*=\s*\[[^\]]*[\"']dependencies[\"']", text, re.MULTILINE)
    return (_PROJECT.search(text) is not None and computed is None) or _POETRY.search(text) is not None


def _python(path: str, text: str, packages: Mapping[str, str]) -> str:
    lines = [f"{name}{_version(version)}" for name, version in sorted(packages.items())]
    if basename(path) != "pyproject.toml":
        return "".join(f"{line}\n" for line in (*text.splitlines(), *lines))
    if (project := _PROJECT.search(text)) is None:
        told = "".join(f'{name} = "{version or "*"}"\n' for name, version in sorted(packages.items()))
        return _POETRY.sub(lambda found: found[0] + told, text, count=1)
    end = _TABLE.search(text, project.end())
    table = text[project.end() : end.start() if end else len(text)]
    entries = "".join(f'    "{line}",\n' for line in lines)
    if found := _LISTED.search(table):
        table = f"{table[: found.start('first')]}\n{entries}{_indented(table[found.end() :], found['first'])}"
    else:
        table = f"dependencies = [\n{entries}]\n{table}"
    return text[: project.end()] + table + (text[end.start() :] if end else "")


def _indented(rest: str, first: str) -> str:
    """What stood in the list: on lines of its own as it was, else on one line of its own."""
    return rest if "\n" in first or rest.lstrip().startswith("]") else f"    {rest.lstrip()}"


def _version(told: str) -> str:
    """Returns a version of a plan as Python writes it: `^1.2` and a bare number are a lower limit."""
    told = told.strip()
    if re.match(r"^([<>=!~]=|[<>])", told):
        return told
    number = re.match(r"^[\^~v]?(\d[\w.]*)$", told)
    return f">={number[1]}" if number else ""


def _package_json(text: str, packages: Mapping[str, str]) -> str:
    told = json.loads(text) if text.strip() else {}
    held = told.get("dependencies") or {}
    told["dependencies"] = dict(
        sorted({**held, **{name: version or "*" for name, version in packages.items()}}.items())
    )
    indent = re.search(r"\n([ \t]+)\"", text)
    return json.dumps(told, indent=indent[1] if indent else 2, ensure_ascii=False) + "\n"
