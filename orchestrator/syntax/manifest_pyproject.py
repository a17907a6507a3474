"""pyproject.toml of every tool: what it asks for, where that comes from, what its scripts run."""

import re
import tomllib
from collections.abc import Iterator, Mapping

from packaging.utils import canonicalize_name

from orchestrator.syntax.manifest_found import Found, table
from orchestrator.syntax.python_index import is_address, is_usual, leaves

BUILD_BACKENDS = frozenset(
    {"setuptools", "wheel", "hatchling", "hatch-vcs", "setuptools-scm", "flit-core", "poetry-core", "pdm-backend"}
    | {"uv-build", "pip", "flit-scm", "hatch-fancy-pypi-readme", "poetry-dynamic-versioning"}
)
"""What `[build-system] requires` may name without being a dependency of the project."""
_INDEX_KEYS = ("index-url", "extra-index-url", "find-links", "index", "source", "sources")


def read_pyproject(text: str, folder: str) -> Found:
    """What pyproject.toml declares, for whichever tool. Raises ValueError when it is no TOML."""
    data = tomllib.loads(text)
    found = Found()
    project, tool = table(data, "project"), table(data, "tool")
    found.requirements(project.get("dependencies"), "project.dependencies")
    _lists(_without_own(table(project, "optional-dependencies"), str(project.get("name", ""))), found)
    _lists(table(data, "dependency-groups"), found)
    _backend(table(data, "build-system").get("requires"), "build-system.requires", found)
    poetry = table(tool, "poetry")
    _poetry(poetry, found)
    _pdm(table(tool, "pdm"), found)
    _uv(table(tool, "uv"), found)
    found.requirements(table(tool, "rye").get("dev-dependencies"), "tool.rye.dev-dependencies")
    _hatch(table(tool, "hatch"), folder, found)
    _flit(table(table(tool, "flit"), "metadata"), found)
    _setuptools(table(table(tool, "setuptools"), "dynamic"), folder, found)
    read_pixi(table(tool, "pixi"), found)
    for name in ("uv", "poetry", "pdm", "rye"):
        _indexes(table(tool, name), found)
    for scripts in (table(project, "scripts"), table(project, "gui-scripts"), table(poetry, "scripts")):
        found.scripts.update({name: "" for name in scripts})
    for tool_name, key in (("pdm", "scripts"), ("poe", "tasks"), ("taskipy", "tasks"), ("rye", "scripts")):
        _tasks(tool_name, table(table(tool, tool_name), key), found)
    return found


def _without_own(extras: Mapping[str, object], name: str) -> Mapping[str, object]:
    """Extras without `name[extra]` of the project itself, which stands for that extra's own lines."""
    own = re.compile(rf"^{re.escape(name)}\s*\[[^\]]*\]\s*$", re.IGNORECASE)
    return {
        extra: [entry for entry in entries if not (isinstance(entry, str) and own.match(entry))]
        if isinstance(entries, list) and name
        else entries
        for extra, entries in extras.items()
    }


def _lists(held: Mapping[str, object], found: Found) -> None:
    for group, entries in held.items():
        found.requirements(entries, group)


def _backend(entries: object, what: str, found: Found) -> None:
    """Requirements of a build: what builds packages may stand there without being a dependency."""
    backend = Found()
    backend.requirements(entries, what)
    found.names |= backend.names - BUILD_BACKENDS
    found.sources |= backend.sources
    found.bad += backend.bad


def _replaced(entries: object, what: str, found: Found, *, names: bool) -> None:
    """Requirements that hold wherever the package is needed; mere limits of versions name nothing new."""
    inner = Found()
    inner.requirements(entries, what)
    found.pinned |= inner.names if names else set()
    found.sources |= inner.sources
    found.bad += inner.bad


def _poetry(poetry: Mapping[str, object], found: Found) -> None:
    tables = [table(poetry, "dependencies"), table(poetry, "dev-dependencies"), table(poetry, "requires-plugins")]
    tables += [table(group, "dependencies") for group in table(poetry, "group").values()]
    for held in tables:
        named(held, found)


def _pdm(pdm: Mapping[str, object], found: Found) -> None:
    for group, entries in table(pdm, "dev-dependencies").items():
        kept = [entry for entry in entries if not _editable(entry, found)] if isinstance(entries, list) else entries
        found.requirements(kept, group)
    overrides = Found()
    named(table(table(pdm, "resolution"), "overrides"), overrides)
    found.pinned |= overrides.names
    found.sources |= overrides.sources
    _backend(table(pdm, "build").get("requires"), "tool.pdm.build.requires", found)
    for plugin in _texts(pdm.get("plugins")):
        found.requirement(plugin)


def _editable(entry: object, found: Found) -> bool:
    """pdm's `-e file:///…#egg=x`."""
    if not isinstance(entry, str) or not entry.startswith("-e"):
        return False
    if "${PROJECT_ROOT}" not in entry or ".." in entry:
        found.sources.add(entry.lower())
    return True


def _uv(uv: Mapping[str, object], found: Found) -> None:
    found.requirements(uv.get("dev-dependencies"), "tool.uv.dev-dependencies")
    _replaced(uv.get("override-dependencies"), "tool.uv.override-dependencies", found, names=True)
    for key in ("constraint-dependencies", "build-constraint-dependencies"):
        _replaced(uv.get(key), f"tool.uv.{key}", found, names=False)
    for held in (uv, table(uv, "pip")):
        for name, entries in table(held, "extra-build-dependencies").items():
            listed = entries if isinstance(entries, list) else [entries]
            texts = [entry.get("requirement") if isinstance(entry, Mapping) else entry for entry in listed]
            _backend(texts, f"extra-build-dependencies.{name}", found)
    described = uv.get("dependency-metadata")
    for entry in described if isinstance(described, list) else []:
        _replaced(table({"it": entry}, "it").get("requires-dist"), "dependency-metadata", found, names=True)
    _indexes(table(uv, "pip"), found)
    sources = Found()
    named(table(uv, "sources"), sources)
    found.sources |= sources.sources
    workspace = uv.get("workspace")
    for member in _texts(workspace.get("members")) if isinstance(workspace, Mapping) else ():
        found.sources |= {f"workspace {member}".lower()} if leaves(member) else set()


