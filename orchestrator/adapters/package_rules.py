"""Which packages may be asked for at all: the list of names in `sandbox.packages`."""

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase


def refused_packages(names: Iterable[str], allowed: Sequence[str]) -> Iterator[str]:
    """A sentence for each name that is not on the list; an empty list allows all.

    Names are compared as the registries do: without regard to case, `-`, `_` and `.` alike.
    """
    patterns = [_plain(pattern) for pattern in allowed]
    for name in names:
        if patterns and not any(fnmatchcase(_plain(name), pattern) for pattern in patterns):
            yield f"`{name[:100]}` is not on the list of packages that may be used (sandbox.packages)"


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
