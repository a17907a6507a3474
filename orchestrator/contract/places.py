"""Where a story may write, and what kind of thing may stand there."""

from collections.abc import Iterator, Sequence

from orchestrator.contract.manifests import is_manifest
from orchestrator.contract.rules import is_test_file
from orchestrator.contract.world import World, spelling
from orchestrator.domain.file_kinds import is_for_people
from orchestrator.domain.findings import Finding, Where, critical, policy
from orchestrator.domain.gitfacts import DiffEntry
from orchestrator.domain.paths import unsafe_reason

LINK, SUBMODULE, ABSENT = "120000", "160000", "000000"
_PLAIN = {"100664": "100644"}
"""A mode of old histories that means an ordinary file."""


def only(files: Sequence[str]) -> str:
    """The fix of a file that may not be written: the list of those that may."""
    return f"Deliver these files only: {', '.join(files)}." if files else "Deliver no file outside the contract."


def check_path(world: World, path: str, where: Where, own: Sequence[str]) -> list[Finding]:
    """Returns critical findings for a path that is unsafe, the tester's, or cannot stand in one tree with the others.

    A path outside the plan is a question to the architect, one of a pipeline or of credentials a question to a person.
    """
    reason = unsafe_reason(path)
    if reason is not None:
        return [critical("contract.file", f"`{path[:200]}` is unsafe: {reason}", where=where, fix=only(own))]
    if is_test_file(path):
        message = f"`{path}` is a test file; the tester writes those"
        return [critical("contract.test_file", message, where=where, fix=only(own))]
    twin = world.spellings.get(spelling(path))
    found = list(_clash(world, path, twin, where))
    if is_for_people(path):
        message = f"`{path}` is a pipeline, publishing or credentials, which a person decides about"
        found.append(policy("contract.ci", message, where=where, fix=only(own)))
    elif path not in world.files and not found:
        found.append(policy("contract.file", f"`{path}` is outside the plan", where=where, fix=only(own)))
    return found


def _apart(path: str, twin: str) -> str:
    if path.casefold() == twin.casefold():
        return f"it differs from `{twin}` in case only"
    return f"it differs from `{twin}` only in how its letters are encoded"


def _clash(world: World, path: str, twin: str | None, where: Where) -> Iterator[Finding]:
    if path in world.baseline:
        return
    if twin not in {None, path}:
        message = f"`{path}` and `{twin}` are one file on many machines: {_apart(path, str(twin))}"
        yield critical("contract.clash", message, where=where, fix=f"Write `{twin}`.")
    parts = path.split("/")
    above = next((up for end in range(1, len(parts)) if (up := "/".join(parts[:end])) in world.files), None)
    if above is not None or path in world.folders:
        message = f"`{above or path}` cannot be a file and a folder"
        yield critical("contract.clash", message, where=where, fix="Write only one of the two.")


def check_removal(path: str, where: Where, own: Sequence[str]) -> Iterator[Finding]:
    """A task takes away only what it names itself, and never a test or a manifest."""
    fix = f"Leave the file; this task may take away: {', '.join(own) or 'nothing'}."
    if is_test_file(path):
        message = f"`{path}` is a test file; the tester decides what becomes of those"
        yield critical("contract.test_file", message, where=where, fix=only(own))
    elif is_manifest(path):
        message = f"`{path}` is a manifest, and would take its dependencies with it"
        yield critical("contract.deletion", message, where=where, fix=fix)
    elif path not in own:
        message = f"`{path}` may not be taken away: it is not among the task's files"
        yield critical("contract.deletion", message, where=where, fix=fix)


def may_go(entry: DiffEntry, owned: frozenset[str]) -> bool:
    """Whether an entry is a plain file that a task of the plan took away, as it may."""
    plain = _PLAIN.get(entry.old_mode, entry.old_mode) in {"100644", "100755"}
    gone = entry.new_mode == ABSENT and entry.status == "D" and plain
    return gone and entry.path in owned and not is_test_file(entry.path) and not is_manifest(entry.path)


def check_kind(entry: DiffEntry, where: Where) -> Iterator[Finding]:
    """What kind of thing an entry is: only regular files come and stay, and keep their mode."""
    old, new = _PLAIN.get(entry.old_mode, entry.old_mode), _PLAIN.get(entry.new_mode, entry.new_mode)
    if new == ABSENT or entry.status in {"D", "R"}:
        fix = "Keep the file; nothing in the plan lets it go."
        message = f"`{entry.path}` was renamed" if entry.status == "R" else f"`{entry.path}` was deleted"
        yield critical("contract.deletion", message, where=where, fix=fix)
    elif LINK in {old, new}:
        was = f"`{entry.path}` was a symbolic link and is none any more"
        message = f"`{entry.path}` is a symbolic link" if new == LINK else was
        yield critical("contract.link", message, where=where, fix="Write a regular file.")
    elif SUBMODULE in {old, new}:
        was = f"`{entry.path}` was a submodule and is none any more"
        message = f"`{entry.path}` is a submodule" if new == SUBMODULE else was
        yield critical("contract.submodule", message, where=where, fix="Write regular files.")
    elif new != (old if old != ABSENT else "100644"):
        message = f"`{entry.path}` has mode {entry.new_mode}" + (f", it had {entry.old_mode}" if old != ABSENT else "")
        yield critical("contract.mode", message, where=where, fix="Leave modes as they are; new files have none.")
