"""The actions of a plan against the tree as the earlier ones left it. Pure.

A FIND/REPLACE pair is lines for lines: the last line end of each block belongs to its fence, CRLF counts as LF, and
what is replaced gets the line ends of the place. Lines that are found whole and replaced by an empty block vanish with
their line ends. Where a FIND does not match, the nearest text is shown with its difference, whatever the file's size.
"""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from rapidfuzz import fuzz, process

from orchestrator.core.action_plan import (
    Action,
    Create,
    Delete,
    Edit,
    Execute,
    Move,
    Pair,
    Prune,
    Read,
    is_url,
    with_lf,
)
from orchestrator.core.delivery import Delivery
from orchestrator.core.finding import Finding, Where, major, minor
from orchestrator.core.paths import folders_of, parents, unsafe_reason

MAX_MATCHES = 1000
"""Matches of one FIND that are counted."""
BOM = "\ufeff"


@dataclass(frozen=True)
class FileText:
    """The text of a file, and the same with LF line ends."""

    raw: str

    @cached_property
    def lf(self) -> str:
        """What FIND is compared with."""
        return self.raw.replace("\r\n", "\n")

    @cached_property
    def _ends(self) -> list[str]:
        """How each line ends."""
        return re.findall(r"\r?\n", self.raw)

    def offset(self, at: int) -> int:
        """Returns the offset in `raw` of an offset in `lf`."""
        return at + self._ends[: self.line(at) - 1].count("\r\n")

    def line(self, at: int) -> int:
        """Returns the 1-based line of an offset in `lf`."""
        return self.lf.count("\n", 0, at) + 1

    def line_end(self, at: int) -> str:
        """Returns how lines end at an offset in `lf`: there, else before it, else LF."""
        return self._ends[min(self.line(at), len(self._ends)) - 1] if self._ends else "\n"


def needle_of(find: str) -> str:
    """Returns the text that a FIND block looks for: its last line end belongs to the fence."""
    return find.removesuffix("\n")


def matches(text: FileText, find: str) -> list[int]:
    """Offsets in `text.lf` at which FIND matches, overlapping ones too, at most MAX_MATCHES."""

    def each() -> Iterator[int]:
        needle = needle_of(find)
        at = text.lf.find(needle)
        while at >= 0:
            yield at
            at = text.lf.find(needle, at + 1)

    return list(islice(each(), MAX_MATCHES))


def replaced(text: FileText, at: int, find: str, replace: str) -> str:
    """Returns the file's text with the match at `at` replaced."""
    end = at + len(needle_of(find))
    if not replace:
        at, end = _whole_lines(text.lf, at, end)
    new = needle_of(replace).replace("\n", text.line_end(at))
    return text.raw[: text.offset(at)] + new + text.raw[text.offset(end) :]


def _whole_lines(lf: str, start: int, end: int) -> tuple[int, int]:
    """The span with one line end when it holds whole lines: that behind it, at the file's end that before it."""
    begins = start == 0 or lf[start - 1] == "\n" or (start == 1 and lf[0] == BOM)
    if not begins or (end < len(lf) and lf[end] != "\n"):
        return start, end
    if end < len(lf):
        return start, end + 1
    return (start - 1 if start and lf[start - 1] == "\n" else start), end


def like(old: str, new: str) -> str:
    """Returns a whole new text with the old one's byte order mark, and its CRLF where all its lines end so."""
    if old.startswith(BOM) and not new.startswith(BOM):
        new = BOM + new
    if "\r\n" in old and "\n" not in old.replace("\r\n", ""):
        new = with_lf(new).replace("\n", "\r\n")
    return new


def with_line_ends(delivery: Delivery | None, before: Mapping[str, str]) -> Delivery | None:
    """Returns the delivery with each whole text in the form of the file that it replaces."""
    if delivery is None:
        return None
    files = (one.model_copy(update={"content": like(before.get(one.path, ""), one.content)}) for one in delivery.files)
    return delivery.model_copy(update={"files": tuple(files)})


MAX_LINES = 120
"""Lines of a FIND block that are compared."""
MAX_FILE_LINES = 300_000
"""Lines of a file that are looked at."""
MAX_CHARS = 400
"""Characters of one line that are compared."""
MAX_CANDIDATES = 8  # nearest places that a message shows
MAX_DIFF = 30  # lines
LEAST = 45.0
"""Per cent of likeness below which a text is not near."""


class Nearest(NamedTuple):
    """A place that looks alike."""

    line: int
    """1-based."""
    score: float
    """Per cent."""
    diff: str
    """From the file to FIND, a few lines."""
    blanks_only: bool
    """Whether they differ in blanks only."""


