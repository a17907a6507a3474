"""A developer's answer → Delivery, and what a resolution of a merge must hold of both sides."""

import re
from collections.abc import Iterator, Mapping, Sequence

from orchestrator.checks.breakdown_rules import MAX_FILES
from orchestrator.checks.content import CODE as MANIFEST
from orchestrator.checks.content import check_content, check_whole
from orchestrator.checks.lost_exports import CODE as LOST
from orchestrator.checks.lost_exports import lost_exports
from orchestrator.checks.paths import Around
from orchestrator.core.delivery import Conflict, Delivery, FileChange
from orchestrator.core.finding import Finding, Severity, Where, major, minor
from orchestrator.core.paths import RepoPath, spelling, tidy, unsafe_reason

PLACEHOLDER = "<the whole text of the file>"
"""What prompts show where a file's content belongs; given back as content, it is refused."""
_LISTS = ("files", "created_files", "updated_files")
_PATHS = ("path", "filename", "file")
_NESTING = 4
_FIX = 'Answer {"files": [{"path": …, "content": …}]} with the whole text of every file as one string.'


def read_delivery(value: object, story_id: str, task_id: str) -> tuple[Delivery | None, list[Finding]]:
    """Returns the files in an extracted value, in order, with what was said about them; None when none is usable.

    Accepts files, created_files and updated_files; each a list of {path|filename|file, content} or a map path →
    content; also `{"content": {"content": …}}`; a bare list counts as `files`. Wrong ids are corrected with a minor
    finding. A file with an unsafe path, no text, a placeholder, or a path given twice with different texts is left out
    with a major finding; a bare name of a file whose text stands elsewhere in the answer says nothing new.
    """
    answer = {"files": value} if isinstance(value, list) else value
    findings: list[Finding] = []
    kept: dict[str, FileChange] = {}
    refused: set[str] = set()
    fields: Mapping[str, object] = answer if isinstance(answer, Mapping) else {}
    if not isinstance(answer, Mapping):
        findings.append(major("delivery.no_files", "the answer is no object", fix=_FIX))
    findings += _ids(fields, story_id, task_id)
    pairs = _without_bare_names(list(_files(fields)))
    if len(pairs) > MAX_FILES:
        fix = "Send what the task asks for; files that a program makes are made by a command."
        message = f"the answer has {len(pairs)} files, more than {MAX_FILES}"
        return None, [major("delivery.too_many_files", message, fix=fix).placed(story=story_id, task=task_id)]
    for path, content in pairs:
        found = _judge(path, content)
        if isinstance(found, Finding):
            findings.append(found)
            continue
        key = spelling(found.path)
        if key in kept and kept[key] != found:
            refused.add(key)
            findings.append(_doubled(kept[key].path, found.path))
        kept.setdefault(key, found)
    files = tuple(change for key, change in kept.items() if key not in refused)
    if not kept and not any(finding.severity.blocks for finding in findings):
        findings.append(major("delivery.no_files", "no file was found", fix=_FIX))
    title, notes = (_text(fields.get(name)) for name in ("title", "notes"))
    delivery = (
        Delivery(story_id=story_id, task_id=task_id, files=files, title=title, rationale=notes) if files else None
    )
    return delivery, [finding.placed(story=story_id, task=task_id) for finding in findings]


def _text(value: object) -> str:
    return value if isinstance(value, str) and _writable(value) else ""


def _ids(answer: Mapping[str, object], story_id: str, task_id: str) -> Iterator[Finding]:
    for field, right in (("story_id", story_id), ("task_id", task_id)):
        stated = answer.get(field)
        if stated is not None and stated != right:
            message = f"{field} was {str(stated)[:80]!r} and is now {right!r}"
            yield minor("delivery.ids", message, fix=f'Give "{field}": "{right}".')


def _files(answer: Mapping[str, object]) -> Iterator[tuple[object, object]]:
    """Pairs (path, content) as they stand, from every accepted shape; what has no path gives None for it."""
    for field in _LISTS:
        held = answer.get(field)
        if isinstance(held, Mapping):
            if isinstance(held.get("path"), str) and "content" in held:  # one file that forgot its list
                yield _entry(held)
            else:
                yield from held.items()
        elif isinstance(held, list):
            for entry in held:
                yield _entry(entry) if isinstance(entry, Mapping) else (None, entry)
        elif held is not None:
            yield None, held


def _without_bare_names(pairs: list[tuple[object, object]]) -> list[tuple[object, object]]:
    """`pairs` less the entries that only name a file given with its text: {files: {…}, created_files: [path]}."""
    given = {tidy(path) for path, content in pairs if isinstance(path, str) and content is not None}
    return [
        (path, content)
        for path, content in pairs
        if not (path is None and isinstance(content, str) and tidy(content) in given)
    ]


