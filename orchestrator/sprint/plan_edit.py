"""Writes a plan as a text that a person edits, and reads and judges the edited plan. Pure.

Every scalar of YAML is read as a text (`1.10` is a version). Aliases are problems: they can make a small text huge.
"""

import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import yaml

from orchestrator.checks.breakdown import read_breakdown
from orchestrator.checks.breakdown_rules import check_breakdown
from orchestrator.code.grammar import Problem, shown
from orchestrator.core.breakdown import Breakdown, PlanValidationResult, Task
from orchestrator.core.finding import Finding, Where, blocking, major
from orchestrator.core.sprint import BroughtPlan
from orchestrator.core.value import printable, suggest
from orchestrator.story.gate import cannot_be_carried_out
from orchestrator.story.planning import judge_text

MAX_DEPTH = 40  # bounds recursion; a plan nests less
YAML_WIDTH = 100
_Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class _Writer(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _write_text(writer: _Writer, text: str) -> yaml.ScalarNode:
    block = "|" if "\n" in text else ">" if len(text) > YAML_WIDTH else None
    # A block would change the other line breaks.
    return writer.represent_scalar("tag:yaml.org,2002:str", text, '"' if {*text} & {*"\x85\u2028\u2029"} else block)


_Writer.add_representer(str, _write_text)


def write_data(value: Any) -> str:
    """Returns plain data as YAML for people, long texts as blocks."""
    return str(yaml.dump(value, Dumper=_Writer, sort_keys=False, allow_unicode=True, width=YAML_WIDTH))


def read_written(text: str) -> tuple[Any, Problem | None]:
    """Returns the value in `text`, or the problem: reads JSON if valid, else YAML. Never raises."""
    try:
        value = json.loads(body_of(text), parse_float=str, parse_int=str)  # some JSON is no YAML: tabs, `\ud83d\ude00`
        json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate is not valid text
        if _depth(value) <= MAX_DEPTH:
            return value, None
    except (ValueError, RecursionError):
        pass
    try:
        _expect_plain(text)
        return yaml.load(text, Loader=_Loader), None  # a safe loader: plain data only
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        message = f"it is no YAML: {getattr(error, 'problem', None) or error}"
        return None, Problem(line=mark.line + 1 if mark is not None else None, message=message)


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, inner), default=0)


def _expect_plain(text: str) -> None:
    """Raises MarkedYAMLError for what is not read, before anything is made of it: the composer in C recurses."""
    depth = 0
    event: Any
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH or isinstance(event, yaml.AliasEvent):
            problem = "it is nested too deeply" if depth > MAX_DEPTH else "aliases (`*`) are not read: quote the text"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)


MOST_CHARS = 1_000_000  # a plan is far shorter
WIDTH = 110  # of comments
_FIELDS = frozenset(Breakdown.model_fields)
_TASK_FIELDS = frozenset(Task.model_fields) | {"taskId", "id", "title"}
_LEAD = re.compile(r"\ufeff?(?:[ \t]*(?:#[^\n]*)?(?:\n|$))*")


class Edited(NamedTuple):
    """A plan after a person's edit."""

    plan: Breakdown | None
    """None when the text has no readable plan."""
    findings: tuple[Finding, ...]
    barred: str
    """Why it cannot be approved, "" when it can."""

    def accepted(self, *, force: bool) -> bool:
        """Returns whether the plan may be built; with `force` also despite failed checks."""
        return self.plan is not None and not self.barred and (force or not blocking(self.findings))


def plan_text(plan: Breakdown, head: Iterable[str]) -> str:
    """Returns the plan as YAML below comments, without empty fields."""
    derived = {"architectural_conflict", "task_count"}
    return commented(head, write_data(plan.model_dump(mode="json", exclude_defaults=True, exclude=derived)))


def commented(head: Iterable[str], body: str) -> str:
    """Returns `body` with `head` as its leading comments, replacing the existing ones."""
    return "".join(f"{line}\n" for line in _comments(head)) + "\n" + body_of(body)


def body_of(text: str) -> str:
    """Returns a text without its leading comments and blank lines."""
    lead = _LEAD.match(text)
    return text[lead.end() :] if lead else text


