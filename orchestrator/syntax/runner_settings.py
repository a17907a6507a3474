"""What a manifest says to pytest that decides which tests run, or with what help."""

import configparser
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from posixpath import basename, splitext

_CUSTOMIZE = frozenset({"sitecustomize.py", "usercustomize.py"})
_HARMLESS = frozenset(
    {"pythonpath", "minversion", "markers", "filterwarnings", "console_output_style", "asyncio_mode"}
    | {"anyio_mode", "timeout", "xfail_strict"}
    | {"asyncio_default_fixture_loop_scope", "asyncio_default_test_loop_scope", "log_cli", "log_level", "log_cli_level"}
)
"""Settings that neither choose tests nor load anything."""
_HARMLESS_OPTION = re.compile(
    r"^(-q+|-v+|-l|-r[A-Za-z]+|--showlocals|--strict-(markers|config)|--(tb|color|durations|import-mode)=\w+)$"
)


def runner_settings(path: str, text: str) -> Mapping[str, str]:
    """Setting → value of the pytest section of a pyproject.toml or setup.cfg, harmless ones left out. Never raises.

    Of `addopts` only the options that are not harmless count. A text that cannot be read has none. A module that every
    interpreter imports as it starts, the tester's too, is one setting as a whole.
    """
    if basename(path).lower() in _CUSTOMIZE and text.strip():
        return {splitext(basename(path))[0]: text}
    reader = {"pyproject.toml": _from_toml, "setup.cfg": _from_ini}.get(basename(path).lower())
    try:
        section = dict(reader(text)) if reader else {}
    except (ValueError, TypeError, AttributeError, RecursionError, configparser.Error):
        return {}
    options = " ".join(_options(section.pop("addopts", "")))
    found = {name: _plain(value) for name, value in section.items() if name not in _HARMLESS}
    return found | ({"addopts": options} if options else {})


def _from_toml(text: str) -> Mapping[str, object]:
    section = dict(tomllib.loads(text.removeprefix("\ufeff")).get("tool", {}).get("pytest", {}))
    return section | dict(section.pop("ini_options", {}))


def _from_ini(text: str) -> Mapping[str, object]:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text.removeprefix("\ufeff"))
    return dict(parser["tool:pytest"]) if parser.has_section("tool:pytest") else {}


def _options(value: object) -> Iterator[str]:
    words = [str(word) for word in value] if isinstance(value, list) else shlex.split(str(value))
    yield from (word for word in words if not _HARMLESS_OPTION.match(word))


def _plain(value: object) -> str:
    return " ".join(str(entry) for entry in value) if isinstance(value, list) else " ".join(str(value).split())