def _hatch(hatch: Mapping[str, object], folder: str, found: Found) -> None:
    for name, settings in table(hatch, "envs").items():
        inner = settings if isinstance(settings, Mapping) else {}
        for key in ("dependencies", "extra-dependencies"):
            found.requirements(inner.get(key), f"tool.hatch.envs.{name}.{key}")
        for key in ("pre-install-commands", "post-install-commands"):
            _tasks(f"hatch.{name}", {key: inner.get(key)}, found)
        _tasks(f"hatch.{name}", table(inner, "scripts"), found)
    build = table(hatch, "build")
    holders = [("build", build), *((f"build.{name}", held) for name, held in table(build, "targets").items())]
    for what, held in holders:
        if isinstance(held, Mapping):
            _backend(held.get("dependencies"), f"tool.hatch.{what}.dependencies", found)
            for name, hook in table(held, "hooks").items():
                inner = hook if isinstance(hook, Mapping) else {}
                _backend(inner.get("dependencies"), f"tool.hatch.{what}.hooks.{name}", found)
    listed = table(table(table(hatch, "metadata"), "hooks"), "requirements_txt")
    for file in (*_texts(listed.get("files")), *_texts(listed.get("filename"))):
        found.included(file, folder, "file:")


def _flit(metadata: Mapping[str, object], found: Found) -> None:
    for key in ("requires", "dev-requires"):
        found.requirements(metadata.get(key), f"tool.flit.metadata.{key}")
    _lists(table(metadata, "requires-extra"), found)


def _setuptools(dynamic: Mapping[str, object], folder: str, found: Found) -> None:
    """Lists that stand in files of their own."""
    held = [table(dynamic, "dependencies"), *(table({"it": v}, "it") for v in _extras(dynamic))]
    for file in (file for entry in held for file in _texts(entry.get("file"))):
        found.included(file, folder, "file:")


def _extras(dynamic: Mapping[str, object]) -> list[object]:
    return list(table(dynamic, "optional-dependencies").values())


def read_pixi(pixi: Mapping[str, object], found: Found) -> None:
    """What a table of pixi declares, with its features and targets."""
    waiting: list[object] = [pixi]
    while waiting:
        held = waiting.pop()
        if not isinstance(held, Mapping):
            continue
        for key in ("dependencies", "host-dependencies", "build-dependencies", "pypi-dependencies"):
            named(table(held, key), found)
        waiting += [*table(held, "feature").values(), *table(held, "target").values()]
        _tasks("pixi", table(held, "tasks"), found)
        _indexes(table(held, "pypi-options"), found)
    for key in ("workspace", "project"):
        for channel in _texts(table(pixi, key).get("channels")):
            found.channel(channel)


def named(held: Mapping[str, object], found: Found) -> None:
    """A table of name = version, or name = {version, git, url, path …}, or name = [several of these]."""
    for name, value in held.items():
        if name.lower() == "python":
            continue
        plain = str(canonicalize_name(name))
        found.names.add(plain)
        for spec in value if isinstance(value, list) else [value]:
            found.sources |= {f"{plain} @ {where}".lower() for where in _elsewhere(spec)}


def _elsewhere(spec: object) -> Iterator[str]:
    """Where one package comes from, when that is not the index."""
    if isinstance(spec, str):
        yield from [spec] if is_address(spec) or spec.startswith(("git+", "file:")) else []
        return
    for how in ("git", "hg", "svn", "bzr", "url", "path", "file", "registry"):
        where = spec.get(how) if isinstance(spec, Mapping) else None
        if isinstance(where, str) and (how not in {"path", "file"} or leaves(where) or is_address(where)):
            yield where


def _indexes(held: Mapping[str, object], found: Found) -> None:
    """Other places that packages come from."""
    for key in _INDEX_KEYS:
        entries = held.get(key)
        if isinstance(entries, Mapping):
            continue
        for entry in entries if isinstance(entries, list) else [entries]:
            where = entry.get("url") if isinstance(entry, Mapping) else entry
            if isinstance(where, str) and not is_usual(where):
                found.sources.add(f"index {where}".lower())


def _tasks(tool: str, tasks: Mapping[str, object], found: Found) -> None:
    """The command lines of a tool's scripts; their names count as scripts of the manifest."""
    for name, task in tasks.items():
        lines = list(_lines(task, 0))
        if lines or task is not None:
            found.scripts[f"{tool}:{name}"] = "\n".join(lines)


def _lines(task: object, depth: int) -> Iterator[str]:
    if isinstance(task, str):
        yield task
    elif isinstance(task, list) and depth < 6:
        for entry in task:
            yield from _lines(entry, depth + 1)
        if all(isinstance(entry, str) for entry in task):
            yield " ".join(task)
    elif isinstance(task, Mapping) and depth < 6:
        for key in (
            "cmd",
            "shell",
            "script",
            "composite",
            "sequence",
            "chain",
            "ref",
            "expr",
            "interpreter",
            "parallel",
        ):
            yield from _lines(task.get(key), depth + 1)


def _texts(value: object) -> list[str]:
    return (
        [value]
        if isinstance(value, str)
        else [v for v in value if isinstance(v, str)]
        if isinstance(value, list)
        else []
    )
