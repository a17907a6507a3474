"""Facts about a project's environment, read from a sprint's base commit, which no story can change.

Also decides which packages may run their own code during installation: npm install scripts, builds from source.
That code runs in the fetch step, which sees only manifests and reaches only registries.
"""

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from posixpath import basename
from typing import Any, Literal, NamedTuple

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from orchestrator.code.data import without_comments
from orchestrator.code.manifests.manifest import is_lock, read_manifest
from orchestrator.code.manifests.python import logical_lines
from orchestrator.code.parsers import parse_json, parse_toml, parse_yaml
from orchestrator.core.errors import WorkspaceError
from orchestrator.core.paths import is_manifest
from orchestrator.core.value import Value
from orchestrator.environments.node_requirements import package_names
from orchestrator.environments.python_manifests import package_of
from orchestrator.environments.python_test_setups import SETUPS
from orchestrator.git.checkout import Checkout
from orchestrator.git.command import run_git
from orchestrator.git.commits import read_texts, tree_entries
from orchestrator.git.mirror import Mirror

_NAME = re.compile(r"(?:@[a-z0-9~-][\w.~-]*/)?[A-Za-z0-9][\w.-]*")
"""Matches what may be the name of a package."""
Setting = Literal["auto", "never"] | tuple[str, ...]
"""`environment.install_scripts`."""
AUTO = "auto"
_OF_NODE = """
    @nestjs/core @parcel/watcher @prisma/client @prisma/engines @serialport/bindings-cpp @swc/core @tailwindcss/oxide
    @vscode/sqlite3 argon2 bcrypt better-sqlite3 bufferutil canvas core-js core-js-pure cpu-features deasync es5-ext
    esbuild fsevents kerberos keytar leveldown libpq libxmljs2 lmdb lz4 msgpackr-extract msw node-expat node-pty
    node-sass nx oracledb pg-native prisma protobufjs re2 robotjs rocksdb serialport sharp snappy sqlite3 ssh2
    styled-components tree-sitter unrs-resolver usb utf-8-validate zeromq
"""
_OF_PYTHON = """
    argon2-cffi-bindings bcrypt cffi cryptography grpcio lxml mysqlclient numpy pandas pillow psycopg psycopg2 pycairo
    pycryptodome pyodbc python-ldap pyyaml ruamel-yaml-clib scipy uwsgi xmlsec
"""
YOUNGEST_DAYS = 30
"""Minimum age of a version whose scripts may run although the base does not use the package: hijacked releases are
usually found sooner."""


class Registry(NamedTuple):
    """How packages of one registry are told apart, and which of them are well known."""

    plain: Callable[[str], str]
    """Returns the one spelling of a name."""
    well_known: frozenset[str]
    """Native packages that many projects use, and packages whose script only prints a message."""


NPM = Registry(str.lower, frozenset(_OF_NODE.split()))
PYPI = Registry(canonicalize_name, frozenset(_OF_PYTHON.split()))


class InstallScripts:
    """`known` are the packages of `registry` that the base commit requires or locks, so the project runs them already.
    A list of names replaces what `auto` allows, unless `auto` is among them."""

    def __init__(self, setting: Setting = "auto", known: Collection[str] = (), registry: Registry = PYPI) -> None:
        self._setting, self._registry = setting, registry
        self._named = {registry.plain(name) for name in setting} if isinstance(setting, tuple) else set[str]()
        self._auto = setting == AUTO or AUTO in self._named
        self._known = {registry.plain(name) for name in known}

    def allowed(self, name: str) -> bool:
        """Returns whether the package may run its code."""
        plain = self._registry.plain(name)
        return plain in self._named or (self._auto and plain in self._known | self._registry.well_known)

    def young(self, name: str) -> bool:
        """Returns whether the permission depends on the version's age."""
        return self._auto and self._registry.plain(name) not in self._known | self._named

    @property
    def listed(self) -> tuple[str, ...]:
        """Returns the start of a list of names that allows the same packages."""
        return self._setting if isinstance(self._setting, tuple) else (AUTO,) if self._auto else ()

    def digest(self, text: str) -> str:
        """Returns a digest that changes only with what is allowed of the packages that `text` names."""
        named = {self._registry.plain(name) for name in _NAME.findall(text)}
        names = named & self._known if self._auto else set[str]()
        return hashlib.sha256(json.dumps([str(self._setting), sorted(names)]).encode()).hexdigest()


NOTHING = InstallScripts("never")


_LIMIT = 8 * 1024 * 1024
"""Bytes of a file beyond which it is left out."""


class BaseFacts(Value):
    """The facts that environments read from the base commit."""

    setups: dict[str, str] = {}
    """Texts of the files that configure a project's test runs (`SETUPS`), by path."""
    version: str = ""
    """Version of the nearest tag, for projects that derive their version from git; "" when there is none."""
    python: frozenset[str] = frozenset()
    """Names of the Python packages that manifests require and lock files hold."""
    node: frozenset[str] = frozenset()
    """The same of npm's packages."""

    def below(self, folder: str) -> dict[str, str]:
        """Returns the texts of `folder` ("" for all) by their paths in it."""
        prefix = f"{folder}/" if folder else ""
        return {path.removeprefix(prefix): text for path, text in self.setups.items() if path.startswith(prefix)}


