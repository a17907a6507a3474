"""Which packages may run code of their own while they are installed: scripts of npm packages, builds from source.

They are run in the step that fetches, which sees manifests alone and reaches registries alone.
"""

import hashlib
import json
import re
from collections.abc import Collection
from typing import Literal

NAME = re.compile(r"(?:@[a-z0-9~-][\w.~-]*/)?[A-Za-z0-9][\w.-]*")
"""Of a package, in the text of a manifest or a lock file."""
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
"""Native packages that many projects use, and packages whose script only says something."""
YOUNGEST_DAYS = 30
"""A version of these that no manifest of the base names may be run when it is this old: one that was taken over is
found out sooner."""


class InstallScripts:
    """`known` are the packages that the base's manifests and lock files name, which people run already. A list of
    names replaces what `auto` allows, unless `auto` is among them."""

    def __init__(self, setting: Setting = "auto", known: Collection[str] = ()) -> None:
        self._setting = setting
        self._named = {_plain(name) for name in setting} if isinstance(setting, tuple) else set[str]()
        self._auto = setting == AUTO or AUTO in self._named
        self._known = {_plain(name) for name in known}

    def allowed(self, name: str) -> bool:
        """Whether the package may run its code."""
        plain = _plain(name)
        return plain in self._named or (self._auto and (plain in self._known or name in WELL_KNOWN))

    def young(self, name: str) -> bool:
        """Whether that depends on the version's age."""
        plain = _plain(name)
        return self._auto and plain not in self._known | self._named

    @property
    def listed(self) -> tuple[str, ...]:
        """What a list that allows the same begins with."""
        return self._setting if isinstance(self._setting, tuple) else (AUTO,) if self._auto else ()

    def digest(self, text: str) -> str:
        """Changes with what is allowed of the packages that a text names, and not with others."""
        names = {_plain(name) for name in NAME.findall(text)} & self._known if self._auto else set[str]()
        return hashlib.sha256(json.dumps([str(self._setting), sorted(names)]).encode()).hexdigest()


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


NOTHING = InstallScripts("never")