def nearest(lf: str, find: str) -> Nearest | None:
    """Returns the lines of a file that are most like FIND, or None when none are: where its longest lines stand."""
    lines = [line[:MAX_CHARS] for line in lf.split("\n", MAX_FILE_LINES)[:MAX_FILE_LINES]]
    want = [line[:MAX_CHARS] for line in find.removesuffix("\n").split("\n")[:MAX_LINES]]
    best = (0.0, 0)
    # The longest lines tell a place best, and three are enough to find it.
    for number in sorted(range(len(want)), key=lambda at: -len(want[at]))[:3]:
        alike = process.extract(want[number], lines, scorer=fuzz.ratio, limit=MAX_CANDIDATES, score_cutoff=LEAST)
        for start in {max(at - number, 0) for _, _, at in alike}:
            score = fuzz.ratio("\n".join(lines[start : start + len(want)]), "\n".join(want))
            best = max(best, (score, -start))
    score, start = best[0], -best[1]
    there = lines[start : start + len(want)]
    diff = _diff(there, want) if score >= LEAST else ""
    return Nearest(start + 1, score, diff, _bare(there) == _bare(want)) if diff else None


def _bare(lines: Sequence[str]) -> list[str]:
    return ["".join(line.split()) for line in lines if line.strip()]


def _diff(there: Sequence[str], want: Sequence[str]) -> str:
    body = list(difflib.unified_diff(there, want, "file", "FIND", lineterm="", n=1))
    more = [f"… {len(body) - MAX_DIFF} more lines"] if len(body) > MAX_DIFF else []
    return "\n".join([*body[:MAX_DIFF], *more])


@dataclass(frozen=True, kw_only=True)
class PlanWorld:
    """The files that are there, and those that were shown."""

    paths: frozenset[str]
    """Every file below the root."""
    texts: Mapping[str, str]
    """Texts of those of them that a plan names; a file without one is no text that could be edited."""
    context: frozenset[str] | None = None
    """Files and pages that were shown in full in this turn; None: unknown, so the rule is not checked."""
    obstacles: Mapping[str, str] = field(default_factory=dict)
    """Path → why no text can be written there, as far as that is known."""

    @cached_property
    def folders(self) -> frozenset[str]:
        """Every folder above a file."""
        return folders_of(self.paths)

    def near(self, path: str) -> str:
        """Returns the existing path most like this one, "" when none is."""
        found = process.extractOne(path, sorted(self.paths), score_cutoff=70)
        return found[0] if found else ""


@dataclass
class Walked:
    """The tree as the actions so far have left it."""

    world: PlanWorld
    changes: dict[str, str | None] = field(default_factory=dict)
    """Path → its new text, None for a file that is gone."""
    shown: set[str] = field(default_factory=set)
    """Files that the plan itself wrote whole."""

    def exists(self, path: str) -> bool:
        """Returns whether a file is there now."""
        return self.changes[path] is not None if path in self.changes else path in self.world.paths

    def text(self, path: str) -> str | None:
        """Its text now; None for none, and for what is no text."""
        return self.changes[path] if path in self.changes else self.world.texts.get(path)

    def is_shown(self, path: str) -> bool:
        """Returns whether its author can know what it holds; True where nobody knows what was shown."""
        return self.world.context is None or path in self.world.context or path in self.shown

    def blocked(self, path: str) -> str:
        """What stands in the way of a file here: a folder, or a file above; "" when nothing does.

        What the plan takes away counts still: files are written before others are gone.
        """
        there = (up for up in parents(path) if up in self.world.paths or self.changes.get(up) is not None)
        above = next(there, None)
        if above is not None:
            return f"`{above}` is a file, no folder"
        if path in self.world.folders or any(name.startswith(f"{path}/") for name in self.changes):
            return f"`{path}` is a folder"
        return ""

    def put(self, path: str, text: str) -> None:
        """A file that the plan wrote whole."""
        self.changes[path] = text
        self.shown.add(path)

    def gone(self, path: str) -> None:
        """A file that the plan took away."""
        self.changes[path] = None
        self.shown.discard(path)


def place(action: Action, line: int = 0) -> Where:
    """Returns the action's place in the plan."""
    return Where(line=line or action.line or None, field=f"{action.verb} {action.subject[:200]}")


def unsafe(action: Action, path: str) -> Finding | None:
    """Returns a finding for a path that may never be written, however it is asked for."""
    reason = unsafe_reason(path)
    if reason is None:
        return None
    message = f"`{path[:200]}` is unsafe: {reason}"
    fix = "Give the path from the repository's root, with `/`."
    return major("delivery.unsafe_path", message, where=place(action), fix=fix)


