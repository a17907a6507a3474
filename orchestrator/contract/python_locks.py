"""What Python's files beside the manifests bring: lock files and constraints."""

from collections.abc import Iterator

from orchestrator.contract.world import World
from orchestrator.domain.findings import Finding, Where, critical, major
from orchestrator.syntax.python_locks import is_lock, read_lock

_FIX = "Name the package and a version, nothing else; stay inside the project."


def check_python_lock(world: World, path: str, text: str, before: str | None, where: Where) -> Iterator[Finding]:
    """Places outside the usual index and the project that a lock file takes packages from.

    What the text at the base had is not held against it. A lock file that cannot be read is a major
    `contract.unreadable`.
    """
    if not is_lock(path):
        return
    try:
        new = read_lock(path, text).sources
    except (ValueError, RecursionError) as error:
        if text != before:
            message = f"`{path}` cannot be read: {str(error)[:200]}"
            yield major("contract.unreadable", message, where=where, fix="Leave it as it is, or write it anew.")
        return
    for source in sorted(new - _known(path, before)):
        message = f"`{path}` takes packages from elsewhere: `{source[:160]}`"
        yield critical("contract.source", message, where=where, fix=_FIX)


def _known(path: str, before: str | None) -> set[str]:
    try:
        return read_lock(path, before).sources if before is not None else set()
    except (ValueError, RecursionError):
        return set()
