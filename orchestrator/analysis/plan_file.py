"""The tasks of all stages as one list, and the improvement plan as Markdown (pure)."""

import re
from collections.abc import Iterator, Sequence

from orchestrator.core.analysis import (
    Codebase,
    ImprovementPlan,
    ImprovementTask,
    LeftOut,
    StageReport,
    StageResult,
    StageStatus,
    TaskPriority,
)
from orchestrator.core.value import counted, same_title

HEADING = "# MVP Improvement Plan"
MOCK_NOTICE = "**Mock:** no model was asked. Every summary and task below is a stand-in that shows the form of a plan."
COMMENT, ESCAPED_COMMENT = "<!--", "&lt;!--"
"""A title that holds the first is written with the second: it begins no comment."""
MAX_LISTED = 40
"""Files that are listed as cut or left out."""
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


def aggregate(stages: Sequence[StageResult]) -> tuple[ImprovementTask, ...]:
    """Returns the tasks of a plan by priority, numbered.

    Of tasks with the same title the first stands, with the higher priority and what only a later one has.
    """
    merged: dict[str, ImprovementTask] = {}
    for task in (task for stage in stages for task in stage.tasks):
        known = same_title(task.title)
        merged[known] = _joined(merged[known], task) if known in merged else task
    ordered = sorted(merged.values(), key=lambda task: task.priority.rank)
    return tuple(task.model_copy(update={"number": number}) for number, task in enumerate(ordered, start=1))


def _joined(first: ImprovementTask, later: ImprovementTask) -> ImprovementTask:
    higher = min((first, later), key=lambda task: task.priority.rank)
    also = dict.fromkeys(stage for stage in (*first.also, later.stage) if stage != first.stage)
    texts = {name: getattr(first, name) or getattr(later, name) for name in ("description", "file")}
    lists = ("acceptance_criteria", "depends_on")
    both = {name: (*dict.fromkeys((*getattr(first, name), *getattr(later, name))),) for name in lists}
    ranked = {"priority": higher.priority, "priority_stated": higher.priority_stated, "also": (*also,)}
    return first.model_copy(update=texts | both | ranked)


def render_plan(plan: ImprovementPlan, instructions: str) -> str:
    """Returns the whole file."""
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
        "## What the stages were shown",
        _codebase(plan.codebase),
        "## Instructions for Claude Code",
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


def _task(task: ImprovementTask) -> str:
    place = f" ({_code(task.file)})" if task.file else ""
    lines = [f"- [ ] [{task.priority.upper()}] {_line(task.title)}{place}"]
    lines += [f"  {line}".rstrip() for line in task.description.split("\n") if task.description]
    lines += [f"  - {_line(text)}" for text in task.acceptance_criteria]
    facts = [f"task {task.number}", f"from {', '.join((task.stage, *task.also))}"]
    if task.priority_stated:
        facts.append(f"priority stated as {_code(task.priority_stated)}")
    told = task.description or task.acceptance_criteria
    lines += ["", f"  *{'; '.join(facts)}*"] if told else [f"  *{'; '.join(facts)}*"]
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
