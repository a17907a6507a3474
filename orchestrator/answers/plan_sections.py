"""The tasks of a person's plan: what begins one, and the blocks that belong to it.

A plan's tasks stand under headings `### Task N`. A plan without any has boxes (`- [ ] T001 …`), numbered headings,
numbered items, or steps: the first of _STYLES that it has.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from orchestrator.answers.markdown import Block, words

LEVELS = (3, 2, 4)
"""Of tasks' headings: `### Task 1`, or another one where a plan has none of these."""
_NUMBER = re.compile(r"task\s+#?(\d{1,6}(?:\.\d{1,6})?)", re.IGNORECASE)
_ORDINAL = r"[a-z]\b|[ivx]+\b|one\b|two\b|three\b|four\b|five\b|six\b|seven\b|eight\b|nine\b|ten\b"
# A heading or item that is nearly a task's.
_NEARLY = re.compile(rf"(?P<marks>[^\w<]*(?:\[x?\]\s*)?)task(?:\s*[:#\d]|\s+(?:{_ORDINAL}))", re.IGNORECASE)
_UNSPACED = re.compile(r"#{1,6}task\s*\d", re.IGNORECASE)
_BOLD = re.compile(r"\*\*task\s+\d[^\n]*", re.IGNORECASE)
# Behind the box of a task that may be left out some tools set a star. Other signs than x say that it is begun, put off
# or left out: not that it is done.
BOX = re.compile(r"\[[ ]?(?P<done>[xX\u2713\u2714]|[^\w\s\[\]]?)[ ]?\](?!\()\*?\s*(?P<rest>.*)")
"""`[ ]`, `[x]`, `[-]`, `[~]`, `[]`, and what stands behind."""
# `T001`, `T003a`, `T-004`, `1.2`, `3.`: what a box or a heading is called. `3 retries` is no number of a task.
_CALLED = re.compile(
    r"\**(?P<id>T-?(?P<t>\d{1,6}[a-z]?)|\d{1,6}(?:\.\d{1,6}){1,3}[a-z]?|\d{1,6}[a-z]?(?=[.):]))\b[.):]*\**(?:\s+|$)"
    r"(?P<rest>.*)"
)
_LIKE_A_TASK = re.compile(r"\**(?:T|task)[-_ #]?\d", re.IGNORECASE)
"""What a box is called that nobody can read for certain."""
_STEP = re.compile(r"(?:step|phase)\s+#?(?P<number>\d{1,6})\b(?P<rest>.*)", re.IGNORECASE)
# `[P] [US1]` before what a box says, and no link.
_TAGS = re.compile(r"(?:\[[\w-]{1,12}\](?!\()\s*)+")


class Section(NamedTuple):
    """What begins a task, and what stands below it."""

    number: str
    """Without zeros before it."""
    title: str
    line: int
    blocks: list[Block]
    label: str = ""
    """What its author calls it where that is not `Task` and the number."""
    done: bool = False
    """Whether its box is ticked."""
    said: str = ""
    """The line that it begins with, as it was written."""


def number_and_title(block: Block, level: int) -> tuple[str, str] | None:
    """Returns the number and title of the task that a heading begins, None for any other block."""
    if block.kind != "heading" or block.level != level:
        return None
    text = words(block.text).rstrip("# ")
    match = _NUMBER.match(text)
    rest = text[match.end() :] if match is not None else ""
    if rest[:1].isalnum() or rest[:1] in {"_", "/", "+"} or (rest[:1] in {".", "-", "–", "—"} and rest[1:2].isdigit()):
        return None  # `Task 1a`, `Task 1/3`, `Task 1-3`, `Task 1.2.3`: which task that is can only be guessed
    if match is None:
        return None
    return _number(match[1]), _title(rest).strip("* ")


def _number(text: str) -> str:
    return ".".join(part.lstrip("0") or "0" for part in text.lower().split("."))


def _title(text: str) -> str:
    return text.lstrip(" \t:–—-).").rstrip(" \t:–—-.")


