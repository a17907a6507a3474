"""config.yaml + environment + --set → frozen Settings. The only reader of os.environ."""

import ctypes
import os
import pwd
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, TypeGuard, get_args, get_origin

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from rapidfuzz import fuzz, process

from orchestrator.core.errors import ConfigError
from orchestrator.core.secrets import is_secret_name
from orchestrator.settings.model import Settings

ENV_PREFIX = "ORCHESTRATOR_"
_SECRET_ADDRESSES = ("DATABASE_URL", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
"""Variables that hold a password or a token beside other things. Proxies' stay: whoever makes a connection reads them
by itself."""
_READ_LATER = ("PGPASSWORD", "GOOGLE_APPLICATION_CREDENTIALS")
"""Read by the database's driver with each connection, and by Google's package; the latter names a file."""
SHORTEST_TOKEN = 16
"""Characters of ORCHESTRATOR_TOKEN at least: a shorter one can be guessed."""
_PACKAGE = Path(__file__).resolve().parent.parent


class Environment(BaseModel):
    """Values from outside the settings tree."""

    model_config = ConfigDict(frozen=True)

    home: Path
    """The state folder."""
    config_file: Path | None
    """The file that was merged over the default, if any."""
    base_dir: Path
    """Folder that relative paths in the configuration start from."""
    database_url: str | None = None
    port: int | None = None
    """PORT, where a platform says so."""
    url: str | None = None
    """ORCHESTRATOR_URL: the daemon that commands talk to, in place of the one of the state folder."""
    variables: dict[str, str] = Field(default_factory=dict, repr=False)
    """The process environment as it was read, for `commands.install_env`, provider keys and the editor."""

    @property
    def token(self) -> str | None:
        """ORCHESTRATOR_TOKEN: what requests to the daemon carry."""
        return self.variables.get(f"{ENV_PREFIX}TOKEN", "").strip() or None

    def with_token(self, token: str) -> "Environment":
        """Returns the same as if ORCHESTRATOR_TOKEN were set to this."""
        return self.model_copy(update={"variables": {**self.variables, f"{ENV_PREFIX}TOKEN": token}})

    @property
    def user(self) -> str:
        """Who gives the command, as the system names them: one line, never empty."""
        named = (_printable(self.variables.get(name, "")) for name in ("LOGNAME", "USER"))
        return next(filter(None, named), "") or _account()


def _printable(name: str) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in name).split())[:80]


def _account() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user without an entry
        return f"user {os.getuid()}"


def process_variables() -> dict[str, str]:
    """Returns the process environment as it is now, for what needs no settings."""
    return dict(os.environ)


def forget_secrets() -> None:
    """Takes keys, tokens and passwords out of the process environment, for this process and all it starts.

    What was read before keeps them. On Linux they then stand in `/proc/<pid>/environ` no more either.
    """
    # Python copies the environment at its start: only libc knows where the original text lies.
    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_void_p
    secret = (name for name in os.environ if is_secret_name(name) or name in _SECRET_ADDRESSES)
    for name in [name for name in secret if name not in _READ_LATER]:
        place = libc.getenv(os.fsencode(name))
        if place:
            # Unset alone, the value would stay in the memory that the kernel shows.
            ctypes.memset(place, ord("*"), len(os.fsencode(os.environ[name])))
        del os.environ[name]


def packaged(name: str) -> Path:
    """Returns path of a packaged file or folder (`system_prompts`, `contracts`, `examples`, `config.yaml`).

    In a wheel they lie in `orchestrator/_packaged`, in a source tree beside the package.
    """
    inside = _PACKAGE / "_packaged" / name
    return inside if inside.exists() else _PACKAGE.parent / name


def _leaf_names(model: type[BaseModel], given: Sequence[str], prefix: str = "") -> list[str]:
    """Returns every dotted name; entries of a map have the second part of the `given` name, which the user chose."""
    names: list[str] = []
    for name, field in model.model_fields.items():
        annotation = field.annotation
        entry = get_args(annotation)[1] if get_origin(annotation) is dict else None
        if _is_section(entry) and len(given) > 1:
            names += _leaf_names(entry, given, f"{prefix}{name}.{given[1]}.")
        elif _is_section(annotation):
            names += [f"{prefix}{name}", *_leaf_names(annotation, given, f"{prefix}{name}.")]
        else:
            names.append(f"{prefix}{name}")
    return names


