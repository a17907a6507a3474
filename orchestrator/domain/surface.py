"""What a persona is told about the project as it is: the result of the project scan."""

import sys
from functools import lru_cache

from orchestrator.domain.base import Value


class FileExports(Value):
    """Names another file may import from this one."""

    path: str
    names: tuple[str, ...]


class Endpoint(Value):
    """One way into the project by HTTP, as its source declares it."""

    method: str
    """GET, POST …, WS; ANY when the source does not say; MOUNT when other routes are hung in below `path`."""
    path: str
    """As written, behind the prefix of its own file's router; parameters keep their framework's spelling."""
    file: str
    target: str = ""
    """The source's name of what answers, or of what is mounted."""


class Table(Value):
    """One database table, as SQL, a model or a database file declares it."""

    name: str
    columns: tuple[str, ...]
    """`name type constraints`, and table constraints, in order."""
    file: str


class Surface(Value):
    """The project at one commit, small enough for a prompt. Paths are relative, sorted."""

    commit: str
    files: tuple[str, ...]
    exports: tuple[FileExports, ...] = ()
    dependencies: tuple[str, ...] = ()
    """Names from every manifest, normalised."""
    runtime: str = ""
    """Facts from manifests that matter to a plan, e.g. `requires-python >=3.11`; empty when unknown."""
    runtimes: dict[str, str] = {}
    """The same of projects inside the project, by their folders."""
    endpoints: tuple[Endpoint, ...] = ()
    tables: tuple[Table, ...] = ()
    patterns: tuple[str, ...] = ()
    """How the code is written, one sentence each, counted from the sources."""
    test_style: tuple[str, ...] = ()
    """How the tests are written, one sentence each, counted from the test files."""


def sharing(surface: Surface) -> Surface:
    """An equal Surface that shares its parts with those of other stories: many are held while their stories run.

    Of one read from a record every path and name is an object of its own.
    """
    exports = tuple(exports_of(entry.path, entry.names) for entry in surface.exports)
    return surface.model_copy(update={"files": shared_names(surface.files), "exports": exports})


def shared_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """The same names; the same tuple for equal ones, as long as some dozens of others were not asked for since."""
    return _kept(tuple(map(sys.intern, names)))


@lru_cache(maxsize=32)
def _kept(names: tuple[str, ...]) -> tuple[str, ...]:
    """Itself, or the equal one that was there before; what is asked with is kept too, so it holds no other strings."""
    return names


def exports_of(path: str, names: tuple[str, ...]) -> FileExports:
    """The same object for the same path and names, as long as some thousand others were not asked for since."""
    return _exports(sys.intern(str(path)), tuple(map(sys.intern, names)))


@lru_cache(maxsize=4096)
def _exports(path: str, names: tuple[str, ...]) -> FileExports:
    return FileExports(path=path, names=names)
