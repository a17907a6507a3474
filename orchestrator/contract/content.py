"""What the text of a file asks for: packages, places they come from, settings that are not the developer's."""

import re
from collections.abc import Iterator, Mapping, Set
from contextlib import suppress
from posixpath import basename, dirname

from orchestrator.code.check import is_program
from orchestrator.code.installs import INSTALLERS, read_installs
from orchestrator.code.manifests.declared import Found
from orchestrator.code.manifests.manifest import is_lock, read_lock, read_manifest
from orchestrator.code.manifests.npm import is_npm_config, names_modules, read_npm_config, read_package_json
from orchestrator.code.shell import runner_settings
from orchestrator.contract.imports import check_imports, foreign_module, is_source, seen_as
from orchestrator.contract.world import World
from orchestrator.core.finding import Finding, Where, critical, major, policy
from orchestrator.core.paths import is_manifest
from orchestrator.core.secrets import masks_in
from orchestrator.core.value import hidden_characters

_FIX = "Name the package and a version, nothing else; stay inside the project."


def check_npm_file(world: World, path: str, text: str, before: str | None, where: Where) -> Iterator[Finding]:
    """Packages that such a file brings beyond the contract, and places outside the registry and the project.

    Problems of its text at the base do not count. Of package.json only the aliases are judged here. A text
    that cannot be read is a major `contract.unreadable`.
    """
    if not is_npm_config(path) and basename(path).lower() != "package.json":
        return
    new, problem = _read(path, text)
    old, _ = _read(path, before or "")
    if problem and text != before:
        yield major("contract.unreadable", f"`{path}` cannot be read: {problem}", where=where, fix="Rewrite it.")
    names, sources = new.names | new.pinned, set(new.sources)
    for module in new.modules - old.modules:
        foreign = foreign_module(world, path, module)
        names |= {foreign.package} if foreign and foreign.package else set()
        sources |= {module} if "://" in module or (foreign and foreign.by_path) else set()
    yield from _brought(world, path, where, names - new.linked - old.names - old.pinned, sources - old.sources)


def _brought(world: World, path: str, where: Where, names: Set[str], sources: Set[str]) -> Iterator[Finding]:
    """Packages that a file brings beyond the contract, and places outside the index and the project."""
    for name in sorted(names - world.dependencies - world.own_packages):
        message = f"`{path}` brings the package `{name[:120]}`, which the plan does not declare"
        yield policy("contract.dependency", message, where=_of(where, name), fix=allowed(world))
    for source in sorted(sources):
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


def check_lock(world: World, path: str, text: str, before: str | None, where: Where) -> Iterator[Finding]:
    """Places outside the usual index and the project that a lock file takes packages from.

    What the text at the base had is not held against it. A lock file that cannot be read is a major
    `contract.unreadable`.
    """
    if not is_lock(path):
        return
    try:
        new = read_lock(path, text)
    except (ValueError, RecursionError) as error:
        if text != before:
            message = f"`{path}` cannot be read: {str(error)[:200]}"
            yield major("contract.unreadable", message, where=where, fix="Leave it as it is, or rewrite it.")
        return
    old: frozenset[str] = frozenset()
    with suppress(ValueError, RecursionError):
        old = read_lock(path, before) if before is not None else old
    yield from _brought(world, path, where, frozenset(), new - old)