def missing(action: Action, path: str, walked: Walked) -> Finding:
    """Returns a finding for a file that is not there."""
    if path in walked.world.folders or path.rstrip("/") in walked.world.folders:
        message, fix = f"`{path}` is a folder", "Name one file."
    elif path in walked.changes:
        message, fix = f"`{path}` was taken away by an earlier action", "Leave one of the two actions out."
    else:
        near = walked.world.near(path)
        message = f"`{path}` does not exist" + (f"; `{near}` does" if near else "")
        fix = "Name an existing file, or CREATE this one."
    return major("plan.missing", message, where=place(action), fix=fix)


def unread(action: Action, path: str) -> Finding:
    """A finding for a file whose author has not seen it."""
    message = f"`{path}` was not shown in this turn, so nobody can know what it holds now"
    fix = f"READ `{path}` first, alone, and change it in the next turn."
    return major("plan.unread", message, where=place(action), fix=fix)


def read(action: Read, walked: Walked) -> Iterator[Finding]:
    """A page is not fetched here; a file must be there."""
    if not is_url(action.resource):
        yield from _local(action, action.resource, walked)


def prune(action: Prune, walked: Walked) -> Iterator[Finding]:
    """What is to be left out must have been shown."""
    context = walked.world.context
    if context is not None and action.resource not in context:
        message = f"`{action.resource[:200]}` is not in the context"
        fix = "PRUNE only what was shown, spelled as it was shown."
        yield major("plan.not_shown", message, where=place(action), fix=fix)
    elif context is None and not is_url(action.resource):
        yield from _local(action, action.resource, walked)


def _local(action: Action, path: str, walked: Walked) -> Iterator[Finding]:
    reason = unsafe_reason(path)
    if reason is not None and not (path.endswith("/") and unsafe_reason(path.rstrip("/")) is None):
        message = f"`{path[:200]}` is no file of the repository: {reason}"
        fix = "Name a file by its path from the repository's root, or a page by its https address."
        yield major("plan.resource", message, where=place(action), fix=fix)
    elif not walked.exists(path):
        yield missing(action, path, walked)


def execute(action: Execute, walked: Walked) -> Iterator[Finding]:
    """A command must be one, and run inside the tree."""
    if not action.command.strip() or "\0" in action.command:
        fix = "Write the command in the code block, or leave the action out."
        yield major("plan.command", "EXECUTE has no command that could be run", where=place(action), fix=fix)
    reason = unsafe_reason(action.cwd) if action.cwd != "." else None
    if reason is not None:
        message = f"`cwd` leads out of the repository: {reason}"
        fix = "Name a folder below the repository's root, or leave `cwd` out."
        yield major("plan.cwd", message, where=place(action), fix=fix)
    elif action.cwd != "." and walked.exists(action.cwd):
        fix = "Name a folder below the repository's root, or leave `cwd` out."
        yield major("plan.cwd", f"`cwd` is a file: `{action.cwd}`", where=place(action), fix=fix)


MAX_LINES_TOLD = 10


def create(action: Create, walked: Walked) -> Iterator[Finding]:
    """The file must not be there, unless it may be overwritten and was shown."""
    if (found := unsafe(action, action.path)) is not None:
        yield found
        return
    if action.path in walked.shown:
        fix = "Give each file once, whole."
        yield major("plan.same_path", f"`{action.path}` is written twice", where=place(action), fix=fix)
    elif walked.exists(action.path) and not action.overwrite:
        message = f"`{action.path}` exists already"
        fix = "EDIT it, or write it whole with the bullet `- **Overwrite:** true`."
        yield major("plan.exists", message, where=place(action), fix=fix)
    elif walked.exists(action.path) and not walked.is_shown(action.path):
        yield unread(action, action.path)
    elif reason := walked.blocked(action.path):
        yield _clash(action, reason)
    elif (walked.exists(action.path) and walked.text(action.path) is None) or _obstacle(action.path, walked):
        yield _unreadable(action, walked)
    else:
        old = walked.text(action.path)
        new = action.content if old is None else like(old, action.content)
        if old == new:
            yield _nothing(action, f"`{action.path}` holds this text already")
        walked.put(action.path, new)


def _clash(action: Action, reason: str) -> Finding:
    return major("plan.clash", f"there can be no such file: {reason}", where=place(action), fix="Choose another path.")


def _nothing(action: Action, message: str, line: int = 0) -> Finding:
    return minor("plan.no_change", message, where=place(action, line), fix="Leave out what changes nothing.")


