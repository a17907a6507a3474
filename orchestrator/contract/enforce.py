"""The contract against a delivery, and against the whole diff of a finished story."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from orchestrator.contract.content import check_command, check_hidden, check_text, must_be_read
from orchestrator.contract.world import NOTHING_KNOWN, World
from orchestrator.core.contract import ArchitectureContract, InstalledPackages
from orchestrator.core.delivery import Delivery, DiffEntry
from orchestrator.core.finding import Finding, Severity, Where, blocking, critical, minor, policy
from orchestrator.core.paths import (
    is_for_people,
    is_manifest,
    is_test_file,
    parents,
    runs_unasked,
    spelling,
    unsafe_reason,
)

LINK, SUBMODULE, ABSENT = "120000", "160000", "000000"
_PLAIN = {"100664": "100644"}
"""A mode of old histories that means an ordinary file."""


def only(files: Sequence[str]) -> str:
    """Returns the fix of a file that may not be written: the list of those that may."""
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
    # A twin is reported before the plan is asked: to allow both spellings would break the tree.
    twin = world.spellings.get(spelling(path))
    found = list(_clash(world, path, twin, where))
    if is_for_people(path):
        message = f"`{path}` is a pipeline, publishing or credentials, which a person decides about"
        found.append(policy("contract.ci", message, where=where, fix=only(own)))
    elif path not in world.files and not found:
        found.append(policy("contract.file", f"`{path}` is outside the plan", where=where, fix=only(own)))
    return found


def check_startup(path: str, where: Where) -> Iterator[Finding]:
    """Yields a question about a file that runs although no source names it, or that stands in for the test runner."""
    if runs_unasked(path):
        message = f"`{path}` runs with every start of Python or with every test, whatever a source names"
        yield policy("contract.startup_file", message, where=where, fix="Look at what it does, or do without it.")


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
    above = next((folder for folder in parents(path) if folder in world.files), None)
    if above is not None or path in world.folders:
        message = f"`{above or path}` cannot be a file and a folder"
        yield critical("contract.clash", message, where=where, fix="Write only one of the two.")


def check_removal(path: str, where: Where, own: Sequence[str]) -> Iterator[Finding]:
    """Yields findings on removals: a task may remove only files that it names, and never a test or a manifest."""
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
    """Returns whether an entry is a plain file that a task of the plan took away, as it may."""
    plain = _PLAIN.get(entry.old_mode, entry.old_mode) in {"100644", "100755"}
    gone = entry.new_mode == ABSENT and entry.status == "D" and plain
    return gone and entry.path in owned and not is_test_file(entry.path) and not is_manifest(entry.path)


def check_kind(entry: DiffEntry, where: Where) -> Iterator[Finding]:
    """What kind of thing an entry is: only regular files come and stay, and keep their mode."""
    old, new = _PLAIN.get(entry.old_mode, entry.old_mode), _PLAIN.get(entry.new_mode, entry.new_mode)
    if new == ABSENT or entry.status in {"D", "R"}:
        fix = "Keep the file; nothing in the plan removes it."
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


MANY = 100
"""Files outside the contract that are judged one by one."""
WHERE_PUSHED = frozenset({"contract.ci", "contract.startup_file", "contract.hidden_text"})
"""The questions that a person is asked before the merge where results are pushed: nobody looks at them in between."""
FOR_PEOPLE = WHERE_PUSHED | {"contract.test_settings", "contract.git_settings"}
"""The questions that a person is asked before the merge."""
_CRASHES = (
    ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError,
    re.error,
)  # fmt: skip
"""What a fault of ours in a check raises."""


def check_delivery(
    contract: ArchitectureContract,
    delivery: Delivery,
    before: Mapping[str, str],
    installed: InstalledPackages = NOTHING_KNOWN,
) -> list[Finding]:
    """Returns what a delivery does outside the contract; `before` holds the base texts of the files that exist.

    Critical: an unsafe path, a test file, a clash of names, a setting that chooses sources, a file taken away that is
    not the task's (`contract.deletion`), a check that crashed. Major: a module of the project that is nowhere, what
    could not be read. A question: a setting that chooses tests, a file that the plan does not give to the task, a
    package that nothing declares and that no declared one of the `installed` packages requires.
    """
    findings: list[Finding] = []
    texts: dict[str, str] = {change.path: change.content for change in delivery.files}
    world = World(contract, texts, removed=delivery.removed, installed=installed)
    own = contract.task_files.get(delivery.task_id, ())

    def one(path: str, text: str, where: Where) -> Iterable[Finding]:
        outside = check_path(world, path, where, own)
        yield from outside
        if path in world.files and path not in own and not blocking(outside):
            yield _not_its_own(contract, delivery.task_id, path, where)
        yield from check_text(world, path, text, before.get(path), where)

    for change in delivery.files:
        where = Where(file=change.path, story=delivery.story_id, task=delivery.task_id)
        findings += _whole(partial(one, change.path, change.content, where), where)
    where = Where(story=delivery.story_id, task=delivery.task_id)
    for command in delivery.commands:
        text = "\n".join((*command.exports, command.command))
        findings += _whole(partial(check_command, world, text, where), where)
    for path in delivery.removed:
        where = Where(file=path, story=delivery.story_id, task=delivery.task_id)
        findings += _whole(partial(check_removal, path, where, own), where)
    return findings


def without_outside(
    contract: ArchitectureContract, delivery: Delivery, files: Sequence[str]
) -> tuple[Delivery, list[Finding]]:
    """Returns the delivery without files outside the contract, where they are many: one question stands for them all.

    `files` are those of the project. What such a file holds is judged once it may be there.
    """
    allowed = {path for own in contract.task_files.values() for path in own} | set(files)
    outside = [path for path in delivery.paths if path not in allowed]
    if len(outside) <= MANY:
        return delivery, []
    inside = tuple(change for change in delivery.files if change.path in allowed)
    message = f"{len(outside)} files are none of the plan's, `{outside[0]}` among them; their contents were not judged"
    where = Where(file=outside[0], story=delivery.story_id, task=delivery.task_id)
    said = policy("contract.file", message, where=where, fix="Deliver the files of the task only.")
    return delivery.model_copy(update={"files": inside}), [said]


def check_diff(
    contract: ArchitectureContract,
    entries: Sequence[DiffEntry],
    after: Mapping[str, str],
    before: Mapping[str, str],
    suite_files: frozenset[str],
    installed: InstalledPackages = NOTHING_KNOWN,
) -> list[Finding]:
    """Returns what the tree of a finished story holds outside the contract: critical, but for advice.

    A question to the architect that is still open here was never asked: a command wrote a file that no delivery had.

    `after` and `before` hold the texts of the changed files at the head and at the base, where they are regular UTF-8
    files. `suite_files` are the tester's: allowed by name, as regular files. A changed file that must be read and has
    no text in `after` could not be checked and is a violation. A task may take its own files away.
    """
    findings: list[Finding] = []
    removed = [entry.path for entry in entries if entry.new_mode == ABSENT]
    world = World(contract, after, removed=removed, complete=True, installed=installed)
    owned = frozenset(path for files in contract.task_files.values() for path in files)

    def one(entry: DiffEntry, where: Where) -> Iterable[Finding]:
        if entry.path not in suite_files and may_go(entry, owned):
            return
        yield from check_kind(entry, where)
        if entry.new_mode == ABSENT:  # there is no text of it
            return
        yield from check_startup(entry.path, where)
        yield from check_hidden(entry.path, after.get(entry.path, ""), before.get(entry.path), where)
        if entry.path in suite_files:  # judged when it is written
            return
        yield from check_path(world, entry.path, where, ())
        if entry.path in after:
            yield from check_text(world, entry.path, after[entry.path], before.get(entry.path), where)
        elif must_be_read(entry.path):
            message = f"`{entry.path}` could not be read, so nothing is known about what it depends on"
            yield critical("contract.unreadable", message, where=where, fix="Write it as UTF-8 text.")

    for entry in entries:
        where = Where(file=entry.path, story=contract.story_id)
        findings += _whole(partial(one, entry, where), where)
    return [_hard(finding) for finding in findings]


def _not_its_own(contract: ArchitectureContract, task_id: str, path: str, where: Where) -> Finding:
    """A file of another task is in the plan; one that was there before, and is no task's, is a question."""
    owner = next((task for task, files in contract.task_files.items() if path in files), "")
    message = f"`{path}` is not among the files of {task_id}"
    fix = only(contract.task_files.get(task_id, ()))
    if owner:
        return minor("contract.other_task", f"{message}; {owner} has it", where=where, fix=fix)
    return policy("contract.other_task", message, where=where, fix=fix)


def without_question(finding: Finding) -> Finding:
    """Returns the finding; a question, where no architect is asked any more, is critical."""
    asks = finding.ask and finding.code not in FOR_PEOPLE
    return finding.model_copy(update={"severity": Severity.CRITICAL, "ask": False}) if asks else finding


def _hard(finding: Finding) -> Finding:
    """At the end there is no other try: what is more than advice is critical."""
    finding = without_question(finding)
    told = finding.severity is Severity.MINOR
    return finding if told else finding.model_copy(update={"severity": Severity.CRITICAL})


def _whole(check: Callable[[], Iterable[Finding]], where: Where) -> list[Finding]:
    """What a check says; one that crashes has not passed."""
    try:
        return list(check())
    except _CRASHES as error:
        message = f"the contract could not be checked here: {type(error).__name__}: {str(error)[:200]}"
        return [critical("contract.crashed", message, where=where, fix="Write this file in another, plainer way.")]
