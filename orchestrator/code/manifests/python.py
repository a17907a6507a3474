"""What Python's manifests ask for, where that comes from, and what their scripts run.

pyproject.toml of every tool, requirement files, setup.cfg and setup.py as far as it stands there, Pipfile, conda's and
pixi's environments, and the block of metadata in a script's comments (PEP 723).
"""

import ast
import configparser
import re
from collections.abc import Iterator, Mapping

from packaging.utils import canonicalize_name

from orchestrator.code.manifests.declared import Found, is_address, is_usual, leaves, table
from orchestrator.code.parsers import parse_toml, parse_yaml
from orchestrator.code.python.source import parse_python

BUILD_BACKENDS = frozenset(
    {"setuptools", "wheel", "hatchling", "hatch-vcs", "setuptools-scm", "flit-core", "poetry-core", "pdm-backend"}
    | {"uv-build", "pip", "flit-scm", "hatch-fancy-pypi-readme", "poetry-dynamic-versioning"}
)
"""What `[build-system] requires` may name without being a dependency of the project."""
_INDEX_KEYS = ("index-url", "extra-index-url", "find-links", "index", "source", "sources")


def read_toml(name: str, text: str, folder: str) -> Found:
    """Returns what pyproject.toml, for whichever tool, Pipfile or pixi.toml declares. Raises ValueError."""
    data = parse_toml(text)
    found = Found()
    if name == "pixi.toml":
        _tool("pixi", data, folder, found)
    elif name == "pipfile":
        for held in (held for key, held in data.items() if key not in {"source", "requires", "scripts", "pipenv"}):
            named(held if isinstance(held, Mapping) else {}, found)
        _indexes(data, found)
        _tasks("pipenv", table(data, "scripts"), found)
    else:
        _pyproject(data, folder, found)
    return found


def _pyproject(data: Mapping[str, object], folder: str, found: Found) -> None:
    project, tool = table(data, "project"), table(data, "tool")
    found.requirements(project.get("dependencies"), "project.dependencies")
    extras = table(project, "optional-dependencies")
    # `name[extra]` of the project itself stands for that extra's own lines.
    own = re.compile(rf"^{re.escape(str(project.get('name', '')))}\s*\[[^\]]*\]\s*$", re.IGNORECASE)
    for group, entries in [*extras.items(), *table(data, "dependency-groups").items()]:
        if isinstance(entries, list) and group in extras and project.get("name"):
            entries = [entry for entry in entries if not (isinstance(entry, str) and own.match(entry))]
        found.requirements(entries, group)
    build = Found()
    build.requirements(table(data, "build-system").get("requires"), "build-system.requires")
    found.take(build, BUILD_BACKENDS)
    for name in _KNOWN:
        _tool(name, table(tool, name), folder, found)
    for scripts in (table(project, "scripts"), table(project, "gui-scripts")):
        found.scripts.update({name: "" for name in scripts})
    for name in ("poe", "taskipy"):
        _tasks(name, table(table(tool, name), "tasks"), found)


_KNOWN = ("poetry", "pdm", "uv", "rye", "hatch", "flit", "setuptools", "pixi")
"""Tools whose tables name packages."""
_GROUPS = re.compile(r"(^|-)(dependencies|overrides|dist|requires(-(extra|plugins))?|requirements_txt)$")
"""Keys of these tools under which packages, groups of them or files with them stand."""
_SCRIPTS = frozenset({"scripts", "tasks", "pre-install-commands", "post-install-commands"})


def _tool(tool: str, settings: Mapping[str, object], folder: str, found: Found) -> None:
    """Notes packages, places and commands wherever they stand in one tool's table."""
    waiting: list[tuple[str, object]] = [("", settings)]
    while waiting:
        key, value = waiting.pop()
        if (tool, key) == ("poetry", "scripts"):  # entry points, and no commands
            found.scripts.update({name: "" for name in table({key: value}, key)})
        elif key in _SCRIPTS:
            _tasks(tool, value if isinstance(value, Mapping) else {key: value}, found)
        elif _GROUPS.search(key) and (tool, key) != ("hatch", "overrides"):
            _group(f"build {key}" if tool == "hatch" else key, value, folder, found)
        elif isinstance(value, Mapping):
            _places(value, found)
            waiting += [(str(name), inner) for name, inner in value.items()]
        elif isinstance(value, list):
            waiting += [("", inner) for inner in value if isinstance(inner, Mapping)]