def _is_section(annotation: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


class _Loader(yaml.SafeLoader):
    """Scalars as YAML 1.2 has them: `on`, `yes` and `12:30` are texts, `012` is twelve; a name may not stand twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Returns the mapping. Raises ConstructorError with the line of a name that stands twice."""
        names: set[str] = set()
        for name, _ in node.value:
            if isinstance(name, yaml.ScalarNode) and name.value != "<<" and name.value in names:
                raise yaml.constructor.ConstructorError(None, None, f"{name.value!r} stands twice", name.start_mark)
            names.add(str(name.value))
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {}
# (type, its texts, the characters they begin with). PyYAML's own are those of YAML 1.1.
for _type, _text, _first in (
    ("null", "~|null|", ["~", "n", ""]),
    ("bool", "true|false|True|False", list("tfTF")),
    ("int", r"[-+]?\d+", list("-+0123456789")),
    ("float", r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", list("-+.0123456789")),
    ("merge", "<<", ["<"]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_type}", re.compile(f"(?:{_text})$"), _first)
_Loader.add_constructor("tag:yaml.org,2002:int", lambda _, node: int(node.value))


def _parse_yaml(text: str, source: str) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{source}{place}: not valid YAML ({getattr(error, 'problem', error)})") from error
    except RecursionError:
        raise ConfigError(f"{source}: its values are nested too deeply to be read") from None


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        mine = merged.get(key)
        merged[key] = _merge(mine, value) if isinstance(mine, dict) and isinstance(value, Mapping) else value
    return merged


def _nested(names: Sequence[str], value: Any) -> dict[str, Any]:
    for name in reversed(names):
        value = {name: value}
    return dict(value)


def _path(parts: Sequence[str], joint: str, value: Any, held: Any = Settings) -> tuple[str, ...] | None:
    """Returns the names that lead to the setting that `parts` name; None where there is none.

    A key that the user chose, as a model's id, may hold `joint`, at which the name was split: it ends at the first part
    behind which the rest names a setting.
    """
    held = next((one for one in get_args(held) if one is not NoneType), held) if NoneType in get_args(held) else held
    if not parts:
        return ()
    if _is_section(held):
        name = parts[0].lower()
        field = held.model_fields.get(name)
        rest = _path(parts[1:], joint, value, field.annotation) if field is not None else None
        return None if rest is None else (name, *rest)
    if get_origin(held) is not dict:
        return None
    entry = get_args(held)[1]
    if entry is Any:  # fields of another service's request
        return tuple(parts)
    if not _is_section(entry):
        return (joint.join(parts),)
    for end in range(1, len(parts) + isinstance(value, Mapping)):
        if (rest := _path(parts[end:], joint, value, entry)) is not None:
            return (joint.join(parts[:end]), *rest)
    return tuple(filter(None, (joint.join(parts[:-1]), parts[-1])))


def _respelled(path: Sequence[str], tree: Any) -> list[str]:
    """Returns the path with its keys as the tree has them, where they differ in case alone."""
    found = []
    for name in path:
        known = [str(one) for one in tree] if isinstance(tree, Mapping) else []
        alike = [one for one in known if one.casefold() == name.casefold()]
        found.append(name if name in known or not alike else alike[0])
        tree = tree.get(found[-1]) if isinstance(tree, Mapping) else None
    return found


def _load_file(path: Path) -> dict[str, Any]:
    try:
        if not (path.is_file() or is_stream(path)) and path.exists():
            raise ConfigError(f"cannot read configuration {path}: it is no file")  # a pipe would keep us waiting
        content = _parse_yaml(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise ConfigError(f"cannot read configuration {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 (byte {error.start}): save it as UTF-8") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: the top level must be a mapping of names to values")
    return content


def named_settings(path: Path) -> dict[str, Any]:
    """Returns dotted name → value of what a configuration sets. Raises ConfigError."""
    named: dict[str, Any] = {}

    def collect(tree: Mapping[str, Any], prefix: str) -> None:
        for name, value in tree.items():
            if isinstance(value, dict) and value:
                collect(value, f"{prefix}{name}.")
            else:
                named[f"{prefix}{name}"] = value

    collect(_load_file(path), "")
    return named


@cache
def _defaults() -> Mapping[str, Any]:
    """Returns the packaged file, which holds every default, so that it documents them."""
    return _load_file(packaged("config.yaml"))


def is_stream(path: Path) -> bool:
    """Returns whether a configuration comes through a descriptor, as from `<(…)`: it is read once, in no folder."""
    return str(path) in {"/dev/stdin", "/dev/null"} or str(path.parent) in {"/dev/fd", "/proc/self/fd"}


def _validated(tree: Mapping[str, Any]) -> Settings:
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        raise ConfigError("; ".join(_explain(detail) for detail in error.errors())) from error


def _explain(detail: Any) -> str:
    parts = [str(part) for part in detail["loc"]]
    name = ".".join(parts)
    if detail["type"] in {"model_type", "dict_type"}:
        return f"configuration {name} holds names and values, not {detail['input']!r}"
    if detail["type"] != "extra_forbidden":
        return f"configuration {name}: {detail['msg']} (got {detail['input']!r})"
    nearest = process.extractOne(name, _leaf_names(Settings, parts), scorer=fuzz.ratio, score_cutoff=70)
    return f"unknown configuration name {name}" + (f"; did you mean {nearest[0]}?" if nearest else "")


def _environment_overrides(variables: Mapping[str, str]) -> Iterator[tuple[Sequence[str], Any]]:
    """Yields path and value of each variable; the case of names of ours does not count there, that of others does."""
    for name in sorted(variables):
        # One underscore is part of names of ours that are no settings, as ORCHESTRATOR_HOME.
        if name.startswith(ENV_PREFIX) and "__" in name:
            parts, value = name.removeprefix(ENV_PREFIX).split("__"), _parse_yaml(variables[name], name)
            yield _path(parts, "__", value) or [part.lower() for part in parts], value


def _given_overrides(overrides: Sequence[str]) -> Iterator[tuple[Sequence[str], Any]]:
    for text in overrides:
        name, sign, given = text.partition("=")
        if not sign or not name.strip():
            raise ConfigError(f"--set {text}: write it as --set name.of.setting=VALUE")
        parts, value = name.strip().split("."), _parse_yaml(given, f"--set {name}")
        yield _path(parts, ".", value) or parts, value


def _port(text: str) -> int | None:
    if not text.strip():
        return None
    if not text.strip().isdecimal() or int(text) > 65535:
        raise ConfigError(f"PORT is {text!r}: it is a number up to 65535")
    return int(text)


def _expect_token(environ: Mapping[str, str]) -> None:
    token = environ.get(f"{ENV_PREFIX}TOKEN", "").strip()
    if token and len(token) < SHORTEST_TOKEN:
        raise ConfigError(
            f"the variable {ENV_PREFIX}TOKEN has {len(token)} characters and needs at least {SHORTEST_TOKEN}: "
            "set it to a long random text"
        )


def _home(environ: Mapping[str, str], base: Path) -> Path:
    """Returns the state folder; on a platform that forgets all else with each deployment, it is on the volume."""
    named, volume = environ.get(f"{ENV_PREFIX}HOME"), environ.get("RAILWAY_VOLUME_MOUNT_PATH")
    return Path(named) if named else Path(volume or base) / ".orchestrator"


def find_config(folder: Path) -> Path | None:
    """Returns the configuration that a command in this folder reads when it names none."""
    path = folder / "config.yaml"
    return path if path.is_file() else None


def load(
    config: Path | None = None,
    overrides: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> tuple[Settings, Environment]:
    """Reads settings in the order --set, environment, file, packaged default. Raises ConfigError with one sentence."""
    environ = process_variables() if variables is None else dict(variables)
    here = cwd or Path.cwd()
    found = config or find_config(here)
    tree = _defaults()
    if found is not None:
        tree = _merge(tree, _load_file(found))
    for path, value in _environment_overrides(environ):
        tree = _merge(tree, _nested(_respelled(path, tree), value))
    for path, value in _given_overrides(overrides):
        tree = _merge(tree, _nested(path, value))
    base = found.resolve().parent if found and not is_stream(found) else here
    home = _home(environ, base)
    _expect_token(environ)
    return _validated(tree), Environment(
        home=home.absolute(),
        config_file=found,
        base_dir=base,
        database_url=environ.get("DATABASE_URL") or None,
        port=_port(environ.get("PORT", "")),
        url=(environ.get(f"{ENV_PREFIX}URL") or "").rstrip("/") or None,
        variables=environ,
    )
