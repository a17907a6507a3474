"""Installs Python packages with uv, from the sources in this machine's settings of pip, and joins environments.

uv does not read pip's settings (https://docs.astral.sh/uv/pip/compatibility/), so they are translated. A setting that
affects what is fetched and has no equivalent in uv is refused, so that uv never silently uses the public index.
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
"""Sections of pip's settings; the later one overrides the earlier one."""
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
"""uv has an option for it but no variable, and uses the public index unless another one is named."""
_ON = {"1", "true", "yes", "on"}
_REFUSED = frozenset({"requirement", "editable", "no-deps", "platform", "python-version", "implementation", "abi"})
"""Settings that change which packages are installed."""

_CHOOSES = re.compile(r"INDEX|FIND_LINKS|PRE(RELEASE)?$|NEWER|PRIOR|CONSTRAINT")
"""Matches variables that decide which packages are chosen."""


class Installer:
    """Builds command lines that install packages into an environment without running their code."""

    def __init__(self, variables: Mapping[str, str], handed_on: Mapping[str, str], registry: str | None) -> None:
        """`handed_on` are variables that an installation gets unchanged; `registry` replaces pip's index."""
        self._variables, self._handed_on, self._registry = variables, handed_on, registry

    def install(self, python: Path, *what: str, offline: bool = False) -> list[str]:
        """Returns the command that installs `what` (requirements, `-r FILE`, wheels) for an environment's Python."""
        where = ("--offline", "--no-index") if offline else ("--index-strategy", "unsafe-best-match")  # as pip
        only = ("--only-binary", ":all:", "--no-progress")
        return [uv_program(), "pip", "install", "--python", str(python), *only, *where, *what]

    def older(self, names: Iterable[str], days: int) -> list[str]:
        """Returns options that restrict these packages to versions uploaded at least `days` ago, if the index knows
        when."""
        until = str(datetime.datetime.now(datetime.UTC).date() - datetime.timedelta(days=days))
        until = min(filter(None, (until, self._variables.get("PIP_UPLOADED_PRIOR_TO"))))
        return [word for name in names for word in ("--exclude-newer-package", f"{name}={until}")]

    def environment(self) -> dict[str, str]:
        """Returns the variables of a command that fetches. Blocks; raises ConfigError for a setting uv lacks."""
        uv_program()  # cached here, where it may block: command lines are built in the event loop
        registry = {} if self._registry is None else {"UV_DEFAULT_INDEX": self._registry}
        return {**as_uv(pip_settings(self._variables)), **self._handed_on, **registry, **self.alone()}

    def sources(self) -> str:
        """Returns a text that identifies sources and allowed versions, without credentials and proxies.

        Blocks; raises ConfigError as `environment`.
        """
        chosen = {name: value for name, value in self.environment().items() if _CHOOSES.search(name)}
        return re.sub(r"//[^/@\s]*@", "//", json.dumps(chosen, sort_keys=True))

    def for_commands(self) -> dict[str, str]:
        """Returns variables for configured commands, which may call uv or pip. Blocks; raises as `environment`."""
        registry = {} if self._registry is None else {"PIP_INDEX_URL": self._registry}
        return {**_as_pip(pip_settings(self._variables)), **registry, **self.environment()}

    def alone(self) -> dict[str, str]:
        """Returns variables for an offline command line: no user's settings, and no cache."""
        return {"UV_NO_CONFIG": "1", "UV_NO_CACHE": "1", "PIP_CONFIG_FILE": os.devnull, "PIP_NO_CACHE_DIR": "1"}


def handed_on(variables: Mapping[str, str], commands: CommandSettings) -> dict[str, str]:
    """Returns the machine's variables that `commands.install_env` names."""
    return {name: variables[name] for name in commands.install_env if name in variables}


def installer_for(variables: Mapping[str, str], commands: CommandSettings, rules: SandboxSettings) -> Installer:
    """Returns the installer that fetches from where the machine's `variables` and the settings say."""
    return Installer(variables, handed_on(variables, commands), rules.registries.pip)


