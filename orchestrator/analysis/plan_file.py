"""The improvement plan as Markdown: written for people, and read again for the boxes they ticked (pure)."""

import re
from collections.abc import Iterable, Iterator, Sequence

from orchestrator.core.analysis import (
    Codebase,
    ImprovementPlan,
    ImprovementTask,
    LeftOut,
    Mark,
    StageReport,
    StageStatus,
    TaskPriority,
)
from orchestrator.core.value import counted, same_title

HEADING = "# MVP Improvement Plan"
MOCK_NOTICE = "**Mock:** no model was asked. Every summary and task below is a stand-in that shows the form of a plan."
COMMENT, ESCAPED_COMMENT = "<!--", "&lt;!--"
"""A title that holds the first is written with the second: it begins no comment."""
# `- [x] title`, as people tick it.
_BOX = re.compile(r"^[-*+] \[(?P<mark>[ xX])\][ \t]+(?P<text>\S.*?)[ \t]*$", re.MULTILINE)
_BADGE = re.compile(r"^(\*\*)?\[[A-Za-z]+\](\*\*)?[ \t]*")
_REFERENCE = re.compile(r"[ \t]*\((`+)[^`].*?\1\)$")
MAX_LISTED = 40
"""Files that are listed as cut or left out."""
MARKS = {
    Mark.NO_SUCH_FILE: "the file is not in the repository: a new one, or a mistake",
    Mark.NO_EVIDENCE: "no stage names anything in the repository or the PRD that shows it: look before you do it",
}
_NOT_ANSWERED = {
    StageStatus.PROSE: "This stage answered in prose: what it wrote stands here, and no task was made of it.",
    StageStatus.FAILED: "This stage failed.",
    StageStatus.NOT_BEGUN: "This stage was not started.",
}
_BACKTICKS = re.compile(r"`+")
MAX_SUMMARY = 700  # characters
# An unclosed fence runs to the end.
_PRD_FENCE = re.compile(r"^[ \t]*(`{3}|~{3}).*?(?:^[ \t]*\1.*?$|\Z)", re.MULTILINE | re.DOTALL)
_PRD_HEADING = re.compile(r"^#{1,6}[ \t]+(.*?)[ \t]*#*$", re.MULTILINE)
_PRD_SKIPPED = re.compile(r"^\s*(---|\*\*\*|___|\||!\[|<)")


def render_plan(plan: ImprovementPlan, agent: str, instructions: str) -> str:
    """Returns the whole file; `agent` is whom the instructions are for."""
    parts = [
        HEADING,
        f"**Generated:** {plan.generated:%Y-%m-%d %H:%M} UTC\n**Profile:** {plan.profile}",
        *([MOCK_NOTICE] if plan.mock else []),
        "## PRD Summary",
        _quoted(plan.prd_summary) if plan.prd_summary else "No PRD was given.",
        "## Analysis",
        *(_stages(plan.stages) if _executed(plan.stages) else ["No stages were executed."]),
        "## Tasks",
        *(_groups(plan.tasks) if plan.tasks else ["No tasks were identified."]),
        *_ticks_left(plan.ticks_left),
        "## What the stages were shown",
        _codebase(plan.codebase),
        f"## Instructions for {' '.join(agent.split())}",
        instructions.strip(),
    ]
    return "\n\n".join(parts) + "\n"


def _executed(stages: Sequence[StageReport]) -> bool:
    return any(stage.status is not StageStatus.NOT_BEGUN for stage in stages)


def _stages(stages: Sequence[StageReport]) -> Iterator[str]:
    for stage in stages:
        yield f"### {_line(stage.name)}"
        if stage.status in _NOT_ANSWERED:
            yield f"*{_NOT_ANSWERED[stage.status]}*"
        if stage.summary:
            yield _quoted(stage.summary)
        if stage.recommendations:
            listed = "\n".join(f"- {_line(text)}" for text in stage.recommendations)
            yield f"**Recommendations:**\n\n{listed}"
        said = [finding for finding in stage.findings if finding.severity.blocks]
        if said:
            yield "\n".join(f"- {finding.code}: {_line(finding.message)}" for finding in said)


def _groups(tasks: Sequence[ImprovementTask]) -> Iterator[str]:
    for priority in TaskPriority:
        group = [task for task in tasks if task.priority is priority]
        if group:
            yield f"### {priority.capitalize()} ({len(group)})"
            yield "\n".join(_task(task) for task in group)


def _ticks_left(titles: Sequence[str]) -> Iterator[str]:
    """Ticks that wait for a stage: they stand in the plan so that the next one finds them."""
    if titles:
        yield f"### Ticked before ({len(titles)})"
        yield "Not every stage answered: a task of these that is named later stays ticked."
        yield "\n".join(f"- [x] {_line(title)}" for title in titles)