class Parts(NamedTuple):
    """A plan's parts."""

    sections: list[Section]
    ends: list[int]
    """Number of the line behind each section; 0 where the text ends with it."""
    outside: list[Block]
    """Before the first task, and behind a heading that belongs to none."""
    nearly: list[Block]
    """What looks like a task's heading, is none, and so keeps its task from being read."""
    headed: bool
    """Whether its tasks stand under headings `Task N`."""


def parts_of(blocks: Sequence[Block]) -> Parts:
    """Returns the parts of a plan. A task ends at the next one, or at a heading of a higher level."""
    blocks = list(_uncommented(blocks))
    begun, level = _headed(blocks)
    nearly = list(_nearly(blocks, sorted(begun), level))
    headed = bool(begun)
    if not headed and not nearly:
        begun, level = _listed(blocks)
        nearly = [block for at, block in enumerate(blocks) if at not in begun and begun and _is_unread_box(block)]
    parts = Parts([], [], [], nearly, headed)
    below = parts.outside
    for at, block in enumerate(blocks):
        found = begun.get(at)
        if found is not None or (block.kind == "heading" and block.level < level):
            parts.ends.extend([block.line] * (len(parts.sections) - len(parts.ends)))
            below = parts.outside
        if found is not None:
            below = found.blocks
            parts.sections.append(found)
        else:
            below.append(block)
    parts.ends.extend([0] * (len(parts.sections) - len(parts.ends)))
    if not headed:
        parts.sections[:] = [_without_done(section) for section in parts.sections]
    return parts


def is_ticked(box: re.Match[str]) -> bool:
    """Returns whether a box says that what stands behind it is done."""
    return box["done"] in {"x", "X", "\u2713", "\u2714"}


def _is_unread_box(block: Block) -> bool:
    box = BOX.match(block.text) if _is_item(block) else None
    return box is not None and _LIKE_A_TASK.match(box["rest"]) is not None


def _without_done(section: Section) -> Section:
    """Returns a task without those boxes below it that are ticked: it is done when none of them is open."""
    boxes = [BOX.match(block.text) if block.kind == "item" else None for block in section.blocks]
    if all(box is None or is_ticked(box) for box in boxes):
        return section
    kept: list[Block] = []
    skipped = 0
    for block, box in zip(section.blocks, boxes, strict=True):
        if block.kind == "item" and (not skipped or block.depth <= skipped):
            skipped = block.depth if box is not None and is_ticked(box) else 0
        if not skipped:
            kept.append(block)
    return section._replace(blocks=kept, done=False)


def _headed(blocks: Sequence[Block]) -> tuple[dict[int, Section], int]:
    """Returns place → task of headings `Task N`, and their level."""
    for level in LEVELS:
        found = ((at, block, number_and_title(block, level)) for at, block in enumerate(blocks))
        begun = {at: Section(*said, block.line, [], said=block.text) for at, block, said in found if said is not None}
        if begun:
            return begun, level
    return {}, LEVELS[0]


def _listed(blocks: Sequence[Block]) -> tuple[dict[int, Section], int]:
    """Returns the same of a plan without such headings; a level of 7 where any heading ends a task."""
    for begins, level in _STYLES:
        found = ((at, begins(block)) for at, block in enumerate(blocks))
        begun = {at: section for at, section in found if section is not None}
        if begun:
            numbers = [section.number for section in begun.values()]
            if len({*numbers}) < len(numbers) and not any(section.label for section in begun.values()):
                places = enumerate(begun.items(), start=1)
                begun = {at: section._replace(number=str(place)) for place, (at, section) in places}
            return begun, level
    return {}, LEVELS[0]


def _boxed(block: Block) -> Section | None:
    """`- [ ] T001 [P] [US1] Words`, `- [ ] 1.2 Words`, `- [ ] 3. Words`."""
    box = BOX.match(block.text) if _is_item(block) else None
    called = _CALLED.match(box["rest"]) if box else None
    if box is None or called is None:
        return None
    section = _of_item(block, called["rest"], done=is_ticked(box))
    return section._replace(number=_number(called["t"] or called["id"]), label=called["id"] if called["t"] else "")


