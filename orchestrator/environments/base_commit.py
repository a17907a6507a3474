"""Facts about a project's environment, read from a sprint's base commit, which no story can change.

Also decides which packages may run their own code during installation: npm install scripts, builds from source.
That code runs in the fetch step, which sees only manifests and reaches only registries.
"""

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Literal

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from orchestrator.code.manifests.manifest import is_lock
from orchestrator.core.errors import WorkspaceError
from orchestrator.core.paths import is_manifest
from orchestrator.core.value import Value
from orchestrator.environments.python_test_setups import SETUPS
from orchestrator.git.checkout import Checkout
from orchestrator.git.command import run_git
from orchestrator.git.commits import read_texts, tree_entries
from orchestrator.git.mirror import Mirror

NAME = re.compile(r"(?:@[a-z0-9~-][\w.~-]*/)?[A-Za-z0-9][\w.-]*")
"""Matches a package name in the text of a manifest or a lock file."""
Setting = Literal["auto", "never"] | tuple[str, ...]
"""`environment.install_scripts`."""
AUTO = "auto"
_NATIVE = """
    @nestjs/core @parcel/watcher @prisma/client @prisma/engines @serialport/bindings-cpp @swc/core @tailwindcss/oxide
    @vscode/sqlite3 argon2 bcrypt better-sqlite3 bufferutil canvas core-js core-js-pure cpu-features deasync es5-ext
    esbuild fsevents kerberos keytar leveldown libpq libxmljs2 lmdb lz4 msgpackr-extract msw node-expat node-pty
    node-sass nx oracledb pg-native prisma protobufjs re2 robotjs rocksdb serialport sharp snappy sqlite3 ssh2
    styled-components tree-sitter unrs-resolver usb utf-8-validate zeromq
    cffi cryptography grpcio lxml mysqlclient numpy pandas pillow psycopg psycopg2 pycairo pycryptodome pyodbc
    python-ldap pyyaml ruamel-yaml-clib scipy uwsgi xmlsec
"""
WELL_KNOWN = frozenset(_NATIVE.split())
"""Native packages that many projects use, and packages whose script only prints a message."""
YOUNGEST_DAYS = 30
"""Minimum age of a version whose scripts may run although no manifest of the base names it: hijacked releases are
usually found sooner."""


class InstallScripts:
    """`known` are the packages that the base's manifests and lock files name, so the project runs them already.
    A list of names replaces what `auto` allows, unless `auto` is among them."""

    def __init__(self, setting: Setting = "auto", known: Collection[str] = ()) -> None:
        self._setting = setting
        self._named = {canonicalize_name(name) for name in setting} if isinstance(setting, tuple) else set[str]()
        self._auto = setting == AUTO or AUTO in self._named
        self._known = {canonicalize_name(name) for name in known}

    def allowed(self, name: str) -> bool:
        """Returns whether the package may run its code."""
        plain = canonicalize_name(name)
        return plain in self._named or (self._auto and (plain in self._known or name in WELL_KNOWN))

    def young(self, name: str) -> bool:
        """Returns whether the permission depends on the version's age."""
        plain = canonicalize_name(name)
        return self._auto and plain not in self._known | self._named

    @property
    def listed(self) -> tuple[str, ...]:
        """Returns the start of a list of names that allows the same packages."""
        return self._setting if isinstance(self._setting, tuple) else (AUTO,) if self._auto else ()

    def digest(self, text: str) -> str:
        """Returns a digest that changes only with what is allowed of the packages that `text` names."""
        names = {canonicalize_name(name) for name in NAME.findall(text)} & self._known if self._auto else set[str]()
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
    packages: frozenset[str] = frozenset()
    """Names of packages in manifests and lock files, with other words there that look like one."""

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
        packages = await asyncio.to_thread(lambda: {name for text in texts.values() for name in NAME.findall(text)})
        tag = ""
        with suppress(WorkspaceError):  # no tag, or the repository is not there any more
            told = await run_git(["describe", "--tags", "--abbrev=0", self._commit], cwd=self._repository)
            tag = told.text
        return BaseFacts(setups=setups, version=version_of(tag), packages=frozenset(packages))

    async def _texts(self, paths: Iterable[str]) -> dict[str, str]:
        return await read_texts(self._mirror, self._commit, [*paths], limit=_LIMIT)


def version_of(tag: str) -> str:
    """`v1.2.0`, `humanize-1.2.0` → 1.2.0; "" for a tag that ends with no version."""
    found = re.search(r"(?:^|[-_/.])v?(\d[^/_]*)$", tag)
    with suppress(InvalidVersion):  # the tag is not a version
        return str(Version(found[1])) if found else ""
    return ""
