"""What a manifest declares: dependencies and scripts of package.json and of Python's manifests.

It stands on this floor because the checks and the contract both read manifests."""

import configparser
from posixpath import basename, dirname

from orchestrator.code.manifests import python
from orchestrator.code.manifests.declared import Found
from orchestrator.code.manifests.npm import read_package_json
from orchestrator.code.manifests.python import read_pyproject, read_setup_cfg, read_setup_py
from orchestrator.core.finding import Finding, Where, major
from orchestrator.core.paths import is_manifest
from orchestrator.core.value import Value


class Manifest(Value):
    """What one manifest declares. Names are normalised: PEP 503 for Python, lower case for npm."""

    path: str
    dependencies: frozenset[str] = frozenset()
    """What has no name (a bare URL, another index) stands as its own text, so that nothing is added unseen."""
    pinned: frozenset[str] = frozenset()
    """Packages named only to be bundled, or to be replaced wherever they occur (overrides, resolutions)."""
    linked: frozenset[str] = frozenset()
    """Those dependencies that are folders of the project itself: nothing is fetched for them."""
    sources: frozenset[str] = frozenset()
    """`name @ address` where a package comes from elsewhere than the index, `index address` for another index."""
    local: frozenset[str] = frozenset()
    """The project's own name, under which it may be imported."""
    scripts: frozenset[str] = frozenset()
    """Names of scripts and entry points."""
    commands: tuple[str, ...] = ()
    """The command lines of package.json's scripts."""
    problems: tuple[Finding, ...] = ()
    """Major findings for what could not be read; the other fields then hold what could."""


def read_manifest(path: str, text: str, *, code: str = "manifest.unreadable") -> Manifest:
    """Read the manifest at `path`; never raises. A path that is no manifest gives an empty one."""
    if not is_manifest(path):
        return Manifest(path=path)
    try:
        found = _read(path, text.removeprefix("\ufeff"))
    except (ValueError, RecursionError, configparser.Error) as error:
        message = f"the manifest cannot be read: {error}"
        problem = major(code, message, where=Where(file=path), fix="Write the whole manifest again, well-formed.")
        return Manifest(path=path, problems=(problem,))
    problems = tuple(
        major(code, text, where=Where(file=path), fix="Write it in the manifest's form.") for text in found.bad
    )
    return Manifest(
        path=path,
        dependencies=frozenset(found.names),
        pinned=frozenset(found.pinned),
        linked=frozenset(found.linked),
        sources=frozenset(found.sources),
        local=frozenset(found.local),
        scripts=frozenset(found.scripts),
        commands=tuple(found.scripts.values()),
        problems=problems,
    )


def _read(path: str, text: str) -> Found:
    name, folder = basename(path).lower(), dirname(path)
    if name == "package.json":
        return read_package_json(text, folder)
    if name == "setup.py":
        return read_setup_py(text)
    if name in {"pipfile", "pixi.toml"}:
        return python.read_pipfile(text) if name == "pipfile" else python.read_pixi_toml(text)
    readers = {"pyproject.toml": read_pyproject, "setup.cfg": read_setup_cfg}
    fallback = python.read_environment if name.endswith((".yml", ".yaml")) else python.read_requirements
    return readers.get(name, fallback)(text, folder)