def pip_settings(variables: Mapping[str, str]) -> dict[str, str]:
    """Returns pip's settings for `install`, by name, from its files and from `variables`. Blocks.

    Follows https://pip.pypa.io/en/stable/topics/configuration/. Raises ConfigError for an unreadable file.
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
    """Yields pip's settings files; later ones override earlier ones."""
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
    """Returns a setting's name in the form of pip's options."""
    return name.lower().replace("_", "-").removeprefix("--")


def as_uv(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns uv's variables for pip's settings. Raises ConfigError for a setting without an equivalent."""
    if refused := sorted(settings.keys() & _REFUSED):
        raise ConfigError(
            f"pip's configuration has {', '.join(refused)}, which uv, the installer of packages, does not support: "
            "remove it (`pip config list` shows where it comes from)"
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
    """Returns pip's variables for the settings, for commands that cannot read pip's files."""
    return {f"PIP_{name.upper().replace('-', '_')}": " ".join(value.split("\n")) for name, value in settings.items()}


def options_of(lines: Sequence[str]) -> tuple[list[str], list[str]]:
    """Splits lines of requirements files into requirements and options for uv's command line."""
    plain = [line for line in lines if not line.startswith("-")]
    names = {re.split(r"[= ]", line)[0] for line in lines if line.startswith("-")}
    known = {"--pre": ("--prerelease", "allow"), "--require-hashes": ("--require-hashes",)}
    return plain, [word for name, words in known.items() if name in names for word in words]


@functools.cache
def uv_program() -> str:
    """Returns the path of uv's executable, from the package `uv`. Blocks the first time."""
    import uv

    return str(uv.find_uv_bin())


_MADE = "made.json"
_SCRIPT = re.compile(rb"#!(?:/bin/sh\n'''exec' .*\n' '''|\S*python.*)\n")
"""First line of a package's script: its interpreter, or a shell that starts it when that path is too long."""
_SHELL = b"#!/bin/sh\n'''exec' \"%s\" \"$0\" \"$@\"\n' '''\n"


def is_joined(environment: Path, layer: Path, tag: str) -> bool:
    """Returns whether `mark_joined` recorded this environment with this layer and tag. Blocks."""
    with suppress(OSError, ValueError):  # missing or damaged: joined again
        made = json.loads((environment / _MADE).read_text(encoding="utf-8"))
        return bool(made == {"layer": str(layer), "project": tag})
    return False


def mark_joined(environment: Path, layer: Path, tag: str) -> None:
    """Records that the environment has the layer's packages and the project's wheel of this tag. Blocks."""
    (environment / _MADE).write_text(json.dumps({"layer": str(layer), "project": tag}), encoding="utf-8")


def join(environment: Path, layer: Path) -> None:
    """Makes a virtual environment with the layer's packages and programs. Blocks; raises as `make_venv`."""
    (environment / _MADE).unlink(missing_ok=True)  # comes first, so that a half-removed one does not count as joined
    remove_tree(environment)
    environment.parent.mkdir(parents=True, exist_ok=True)
    python = os.path.realpath(layer / "venv" / "bin" / "python")
    make_venv(environment, "" if python == os.path.realpath(sys.executable) else python)
    # `addsitedir` also processes the `.pth` files of packages. `!` sorts first among `.pth` files, so that the
    # project's own folders do not shadow a package.
    line = f"import site; site.addsitedir({str(packages_of(layer))!r})\n"
    (_site(environment) / "!layer.pth").write_text(line, encoding="utf-8")
    for program in sorted((layer / "venv" / "bin").iterdir()):
        _add_program(program, environment / "bin" / program.name)


def _add_program(program: Path, target: Path) -> None:
    """Copies a Python script with its environment's interpreter; links any other program."""
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
    """Makes an empty virtual environment with our interpreter or another one's program. Blocks.

    Raises ConfigError if the other one fails, OSError when the disk is full.
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
        raise ConfigError(f"`{python}` cannot make a virtual environment: {told or error}") from error


def packages_of(layer: Path) -> Path:
    """Returns the folder of a layer's packages. Blocks."""
    return _site(layer / "venv")


def _site(environment: Path) -> Path:
    return next((environment / "lib").glob("python3.*/site-packages"))