def _known(action: Edit | Delete | Move, walked: Walked) -> Finding | None:
    """Returns why a file that is to be changed cannot be; None when it can."""
    if (found := unsafe(action, action.path)) is not None:
        return found
    if not walked.exists(action.path):
        return missing(action, action.path, walked)
    if not walked.is_shown(action.path):
        return unread(action, action.path)
    if walked.text(action.path) is None or _obstacle(action.path, walked):
        return _unreadable(action, walked)
    return None


def _obstacle(path: str, walked: Walked) -> str:
    return walked.world.obstacles.get(path, "")


def _unreadable(action: Create | Edit | Delete | Move, walked: Walked) -> Finding:
    message = f"`{action.path}` {_obstacle(action.path, walked) or 'is no text of UTF-8, or too long'}"
    return major("plan.unreadable", message, where=place(action), fix="Leave the file as it is.")


def edit(action: Edit, walked: Walked) -> Iterator[Finding]:
    """Each FIND occurs exactly once in the file as the earlier pairs left it."""
    if (found := _known(action, walked)) is not None:
        yield found
        return
    if not action.pairs:
        fix = "Write `#### FIND:` with one block, then `#### REPLACE:` with one block."
        yield major("plan.empty_find", "EDIT has no FIND", where=place(action), fix=fix)
    for number, pair in enumerate(action.pairs, start=1):
        text = FileText(walked.text(action.path) or "")
        finding, new = _replaced(action, pair, number, text)
        if finding is not None:
            yield finding
        walked.changes[action.path] = new


def _replaced(action: Edit, pair: Pair, number: int, text: FileText) -> tuple[Finding | None, str]:
    where = place(action, pair.line)
    where = where.model_copy(update={"field": f"{where.field}, FIND {number}"})
    if not pair.find.strip():
        fix = "Put lines of the file into FIND; a new file is a CREATE."
        return major("plan.empty_find", "FIND holds nothing but blanks", where=where, fix=fix), text.raw
    found = matches(text, pair.find)
    if not found:
        return _not_found(action, pair, where, text), text.raw
    if len(found) > 1:
        return _ambiguous(action, found, where, text), text.raw
    if pair.find == pair.replace:
        return _nothing(action, "FIND and REPLACE are the same", pair.line), text.raw
    return None, replaced(text, found[0], pair.find, pair.replace)


def _not_found(action: Edit, pair: Pair, where: Where, text: FileText) -> Finding:
    near = nearest(text.lf, pair.find)
    message = f"FIND does not occur in `{action.path}`"
    if near is None:
        message += ", and nothing there is like it"
        fix = f"Copy the lines as they stand in `{action.path}`, blanks and all."
    else:
        blanks = "; they differ in blanks only" if near.blanks_only else ""
        message += f"; the nearest text is at line {near.line} ({near.score:.0f} % alike){blanks}:\n{near.diff}"
        fix = f"Copy the lines of `{action.path}` from line {near.line} on as they are, blanks and all."
    return major("plan.not_found", message, where=where, fix=fix)


def _ambiguous(action: Edit, found: list[int], where: Where, text: FileText) -> Finding:
    lines = ", ".join(str(text.line(at)) for at in found[:MAX_LINES_TOLD])
    more = f" and {len(found) - MAX_LINES_TOLD} more" if len(found) > MAX_LINES_TOLD else ""
    count = f"{'at least ' if len(found) == MAX_MATCHES else ''}{len(found)}"
    message = f"FIND occurs {count} times in `{action.path}`: at lines {lines}{more}"
    fix = "Add context: lines before and behind the place, so that FIND occurs once."
    return major("plan.ambiguous", message, where=where, fix=fix)


def delete(action: Delete, walked: Walked) -> Iterator[Finding]:
    """The file must be there and have been shown."""
    if (found := _known(action, walked)) is not None:
        yield found
    else:
        walked.gone(action.path)


def move(action: Move, walked: Walked) -> Iterator[Finding]:
    """The file must be there and have been shown, its new path be free."""
    found = _known(action, walked) or unsafe(action, action.target)
    if found is not None:
        yield found
    elif action.path == action.target:
        yield major("plan.exists", "the file is moved to where it is", where=place(action), fix="Name another Target.")
    elif walked.exists(action.target):
        message = f"`{action.target}` exists already"
        yield major("plan.exists", message, where=place(action), fix="Name a Target that is free, or DELETE it first.")
    else:
        if reason := walked.blocked(action.target):
            yield _clash(action, reason)
        text = walked.text(action.path) or ""
        walked.gone(action.path)
        walked.put(action.target, text)
