"""Stage 2 of reading a plan, second half: what stands below the headings becomes actions."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rapidfuzz import process

from orchestrator.answers.action_plan_body import at, body_of
from orchestrator.answers.action_plan_build import Unfinished, built
from orchestrator.answers.action_plan_document import Block, words
from orchestrator.answers.action_plan_words import Heading, action_heading, mark_of
from orchestrator.domain.action_plan import Action, Verb
from orchestrator.domain.base import Value
from orchestrator.domain.findings import Finding, blocking, major, minor

_VERBS = ", ".join(f"`{verb}`" for verb in Verb)


class CutAction(Value):
    """An action that the end of the text cut off."""

    verb: Verb | None
    """None when its heading was cut."""
    path: str
    """As far as it is known: a path, a resource, else ""."""
    line: int


class Actions(NamedTuple):
    """The actions of one plan; not to be used when a finding blocks."""

    actions: tuple[Action, ...]
    cut: CutAction | None
    findings: tuple[Finding, ...]


def actions_of(blocks: Sequence[Block], last: bool, line: int) -> Actions:
    """The actions under `## Action Plan`; `last` says whether the text ends with them, `line` is where they begin."""
    findings: list[Finding] = []
    actions: list[Action] = []
    cut: CutAction | None = None
    groups = _groups(blocks, findings)
    for number, (heading, title, below) in enumerate(groups):
        ends = last and number == len(groups) - 1
        body = body_of(heading, title, below, ends)
        findings += _form(heading, title)
        if number + 1 < len(groups):
            findings += _separated(below, groups[number + 1][1])
        made = built(body)
        findings += body.findings
        if isinstance(made, Unfinished):
            cut = CutAction(verb=heading.verb, path=made.path, line=title.line)
        elif made is not None:
            actions.append(made)
    cut = cut or _cut_heading(blocks, last, findings)
    if not groups and cut is None and not blocking(findings):
        fix = f"Write each action as `### ` and one of {_VERBS}."
        findings.append(major("plan.no_actions", "the plan has no action", where=at(line), fix=fix))
    return Actions(tuple(actions), cut, tuple(findings))


Group = tuple[Heading, Block, list[Block]]


def _groups(blocks: Sequence[Block], findings: list[Finding]) -> list[Group]:
    """The blocks by action; headings that are none are told, with what stands below them left aside."""
    groups: list[Group] = []
    below: list[Block] | None = None
    aside: list[Block] = []
    for block in blocks:
        heading = action_heading(block.text) if block.kind == "heading" else None
        if heading is not None:
            below = []
            groups.append((heading, block, below))
        elif _is_lost(block):
            findings.append(_unknown(block))
            below = aside
        elif below is None:
            findings += _early(block)
        else:
            below.append(block)
    return groups


def _early(block: Block) -> Iterator[Finding]:
    """What is said of a block before the first action."""
    if block.kind == "fence":
        fix = "Put every block below the heading of its action."
        yield major("plan.block", "a code block stands before the first action", where=at(block.line), fix=fix)
    elif block.kind != "rule":
        message = "words before the first action are no part of the plan"
        yield minor("plan.stray", message, where=at(block.line), fix="Say such things in `## Rationale`.")


def _is_lost(block: Block) -> bool:
    """Whether a heading names no action, or words that are no heading can only be meant as one."""
    if block.kind == "heading":
        return block.level <= 3 and mark_of(block.text) is None
    heading = action_heading(block.text) if block.kind in {"paragraph", "item"} else None
    return heading is not None and (heading.exact or block.text.strip("*_`: ") == heading.verb)


def _unknown(block: Block) -> Finding:
    said = words(block.text)
    near = process.extractOne(said.split(" ")[0].upper(), list(Verb), score_cutoff=70) if said else None
    hint = f"; is `{near[0]}` meant?" if near and near[1] < 100 else ""
    message = f"`{said[:60]}` is no heading of an action{hint}"
    fix = f"Write each action as a heading `### ` with one of {_VERBS} and nothing else."
    return major("plan.verb", message, where=at(block.line), fix=fix)


def _form(heading: Heading, title: Block) -> Iterator[Finding]:
    if not heading.exact or title.level != 3:
        message = f"`{'#' * title.level} {title.text[:60]}` was read as the action {heading.verb}"
        yield minor("plan.heading_form", message, where=at(title.line), fix=f"Write `### `{heading.verb}``.")


def _separated(below: Sequence[Block], following: Block) -> Iterator[Finding]:
    if not any(block.kind == "rule" for block in below):
        message = "there is no `---` between two actions"
        yield minor("plan.separator", message, where=at(following.line), fix="Write `---` between two actions.")


def _cut_heading(blocks: Sequence[Block], last: bool, findings: list[Finding]) -> CutAction | None:
    """A verb that the end of the text cut: its finding goes, as nobody wrote it."""
    end = blocks[-1] if blocks else None
    if not last or end is None or end.kind != "heading" or end.level != 3:
        return None
    begun = end.text.strip("`").upper()
    if begun in Verb.__members__ or not any(verb.startswith(begun) for verb in Verb):
        return None
    findings[:] = [one for one in findings if not (one.code == "plan.verb" and one.where.line == end.line)]
    return CutAction(verb=None, path="", line=end.line)