def _task(task: ImprovementTask) -> str:
    box = "x" if task.done else " "
    place = f" ({_code(task.file)})" if task.file else ""
    lines = [f"- [{box}] [{task.priority.upper()}] {_line(task.title)}{place}"]
    lines += [f"  {line}".rstrip() for line in task.description.split("\n") if task.description]
    facts = [f"task {task.number}", f"from {', '.join((task.stage, *task.also))}"]
    if task.near:
        word = "task" if len(task.near) == 1 else "tasks"
        facts.append(f"nearly the same as {word} {', '.join(str(number) for number in task.near)}")
    if task.priority_stated:
        facts.append(f"priority stated as {_code(task.priority_stated)}")
    lines += ["", f"  *{'; '.join(facts)}*"] if task.description else [f"  *{'; '.join(facts)}*"]
    lines += [f"  - Note: {MARKS[mark]}" for mark in task.marks]
    return "\n".join(lines)


def _codebase(codebase: Codebase) -> str:
    counts = f"{codebase.shown} of {counted(codebase.files, 'file')} whole, about {codebase.tokens} tokens."
    lines = [counts]
    for what, files in (("Cut", codebase.cut), ("Left out", codebase.left_out)):
        lines += _listed(what, files)
    if codebase.masked:
        names = ", ".join(_code(path) for path in codebase.masked)
        lines += ["", f"Something that looks like a secret was taken out of {names}."]
    return "\n".join(lines)


def _listed(what: str, files: Sequence[LeftOut]) -> list[str]:
    if not files:
        return []
    lines = ["", f"{what} ({len(files)}):", ""]
    lines += [f"- {_code(one.path)} ({one.why})" for one in files[:MAX_LISTED]]
    more = len(files) - MAX_LISTED
    return [*lines, f"- and {more} more; plan.json lists all"] if more > 0 else lines


def _quoted(text: str) -> str:
    """Returns a foreign text as a quotation: its headings, boxes and fences are none of the plan's."""
    return "\n".join(f"> {line}".rstrip() for line in text.strip().split("\n"))


def _line(text: str) -> str:
    """On one line, and no start of a comment or a box of its own."""
    return " ".join(text.split()).replace(COMMENT, ESCAPED_COMMENT)


def _code(text: str) -> str:
    """Returns a code span that holds whatever the text holds."""
    plain = " ".join(text.split())
    bar = "`" * (max((len(run) for run in _BACKTICKS.findall(plain)), default=0) + 1)
    pad = " " if plain.startswith("`") or plain.endswith("`") else ""
    return f"{bar}{pad}{plain}{pad}{bar}"


def prd_summary(prd: str) -> str:
    """Returns the start of a PRD: its first heading and the following paragraphs, up to the end of a sentence."""
    text = _PRD_FENCE.sub("\n\n", prd.strip())
    headings = _PRD_HEADING.findall(text)
    lines = ["" if _PRD_HEADING.match(line) or _PRD_SKIPPED.match(line) else line.strip() for line in text.splitlines()]
    paragraphs = [" ".join(part.split()) for part in "\n".join(lines).split("\n\n") if part.strip()]
    whole = ": ".join(part for part in (headings[0] if headings else "", "\n\n".join(paragraphs)) if part)
    if len(whole) <= MAX_SUMMARY:
        return whole
    short = whole[:MAX_SUMMARY]
    end = max(short.rfind(mark) for mark in (". ", ".\n", "? ", "! "))
    return short[: end + 1] if end > MAX_SUMMARY // 3 else f"{short.rsplit(' ', 1)[0]} …"


def is_plan(text: str) -> bool:
    """Returns whether the text is a plan of ours: a file that is none is never written over."""
    return any(line.strip() == HEADING for line in text.splitlines()[:5])


def holds_tasks(text: str) -> bool:
    """Returns whether a box stands in the plan."""
    return _BOX.search(text) is not None


def ticked_titles(text: str) -> frozenset[str]:
    """Titles with a ticked box, as `same_title` has them."""
    return frozenset(form for line in _ticked(text) for form in _forms(line))


def ticks_left(text: str, titles: Iterable[str]) -> tuple[str, ...]:
    """Returns what stands behind ticked boxes whose titles are none of `titles`, each once and in order."""
    known = {same_title(title) for title in titles}
    return tuple(dict.fromkeys(line for line in _ticked(text) if known.isdisjoint(_forms(line))))


def _ticked(text: str) -> Iterator[str]:
    return (match["text"].strip() for match in _BOX.finditer(text) if match["mark"] != " ")


def _forms(line: str) -> frozenset[str]:
    """Returns the line's title with the file behind it and without: a title may end like a reference."""
    title = _BADGE.sub("", line.replace(ESCAPED_COMMENT, COMMENT)).strip()
    return frozenset({same_title(title), same_title(_REFERENCE.sub("", title))})
