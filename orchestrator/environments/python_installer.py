"""Installs Python packages with uv, from where pip is told to take them on this machine, and joins environments.

uv does not read pip's settings (https://docs.astral.sh/uv/pip/compatibility/), so they are handed on as uv's own. One
that decides what is fetched and has no like in uv is refused: the public index is never fallen back on in silence.
An environment of a worktree has the packages and programs of a layer.
"""

import configparser
import datetime
import functools
import json
import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from orchestrator.core.errors import ConfigError
from orchestrator.files.disk import raise_if_full
from orchestrator.sandbox.command_runner import remove_tree
from orchestrator.settings.model import CommandSettings
from orchestrator.settings.sections import SandboxSettings

_SECTIONS = ("global", "install")
"""Of pip's settings, the later one's in place of the earlier one's."""
_AS_UV = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "proxy": "ALL_PROXY",
    "constraint": "UV_CONSTRAINT",
    "require-hashes": "UV_REQUIRE_HASHES",
    "keyring-provider": "UV_KEYRING_PROVIDER",
    "uploaded-prior-to": "UV_EXCLUDE_NEWER",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
}
_NO_INDEX = {"UV_DEFAULT_INDEX": "file:///nonexistent"}
"""uv has an option for it and no variable, and goes to the public index where no other one is named."""
_ON = {"1", "true", "yes", "on"}
_REFUSED = frozenset({"requirement", "editable", "no-deps", "platform", "python-version", "implementation", "abi"})
"""What changes which packages are installed."""

_CHOOSES = re.compile(r"INDEX|FIND_LINKS|PRE(RELEASE)?$|NEWER|PRIOR|CONSTRAINT")
"""Of variables that decide which packages are had."""


class Installer:
    """Command lines that install packages into an environment; nothing of a package is run by them."""

    def __init__(self, variables: Mapping[str, str], handed_on: Mapping[str, str], registry: str | None) -> None:
        """`handed_on` are the variables that an installation gets as they are; `registry` replaces pip's index."""
        self._variables, self._handed_on, self._registry = variables, handed_on, registry

    def install(self, python: Path, *what: str, offline: bool = False) -> list[str]:
        """Returns the command that installs `what` (requirements, `-r FILE`, wheels) for an environment's Python."""
        where = ("--offline", "--no-index") if offline else ("--index-strategy", "unsafe-best-match")  # as pip
        only = ("--only-binary", ":all:", "--no-progress")
        return [uv_program(), "pip", "install", "--python", str(python), *only, *where, *what]

    def older(self, names: Iterable[str], days: int) -> list[str]:
        """Returns options by which versions of these count that were uploaded at least so many days ago, where the
        index tells when."""
        until = datetime.datetime.now(datetime.UTC).date() - datetime.timedelta(days=days)
        return [word for name in names for word in ("--exclude-newer-package", f"{name}={until}")]

    def environment(self) -> dict[str, str]:
        """Returns the variables of a command that fetches. Blocks; raises ConfigError for a setting uv has not."""
        uv_program()  # looked for here, where it may block: command lines are made in the event loop
        registry = {} if self._registry is None else {"UV_DEFAULT_INDEX": self._registry}
        return {**as_uv(pip_settings(self._variables)), **self._handed_on, **registry, **self.alone()}

    def sources(self) -> str:
        """Changes with where packages come from and which versions of them count, not with who asks or by which way.

        Blocks; raises ConfigError as `environment`.
        """
        chosen = {name: value for name, value in self.environment().items() if _CHOOSES.search(name)}
        return re.sub(r"//[^/@\s]*@", "//", json.dumps(chosen, sort_keys=True))

    def for_commands(self) -> dict[str, str]:
        """Returns variables for people's commands, which may call uv or pip. Blocks; raises as `environment`."""
        registry = {} if self._registry is None else {"PIP_INDEX_URL": self._registry}
        return {**_as_pip(pip_settings(self._variables)), **registry, **self.environment()}

    def alone(self) -> dict[str, str]:
        """Variables for a command line that is offline: no settings of anybody, and no cache."""
        return {"UV_NO_CONFIG": "1", "UV_NO_CACHE": "1", "PIP_CONFIG_FILE": os.devnull, "PIP_NO_CACHE_DIR": "1"}


