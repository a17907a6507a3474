"""The words of an action plan: how verbs, marks, sections and fields are spelled, and how models spell them."""

import re
from typing import NamedTuple

from orchestrator.answers.action_plan_document import Piece, pieces_of, words
from orchestrator.domain.action_plan import Verb

RATIONALE, ACTIONS = "rationale", "action plan"
_NUMBER = re.compile(r"^(?:(?:step|action)\s*)?#?\d{1,3}\s*[.:)\-–—]\s*|^(?:step|action)\s*[:\-–—]\s*", re.IGNORECASE)
_MARKS = " \t:;.,*_`#-–—!→"
"""What stands around a verb and means nothing."""
_LATIN = re.compile(r"[A-Za-z]+")
_PATH = re.compile(r"^[^\s`*?<>|\"]{1,400}$")
_SUFFIX = re.compile(r"[^/.\s]\.[A-Za-z0-9_+~-]{1,16}$")


class Heading(NamedTuple):
    """A heading that names a verb."""

    verb: Verb
    rest: str
    """A path that stands behind it, else ""."""
    exact: bool
    """Whether it is written as the format says: the verb in backticks and nothing else."""


def action_heading(text: str) -> Heading | None:
    """What a heading (its inline Markdown) says when it is an action's: a verb, and at most a path behind it."""
    if text.startswith("`") and text.endswith("`") and text[1:-1] in Verb.__members__:
        return Heading(Verb(text[1:-1]), "", True)
    bare = _NUMBER.sub("", text.strip(" *_"), count=1)
    pieces = pieces_of(bare)
    if not pieces:
        return None
    first, *others = pieces
    spelled = _LATIN.match(first.text.lstrip(_MARKS))
    verb = Verb.__members__.get(spelled[0].upper()) if spelled else None
    if spelled is None or verb is None or (first.kind != "text" and first.text.strip(_MARKS) != spelled[0]):
        return None
    behind = first.text.lstrip(_MARKS)[spelled.end() :]
    if behind[:1].isalnum() or behind[:1] == "_" or (behind[:1] in {"-", "'"} and behind[1:2].isalpha()):
        return None
    rest = [Piece("text", behind)] if behind.strip(_MARKS) else []
    rest += [piece for piece in others if piece.kind != "text" or piece.text.strip(_MARKS)]
    if not rest:
        return Heading(verb, "", False)
    path = rest[0].text.strip(" \t:;,*-–—`") if len(rest) == 1 else ""
    return Heading(verb, path.removeprefix("/"), False) if looks_like_path(path) else None


def looks_like_path(text: str) -> bool:
    """Whether a word can be nothing but a path: it has a folder or a suffix, and no blank."""
    return bool(_PATH.match(text)) and ("/" in text.strip("/") or bool(_SUFFIX.search(text)))


def section(text: str) -> str:
    """The name of a section from its heading: lower case, without numbers and marks."""
    return _NUMBER.sub("", words(text).casefold(), count=1).strip(_MARKS)


class Mark(NamedTuple):
    """FIND or REPLACE before a block."""

    find: bool
    exact: bool


_FOUND = {"find": True, "search": True, "replace": False, "replace with": False, "find block": True}
_COUNTED = re.compile(r"[\s(#]*\d{0,3}[\s):]*$")


def mark_of(text: str) -> Mark | None:
    """What a heading, paragraph or item says when it is nothing but a mark; `exact` leaves its level to the caller."""
    if len(text) > 60:
        return None
    plain = words(text)
    said = _COUNTED.sub("", plain.strip(_MARKS)).strip(_MARKS).casefold()
    if said not in _FOUND:
        return None
    return Mark(_FOUND[said], plain in {"FIND:", "REPLACE:", "FIND", "REPLACE"})


FIELDS = (
    "File Path", "Resource", "Description", "Overwrite", "Expected Outcome", "cwd", "env", "Timeout", "Allow Failure",
    "Target", "Command",
)  # fmt: skip
"""The fields of actions, as the format spells them."""
_SPELLED = {name.casefold(): name for name in FIELDS}
_OTHERS = {
    "path": "File Path", "file": "File Path", "filepath": "File Path", "filename": "File Path",
    "file name": "File Path", "source": "File Path", "source path": "File Path", "from": "File Path",
    "url": "Resource", "resources": "Resource", "desc": "Description", "expected outcomes": "Expected Outcome",
    "expected": "Expected Outcome", "expected result": "Expected Outcome", "expectedoutcome": "Expected Outcome",
    "working directory": "cwd", "workdir": "cwd", "environment": "env", "timeout s": "Timeout",
    "timeout seconds": "Timeout", "allowfailure": "Allow Failure", "destination": "Target", "to": "Target",
    "new path": "Target", "target path": "Target", "new file path": "Target",
}  # fmt: skip


def field_name(key: str) -> str | None:
    """The field that a bullet's key names, however it is spelled; None when it is none of ours."""
    said = " ".join(re.sub(r"[_\-()]", " ", key).split()).casefold()
    return _SPELLED.get(said) or _OTHERS.get(said)