def _group(key: str, value: object, folder: str, found: Found) -> None:
    """Packages under one key: a list of requirements, a table of versions or of lists, or files that hold some."""
    inner = Found()
    if isinstance(value, list):
        for entry in value:
            # A `{{ version }}` is filled in by the tool.
            if isinstance(entry, str) and "{{" not in entry and not _is_editable(entry, found):
                inner.requirement(entry)
    elif isinstance(value, Mapping):
        files = [file for name in ("file", "files", "filename") for file in _texts(value.get(name))]
        # Of one name poetry has several tables, each for another Python; in a table of groups setuptools names files.
        lists: list[object] = [
            one for one in value.values() if isinstance(one, list) and all(isinstance(v, str) for v in one)
        ]
        lists += [one for one in value.values() if "optional" in key and isinstance(one, Mapping) and "file" in one]
        for file in files:
            found.included(file, folder, "file:")
        if not files and len(lists) < len(value):
            named(value, inner)
        for held in lists if not files else ():
            _group(key, held, folder, found)
    # Limits of versions name nothing new; what builds packages is no dependency of the project.
    inner.names = set() if "constraint" in key else inner.names
    found.take(inner, BUILD_BACKENDS if "build" in key or "requires" in key else frozenset())


def _is_editable(entry: str, found: Found) -> bool:
    """pdm's `-e file:///…#egg=x`."""
    if not entry.startswith("-e"):
        return False
    if "${PROJECT_ROOT}" not in entry or ".." in entry:
        found.sources.add(entry.lower())
    return True


def _places(held: Mapping[str, object], found: Found) -> None:
    """Indexes, channels, members of a workspace and sources of packages in a tool's table."""
    _indexes(held, found)
    for channel in _texts(held.get("channels")):
        found.channel(channel)
    found.sources |= {f"workspace {member}".lower() for member in _texts(held.get("members")) if leaves(member)}
    if isinstance(sources := held.get("sources"), Mapping):
        inner = Found()
        named(sources, inner)
        found.sources |= inner.sources


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
    """Returns where one package comes from, when that is not the index."""
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
            named_only = key in {"index", "source", "sources"} and isinstance(entry, str) and not is_address(entry)
            if isinstance(where, str) and not is_usual(where) and not named_only:
                found.sources.add(f"index {where}".lower())


def _tasks(tool: str, tasks: Mapping[str, object], found: Found) -> None:
    """The command lines of a tool's scripts; their names count as scripts of the manifest."""
    for name, task in tasks.items():
        lines = list(_lines(task, 0))
        if lines or task is not None:
            # Several environments of hatch may have a script of one name.
            known = found.scripts.get(f"{tool}:{name}", "")
            found.scripts[f"{tool}:{name}"] = "\n".join((known, *lines)).strip()


_TASK_KEYS = ("cmd", "shell", "script", "composite", "sequence", "chain", "ref", "expr", "interpreter", "parallel")


def _lines(task: object, depth: int) -> Iterator[str]:
    if isinstance(task, str):
        yield task
    elif isinstance(task, list) and depth < 6:
        for entry in task:
            yield from _lines(entry, depth + 1)
        if all(isinstance(entry, str) for entry in task):
            yield " ".join(task)
    elif isinstance(task, Mapping) and depth < 6:
        for key in _TASK_KEYS:
            yield from _lines(task.get(key), depth + 1)


def _texts(value: object) -> list[str]:
    entries = value if isinstance(value, list) else [value]
    return [entry for entry in entries if isinstance(entry, str)]


