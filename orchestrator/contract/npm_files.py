"""What files beside package.json bring: lock files, catalogs, workspaces, import maps, TypeScript's configuration."""

from collections.abc import Iterator
from posixpath import basename, dirname

from orchestrator.contract.javascript_modules import foreign_module
from orchestrator.contract.world import World
from orchestrator.domain.findings import Finding, Where, critical, major, policy
from orchestrator.syntax.manifest_found import Found
from orchestrator.syntax.manifest_npm import read_package_json
from orchestrator.syntax.module_names import names_modules
from orchestrator.syntax.npm_configs import is_npm_config, read_npm_config

_FIX = "Name the package and a version, nothing else; stay inside the project."


def check_npm_file(world: World, path: str, text: str, before: str | None, where: Where, fix: str) -> Iterator[Finding]:
    """Packages that such a file brings beyond the contract, and places outside the registry and the project.

    What its text at the base brought is not held against it. Of package.json only the aliases are judged here. A text
    that cannot be read is a major `contract.unreadable`.
    """
    if not is_npm_config(path) and basename(path).lower() != "package.json":
        return
    new, problem = _read(path, text)
    old, _ = _read(path, before or "")
    if problem and text != before:
        yield major("contract.unreadable", f"`{path}` cannot be read: {problem}", where=where, fix="Write it anew.")
    names, sources = new.names | new.pinned, set(new.sources)
    for module in new.modules - old.modules:
        foreign = foreign_module(world, path, module, types=names_modules(path))
        names |= {foreign.package} if foreign and foreign.package else set()
        sources |= {module} if "://" in module or (foreign and foreign.by_path) else set()
    known = world.dependencies | world.own_packages | new.linked | old.names | old.pinned
    for name in sorted(names - known):
        message = f"`{path}` brings the package `{name[:120]}`, which the plan does not declare"
        yield policy("contract.dependency", message, where=where.model_copy(update={"field": name[:160]}), fix=fix)
    for source in sorted(sources - old.sources):
        message = f"`{path}` takes something from elsewhere: `{source[:160]}`"
        yield critical("contract.source", message, where=where, fix=_FIX)


def _read(path: str, text: str) -> tuple[Found, str]:
    """What the file brings and what is wrong with it; of package.json, which is read elsewhere too, only aliases."""
    found, only = Found(), Found()
    if not text:
        return found, ""
    try:
        if basename(path).lower() != "package.json":
            return read_npm_config(path, text), ""
        only.modules = read_package_json(text, dirname(path)).modules
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        return found, "" if basename(path).lower() == "package.json" else str(error)[:200]
    return only, ""