def _entry(entry: Mapping[str, object]) -> tuple[object, object]:
    for name in _PATHS:
        if name in entry:
            return entry[name], entry.get("content")
    if len(entry) == 1 and "content" not in entry:
        return next(iter(entry.items()))
    return None, entry.get("content")


def _judge(path: object, content: object) -> FileChange | Finding:
    for _ in range(_NESTING):
        if isinstance(content, Mapping) and "content" in content:
            content = content["content"]
    if not isinstance(path, str):
        return major("delivery.unsafe_path", "a file has no path that is a string", fix=_FIX)
    path = tidy(path)
    reason = unsafe_reason(path)
    if reason is not None:
        fix = "Give the path from the repository's root, with `/`."
        return major("delivery.unsafe_path", f"`{path[:200]}` is unsafe: {reason}", fix=fix)
    where = Where(file=path)
    if not isinstance(content, str):
        return major("delivery.no_content", f"the content of `{path}` is no string", where=where, fix=_FIX)
    if content.strip() == PLACEHOLDER:
        message = f"the content of `{path}` is the prompt's own placeholder"
        return major("delivery.placeholder", message, where=where, fix="Write the whole file.")
    if not _writable(content):
        message = f"the content of `{path}` holds half a character and cannot be written"
        return major("delivery.no_content", message, where=where, fix="Write whole Unicode characters.")
    return FileChange(path=path, content=content)


def _doubled(first: str, second: str) -> Finding:
    same = f"`{first}` and `{second}` are one path where case does not count"
    message = f"`{second}` was given twice" if first == second else same
    return major("delivery.duplicate_path", message, where=Where(file=second), fix="Give each file once, whole.")


def _writable(text: str) -> bool:
    """Returns whether UTF-8 can hold the text: half a surrogate pair it cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True


_LOSSES = frozenset({LOST, MANIFEST, "delivery.shrunk"})
_MARKER = re.compile(r"^(?:<{7}|>{7}|\|{7})(?=[ \r\n]|$)", re.MULTILINE)
_BETWEEN = re.compile(r"^={7}\r?$", re.MULTILINE)


def check_resolution(
    delivery: Delivery, conflicts: Sequence[Conflict], merged: Mapping[str, str], around: Around
) -> list[Finding]:
    """Findings on a delivery that brings two sides together; `merged` holds the other files as git merged them.

    Every file in conflict must come, without a marker, and hold what both sides offer: names, packages,
    scripts. What one side has taken out of the base on purpose may be gone. Nothing is run, moved or taken
    away.
    """
    others = {path: text for path, text in merged.items() if path not in {one.path for one in conflicts}}
    sides = ({one.path: one.result for one in conflicts}, {one.path: one.story for one in conflicts})
    first, second = (check_content(delivery, {**others, **before}, around) for before in sides)
    return [
        *(_hardened(finding, sides[0]) for finding in _of_both(first, second)),
        *_lost_by_a_side(delivery, conflicts, around.task),
        *check_whole(delivery, [one.path for one in conflicts], {}),
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
    """Names that one side has taken away from what both began with."""
    names: dict[str, None] = {}
    for one in conflicts:
        for text in (one.result, one.story) if one.base is not None else ():
            side = Delivery(story_id="", task_id="", files=(FileChange(path=RepoPath(one.path), content=text),))
            names.update((lost.name, None) for lost in lost_exports(side, {one.path: one.base or ""}))
    return tuple(names)


def _lost_by_a_side(delivery: Delivery, conflicts: Sequence[Conflict], task: str) -> Iterator[Finding]:
    """Yields a major finding for each name that either side offers and the answer has not."""
    on_purpose = gone_on_purpose(conflicts)
    sides = ({one.path: one.result for one in conflicts}, {one.path: one.story for one in conflicts})
    lost = dict.fromkeys(one for side in sides for one in lost_exports(delivery, side, task))
    for one in lost:
        if one.name not in on_purpose:
            where = Where(file=one.file, story=delivery.story_id, task=delivery.task_id)
            message = f"`{one.file}` lost `{one.name}`, which one of the two sides has"
            yield major(LOST, message, where=where, fix=f"Keep `{one.name}` as that side has it.")


def _hardened(finding: Finding, in_conflict: Mapping[str, str]) -> Finding:
    """What a side's manifest loses in a file in conflict causes the failed merge."""
    if finding.code != MANIFEST or not finding.where.field or finding.where.file not in in_conflict:
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
