"""What Python's files beside the manifests bring: lock files, constraints, and the scripts of manifests."""

from collections.abc import Iterator
from posixpath import basename

from orchestrator.contract.manifests import install_targets, read_manifest
from orchestrator.contract.world import World
from orchestrator.domain.findings import Finding, Where, critical, major, policy
from orchestrator.syntax.python_locks import is_lock, read_lock

_SCRIPTED = frozenset({"pyproject.toml", "pipfile", "pixi.toml"})
_FIX = "Name the package and a version, nothing else; stay inside the project."


def check_python_lock(world: World, path: str, text: str, before: str | None, where: Where) -> Iterator[Finding]:
    """Places outside the usual index and the project that a lock file takes packages from; packages that the scripts of
    a manifest install.

    What the text at the base had is not held against it. A lock file that cannot be read is a major
    `contract.unreadable`.
    """
    if basename(path).lower() in _SCRIPTED:
        yield from _scripts(world, path, text, before, where)
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


def _scripts(world: World, path: str, text: str, before: str | None, where: Where) -> Iterator[Finding]:
    old = set(read_manifest(path, before).commands) if before is not None else set()
    lines = (line for task in read_manifest(path, text).commands if task not in old for line in task.splitlines())
    fix = f"Allowed dependencies: {', '.join(sorted(world.dependencies)) or 'none'}."
    for name in dict.fromkeys(name for line in lines for name in install_targets(line)):
        if name not in world.dependencies | {"pip", "setuptools", "wheel"}:
            message = f"a script of `{path}` installs `{name[:120]}`, which nothing declares"
            place = where.model_copy(update={"field": name[:160]})
            yield policy("contract.dependency", message, where=place, fix=fix)
