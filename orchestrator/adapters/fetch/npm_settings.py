"""npm's settings of this machine: its user's `.npmrc`, as variables, and what they show to which registry."""

import base64
import os
import re
from collections.abc import Mapping
from pathlib import Path

from orchestrator.errors import ConfigError

REGISTRY = "https://registry.npmjs.org/"
_TAKEN = re.compile(r"(@[^:/\s]+:)?registry|//\S+:(_authToken|_auth|username|_password)|(https-|no)?proxy|cafile")
_REFERENCE = re.compile(r"\$\{([^}]+)\}")
_SECRET = re.compile(r"npm_config_(//.+/):(_authToken|_auth|username|_password)", re.IGNORECASE)


def npm_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Registries, certificates, proxies and credentials of the user's `.npmrc`. Blocks.

    An `.npmrc` that cannot be read says nothing, as for npm.
    """
    place = variables.get("NPM_CONFIG_USERCONFIG") or os.path.join(variables.get("HOME", "/nonexistent"), ".npmrc")
    try:
        lines = Path(place).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        lines = []
    found = {"NPM_CONFIG_REGISTRY": REGISTRY}
    for line in lines:
        name, _, value = (word.strip() for word in line.partition("="))
        if _TAKEN.fullmatch(name):
            plain = _REFERENCE.sub(lambda match: variables.get(match[1], match[0]), value.strip("\"'"))
            found[_variable(name)] = plain
    return found


def _variable(name: str) -> str:
    """npm takes names of registries as they are, and others in upper case."""
    return f"npm_config_{name}" if name[0] in "@/" else f"NPM_CONFIG_{name.upper().replace('-', '_')}"


def is_npm_secret(name: str) -> bool:
    """Whether the variable is shown to a registry."""
    return _SECRET.fullmatch(name) is not None


def npm_credentials(variables: Mapping[str, str]) -> dict[str, str]:
    """Values of `Authorization` by the part of an address that they are for, `//host/path/`. Raises ConfigError."""
    found: dict[str, dict[str, str]] = {}
    for name, value in variables.items():
        if match := _SECRET.fullmatch(name):
            found.setdefault(match[1], {})[match[2].lower()] = value
    return {prefix: shown for prefix, words in found.items() if (shown := _header(words)) is not None}


def _header(words: Mapping[str, str]) -> str | None:
    if "_authtoken" in words:
        return f"Bearer {words['_authtoken']}"
    if "_auth" in words:
        return f"Basic {words['_auth']}"
    if "username" in words and "_password" in words:
        try:
            return basic(words["username"], base64.b64decode(words["_password"]).decode())
        except ValueError as error:
            raise ConfigError("npm's setting `_password` is not base64") from error
    return None


def basic(user: str, password: str) -> str:
    """`Authorization` that shows user and password."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