_SOURCES = {
    ".npmrc": re.compile(
        r"""^\s*["']?(@[^:=]+:)?(registry|ignore-scripts(?!\s*=\s*true\s*$)|script-shell|node-options|_\w+|//.*|replace-registry-host"""
        r"|(https?-|no)?proxy|strict-ssl|ca(file)?|cert|key(file)?|(user|global)config|init[.-]module|onload-script|git"
        r"|shell|editor|viewer|browser|(global-)?pnpmfile|ignore-pnpmfile|use-node-version|node-mirror.*|prefix"
        r"""|dangerously-allow-all-builds|verify-store-integrity|allow-git|allow-remote|allow-file)["']?(\[\])?\s*(=|:|$)""",
        re.M | re.I,
    ),
    ".yarnrc": re.compile(
        r"^\s*[\"']?(--[\w.-]*)?(@[^:]+:)?(registry|yarn-path|yarn-offline-mirror|cafile|(https?-)?proxy|strict-ssl"
        r"|ignore-scripts|use-yarnrc|script-shell|plugins?|userconfig)\b",
        re.M | re.I,
    ),
    ".yarnrc.yml": re.compile(
        r"""^.*?["']?\b(npmRegistryServer|npmScopes|npmRegistries|npmAuth\w+|yarnPath|plugins|enableScripts|packageSources"""
        r"|unsafeHttpWhitelist|https?Proxy|\w*[cC]aFilePath|https(Cert|Key)FilePath|networkSettings|enableStrictSsl"
        r"""|injectEnvironmentFiles|checksumBehavior|defaultProtocol|npmMinimalAgeGate)\b["']?\s*:""",
        re.M,
    ),
    ".pnpmfile.cjs": re.compile(r"^.*\S.*$", re.M),
    ".pnpmfile.mjs": re.compile(r"^.*\S.*$", re.M),
    "pnpmfile.js": re.compile(r"^.*\S.*$", re.M),
    ".env": re.compile(
        r"^\s*(export\s+)?(npm_config|yarn|bun_config|corepack|pip|uv)_\w+\s*=|^\s*node_options\s*=", re.M | re.I
    ),
    "pip.conf": re.compile(r"^\s*[\w-]*(index|links|trusted)[\w-]*\s*=", re.M),
    "pip.ini": re.compile(r"^\s*[\w-]*(index|links|trusted)[\w-]*\s*=", re.M),
    "uv.toml": re.compile(r"^\s*([\w-]*index[\w-]*|find-links|\[\[?index)", re.M),
    "bunfig.toml": re.compile(
        r"^[^#\n]*\b(registry|scopes|preload|ca(file)?|scanner|plugins|loader|shell)\b[\"']?\s*([=.]|\])", re.M
    ),
}
"""Files that say where packages come from or what runs when they are installed → what says it."""
_PLAINLY = "Write the command plainly: the tool, its verb and the names of the packages."
_GIT_SETTINGS = {
    ".gitmodules": re.compile(r"^.*\S.*$", re.M),
    ".gitattributes": re.compile(r"^.*\b(filter|diff|merge)=\S+.*$", re.M),
    ".gitconfig": re.compile(r"^.*\S.*$", re.M),
}


def must_be_read(path: str) -> bool:
    """Whether a changed file at this path says something about packages or settings, so that its text must be known."""
    name = basename(path).lower()
    return (
        is_source(path)
        or is_manifest(path)
        or is_npm_config(path)
        or names_modules(path)
        or is_lock(path)
        or name in _SOURCES
        or name in _GIT_SETTINGS
    )


def check_text(world: World, path: str, text: str, before: str | None, where: Where) -> Iterator[Finding]:
    """What a file's text asks for beyond the contract; what it asked for at the base is not held against it."""
    yield from _masked(f"`{path}`", text, before, where)
    path = seen_as(path, text)
    for finding in check_imports(world, path, text, before):
        place = where.model_copy(update={"line": finding.where.line, "field": finding.where.field})
        yield finding.model_copy(update={"where": place})
    yield from _manifest(world, path, text, before, where)
    yield from check_npm_file(world, path, text, before, where)
    yield from check_lock(world, path, text, before, where)
    yield from _runner_settings(world, path, text, before, where)
    yield from _settings(path, text, before, where)
    yield from _installing(world, path, text, before, where)


def check_hidden(path: str, text: str, before: str | None, where: Where) -> Iterator[Finding]:
    """Yields a question about a program's source that reads otherwise than it runs, but for lines of `before`."""
    if not is_program(path, text) or not hidden_characters(text):
        return
    old = set((before or "").split("\n"))
    fresh = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line not in old]
    found = [(number, name) for number, line in fresh for name in hidden_characters(line)]
    if found:
        names = ", ".join(dict.fromkeys(name for _, name in found))
        message = f"`{path}` holds control characters by which it may read otherwise than it runs: {names}"
        place = where.model_copy(update={"line": found[0][0]})
        yield policy("contract.hidden_text", message, where=place, fix="Write an escape in their place.")


def _installing(world: World, path: str, text: str, before: str | None, where: Where) -> Iterator[Finding]:
    """Packages that the scripts of a manifest install, which its package manager runs by itself."""
    new, old = (read_installs("\n".join(read_manifest(path, one).commands)) for one in (text, before or ""))
    for name in (name for name in new.packages if name not in world.dependencies | INSTALLERS | set(old.packages)):
        message = f"`{path}` installs `{name[:120]}`, which nothing declares"
        yield policy("contract.dependency", message, where=_of(where, name), fix=allowed(world))