def _box(block: Block) -> Section | None:
    """`- [ ] Words`."""
    box = BOX.match(block.text) if _is_item(block) else None
    return _of_item(block, box["rest"], done=is_ticked(box)) if box else None


def _numbered(block: Block) -> Section | None:
    """`### 1. Words`, `### Step 1: Words`."""
    if block.kind != "heading" or block.level != LEVELS[0]:
        return None
    text = block.text.replace("**", "").rstrip("# ")
    called = _CALLED.match(text)
    if called is None or called["t"]:
        return _step(block, LEVELS[0])
    return Section(_number(called["id"]), _title(called["rest"]), block.line, [], said=text)


def _step(block: Block, level: int) -> Section | None:
    """`## Step 1: Words`, `## Phase 1: Words`."""
    text = block.text.replace("**", "").rstrip("# ")
    step = _STEP.match(text) if block.kind == "heading" and block.level == level else None
    return Section(_number(step["number"]), _title(step["rest"]), block.line, [], said=text) if step else None


def _bold(block: Block) -> Section | None:
    """`1. **Words** more`."""
    return _item(block) if block.text.startswith("**") else None


def _item(block: Block) -> Section | None:
    """`1. Words`."""
    if not _is_item(block) or block.mark not in {".", ")"}:
        return None
    return _of_item(block, block.text.partition("\n")[0])


_STYLES: tuple[tuple[Callable[[Block], Section | None], int], ...] = (
    (_boxed, 7), (_numbered, LEVELS[0]), (_bold, 7), (_box, 7), (_item, 7),
    *((partial(_step, level=level), level) for level in LEVELS[1:]),
)  # fmt: skip
"""What begins a task, and the level below which a heading ends it."""


def _is_item(block: Block) -> bool:
    return block.kind == "item" and block.depth == 1


def _of_item(block: Block, said: str, *, done: bool = False) -> Section:
    """Returns the section of an item: its first line is the title, the rest of it stands below."""
    _, _, rest = block.text.partition("\n")
    below = [block._replace(kind="paragraph", line=block.line + 1, text=rest)] if rest.strip() else []
    tags = _TAGS.match(said)
    title = said[tags.end() :] if tags else said
    return Section("", title.replace("**", "").strip(), block.line, below, done=done, said=title)


def _uncommented(blocks: Sequence[Block]) -> Iterator[Block]:
    """Yields the blocks outside of comments; one that is never closed comments nothing out."""
    closings = [at for at, block in enumerate(blocks) if block.kind != "fence" and "-->" in block.text]
    behind = 0
    for at, block in enumerate(blocks):
        if at >= behind and block.kind == "paragraph" and block.text.startswith("<!--"):
            place = bisect_left(closings, at)
            behind = closings[place] + 1 if place < len(closings) else at
        if at >= behind:
            yield block


def _nearly(blocks: Sequence[Block], tasks: Sequence[int], level: int) -> Iterator[Block]:
    first = next((at for at, block in enumerate(blocks) if block.kind == "heading"), 0)
    for at, block in enumerate(blocks):
        if block.kind == "heading":
            is_title = block.level == 1 and at == first
            if is_title or number_and_title(block, level) or (tasks and block.level > level):
                continue
            if _NEARLY.match(words(block.text)) and not _groups(blocks, tasks, at, level):
                yield block
        elif block.kind == "paragraph" and (_UNSPACED.match(block.text) or (not tasks and _BOLD.match(block.text))):
            yield block


def _groups(blocks: Sequence[Block], tasks: Sequence[int], at: int, level: int) -> bool:
    """Returns whether a heading only gathers tasks that are numbered below it: `## Task 1` before `### Task 1.1`."""
    place = bisect_left(tasks, at)
    if place == len(tasks):
        return False
    between = (blocks[one] for one in range(at + 1, tasks[place]))
    if any(block.kind == "heading" and block.level <= blocks[at].level for block in between):
        return False
    number, following = _NUMBER.match(words(blocks[at].text)), number_and_title(blocks[tasks[place]], level)
    return number is not None and following is not None and following[0].startswith(f"{number[1]}.")
