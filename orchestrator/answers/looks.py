"""A reply that only asks to be shown files, in the forms that models write it."""

import json
import re
from typing import NamedTuple

from orchestrator.answers.action_plan import parse_plan
from orchestrator.core.action_plan import Prune, Read

MAX_TEXT = 6_000
"""A longer text is an answer, whatever it begins with."""
AS_JSON = "one object whose only key is `read`"
"""In prompts for JSON: how they say what asks for files."""
_LINE = re.compile(r"^(?:#{1,6}\s*|[-*]\s+|\d+[.)]\s+)?`?(?P<verb>READ|PRUNE)`?\s*:?\s+(?P<resource>\S.*)$")
_LINK = re.compile(r"^\[([^\]]+)\](?:\([^)]*\))?$")
_BAR = re.compile(r"^(?:`{3,}|~{3,})\w*$")
# An answer in another form may speak of reading: it has braces, or the verdict of a review.
_ANSWER = re.compile(r"[{}]|^\W*Ready\b", re.MULTILINE)
_MAX_PROSE = 400


class Wanted(NamedTuple):
    """What is asked for: paths as they were written, also with the lines that are wanted of them (`a.py#L10-L20`)."""

    reads: tuple[str, ...]
    prunes: tuple[str, ...] = ()


def look_in(text: str) -> Wanted | None:
    """Returns what a reply asks to be shown when it asks for nothing else; None for any other. Never raises."""
    if len(text) > MAX_TEXT or "read" not in text.lower():
        return None
    found = _as_json(text) or _as_lines(text) or _as_plan(text)
    return found if found is not None and found.reads else None


def _as_json(text: str) -> Wanted | None:
    r"""`{"read": ["a.py"]}`, also in a fence."""
    inner = "\n".join(line for line in text.strip().splitlines() if not _BAR.match(line.strip()))
    if not inner.startswith("{"):
        return None
    try:
        value = json.loads(inner)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or [key.lower() for key in value] not in (["read"], ["reads"]):
        return None
    (held,) = value.values()
    paths = [held] if isinstance(held, str) else held
    return Wanted(tuple(map(_tidy, paths))) if isinstance(paths, list) and all(map(_is_text, paths)) else None


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _as_lines(text: str) -> Wanted | None:
    """Lines of `READ path`, with a few words before them at most."""
    reads: list[str] = []
    prunes: list[str] = []
    prose = 0
    for line in filter(None, map(str.strip, text.splitlines())):
        found = _LINE.match(line)
        if found is None:
            prose += 0 if _BAR.match(line) else len(line)
            if (reads or prunes) and prose and not _BAR.match(line):
                return None
            continue
        resource = _tidy(found["resource"])
        if " " in resource:
            return None
        (reads if found["verb"] == "READ" else prunes).append(resource)
    if prose > _MAX_PROSE or _ANSWER.search(text):
        return None
    return Wanted(tuple(reads), tuple(prunes)) if reads else None


def _as_plan(text: str) -> Wanted | None:
    """An action plan of READ and PRUNE alone."""
    if "READ" not in text:
        return None
    plan = parse_plan(text).plan
    if plan is None or not plan.actions or not all(isinstance(action, Read | Prune) for action in plan.actions):
        return None
    return Wanted(plan.addresses, plan.prunes)


def _tidy(resource: str) -> str:
    text = resource.strip().strip("`\"'").strip()
    link = _LINK.match(text)
    text = (link[1] if link else text).strip("`\"' ")
    return text if "://" in text else text.removeprefix("./").lstrip("/")
