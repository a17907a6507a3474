"""Which packages a shell text would install."""

import re
from collections.abc import Sequence
from contextlib import suppress

from orchestrator.syntax.install_net import caught
from orchestrator.syntax.install_reader import InstallReader
from orchestrator.syntax.install_state import FROM_INPUT, TOO_INTRICATE
from orchestrator.syntax.install_tools import MANAGERS
from orchestrator.syntax.shell_expand import readable

__all__ = ["FROM_INPUT", "TOO_INTRICATE", "install_targets", "machine_targets", "plain_install_targets"]

_PLAIN = re.compile(r"^[a-z0-9][a-z0-9+._-]*$")
_LIBRARY = re.compile(
    r"^(python[\d.]*|py[\d.]*|node(js)?|npm|ruby[\d.]*|rubygems?|perl[\d.]*|golang|lua[\d.]*|php-pear|r-cran)-"
    r"(?!(pip|venv|dev|devel|full|minimal|distutils|setuptools|wheel|virtualenv|bundler)$)"
    r"|^lib(js|rust|ghc)-|^lib.*-(perl|ruby|java)$"
)
"""Libraries of languages as systems package them."""


def install_targets(command: str) -> tuple[str, ...]:
    """Names of the packages that `command`, a line or a script, installs or adds: normalised, each once, in order.

    Reads it as a shell would: quotes, variables it sets itself, braces, here-documents, pipes, functions, aliases,
    `eval`, wrappers such as `env` and `sudo`, and the literals of `python -c` and its kind. Knows the package managers
    of Python, of JavaScript, of systems and of other languages (`install_tools`). Local paths inside the project and
    requirement files that are manifests are no packages.

    Fails closed: what has no name (an address, a variable, another index, a path that leaves the project) stands as its
    own text, and so does a command that cannot be known, such as a download that is piped into a shell. Never raises.
    """
    text = readable(command)
    reader = InstallReader(len(text))
    found = reader.state.names
    try:
        reader.read(text)
        return (*found, *caught(text, found, reader.state.data))
    except RecursionError:
        return (*found, TOO_INTRICATE)


def machine_targets(command: str) -> frozenset[str]:
    """Those of `install_targets` that make a machine and no program: plain names that only a system's package manager
    brings, no library of a language among them (`python3-evil`), and package managers themselves. Never raises."""
    text = readable(command)
    reader = InstallReader(len(text))
    try:
        reader.read(text)
    except RecursionError:
        return frozenset()
    found = reader.state.names
    system = {name for name in found.keys() - reader.state.ordinary if _PLAIN.match(name) and not _LIBRARY.match(name)}
    return frozenset(system) | (found.keys() & MANAGERS)


def plain_install_targets(prose: str) -> Sequence[str]:
    """Names that install commands inside a description bring; nothing is said of what cannot be known. Never raises."""
    reader = InstallReader(len(prose), guesses=False)
    with suppress(RecursionError):
        reader.read(readable(prose))
    return tuple(name for name in reader.state.names if " " not in name and "$" not in name)