def handed_on(variables: Mapping[str, str], commands: CommandSettings) -> dict[str, str]:
    """Returns the machine's variables that `commands.install_env` names."""
    return {name: variables[name] for name in commands.install_env if name in variables}


def installer_for(variables: Mapping[str, str], commands: CommandSettings, rules: SandboxSettings) -> Installer:
    """Returns the installer that fetches from where the machine's `variables` and the settings say."""
    return Installer(variables, handed_on(variables, commands), rules.registries.pip)


def pip_settings(variables: Mapping[str, str]) -> dict[str, str]:
    """pip's settings for `install`, by their names, from its files and from `variables`. Blocks.

    As https://pip.pypa.io/en/stable/topics/configuration/ says. Raises ConfigError for a file that cannot be read.
    """
    sections: dict[str, dict[str, str]] = {name: {} for name in _SECTIONS}
    for path in _settings_files(variables):
        parser = configparser.RawConfigParser()
        try:
            parser.read(path)
        except (configparser.Error, UnicodeDecodeError) as error:
            raise ConfigError(f"pip's settings cannot be read: {error}") from error
        for section in sections.keys() & set(parser.sections()):
            sections[section] |= {_plain(name): value for name, value in parser.items(section) if value}
    own = {_plain(name[4:]): value for name, value in variables.items() if name.startswith("PIP_") and value}
    return {**sections["global"], **sections["install"], **own}


def _settings_files(variables: Mapping[str, str]) -> Iterator[Path]:
    """Returns the later ones count before the earlier ones."""
    named, home = variables.get("PIP_CONFIG_FILE"), Path(variables.get("HOME") or Path.home())
    if named == os.devnull:
        return
    apple = sys.platform == "darwin"
    shared = "/Library/Application Support" if apple else variables.get("XDG_CONFIG_DIRS") or "/etc/xdg"
    yield from (Path(folder) / "pip" / "pip.conf" for folder in shared.split(":"))
    yield Path("/etc/pip.conf")
    if not (named and os.path.exists(named)):
        yield home / ".pip" / "pip.conf"
        library = home / "Library" / "Application Support" / "pip"
        config = Path(variables.get("XDG_CONFIG_HOME") or home / ".config") / "pip"
        yield (library if apple and library.is_dir() else config) / "pip.conf"
    yield Path(sys.prefix) / "pip.conf"
    if named:
        yield Path(named)


def _plain(name: str) -> str:
    """Returns a setting's name as pip's options have it."""
    return name.lower().replace("_", "-").removeprefix("--")


