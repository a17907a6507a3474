"""Whether an architect's conflict is one: what contradicts itself, or the tree that everybody can see, is asked again.

A suspicion, never a refusal: the architect is told the facts once, and a conflict that is reported again stands.
"""

import re
from collections.abc import Collection, Iterator

from orchestrator.core.breakdown import ArchitecturalConflict, Breakdown
from orchestrator.core.finding import Finding, Where, major

_FIX = (
    "Where nothing stands against the story, set `detected` to false and plan it. Where something does, name the "
    "convention or design that would be broken, and where it stands."
)
_SHOWN = 10
"""Files that a finding names."""
# A small model fills in a form: each of these was said beside `detected: true`.
_NONE = re.compile(
    r"\b(?:no (?:\w+ )?(?:conflicts?|contradictions?)\b|there (?:is|are) no conflicts?|not? (?:in )?conflict\b"
    r"|does(?: not|n't) conflict|no (?:\w+ )?(?:action|change)s? (?:is|are|was|were) (?:required|needed|necessary)"
    r"|nothing (?:has|needs) to be done|no action (?:required|needed|necessary))",
    re.IGNORECASE,
)
_EMPTY = re.compile(r"^(?:none|n/?a|nil|no|null|not applicable|nothing|-)?\.?$", re.IGNORECASE)
_THERE = re.compile(r"\balready (?:\w+ ){0,2}(?:exists?|implemented|there|present|defined|in place)\b", re.IGNORECASE)
_MISSING = re.compile(
    r"\b(?:do(?:es)?(?: not|n't) exist|(?:is|are) (?:missing|not there|absent|not present)|(?:cannot|can't) be found"
    r"|not found|lacks?\b|there is no)\b",
    re.IGNORECASE,
)
_PATH = re.compile(r"(?<![\w./-])[\w-][\w./-]{0,200}\.[A-Za-z][A-Za-z0-9]{0,5}\b")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")


def doubts(plan: Breakdown, files: Collection[str]) -> list[Finding]:
    """Returns what speaks against the conflict that a plan reports; `files` are the paths of the project."""
    conflict, where = plan.architectural_conflict, Where(story=plan.story_id, field="architectural_conflict")
    found = [*_with_itself(plan), *_with_the_tree(conflict, files)]
    return [
        major("breakdown.doubtful_conflict", f"the conflict is doubtful: {message}", where=where, fix=_FIX)
        for message in dict.fromkeys(found)
    ]


def _with_itself(plan: Breakdown) -> Iterator[str]:
    conflict = plan.architectural_conflict
    for field in ("current_architecture", "conflict_reason", "recommended_action"):
        if (said := _NONE.search(getattr(conflict, field))) is not None:
            yield f'`detected` is true, and `{field}` says "{said[0]}"'
    if _EMPTY.match(conflict.conflict_reason.strip()):
        yield "`detected` is true, and `conflict_reason` names none"
    if plan.tasks:
        yield f"`detected` is true, and the plan has {len(plan.tasks)} tasks for the story all the same"


def _with_the_tree(conflict: ArchitecturalConflict, files: Collection[str]) -> Iterator[str]:
    texts = (conflict.current_architecture, conflict.conflict_reason, conflict.recommended_action)
    for sentence in (one for text in texts for one in _SENTENCE.split(text)):
        named = [path.removeprefix("./") for path in _PATH.findall(sentence)]
        if (said := _THERE.search(sentence)) is not None:
            if not files:
                yield f'it says "{said[0]}", and the repository is empty: nothing exists yet'
            elif gone := [path for path in named if not _has(path, files)]:
                yield f'it says "{said[0]}" of {_quoted(gone)}, which the repository does not have'
        if (said := _MISSING.search(sentence)) is not None and (here := [one for one in named if one in files]):
            yield f'it says "{said[0]}" of {_quoted(here)}, which the repository has'


def _has(path: str, files: Collection[str]) -> bool:
    return any(file == path or file.endswith(f"/{path}") for file in files)


def _quoted(paths: list[str]) -> str:
    return ", ".join(f"`{path}`" for path in paths[:_SHOWN])