class BaseCommit:
    """Reads `commit` ("" for an empty tree) from the mirror, and tags from the user's repository."""

    def __init__(self, mirror: Path, commit: str, repository: Path) -> None:
        self._mirror, self._commit, self._repository = Mirror(mirror), commit, repository
        self._facts: BaseFacts | None = None
        self._once = asyncio.Lock()

    async def facts(self) -> BaseFacts:
        """Returns the same at every call. Raises WorkspaceError when the mirror does not have the commit."""
        async with self._once:
            if self._facts is None:
                self._facts = await self._read() if self._commit else BaseFacts()
        return self._facts

    async def tree_id(self) -> str:
        """Returns the id of the base's git tree; "" for an empty tree. Raises WorkspaceError."""
        told = await self._mirror.git("rev-parse", "--verify", f"{self._commit}^{{tree}}") if self._commit else None
        return "" if told is None else told.text.strip()

    @asynccontextmanager
    async def checkout(self, parent: Path) -> AsyncIterator[Path]:
        """Yields the base's files in a folder of `parent`, for as long as the block runs. Raises WorkspaceError."""
        place = Checkout(self._mirror, parent, "base")
        try:
            await place.set_to(self._commit)
            yield place.root
        finally:
            await place.remove()

    async def _read(self) -> BaseFacts:
        entries = await tree_entries(self._mirror, self._commit)
        setups = await self._texts(filter(SETUPS.search, entries))
        texts = await self._texts(path for path in entries if is_manifest(path) or is_lock(path))
        python, node = await asyncio.to_thread(_packages, texts)
        tag = ""
        with suppress(WorkspaceError):  # no tag, or the repository is not there any more
            told = await run_git(["describe", "--tags", "--abbrev=0", self._commit], cwd=self._repository)
            tag = told.text
        return BaseFacts(setups=setups, version=version_of(tag), python=python, node=node)

    async def _texts(self, paths: Iterable[str]) -> dict[str, str]:
        return await read_texts(self._mirror, self._commit, [*paths], limit=_LIMIT)


# Keys of yarn's lock file, and those of pnpm's with a version: `"@scope/name@^1.0":`, `  /name@1.0.0:`, `  /name/1.0:`.
_OF_YARN = re.compile(r'^"?((?:@[^/\s"]+/)?[^@/\s",]+)@', re.MULTILINE)
_OF_PNPM = re.compile(r"^  ['\"]?/?((?:@[^/\s'\"]+/)?[^@/\s'\":]+)[@/]v?\d", re.MULTILINE)


def _packages(texts: Mapping[str, str]) -> tuple[frozenset[str], frozenset[str]]:
    """Returns the names of the Python packages and of npm's in manifests and lock files, by their paths."""
    python, node = set[str](), set[str]()
    for path, text in texts.items():
        name = basename(path).lower()
        of_node = name == "package.json" or name in _NODE_LOCKS
        with suppress(*_NONSENSE):  # an unreadable file makes no package known
            (node if of_node else python).update([*_named(path, name, text)])
    return frozenset(python), frozenset(node)


_NODE_LOCKS = frozenset({"package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock"})
_NONSENSE = (ValueError, TypeError, AttributeError, LookupError, RecursionError)


def _named(path: str, name: str, text: str) -> Iterator[str]:
    """Yields the packages of a manifest, a lock file, or a file of constraints."""
    if name == "package.json":
        yield from package_names(parse_json(text))
    elif not is_lock(path):
        yield from read_manifest(path, text).dependencies
    elif name in {"yarn.lock", "pnpm-lock.yaml"}:
        yield from (_OF_YARN if name == "yarn.lock" else _OF_PNPM).findall(text)
    elif name == "bun.lock":
        held = parse_json(without_comments(text)).get("packages", {})
        yield from (str(one[0]).rpartition("@")[0] for one in held.values())
    elif name in {"package-lock.json", "npm-shrinkwrap.json"}:
        yield from _of_npm(parse_json(text))
    elif name == "pipfile.lock":
        yield from (package for part, held in parse_json(text).items() if part != "_meta" for package in held)
    elif name.endswith((".lock", ".toml", ".yml", ".yaml")):
        data = parse_yaml(text) if name.endswith((".yml", ".yaml")) or name == "pixi.lock" else parse_toml(text)
        lock: Any = data
        yield from (str(one["name"]) for one in lock.get("package", lock.get("packages", ())) if "name" in one)
    else:
        yield from filter(None, map(package_of, logical_lines(text)))


def _of_npm(data: Mapping[str, Any]) -> Iterator[str]:
    for place, one in data.get("packages", {}).items():
        if "node_modules/" in place:
            yield str(one.get("name") or place.rpartition("node_modules/")[2])
    waiting = [data.get("dependencies", {})]  # of lock files that npm 6 wrote
    while waiting:
        for package, one in waiting.pop().items():
            yield str(package)
            waiting.append(one.get("dependencies", {}))


def version_of(tag: str) -> str:
    """`v1.2.0`, `humanize-1.2.0` → 1.2.0; "" for a tag that ends with no version."""
    found = re.search(r"(?:^|[-_/.])v?(\d[^/_]*)$", tag)
    with suppress(InvalidVersion):  # the tag is not a version
        return str(Version(found[1])) if found else ""
    return ""
