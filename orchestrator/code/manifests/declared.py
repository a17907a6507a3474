"""What a reader of one manifest gathers, and which addresses and paths lead elsewhere than packages usually do."""

import re
from collections.abc import Mapping
from posixpath import join, normpath

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from orchestrator.core.paths import is_manifest, unsafe_reason

USUAL = frozenset({"pypi.org", "files.pythonhosted.org", "conda.anaconda.org", "repo.anaconda.com"})
"""Hosts that Python packages usually come from."""
_ADDRESS = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://(?P<host>[^/?#]*)")
_USUAL_CHANNELS = frozenset({"defaults", "conda-forge", "nodefaults"})


def is_usual(address: str) -> bool:
    """Returns whether an address is one of the usual index, or of the files that it points at."""
    match = _ADDRESS.match(address.strip())
    return match is not None and address.strip().startswith("https://") and match["host"].lower() in USUAL


def is_address(text: str) -> bool:
    """Returns whether a text has the form of an address."""
    return _ADDRESS.match(text.strip()) is not None


def host_of(address: str) -> str:
    """Scheme and host of an address, for people."""
    match = _ADDRESS.match(address.strip())
    return match[0] if match else address


def leaves(path: str) -> bool:
    """Returns whether a path may lead out of the project."""
    return path.startswith(("/", "~", "\\", "$")) or ".." in re.split(r"[/\\]", path) or ":" in path[:3]


def is_usual_channel(channel: str) -> bool:
    """Returns whether conda has this channel without being told where it is."""
    return channel.lower() in _USUAL_CHANNELS or is_usual(channel)


class Found:
    """Names, scripts and problems, gathered one by one; see Manifest for what the fields become."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.pinned: set[str] = set()
        self.sources: set[str] = set()
        self.local: set[str] = set()
        self.modules: set[str] = set()
        self.linked: set[str] = set()
        self.scripts: dict[str, str] = {}
        self.bad: list[str] = []

    def requirement(self, entry: object) -> None:
        """One PEP 508 requirement, or the note that it is none; an address in it is a source."""
        if not isinstance(entry, str):
            self.bad.append(f"a requirement is no text: {entry!r}"[:200])
            return
        try:
            found = Requirement(entry)
        except InvalidRequirement:
            self.bad.append(f"`{entry[:120]}` is no requirement")
            return
        name = str(canonicalize_name(found.name))
        self.names.add(name)
        if found.url:
            self.sources.add(f"{name} @ {found.url}".lower())

    def requirements(self, entries: object, what: str) -> None:
        """A list of requirements; absent is fine."""
        if entries is None:
            return
        if not isinstance(entries, list):
            self.bad.append(f"{what} is no list")
            return
        for entry in entries:
            if not isinstance(entry, Mapping):  # {include-group = …} names a list of the same file
                self.requirement(entry)

    def included(self, file: str, folder: str, how: str) -> None:
        """A file whose requirements count too: one that is a manifest of the project is judged by itself.

        Any other would hide what it asks for and stands as a source.
        """
        path = normpath(join(folder, file))
        if "://" in file or unsafe_reason(path) is not None or not is_manifest(path):
            self.names.add(f"{how} {file}".lower())

    def channel(self, channel: str) -> None:
        """A place that conda takes packages from."""
        if not is_usual_channel(channel):
            self.sources.add(f"channel {channel}".lower())


def table(value: object, key: str) -> Mapping[str, object]:
    """Returns the table under `key`, empty when absent or null. Raises ValueError when something else stands there."""
    inner = value.get(key) if isinstance(value, Mapping) else None
    if inner is None:
        return {}
    if not isinstance(inner, Mapping):
        raise ValueError(f"`{key}` is no table")
    return inner
