"""Where Python packages usually come from, and what of an address or a path leads elsewhere."""

import re

_USUAL = frozenset({"pypi.org", "files.pythonhosted.org", "conda.anaconda.org", "repo.anaconda.com"})
_ADDRESS = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://(?P<host>[^/?#]*)")
_USUAL_CHANNELS = frozenset({"defaults", "conda-forge", "nodefaults"})


def is_usual(address: str) -> bool:
    """Whether an address is one of the usual index, or of the files that it points at."""
    match = _ADDRESS.match(address.strip())
    return match is not None and address.strip().startswith("https://") and match["host"].lower() in _USUAL


def is_address(text: str) -> bool:
    """Whether a text has the form of an address."""
    return _ADDRESS.match(text.strip()) is not None


def host_of(address: str) -> str:
    """Scheme and host of an address, for people."""
    match = _ADDRESS.match(address.strip())
    return match[0] if match else address


def leaves(path: str) -> bool:
    """Whether a path may lead out of the project."""
    return path.startswith(("/", "~", "\\", "$")) or ".." in re.split(r"[/\\]", path) or ":" in path[:3]


def is_usual_channel(channel: str) -> bool:
    """Whether conda has this channel without being told where it is."""
    return channel.lower() in _USUAL_CHANNELS or is_usual(channel)
