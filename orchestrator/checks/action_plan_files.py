"""Actions that change files, each against the tree as the earlier ones left it. Pure."""

from collections.abc import Iterator

from orchestrator.checks.action_plan_edit import MAX_MATCHES, FileText, like, matches, replaced
from orchestrator.checks.action_plan_nearest import nearest
from orchestrator.checks.action_plan_rules import missing, place, unread, unsafe
from orchestrator.checks.action_plan_world import Walked
from orchestrator.domain.action_plan import Action, Create, Delete, Edit, Move, Pair
from orchestrator.domain.findings import Finding, Where, major, minor

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
    """Why a file that is to be changed cannot be; None when it can."""
    if (found := unsafe(action, action.path)) is not None:
        return found
    if not walked.exists(action.path):
        return missing(action, action.path, walked)
    if not walked.is_shown(action.path):
        return unread(action, action.path)
    if walked.text(action.path) is None:
        message = f"`{action.path}` is no text of UTF-8, or too long"
        fix = "Leave the file as it is."
        return major("plan.unreadable", message, where=place(action), fix=fix)
    return None


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
        fix = f"READ `{action.path}` and copy the lines as they are, blanks and all."
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