def check_command(world: World, command: str, where: Where) -> Iterator[Finding]:
    """What a delivery's command installs beyond the contract, and secrets that it names."""
    shown = " ".join(command.split())[:80]
    yield from _masked(f"`{shown}`", command, None, where)
    found = read_installs(command)
    for name in found.packages:
        if name not in world.dependencies | INSTALLERS:
            message = f"`{shown}` installs `{name[:120]}`, which nothing declares"
            yield policy("contract.dependency", message, where=_of(where, name), fix=allowed(world))
    for unclear in found.unclear[:1]:
        yield major("contract.unreadable", f"what `{unclear}` installs cannot be known", where=where, fix=_PLAINLY)


def _masked(what: str, text: str, before: str | None, where: Where) -> Iterator[Finding]:
    """A name that prompts give a secret, where the secret itself belongs: written down, the secret would be lost."""
    old = set(masks_in(before or ""))
    for name in [name for name in masks_in(text) if name not in old][:1]:
        message = f"{what} holds `{name}`, which only stands for a secret"
        fix = "Leave the place as it was, or read the value from the environment when the program runs."
        yield critical("contract.masked_secret", message, where=where, fix=fix)


def _of(where: Where, name: str) -> Where:
    """Returns the place with the package's name, by which an amendment can ask for it."""
    return where.model_copy(update={"field": name[:160]})


def allowed(world: World) -> str:
    """Returns the fix of a package that may not be used: the list of those that may."""
    return f"Allowed dependencies: {', '.join(sorted(world.dependencies)) or 'none'}."


def _manifest(world: World, path: str, text: str, before: str | None, where: Where) -> Iterator[Finding]:
    """Dependencies that a manifest adds beyond the allowed ones, and places it takes them from."""
    if not is_manifest(path):
        return
    new = read_manifest(path, text, code="contract.unreadable")
    old = read_manifest(path, before or "") if before is not None else None
    had = {problem.message for problem in old.problems} if old else set()
    yield from (p.model_copy(update={"where": where}) for p in new.problems if p.message not in had)
    known = new.linked | (old.dependencies | old.pinned if old else frozenset())
    sources = new.sources - world.dependencies - (old.sources if old else frozenset())
    yield from _brought(world, path, where, (new.dependencies | new.pinned) - known, sources)


def _runner_settings(world: World, path: str, text: str, before: str | None, where: Where) -> Iterator[Finding]:
    """Settings that choose tests or load plugins are the tester's, wherever they stand."""
    old, new = runner_settings(path, before or ""), runner_settings(path, text)
    changed = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    if changed == ["testpaths"] and world.tests_below(new.get("testpaths", ".").split()):
        return
    if changed:
        message = f"`{path}` changes which tests run, or with what: {', '.join(changed)}"
        fix = "Leave the settings of the test runner as they are."
        yield policy("contract.test_settings", message, where=where, fix=fix)


def _settings(path: str, text: str, before: str | None, where: Where) -> Iterator[Finding]:
    """Files by which git or a package manager would do something else than it seems."""
    fix = "Leave that setting out."
    if line := _fresh(_SOURCES, path, text, before):
        message = f"`{path}` sets where packages come from or what runs with them: `{line}`"
        yield critical("contract.source", message, where=where, fix=fix)
    if line := _fresh(_GIT_SETTINGS, path, text, before):
        message = f"`{path}` sets what git runs or brings: `{line}`"
        yield policy("contract.git_settings", message, where=where, fix=fix)


def _fresh(patterns: Mapping[str, re.Pattern[str]], path: str, text: str, before: str | None) -> str:
    """The first line of a file of this name that its pattern finds and that was not there before, "" when none is."""
    pattern = patterns.get(basename(path).lower())
    fresh = _lines(pattern, text) - _lines(pattern, before or "") if pattern else set()
    return min(fresh, default="")[:120]


def _lines(pattern: re.Pattern[str], text: str) -> set[str]:
    """The whole lines that `pattern` finds something in."""
    # Line by line: a pattern anchored at both ends must not run over several.
    return {line.strip() for line in text.splitlines() if pattern.match(line)}
