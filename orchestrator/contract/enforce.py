"""The contract against a delivery, and against the whole diff of a finished story."""

import re
from collections.abc import Iterator, Mapping, Sequence

from orchestrator.contract.imports import check_imports, is_source
from orchestrator.contract.manifests import install_targets, is_manifest, read_manifest
from orchestrator.contract.rules import is_test_file
from orchestrator.contract.world import World
from orchestrator.domain.contract import ArchitectureContract
from orchestrator.domain.delivery import Delivery
from orchestrator.domain.findings import Finding, Severity, Where, critical, major
from orchestrator.domain.gitfacts import DiffEntry
from orchestrator.syntax.runner_settings import runner_settings

LINK, SUBMODULE, ABSENT = "120000", "160000", "000000"
_SHELL = re.compile(r"(^|/)(.*\.(sh|bash|mk|ps1|bat|cmd)|(gnu)?makefile|(dockerfile|containerfile)(\..*)?|justfile)$")


def check_delivery(contract: ArchitectureContract, delivery: Delivery, before: Mapping[str, str]) -> list[Finding]:
    """What a delivery does outside the contract; `before` holds the base texts of the files that exist.

    Critical: a file outside, a test file, a setting that chooses tests, a dependency or import outside. Major: a file
    of the contract that is not the task's (`contract.other_task`), what could not be read (`contract.unreadable`).
    """
    findings = _seal(contract)
    world = World(contract)
    own = contract.task_files.get(delivery.task_id, ())
    for change in delivery.files:
        where = Where(file=change.path, story=delivery.story_id, task=delivery.task_id)
        outside = _path(world, change.path, where, own)
        findings += outside
        if not outside and change.path not in own:
            message = f"`{change.path}` is not among the files of {delivery.task_id}"
            findings.append(major("contract.other_task", message, where=where, fix=_only(own)))
        findings += _content(world, change.path, change.content, before.get(change.path), where)
    return findings


def check_diff(
    contract: ArchitectureContract,
    entries: Sequence[DiffEntry],
    after: Mapping[str, str],
    before: Mapping[str, str],
    suite_files: frozenset[str],
) -> list[Finding]:
    """What the tree of a finished story holds outside the contract; everything here is critical.

    `after` and `before` hold the texts of the changed files at the head and at the base, where they are regular UTF-8
    files. `suite_files` are the tester's: allowed by name, as regular files. A changed source or manifest without a
    text in `after` could not be checked and is a violation.
    """
    findings = _seal(contract)
    world = World(contract)
    for entry in entries:
        where = Where(file=entry.path, story=contract.story_id)
        findings += _kind(entry, where)
        if entry.path in suite_files or entry.new_mode == ABSENT:
            continue
        findings += _path(world, entry.path, where, ())
        if entry.path in after:
            findings += _content(world, entry.path, after[entry.path], before.get(entry.path), where)
        elif is_source(entry.path) or is_manifest(entry.path) or _SHELL.search(entry.path.lower()):
            message = f"`{entry.path}` could not be read, so nothing is known about what it depends on"
            findings.append(critical("contract.unreadable", message, where=where, fix="Write it as UTF-8 text."))
    return [finding.model_copy(update={"severity": Severity.CRITICAL}) for finding in findings]


def _seal(contract: ArchitectureContract) -> list[Finding]:
    if contract.hash == contract.digest():
        return []
    message = "the contract is not the one that was frozen: its hash does not fit"
    return [critical("contract.hash", message, where=Where(story=contract.story_id))]


def _only(files: Sequence[str]) -> str:
    return f"Deliver these files only: {', '.join(files)}." if files else "Deliver no file outside the contract."


def _path(world: World, path: str, where: Where, own: Sequence[str]) -> list[Finding]:
    if is_test_file(path):
        message = f"`{path}` is a test file; the tester writes those"
        return [critical("contract.test_file", message, where=where, fix=_only(own))]
    if path in world.files:
        return []
    message = f"`{path}` is outside the contract"
    twin = world.spellings.get(path.casefold())
    if twin is not None:
        message += f"; it differs from `{twin}` in case only"
    return [critical("contract.file", message, where=where, fix=f"Write `{twin}`." if twin else _only(own))]