def as_uv(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns the same for uv, as variables. Raises ConfigError for what uv has no like of."""
    if refused := sorted(settings.keys() & _REFUSED):
        raise ConfigError(
            f"pip is set up with {', '.join(refused)} here, which uv, that installs packages, does not know: "
            "take it out of pip's configuration (`pip config list` shows where from)"
        )
    found = {_AS_UV[name]: value for name, value in settings.items() if name in _AS_UV}
    for name, joint in (("UV_INDEX", " "), ("UV_FIND_LINKS", ","), ("UV_INSECURE_HOST", " ")):
        if name in found:
            found[name] = joint.join(found[name].split())
    if settings.get("pre", "").lower() in _ON:
        found["UV_PRERELEASE"] = "allow"
    if settings.get("no-index", "").lower() in _ON:
        found = {name: value for name, value in found.items() if name != "UV_INDEX"} | _NO_INDEX
    return found


def _as_pip(settings: Mapping[str, str]) -> dict[str, str]:
    """As variables, for where pip's files cannot be read."""
    return {f"PIP_{name.upper().replace('-', '_')}": " ".join(value.split("\n")) for name, value in settings.items()}


def options_of(lines: Sequence[str]) -> tuple[list[str], list[str]]:
    """The requirements among the lines of requirements files, and what their options are on a command line of uv."""
    plain = [line for line in lines if not line.startswith("-")]
    names = {re.split(r"[= ]", line)[0] for line in lines if line.startswith("-")}
    known = {"--pre": ("--prerelease", "allow"), "--require-hashes": ("--require-hashes",)}
    return plain, [word for name, words in known.items() if name in names for word in words]


@functools.cache
def uv_program() -> str:
    """Returns the program of the package `uv`. Blocks the first time."""
    import uv

    return str(uv.find_uv_bin())


_MADE = "made.json"
_SCRIPT = re.compile(rb"#!(?:/bin/sh\n'''exec' .*\n' '''|\S*python.*)\n")
"""How a script of a package begins: with its interpreter, or, where that path is too long, with a shell for it."""
_SHELL = b"#!/bin/sh\n'''exec' \"%s\" \"$0\" \"$@\"\n' '''\n"


def is_joined(environment: Path, layer: Path, tag: str) -> bool:
    """Returns whether it is the environment that `mark_joined` was told of. Blocks."""
    with suppress(OSError, ValueError):
        made = json.loads((environment / _MADE).read_text(encoding="utf-8"))
        return bool(made == {"layer": str(layer), "project": tag})
    return False


def mark_joined(environment: Path, layer: Path, tag: str) -> None:
    """Notes that the environment has the layer's packages and the project's wheel of this tag. Blocks."""
    (environment / _MADE).write_text(json.dumps({"layer": str(layer), "project": tag}), encoding="utf-8")


def join(environment: Path, layer: Path) -> None:
    """Makes the virtual environment that has the layer's packages and programs. Blocks; raises as `make_venv`."""
    (environment / _MADE).unlink(missing_ok=True)  # first: what is half removed is not joined
    remove_tree(environment)
    environment.parent.mkdir(parents=True, exist_ok=True)
    python = os.path.realpath(layer / "venv" / "bin" / "python")
    make_venv(environment, "" if python == os.path.realpath(sys.executable) else python)
    # `addsitedir` also heeds the files of paths that packages bring. `!`: it is the first of the files of paths, so
    # that what lies in the project's own folders does not stand in for a package.
    line = f"import site; site.addsitedir({str(packages_of(layer))!r})\n"
    (_site(environment) / "!layer.pth").write_text(line, encoding="utf-8")
    for program in sorted((layer / "venv" / "bin").iterdir()):
        _add_program(program, environment / "bin" / program.name)


def _add_program(program: Path, target: Path) -> None:
    """Copies a script in Python, for the interpreter of its environment; what is none is linked to."""
    if os.path.lexists(target) or not program.is_file():
        return
    content = program.read_bytes()
    script = _SCRIPT.match(content)
    if script is None:
        target.symlink_to(program)
        return
    python = os.fsencode(target.with_name("python"))
    target.write_bytes(_SHELL % python + content[script.end() :])
    target.chmod(0o755)


def make_venv(environment: Path, python: str = "") -> None:
    """Makes an empty one, with our interpreter or with another one's program. Blocks.

    Raises ConfigError for another one that makes none, OSError where the disk is full.
    """
    if not python:
        venv.EnvBuilder(symlinks=True).create(environment)
        return
    argv = [python, "-I", "-m", "venv", "--without-pip", "--symlinks", str(environment)]
    try:
        subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60)
    except subprocess.SubprocessError as error:
        told = (error.output or "") + (error.stderr or "") if isinstance(error, subprocess.CalledProcessError) else ""
        raise_if_full(told, environment.parent)
        raise ConfigError(f"`{python}` makes no virtual environment: {told or error}") from error


def packages_of(layer: Path) -> Path:
    """Returns where a layer has its packages. Blocks."""
    return _site(layer / "venv")


def _site(environment: Path) -> Path:
    return next((environment / "lib").glob("python3.*/site-packages"))
