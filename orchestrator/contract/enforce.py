"""The contract against a delivery, and against the whole diff of a finished story."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from orchestrator.contract.content import check_command, check_text, must_be_read
from orchestrator.contract.places import ABSENT, check_kind, check_path, check_removal, may_go, only
from orchestrator.contract.world import NOTHING_KNOWN, World
from orchestrator.domain.contract import ArchitectureContract
from orchestrator.domain.delivery import Delivery
from orchestrator.domain.findings import Finding, Severity, Where, blocking, critical, minor, policy
from orchestrator.domain.gitfacts import DiffEntry
from orchestrator.domain.installed import InstalledPackages

MANY = 100
"""Files outside the contract that are judged one by one."""
FOR_PEOPLE = frozenset({"contract.ci", "contract.test_settings", "contract.git_settings"})
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
    findings = _seal(contract)
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

    A question to the architect that is still open here was answered by nobody: a command wrote what no delivery showed.

    `after` and `before` hold the texts of the changed files at the head and at the base, where they are regular UTF-8
    files. `suite_files` are the tester's: allowed by name, as regular files. A changed file that must be read and has
    no text in `after` could not be checked and is a violation. A task may take its own files away.
    """
    findings = _seal(contract)
    removed = [entry.path for entry in entries if entry.new_mode == ABSENT]
    world = World(contract, after, removed=removed, complete=True, installed=installed)
    owned = frozenset(path for files in contract.task_files.values() for path in files)

    def one(entry: DiffEntry, where: Where) -> Iterable[Finding]:
        if entry.path not in suite_files and may_go(entry, owned):
            return
        yield from check_kind(entry, where)
        if entry.path in suite_files or entry.new_mode == ABSENT:
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


def _seal(contract: ArchitectureContract) -> list[Finding]:
    if contract.hash == contract.digest():
        return []
    message = "the contract is not the one that was frozen: its hash does not fit"
    fix = "Reset the story, so that it is planned and frozen anew."
    return [critical("contract.hash", message, where=Where(story=contract.story_id), fix=fix)]
