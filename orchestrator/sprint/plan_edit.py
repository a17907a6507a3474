"""Writes a plan as a text that a person edits, and reads and judges the edited plan. Pure.

YAML tags construct nothing. A number that would be written differently stays text (`1.10` is a version). Duplicate
keys, tags, anchors and aliases are problems, not guesses.
"""

import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import yaml
from rapidfuzz import process

from orchestrator.checks.breakdown import read_breakdown
from orchestrator.checks.breakdown_rules import check_breakdown
from orchestrator.code.grammar import Problem, shown
from orchestrator.core.breakdown import Breakdown, PlanValidationResult, Task
from orchestrator.core.finding import Finding, Where, blocking, major
from orchestrator.core.sprint import BroughtPlan
from orchestrator.core.value import LIKE, printable
from orchestrator.story.gate import cannot_be_carried_out
from orchestrator.story.planning import judge_given, read_by_rules

MAX_DEPTH = 40  # bounds recursion; a plan nests less
YAML_WIDTH = 100
_LINES = frozenset("\x85\u2028\u2029")
"""Line breaks that a YAML block would change."""
# Only numbers that survive a round trip: no leading zero, no more digits than a float holds.
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})")
_BROKEN = re.compile(r"-?\d{1,17}\.\d{1,17}")


def read_written(text: str) -> tuple[Any, Problem | None]:
    """Returns the value in `text`, or the problem: reads JSON if valid, else YAML. Never raises."""
    try:
        # Some JSON is not YAML: tabs, and surrogate pairs as escapes.
        value = json.loads(
            body_of(text), object_pairs_hook=_once, parse_float=_number, parse_int=_number, parse_constant=_nan
        )
        json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate is not valid text
        _expect_flat(value, 0)
    except (ValueError, RecursionError):
        return _yaml(text)
    return value, None


def write_data(value: Any) -> str:
    """Returns plain data as YAML for editing, long texts as blocks; `read_written` reads the same value back."""
    return str(yaml.dump(value, Dumper=_Writer, sort_keys=False, allow_unicode=True, width=YAML_WIDTH))


class _Writer(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _write_text(writer: _Writer, text: str) -> yaml.ScalarNode:
    block = "|" if "\n" in text else ">" if len(text) > YAML_WIDTH else None
    style = block if _LINES.isdisjoint(text) else '"'
    return writer.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _write_float(writer: _Writer, number: float) -> yaml.ScalarNode:
    return writer.represent_scalar("tag:yaml.org,2002:float", repr(number))


_Writer.add_representer(str, _write_text)
_Writer.add_representer(float, _write_float)


class _Refused(ValueError):
    """A problem that makes a text unusable."""

    def __init__(self, message: str, line: int | None = None, fix: str = "") -> None:
        super().__init__(message)
        self.problem = Problem(message=message, line=line, fix=fix)


def _expect_flat(value: Any, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ValueError("it is nested too deeply")
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _expect_flat(one, depth + 1)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _nan(word: str) -> Any:
    raise ValueError(f"`{word}` is no value")


def _number(text: str) -> int | float | str:
    if _WHOLE.fullmatch(text) and text != "-0":
        return int(text)
    if _BROKEN.fullmatch(text) and repr(float(text)) == text:
        return float(text)
    return text


_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc]  # the machine decides which of the two it is
    """What survives a round trip has its type, any other scalar is a text; a key may not stand twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _Refused("a key is no text", _line(key))
            if key.value in found:
                raise _Refused(f"the key `{shown(key.value)}` stands twice", _line(key), "Write every key once.")
            found[key.value] = self.construct_object(value, deep=True)
        return found


_Loader.yaml_implicit_resolvers = {}
for _type, _texts in (
    ("null", "~|null|Null|NULL|"),
    ("bool", "true|True|TRUE|false|False|FALSE"),
    ("float", r"-?\d+(?:\.\d+)?"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_type}", re.compile(rf"(?:{_texts})\Z"), None)
_Loader.add_constructor("tag:yaml.org,2002:float", lambda _, node: _number(node.value))


def _yaml(text: str) -> tuple[Any, Problem | None]:
    try:
        _expect_plain(text)
        return yaml.load(text, Loader=_Loader), None  # a safe loader: plain data only
    except _Refused as error:
        return None, error.problem
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        near = text.split("\n")[max(0, line - 2) : line]
        tab = "YAML is indented with spaces, never with tabs." if any("\t" in one for one in near) else ""
        return None, Problem(line=line, message=f"it is no YAML: {error.problem or 'it cannot be read'}", fix=tab)
    except (yaml.reader.ReaderError, UnicodeEncodeError) as error:
        place = error.position if isinstance(error, yaml.reader.ReaderError) else error.start
        before = text[:place] if isinstance(place, int) else ""
        return None, Problem(line=before.count("\n") + 1, message="it holds a character that YAML does not allow")


def _expect_plain(text: str) -> None:
    """Raises _Refused for what is not read, before anything is made of it: the composer in C recurses."""
    depth = documents = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        documents += isinstance(event, yaml.DocumentStartEvent)
        tag = getattr(event, "tag", None)
        if documents > 1:
            raise _Refused("a second document begins", _line(event), "Leave lines of `---` out.")
        if depth > MAX_DEPTH:
            raise _Refused("it is nested too deeply", _line(event))
        if getattr(event, "anchor", None) is not None:  # aliases have it too
            fix = "Write it out; put quotes around a text that begins with `*` or `&`."
            raise _Refused("anchors and aliases (`&`, `*`) are not read", _line(event), fix)
        if tag is not None:
            fix = "Leave the tag out; put quotes around a text that begins with `!`."
            raise _Refused(f"tags (`{shown(tag)}`) are not read", _line(event), fix)


def _line(place: Any) -> int:
    return int(place.start_mark.line) + 1


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
    told = list(_unknown_fields(value, story))
    plan, said = read_breakdown(_completed(value, story), story)
    told += said
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
    """Returns the same for a task plan in Markdown, read by the rules of `run --plan` without a model."""
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
    """Adds derived fields: a person need not count tasks or report the absence of a conflict."""
    tasks = value.get("tasks")
    count = len(tasks) if isinstance(tasks, list) else 0
    given = {"story_id": story, "architectural_conflict": {"detected": False}, "dependencies": {}}
    return {**given, **value, "task_count": count}


def _unknown_fields(value: dict[str, Any], story: str) -> Iterator[Finding]:
    """Yields a finding per unknown field: a misspelt one would otherwise be lost silently."""
    tasks = value.get("tasks")
    places = [("", value, _FIELDS)]
    if isinstance(tasks, list):
        places += [(f"tasks[{n}].", task, _TASK_FIELDS) for n, task in enumerate(tasks) if isinstance(task, dict)]
    for place, fields, known in places:
        for name in fields:
            if name not in known:
                nearest = process.extractOne(name, sorted(known), score_cutoff=LIKE)
                meant = f"Write `{nearest[0]}`, or leave it out." if nearest else "Leave it out."
                message = f"`{shown(name)}` is no field of a {'task' if place else 'plan'}"
                where = Where(story=story, field=f"{place}{shown(name)}")
                yield major("gate.edit_field", message, where=where, fix=meant)
