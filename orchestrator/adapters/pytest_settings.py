"""Which file of a project configures pytest, and what it says about import paths (pure: texts in, values out).

pytest itself would climb out of the project to find a configuration; a story's tree lies below folders that are not its
own, so the file is chosen here.
"""

import configparser
import re
import shlex
import tomllib
from collections.abc import Callable, Collection

_ALWAYS = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini")
_WHEN = {
    "pyproject.toml": re.compile(r"^\s*\[\s*tool\s*\.\s*[\"']?pytest\b", re.MULTILINE),
    "tox.ini": re.compile(r"^\[pytest\]", re.MULTILINE),
    "setup.cfg": re.compile(r"^\[tool:pytest\]", re.MULTILINE),
}


def settings_file(root_files: Collection[str], read: Callable[[str], str | None]) -> str | None:
    """Name of the file in the project's root that pytest would take there, in its order of precedence, or None."""
    for name in _ALWAYS:
        if name in root_files and read(name) is not None:
            return name
    for name, section in _WHEN.items():
        if name in root_files and section.search(read(name) or ""):
            return name
    return None


def import_paths(name: str, text: str) -> tuple[str, ...]:
    """The `pythonpath` entries of that file, relative to the root as written; none when it cannot be understood."""
    return _listed(name, text, "pythonpath")


def test_paths(name: str, text: str) -> tuple[str, ...]:
    """The `testpaths` entries of that file, likewise."""
    return _listed(name, text, "testpaths")


def _listed(name: str, text: str, key: str) -> tuple[str, ...]:
    try:
        value = _from_toml(name, text, key) if name.endswith(".toml") else _from_ini(text, key)
        return tuple(shlex.split(value)) if isinstance(value, str) else tuple(str(entry) for entry in value)
    except (ValueError, TypeError, AttributeError, configparser.Error):
        return ()


def _from_toml(name: str, text: str, key: str) -> list[str] | str:
    data = tomllib.loads(text)
    table = data.get("tool", {}) if name == "pyproject.toml" else data
    section = table.get("pytest", {})
    found: list[str] | str = {**section, **section.get("ini_options", {})}.get(key, [])
    return found


def _from_ini(text: str, key: str) -> str:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    sections = ("pytest", "tool:pytest")
    return next((parser[name][key] for name in sections if parser.has_option(name, key)), "")
