"""What a resolution of a merge holds, against both sides: neither may lose anything by it."""

import re
from collections.abc import Iterator, Mapping, Sequence

from orchestrator.checks.around import Around
from orchestrator.checks.content import check_content, check_whole
from orchestrator.checks.lost_exports import CODE as LOST
from orchestrator.checks.lost_exports import lost_exports
from orchestrator.checks.lost_methods import check_methods
from orchestrator.checks.manifest_loss import CODE as MANIFEST
from orchestrator.domain.delivery import Delivery, FileChange
from orchestrator.domain.findings import Finding, Severity, Where, major, minor
from orchestrator.domain.gitfacts import Conflict
from orchestrator.domain.paths import RepoPath

_LOSSES = frozenset({LOST, MANIFEST, "delivery.shrunk"})
_MARKER = re.compile(r"^(?:<{7}|>{7}|\|{7})(?=[ \r\n]|$)", re.MULTILINE)
_BETWEEN = re.compile(r"^={7}\r?$", re.MULTILINE)


def check_resolution(
    delivery: Delivery, conflicts: Sequence[Conflict], merged: Mapping[str, str], around: Around
) -> list[Finding]:
    """Findings on a delivery that brings two sides together; `merged` holds the other files as git merged them.

    Every file in conflict must come, without a marker, and hold what both sides offer: exports, methods, routes,
    packages, scripts. What one side has taken out of the base on purpose may be gone. Nothing is run, moved or taken
    away.
    """
    others = {path: text for path, text in merged.items() if path not in {one.path for one in conflicts}}
    said = around.model_copy(update={"task": "\n".join((around.task, *gone_on_purpose(conflicts)))})
    sides = ({one.path: one.result for one in conflicts}, {one.path: one.story for one in conflicts})
    first, second = (check_content(delivery, {**others, **before}, said) for before in sides)
    return [
        *(_hardened(finding, sides[0]) for finding in _of_both(first, second)),
        *check_whole(delivery, [one.path for one in conflicts], {}),
        *check_methods(delivery, conflicts, around.task),
        *_markers(delivery, conflicts, others),
        *_besides(delivery),
    ]


def _of_both(first: Sequence[Finding], second: Sequence[Finding]) -> Iterator[Finding]:
    """What is wrong with a text on both sides, and what either loses; what one side has had already is not new."""
    common = {_place(finding) for finding in first} & {_place(finding) for finding in second}
    told: dict[tuple[object, ...], Finding] = {}
    for finding in (*first, *second):
        if finding.code in _LOSSES:
            told.setdefault((*_place(finding), finding.message), finding)
        elif _place(finding) in common:
            told.setdefault(_place(finding), finding)
    yield from told.values()


def _place(finding: Finding) -> tuple[object, ...]:
    return finding.code, finding.where.file, finding.where.line, finding.where.field


def gone_on_purpose(conflicts: Sequence[Conflict]) -> tuple[str, ...]:
    """Names and routes that one side has taken away from what both began with."""
    names: dict[str, None] = {}
    for one in conflicts:
        for text in (one.result, one.story) if one.base is not None else ():
            side = Delivery(story_id="", task_id="", files=(FileChange(path=RepoPath(one.path), content=text),))
            names.update((lost.name, None) for lost in lost_exports(side, {one.path: one.base or ""}))
    return tuple(names)


def _hardened(finding: Finding, in_conflict: Mapping[str, str]) -> Finding:
    """What a side loses in a file in conflict is why the merge goes wrong, whoever uses it."""
    is_loss = finding.code == LOST or (finding.code == MANIFEST and finding.where.field)
    if not is_loss or finding.where.file not in in_conflict:
        return finding
    return finding.model_copy(update={"severity": max(finding.severity, Severity.MAJOR, key=lambda one: one.rank)})


def _markers(delivery: Delivery, conflicts: Sequence[Conflict], others: Mapping[str, str]) -> Iterator[Finding]:
    """Lines of git that are left; a file that speaks of git may have had such lines on either side."""
    sides = {one.path: (one.result, one.story) for one in conflicts}
    for change in delivery.files:
        had = sides.get(change.path, (others.get(change.path, ""),))
        for pattern in (_MARKER, _BETWEEN):
            if len(pattern.findall(change.content)) > sum(len(pattern.findall(text)) for text in had):
                line = change.content.count("\n", 0, next(pattern.finditer(change.content)).start()) + 1
                where = Where(file=change.path, line=line, story=delivery.story_id, task=delivery.task_id)
                message = f"a conflict marker is left in `{change.path}`"
                yield major("merge.marker", message, where=where, fix="Settle it and leave the markers out.")
                break


def _besides(delivery: Delivery) -> Iterator[Finding]:
    where = Where(story=delivery.story_id, task=delivery.task_id)
    for path in delivery.removed:
        message = f"`{path}` may not be moved or taken away in a merge"
        yield major("merge.removed", message, where=where.model_copy(update={"file": path}), fix="Leave the file.")
    if delivery.commands:
        told = ", ".join(f"`{command.subject}`" for command in delivery.commands)
        yield minor("merge.command", f"{told} is not run in a merge", where=where, fix="Leave it out.")
