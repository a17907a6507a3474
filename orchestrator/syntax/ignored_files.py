"""Files that git leaves out, by the patterns of .gitignore: what a project makes itself, and has when it runs."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from posixpath import basename, dirname


def is_ignore_file(path: str) -> bool:
    """Whether git reads this file for patterns."""
    return basename(path) == ".gitignore"


def ignored_patterns(path: str, text: str) -> tuple[str, ...]:
    """Returns the patterns of a .gitignore, seen from the repository's root; those that take back are left out.

    A pattern with a `/` inside holds from its folder, any other at every depth below: `**/` stands before that one.
    """
    if not is_ignore_file(path):
        return ()
    folder = f"{dirname(path)}/" if dirname(path) else ""
    lines = (line.strip() for line in text.splitlines())
    plain = [line.rstrip("/") for line in lines if line and not line.startswith(("#", "!"))]
    return tuple(
        f"{folder}{line.lstrip('/')}" if "/" in line else f"{folder}**/{line}" for line in plain if line.strip("/*")
    )


def is_ignored(path: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns covers the path, or a folder above it."""
    parts = path.split("/")
    places = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
    return any(fnmatchcase(f"/{place}", f"/{pattern}") for pattern in patterns for place in places)