def _content(world: World, path: str, text: str, before: str | None, where: Where) -> Iterator[Finding]:
    for finding in check_imports(world, path, text, before):
        place = finding.where.model_copy(update={"story": where.story, "task": where.task})
        yield finding.model_copy(update={"where": place})
    yield from _manifest(world, path, text, before, where)
    yield from _runner_settings(world, path, text, before, where)
    old = set(_installs(path, before)) if before is not None else set()
    for name in _installs(path, text):
        if name not in world.dependencies and name not in old:
            message = f"`{path}` installs `{name}`, which the contract does not allow"
            yield critical("contract.dependency", message, where=where, fix=_allowed(world))


def _manifest(world: World, path: str, text: str, before: str | None, where: Where) -> Iterator[Finding]:
    """Dependencies that a manifest adds beyond the allowed ones."""
    if not is_manifest(path):
        return
    new = read_manifest(path, text, code="contract.unreadable")
    old = read_manifest(path, before) if before is not None else None
    had = {problem.message for problem in old.problems} if old else set()
    yield from (p.model_copy(update={"where": where}) for p in new.problems if p.message not in had)
    for name in sorted(new.dependencies - world.dependencies - (old.dependencies if old else frozenset())):
        message = f"`{path}` adds the dependency `{name[:120]}`, which the contract does not allow"
        yield critical("contract.dependency", message, where=where, fix=_allowed(world))


def _runner_settings(world: World, path: str, text: str, before: str | None, where: Where) -> Iterator[Finding]:
    """Settings that choose tests or load plugins are the tester's, wherever they stand."""
    old, new = runner_settings(path, before or ""), runner_settings(path, text)
    changed = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    if changed == ["testpaths"] and world.tests_below(new.get("testpaths", ".").split()):
        return
    if changed:
        message = f"`{path}` changes which tests run, or with what: {', '.join(changed)}"
        fix = "Leave the settings of the test runner as they are."
        yield critical("contract.test_settings", message, where=where, fix=fix)


def _allowed(world: World) -> str:
    return f"Allowed dependencies: {', '.join(sorted(world.dependencies)) or 'none'}."


def _installs(path: str, text: str) -> tuple[str, ...]:
    """Packages that the commands in a script, a Makefile, a Dockerfile or package.json's scripts install."""
    if path.lower().endswith("package.json"):
        lines: Sequence[str] = read_manifest(path, text).commands
    elif _SHELL.search(path.lower()):
        joined = re.sub(r"\\\r?\n", " ", text)
        lines = [re.sub(r'[\[\],"]', " ", line) if "RUN [" in line else line for line in joined.splitlines()]
    else:
        return ()
    return tuple(dict.fromkeys(name for line in lines for name in install_targets(line.strip())))


def _kind(entry: DiffEntry, where: Where) -> Iterator[Finding]:
    """What kind of thing an entry is: only regular files come and stay."""
    if entry.new_mode == ABSENT or entry.status == "D":
        fix = "Keep the file; nothing in the plan lets it go."
        yield critical("contract.deletion", f"`{entry.path}` was deleted", where=where, fix=fix)
    elif entry.new_mode == LINK:
        yield critical("contract.link", f"`{entry.path}` is a symbolic link", where=where, fix="Write a regular file.")
    elif entry.new_mode == SUBMODULE:
        yield critical("contract.submodule", f"`{entry.path}` is a submodule", where=where, fix="Write regular files.")
    elif entry.new_mode != "100644" and entry.new_mode != entry.old_mode:
        message = f"`{entry.path}` has mode {entry.new_mode}"
        yield critical("contract.mode", message, where=where, fix="Leave it a regular file that is not executable.")