_HARMLESS_OPTIONS = ("--hash", "--no-binary", "--only-binary", "--prefer-binary", "--pre", "--no-index")
_INCLUDE = re.compile(r"^(?P<how>-r|--requirement|-c|--constraint)[ =]?\s*(?P<file>\S+)$")
_EDITABLE = re.compile(r"^(-e|--editable)[ =]?\s*(?P<what>.+)$")
_EGG = re.compile(r"[#&]egg=([A-Za-z0-9._-]+)")
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*")
_LOCAL = re.compile(r"^(\.$|\./|\.\[)")
_INDEX = re.compile(r"^(-i|--index-url|--extra-index-url|--find-links|-f)[ =]\s*(?P<where>\S+)$")
_CONDA_NAME = re.compile(r"^((?P<channel>[^\s:]+)::)?(?P<name>[A-Za-z0-9_][\w.-]*)")
_MAX_YAML = 200_000


def read_environment(text: str, folder: str) -> Found:
    """What a conda environment declares. Raises ValueError when it cannot be read."""
    if len(text) > _MAX_YAML:
        raise ValueError("it is too long")
    data = parse_yaml(text)
    found = Found()
    if not isinstance(data, Mapping):
        return found
    entries = data.get("dependencies")
    if entries is not None and not isinstance(entries, list):
        raise ValueError("its dependencies are no list")
    for entry in entries or ():
        if isinstance(entry, Mapping):
            for line in _plain(entry.get("pip"), found):
                _requirement_line(line, folder, found)
        else:
            for spec in _plain([entry], found):
                _conda(spec, found)
    for channel in _plain(data.get("channels"), found):
        found.channel(channel)
    return found


def _plain(entries: object, found: Found) -> Iterator[str]:
    """Yields the texts of a list; what is no text is noted as bad."""
    for entry in entries if isinstance(entries, list) else [] if entries is None else [entries]:
        if isinstance(entry, str):
            yield entry.strip()
        else:
            found.bad.append("an entry is no text")


def _conda(entry: str, found: Found) -> None:
    match = _CONDA_NAME.match(entry)
    if match is None or "://" in entry:
        found.names.add(entry.lower())
        return
    if match["channel"]:
        found.channel(match["channel"])
    if match["name"].lower() not in {"python", "pip"}:
        found.names.add(str(canonicalize_name(match["name"])))


def read_requirements(text: str, folder: str) -> Found:
    """What a requirement file declares."""
    found = Found()
    for line in logical_lines(text):
        _requirement_line(line, folder, found)
    return found


def logical_lines(text: str) -> Iterator[str]:
    """Yields lines as pip reads them: continued ones joined, comments and blank lines left out."""
    held = ""
    for line in (*text.removeprefix("\ufeff").splitlines(), ""):
        if line.rstrip().endswith("\\") and not line.lstrip().startswith("#"):
            held += line.rstrip()[:-1] + " "
            continue
        plain, held = re.sub(r"(^|\s)#.*$", "", held + line).strip(), ""
        if plain:
            yield plain


def _requirement_line(line: str, folder: str, found: Found) -> None:
    include = _INCLUDE.match(line)
    if include and include["how"] in {"-r", "--requirement"}:
        found.included(include["file"], folder, "-r")
        return
    if include and "://" not in include["file"] and not include["file"].startswith(("/", "~", "..")):
        return
    if line.startswith(_HARMLESS_OPTIONS) or line == "--require-hashes":
        return
    index = _INDEX.match(line)
    if index and is_usual(index["where"]):
        return
    editable = _EDITABLE.match(line)
    what = editable["what"].strip() if editable else re.split(r"\s--", line)[0].strip()
    if line.startswith("-") and not editable:
        found.names.add(line.lower())
    elif egg := _EGG.search(what):
        name = str(canonicalize_name(egg[1]))
        found.names.add(name)
        found.sources.add(f"{name} @ {what}".lower())
    elif not _LOCAL.match(what):
        if "://" in what.split(" @ ")[0] or not _NAME.match(what):
            found.names.add(what.lower())
        else:
            found.requirement(what)


