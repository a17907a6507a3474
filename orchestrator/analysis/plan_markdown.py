"""The improvement plan as Markdown, for people and for whoever carries it out (pure)."""

import re
from collections.abc import Iterator, Sequence

from orchestrator.analysis.ticks import COMMENT, ESCAPED_COMMENT, HEADING
from orchestrator.domain.analysis import (
    Codebase,
    ImprovementPlan,
    ImprovementTask,
    LeftOut,
    Mark,
    StageReport,
    StageStatus,
    TaskPriority,
)
from orchestrator.domain.words import counted

MAX_LISTED = 40
"""Files that are listed as cut or left out."""
MARKS = {
    Mark.NO_SUCH_FILE: "the file is not in the repository: a new one, or a mistake",
    Mark.NO_EVIDENCE: "no stage names anything in the repository or the PRD that shows it: look before you do it",
}
_NOT_ANSWERED = {
    StageStatus.PROSE: "This stage answered in prose: what it wrote stands here, and no task was made of it.",
    StageStatus.FAILED: "This stage failed.",
    StageStatus.NOT_BEGUN: "This stage was not begun.",
}
_BACKTICKS = re.compile(r"`+")


def render_plan(plan: ImprovementPlan, agent: str, instructions: str) -> str:
    """The whole file; `agent` is whom the instructions are for."""
    parts = [
        HEADING,
        f"**Generated:** {plan.generated:%Y-%m-%d %H:%M} UTC\n**Profile:** {plan.profile}",
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
    """A foreign text as a quotation: its headings, boxes and fences are none of the plan's."""
    return "\n".join(f"> {line}".rstrip() for line in text.strip().split("\n"))


def _line(text: str) -> str:
    """On one line, and no start of a comment or a box of its own."""
    return " ".join(text.split()).replace(COMMENT, ESCAPED_COMMENT)


def _code(text: str) -> str:
    """A code span that holds whatever the text holds."""
    plain = " ".join(text.split())
    bar = "`" * (max((len(run) for run in _BACKTICKS.findall(plain)), default=0) + 1)
    pad = " " if plain.startswith("`") or plain.endswith("`") else ""
    return f"{bar}{pad}{plain}{pad}{bar}"
