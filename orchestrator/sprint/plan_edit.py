"""A plan as a text that a person edits, and the plan that comes back, judged as any other. Pure."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from rapidfuzz import process

from orchestrator.checks.breakdown import check_breakdown, read_breakdown
from orchestrator.domain.breakdown import Breakdown, Task
from orchestrator.domain.findings import Finding, Where, blocking, major
from orchestrator.domain.plan_result import PlanValidationResult
from orchestrator.domain.sprint import BroughtPlan
from orchestrator.domain.words import printable
from orchestrator.sprint.gate import cannot_be_carried_out
from orchestrator.sprint.given_plan import judge_given, read_by_rules
from orchestrator.syntax.problem import Problem, shown
from orchestrator.syntax.written import read_written, write_data

MOST_CHARS = 1_000_000
WIDTH = 110
_FIELDS = frozenset(Breakdown.model_fields)
_TASK_FIELDS = frozenset(Task.model_fields) | {"taskId", "id", "title"}
_FILLED = "breakdown.filled"
"""What a person leaves out is meant to be left out."""
_LEAD = re.compile(r"\ufeff?(?:[ \t]*(?:#[^\n]*)?(?:\n|$))*")


class Edited(NamedTuple):
    """What a person made of a plan."""

    plan: Breakdown | None
    """None when the text holds no plan that could be looked at."""
    findings: tuple[Finding, ...]
    barred: str
    """Why nobody can approve it, "" when somebody can."""

    def accepted(self, *, force: bool) -> bool:
        """Whether it is a plan to be built; with `force` also one that only the checks speak against."""
        return self.plan is not None and not self.barred and (force or not blocking(self.findings))


def plan_text(plan: Breakdown, head: Iterable[str]) -> str:
    """The plan as YAML below comments; what nobody filled in is left out."""
    raw = plan.model_dump(mode="json")
    tasks = [
        {name: value for name, value in task.items() if value or name != "dependency_reason"} for task in raw["tasks"]
    ]
    value = {"story_id": plan.story_id, "tasks": tasks, "dependencies": raw["dependencies"]}
    left_out = {*value, "architectural_conflict", "task_count"}
    for name, field in Breakdown.model_fields.items():
        if name not in left_out and getattr(plan, name) != field.default:
            value[name] = raw[name]
    return commented(head, write_data(value))


def commented(head: Iterable[str], body: str) -> str:
    """`body` with `head` as comments above it, in place of the comments that began it."""
    return "".join(f"{line}\n" for line in _comments(head)) + "\n" + body_of(body)


def body_of(text: str) -> str:
    """A text without the comments and blank lines that it begins with; "" when nothing else is in it."""
    lead = _LEAD.match(text)
    return text[lead.end() :] if lead else text


def _comments(head: Iterable[str]) -> Iterator[str]:
    """Foreign words on lines of their own: no character of theirs ends a comment."""
    for line in head:
        words = printable(line.strip(), keep="")
        indent = " " * (len(line) - len(line.lstrip(" ")))
        wrapped = textwrap.wrap(" ".join(words.split()), WIDTH - len(indent), break_long_words=False)
        yield from (f"# {indent}{part}".rstrip() for part in wrapped or [""])


def finding_comments(findings: Sequence[Finding]) -> Iterator[str]:
    """Findings with what to do, as lines of a head."""
    for finding in findings:
        yield f"- {finding}"
        if finding.fix:
            yield f"    to do: {finding.fix}"


def read_edit(text: str, story: str, files: frozenset[str], packages: frozenset[str]) -> Edited:
    """The plan in a text of YAML or JSON, held against the project that the story's plan was made for. Never raises."""
    if len(text) > MOST_CHARS:
        return _refused(story, Problem(message=f"it has more than {MOST_CHARS} characters", fix="A plan is shorter."))
    value, problem = read_written(text)
    if problem is not None:
        return _refused(story, problem)
    if not isinstance(value, dict):
        return _refused(story, Problem(message="it is no mapping of a plan's fields", fix="Begin with `tasks:`."))
    told = list(_unknown_fields(value, story))
    plan, said = read_breakdown(_completed(value, story), story)
    told += [finding for finding in said if finding.code != _FILLED]
    if plan is None:
        return Edited(None, tuple(told), "it is no whole plan")
    if plan.architectural_conflict.detected:
        message, where = (
            "an edited plan settles its conflict itself",
            Where(story=story, field="architectural_conflict"),
        )
        told.append(major("gate.edit_conflict", message, where=where, fix="Leave architectural_conflict out."))
        return Edited(None, tuple(told), message)
    result = PlanValidationResult.of([*told, *check_breakdown(plan, files, packages)])
    return Edited(plan, result.findings, cannot_be_carried_out(plan, result))


def read_markdown(
    given: BroughtPlan, story: str, files: frozenset[str], packages: frozenset[str], min_chars: int
) -> Edited:
    """The same for a person's task plan in Markdown, read by the rules of `run --plan` without a model."""
    read = read_by_rules(given, story)
    result = PlanValidationResult.of(judge_given(read, story, files, packages, min_chars))
    return Edited(read.breakdown, result.findings, cannot_be_carried_out(read.breakdown, result))


def _refused(story: str, problem: Problem) -> Edited:
    where = Where(story=story, line=problem.line, column=problem.column)
    usual = "Mend it: YAML with two spaces per level, texts with `: ` or `#` in quotes; or JSON."
    fix = problem.fix if problem.fix else usual
    message = f"the text holds no plan: {problem.message}"
    return Edited(None, (major("gate.edit_syntax", message, where=where, fix=fix),), message)


def _completed(value: dict[str, Any], story: str) -> dict[str, Any]:
    """With what follows from the rest: a person counts no tasks and reports no conflict."""
    tasks = value.get("tasks")
    count = len(tasks) if isinstance(tasks, list) else 0
    given = {"story_id": story, "architectural_conflict": {"detected": False}, "dependencies": {}}
    return {**given, **value, "task_count": count}


def _unknown_fields(value: dict[str, Any], story: str) -> Iterator[Finding]:
    """A misspelt field would be read as none, and what stands in it would be lost."""
    tasks = value.get("tasks")
    places = [("", value, _FIELDS)]
    if isinstance(tasks, list):
        places += [(f"tasks[{n}].", task, _TASK_FIELDS) for n, task in enumerate(tasks) if isinstance(task, dict)]
    for place, fields, known in places:
        for name in fields:
            if name not in known:
                nearest = process.extractOne(name, sorted(known))
                meant = f"Write `{nearest[0]}`, or leave it out." if nearest else "Leave it out."
                message = f"`{shown(name)}` is no field of a {'task' if place else 'plan'}"
                where = Where(story=story, field=f"{place}{shown(name)}")
                yield major("gate.edit_field", message, where=where, fix=meant)