def _comments(head: Iterable[str]) -> Iterator[str]:
    """Yields untrusted text as comment lines, so that no character in it ends a comment."""
    for line in head:
        words = printable(line.strip(), keep="")
        indent = " " * (len(line) - len(line.lstrip(" ")))
        wrapped = textwrap.wrap(" ".join(words.split()), WIDTH - len(indent), break_long_words=False)
        yield from (f"# {indent}{part}".rstrip() for part in wrapped or [""])


def finding_comments(findings: Sequence[Finding]) -> Iterator[str]:
    """Yields findings with their fixes, as lines of a head."""
    for finding in findings:
        yield f"- {finding}"
        if finding.fix:
            yield f"    to do: {finding.fix}"


def read_edit(text: str, story: str, files: frozenset[str], packages: frozenset[str]) -> Edited:
    """Returns the plan in a text of YAML or JSON, judged against the story's project. Never raises."""
    if len(text) > MOST_CHARS:
        return _refused(story, Problem(message=f"it has more than {MOST_CHARS} characters", fix="A plan is shorter."))
    value, problem = read_written(text)
    if problem is not None:
        return _refused(story, problem)
    if not isinstance(value, dict):
        return _refused(story, Problem(message="it is no mapping of a plan's fields", fix="Begin with `tasks:`."))
    conflict = value.pop("architectural_conflict", None)
    if isinstance(conflict, dict) and conflict.get("detected") in (True, "true"):
        message = "an edited plan settles its conflict itself"
        where = Where(story=story, field="architectural_conflict")
        said = major("gate.edit_conflict", message, where=where, fix="Leave architectural_conflict out.")
        return Edited(None, (said,), message)
    told = list(_unknown_fields(value, story))
    plan, found = read_breakdown(_completed(value, story), story)
    told += found
    if plan is None:
        return Edited(None, tuple(told), "it is no whole plan")
    result = PlanValidationResult.of([*told, *check_breakdown(plan, files, packages)])
    return Edited(plan, result.findings, cannot_be_carried_out(plan, result))


def read_markdown(
    given: BroughtPlan, story: str, files: frozenset[str], packages: frozenset[str], min_chars: int
) -> Edited:
    """Returns the same for a task plan in Markdown, by the rules of `run --plan`; a text without tasks is none."""
    plan, findings = judge_text(given.text, given.path, story, files, packages, min_chars=min_chars)
    if plan is None:
        return Edited(None, findings, "it is no plan that is built as it stands")
    result = PlanValidationResult.of(findings)
    return Edited(plan, result.findings, cannot_be_carried_out(plan, result))


def _refused(story: str, problem: Problem) -> Edited:
    where = Where(story=story, line=problem.line, column=problem.column)
    usual = "Mend it: YAML with two spaces per level, texts with `: ` or `#` in quotes; or JSON."
    fix = problem.fix if problem.fix else usual
    message = f"the text holds no plan: {problem.message}"
    return Edited(None, (major("gate.edit_syntax", message, where=where, fix=fix),), message)


def _completed(value: dict[str, Any], story: str) -> dict[str, Any]:
    """Adds derived fields: a person need not count tasks or report the absence of a conflict."""
    tasks = value.get("tasks")
    if isinstance(tasks, list):
        value["tasks"] = tasks = [_given(task) for task in tasks]
    count = len(tasks) if isinstance(tasks, list) else 0
    detected = {"architectural_conflict": {"detected": False}}
    return {"story_id": story, **_given(value), **detected, "task_count": count}


def _given(fields: Any) -> Any:
    """Returns fields without those that a person left empty: YAML's `null` is read as a text."""
    if not isinstance(fields, dict):
        return fields
    return {name: value for name, value in fields.items() if value not in ("", "null", "~", None)}


def _unknown_fields(value: dict[str, Any], story: str) -> Iterator[Finding]:
    """Yields a finding per unknown field: a misspelt one would otherwise be lost silently."""
    tasks = value.get("tasks")
    places = [("", value, _FIELDS)]
    if isinstance(tasks, list):
        places += [(f"tasks[{n}].", task, _TASK_FIELDS) for n, task in enumerate(tasks) if isinstance(task, dict)]
    for place, fields, known in places:
        for name in (one for one in fields if one not in known):
            message = f"`{shown(name)}` is no field of a {'task' if place else 'plan'}{suggest(name, known)}"
            where = Where(story=story, field=f"{place}{shown(name)}")
            yield major("gate.edit_field", message, where=where, fix="Mend its name, or leave it out.")