_LISTS = ("install_requires", "tests_require", "setup_requires")
_DEEPEST = 20
_MARKER = re.compile(r";[^;]*(==|!=|<|>|\bin\b)[^;]*['\"]")


def read_setup_cfg(text: str, folder: str) -> Found:
    """What setup.cfg declares, with `_` or `-` in its keys. Raises configparser.Error when it is none."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.read_string(text)
    found = Found()
    options = _section(parser, "options")
    for key in ("install_requires", "tests_require"):
        _entries(options.get(key, ""), folder, found)
    build = Found()
    _entries(options.get("setup_requires", ""), folder, build)
    found.take(build, BUILD_BACKENDS)
    for value in _section(parser, "options.extras_require").values():
        _entries(value, folder, found)
    for line in options.get("dependency_links", "").split():
        found.sources.add(f"index {line}".lower())
    for name in ("easy_install", "develop", "install"):
        for key, value in _section(parser, name).items():
            if key in {"index_url", "find_links"}:
                found.sources |= {f"index {where}".lower() for where in value.split() if not is_usual(where)}
    return found


def _section(parser: configparser.ConfigParser, name: str) -> Mapping[str, str]:
    held = parser[name] if parser.has_section(name) else {}
    return {key.lower().replace("-", "_"): value or "" for key, value in held.items()}


def _entries(value: str, folder: str, found: Found) -> None:
    for line in _setup_lines(value):
        if line.startswith("file:"):
            for file in line.removeprefix("file:").split(","):
                found.included(file.strip(), folder, "file:")
        else:
            found.requirement(line)


def _setup_lines(entry: str) -> Iterator[str]:
    """Yields requirements of a dangling list, or of one line where `;` separates them unless a marker follows."""
    for line in (line.split(" #")[0].strip() for line in entry.splitlines()):
        if ";" in line and not _MARKER.search(line):
            yield from (part.strip() for part in line.split(";") if part.strip())
        elif line and not line.startswith("#"):
            yield line


def read_setup_py(text: str) -> Found:
    """Returns what setup.py hands to `setup(…)` as lists and dictionaries, in place or under a name of the file.

    What is computed is not known, and is left out. Raises ValueError.
    """
    tree = parse_python(text)
    if tree is None:
        raise ValueError("it does not compile")
    named = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found = Found()
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for name, value in ((word.arg or "", word.value) for call in calls for word in call.keywords):
        if name == "dependency_links":
            found.sources |= {f"index {entry}".lower() for entry in _literals(value, named)}
        elif name in _LISTS:
            inner = Found()
            inner.requirements(_literals(value, named), name)
            found.take(inner, BUILD_BACKENDS if name == "setup_requires" else frozenset())
        elif name == "extras_require":
            held = named.get(value.id, value) if isinstance(value, ast.Name) else value
            for inner_value in held.values if isinstance(held, ast.Dict) else ():
                found.requirements(_literals(inner_value, named), name)
    return found


def _literals(node: ast.expr, named: Mapping[str, ast.expr], depth: int = 0) -> list[str]:
    """Returns the texts of a list, which may be put together of others; a text of several lines is one of them each."""
    if depth > _DEEPEST:
        return []
    if (text := _text(node, named)) is not None:
        return [line.strip() for line in text.splitlines() if line.strip()]
    if isinstance(node, ast.Name) and node.id in named:
        return _literals(named[node.id], named, depth + 1)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _literals(node.left, named, depth + 1) + _literals(node.right, named, depth + 1)
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [text for part in node.elts for text in _literals(part, named, depth + 1)]
    if isinstance(node, ast.Starred):
        return _literals(node.value, named, depth + 1)
    return []


def _text(node: ast.expr, named: Mapping[str, ast.expr], depth: int = 0) -> str | None:
    """One text, which may be put together of others (`"uvloop; " + MARKER`)."""
    if isinstance(node, ast.Name) and node.id in named and depth < _DEEPEST:
        return _text(named[node.id], named, depth + 1)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and depth < _DEEPEST:
        left, right = _text(node.left, named, depth + 1), _text(node.right, named, depth + 1)
        return None if left is None or right is None else left + right
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
