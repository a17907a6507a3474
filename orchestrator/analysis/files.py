"""The files of an analysis: its plan for people and for programs, and its tasks as stories of a backlog."""

import csv
import hashlib
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from orchestrator.analysis.plan_file import (
    MARKS,
    MOCK_NOTICE,
    holds_tasks,
    is_plan,
    render_plan,
    ticked_titles,
    ticks_left,
)
from orchestrator.core.analysis import ImprovementPlan, ImprovementTask, StageStatus
from orchestrator.core.errors import ConfigError
from orchestrator.core.finding import Finding, Where, blocking, major, minor
from orchestrator.core.secrets import redacted
from orchestrator.core.story import find_cycle
from orchestrator.core.value import escape_json, parse_criteria, printable, same_title
from orchestrator.files.atomic_file import replace_content
from orchestrator.prompts.render import PromptLibrary
from orchestrator.settings import Settings, packaged
from orchestrator.settings.options import AnalyseOptions

PLAN, PLAN_JSON = "mvp_improvement_plan.md", "plan.json"
INSTRUCTIONS = "notes/plan_instructions"


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """Where the files go."""

    folder: Path
    """Of the plan's two files."""
    backlog: Path | None = None
    replace: bool = False
    """Whether a backlog that is there may be overwritten."""
    mock: bool = False
    """Whether stand-ins answer: their plan overwrites none of a model."""

    @classmethod
    def of(cls, options: AnalyseOptions) -> "Outputs":
        """Returns the outputs that a command line names."""
        return cls(folder=options.out, backlog=options.to_backlog, replace=options.replace, mock=options.mock)

    def check(self, wrote: Mapping[str, str] | None = None) -> None:
        """Raises ConfigError for what could not be written in the end, or would overwrite what is not ours.

        `wrote`: what the same analysis has written already, by path, with its hash.
        """
        out, backlog = self.folder, self.backlog
        if out.exists() and not out.is_dir():
            raise ConfigError(f"--out {out} is no folder")
        for path, is_ours in ((out / PLAN, is_plan), (out / PLAN_JSON, _is_plan_json)):
            if path.exists() and not is_ours(_text(path)):
                raise ConfigError(
                    f"{path} is there and is no improvement plan; move it, or name another folder with --out"
                )
            if self.mock and path.exists() and not _is_mock(path):
                raise ConfigError(f"{path} is a plan of a model; name another folder for the mock with --out")
        if backlog is None:
            return
        if backlog.suffix.lower() not in FORMATS:
            raise ConfigError(f"--to-backlog {backlog}: its name ends with .csv, .yaml or .yml")
        if not backlog.absolute().parent.is_dir():
            raise ConfigError(f"--to-backlog {backlog}: there is no folder {backlog.parent}")
        known = (wrote or {}).get(str(backlog.absolute()))
        if backlog.exists() and not self.replace and _hash(backlog.read_bytes()) != known:
            raise ConfigError(f"the backlog {backlog} is there already; add --replace to write over it")


@dataclass(frozen=True, kw_only=True)
class Written:
    """Result files of an analysis."""

    plan: ImprovementPlan
    plan_path: Path
    """mvp_improvement_plan.md; plan.json lies beside it."""
    backlog_path: Path | None = None
    """The backlog, where one was asked for and there was a task."""


def is_whole(plan: ImprovementPlan) -> bool:
    """Returns whether every stage answered as asked, and there is a task to do."""
    sound = all(stage.status is StageStatus.ANSWERED and not blocking(stage.findings) for stage in plan.stages)
    return sound and bool(plan.tasks)


def write_plan(
    outputs: Outputs,
    plan: ImprovementPlan,
    settings: Settings,
    library: PromptLibrary,
    *,
    secrets: Sequence[str] = (),
    wrote: Callable[[Path, str], None] = lambda _path, _hash: None,
) -> Written:
    """Writes the files, each whole or not at all. Boxes ticked in a plan that is there stay ticked; when no stage
    answered, a plan with tasks stays as it is.

    No file holds what looks like a secret, nor one of `secrets`. `wrote` gets the backlog and its hash before it is
    written. Raises ConfigError for a file that cannot be written; the same command then resumes, and nothing is lost.
    """
    plan_path, json_path = outputs.folder / PLAN, outputs.folder / PLAN_JSON
    before = _text(plan_path)
    plan = ImprovementPlan.model_validate(redacted(_ticked(plan, before).model_dump(mode="json"), secrets))
    backlog = outputs.backlog if plan.tasks else None
    if backlog is not None:
        text, said = backlog_text(plan, backlog.suffix.lower(), _header())
        plan = plan.model_copy(update={"findings": (*plan.findings, *said)})
        # Before the file is there: a run that is killed in between knows the file as its own.
        wrote(backlog, _hash(text.encode("utf-8", "replace")))
        _write(backlog, text)
    answered = {stage.status for stage in plan.stages} & {StageStatus.ANSWERED, StageStatus.PROSE}
    if holds_tasks(before) and not answered:
        message = f"no stage answered: {plan_path} stays as it was before"
        stays = major("improve.plan_stays", message, fix="remove the cause; the same command then writes it")
        plan = plan.model_copy(update={"findings": (*plan.findings, stays)})
        return Written(plan=plan, plan_path=plan_path)
    _write(json_path, escape_json(json.dumps(plan.model_dump(mode="json"), indent=2, ensure_ascii=False)) + "\n")
    _write(plan_path, render_plan(plan, settings.analysis.agent_name, library.note(INSTRUCTIONS)))
    return Written(plan=plan, plan_path=plan_path, backlog_path=backlog)


def _ticked(plan: ImprovementPlan, before: str) -> ImprovementPlan:
    """Returns the plan with what is ticked in the file it replaces; ticks wait for stages that have not answered."""
    ticked = ticked_titles(before)
    tasks = tuple(
        task.model_copy(update={"done": task.done or same_title(task.title) in ticked}) for task in plan.tasks
    )
    answered = all(stage.status is StageStatus.ANSWERED for stage in plan.stages)
    left = () if answered else (*plan.ticks_left, *ticks_left(before, (task.title for task in tasks)))
    return plan.model_copy(update={"tasks": tasks, "ticks_left": tuple(dict.fromkeys(left))})


def _header() -> list[str]:
    text = (packaged("examples") / "init" / "backlog.csv").read_text(encoding="utf-8")
    return next(csv.reader([text.split("\n", 1)[0]]))


def _is_plan_json(text: str) -> bool:
    try:
        held = json.loads(text)
    except (ValueError, RecursionError):  # not ours to overwrite
        return False
    return isinstance(held, dict) and {"analysis", "profile", "tasks"} <= held.keys()


def _is_mock(path: Path) -> bool:
    text = _text(path)
    return '"mock": true' in text if path.suffix == ".json" else MOCK_NOTICE in text


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return ""


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_content(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be written: {error.strerror}; nothing is lost, the same command resumes"
        ) from error


PREFIX = "IMP"
FORMATS = (".csv", ".yaml", ".yml")
# A line such as `**Depends on:** US-001`, with any list mark or emphasis before it.
_WAITS = re.compile(r"^[^\w\n]*(?:depends on|dependencies|dependency)\s*:\s*(.+)$", re.IGNORECASE | re.MULTILINE)
# A fence that is never closed runs to the end, as in Markdown.
_FENCED = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
# A heading of criteria on a line by itself.
_CRITERIA = re.compile(
    r"^[^\w\n]*(?:acceptance criteria|criteria|done when|it is done when)\b[^\w\n]*$", re.I | re.MULTILINE
)
# `- x`, `1. x`, `AC 1: x`.
_ITEM = re.compile(r"^[ \t]*(?:[-*+\u2022]|(?:AC[ -]?)?\(?\d{1,3}[.):])[ \t]+\S", re.I | re.MULTILINE)
_PARAGRAPHS = re.compile(r"\n[ \t]*\n")
_NUMBERED = re.compile(r"(?:task\s*)?#?(\d{1,4})", re.IGNORECASE)


def story_id(task: ImprovementTask) -> str:
    """IMP-001 for the plan's first task."""
    return f"{PREFIX}-{task.number:03d}"


def backlog_text(plan: ImprovementPlan, suffix: str, header: Sequence[str]) -> tuple[str, tuple[Finding, ...]]:
    """The file's text, by its suffix (FORMATS) and with the columns of `header`; what is said about dependencies.

    A task that a person ticked is completed. Dependencies are those that tasks state; a cycle is not closed.
    """
    needs, findings = dependencies(plan.tasks)
    stories = [_story(task, needs[task.number], plan) for task in plan.tasks]
    return (_csv(stories, header) if suffix == ".csv" else _yaml(stories)), findings


def dependencies(tasks: Sequence[ImprovementTask]) -> tuple[dict[int, tuple[int, ...]], tuple[Finding, ...]]:
    """Task → the tasks it waits for, by number, and what could not be kept of what is stated."""
    by_title = {same_title(task.title): task.number for task in tasks}
    numbers = {task.number for task in tasks}
    needs: dict[int, tuple[int, ...]] = {task.number: () for task in tasks}
    findings = []
    for task in tasks:
        for told in _stated(task):
            match = _NUMBERED.fullmatch(told)
            other = by_title.get(same_title(told)) or (int(match[1]) if match and int(match[1]) in numbers else None)
            why = "it names no task of the plan" if other is None else _clash(task.number, other, needs)
            if other is not None and not why:
                needs[task.number] = tuple(dict.fromkeys((*needs[task.number], other)))
            elif why:
                message = f"{story_id(task)} does not wait for {told[:80]!r}: {why}"
                where = Where(story=story_id(task), field="Dependencies")
                findings.append(
                    minor("improve.dependency", message, where=where, fix="put it into the backlog by hand")
                )
    return needs, tuple(findings)


def _stated(task: ImprovementTask) -> list[str]:
    """Titles or numbers of what the task waits for, where the answer or its description says so."""
    told = [name for match in _WAITS.finditer(task.description) for name in re.split(r"[;,]", match[1])]
    names = (name.strip().strip("`\"'*.").strip() for name in (*task.depends_on, *told))
    return [name for name in dict.fromkeys(names) if name and name.lower() not in {"none", "nothing", "n/a", "-"}]


def _clash(number: int, other: int, needs: Mapping[int, tuple[int, ...]]) -> str:
    if other == number:
        return "a task cannot wait for itself"
    tried = {str(one): tuple(str(two) for two in held) for one, held in needs.items()}
    tried[str(number)] = (*tried[str(number)], str(other))
    return "they would wait for each other" if find_cycle(tried, tried) else ""


def _story(task: ImprovementTask, needs: Sequence[int], plan: ImprovementPlan) -> dict[str, Any]:
    """Columns of a backlog → cells; lists where a cell holds several things."""
    names = {stage.id: stage.name for stage in plan.stages}
    stages = [f"{names[one]} ({one})" if names.get(one, one) != one else one for one in (task.stage, *task.also)]
    notes = [f"Source stage: {', '.join(stages)}; task {task.number} of analysis {plan.analysis}"]
    notes += [f"File: {task.file}"] if task.file else []
    notes += [f"Priority stated as: {task.priority_stated}"] if task.priority_stated else []
    notes += [f"Nearly the same as {', '.join(f'{PREFIX}-{one:03d}' for one in task.near)}"] if task.near else []
    notes += ["A mock: no model was asked"] if plan.mock else []
    notes += [f"To be looked at: {MARKS[mark]}" for mark in task.marks]
    place = f"Concerns {task.file}" if task.file else ""
    description = printable(task.description).strip()
    story = {
        "Story_ID": story_id(task),
        "Title": task.title,
        "Functional_Requirements": "\n".join(part for part in (description, place) if part),
        "Dependencies": [f"{PREFIX}-{one:03d}" for one in needs],
        # A story needs a criterion: where a task says none, its title is the promise.
        "Acceptance_Criteria": list(_criteria(_WAITS.sub("", description)) or (task.title,)),
        "Priority": task.priority.capitalize(),
        "Status": "Backlog",
        "Notes": "; ".join(notes),
    }
    return {**story, "Execution_Status": "completed"} if task.done else story


def _criteria(description: str) -> tuple[str, ...]:
    """Returns the items of its lists, of those under a heading that says so when there is one, else its paragraphs.

    What stands in a fence is code, and a semicolon in prose ends nothing.
    """
    text = _FENCED.sub("\n\n", description)
    text = next((part for part in reversed(_CRITERIA.split(text)[1:]) if part.strip()), text)
    listed = _ITEM.search(text) is not None
    pieces = parse_criteria(text) if listed else (" ".join(part.split()) for part in _PARAGRAPHS.split(text))
    found = tuple(piece for piece in pieces if re.search(r"\w", piece))
    return tuple(piece for piece in found if not piece.endswith(":")) or found


def _csv(stories: Sequence[Mapping[str, Any]], header: Sequence[str]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, header, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for story in stories:
        criteria = "\n".join(f"{number}. {text}" for number, text in enumerate(story["Acceptance_Criteria"], start=1))
        cells = {**story, "Dependencies": "; ".join(story["Dependencies"]), "Acceptance_Criteria": criteria}
        writer.writerow({name: printable(text) for name, text in cells.items()})
    return out.getvalue()


def _yaml(stories: Sequence[Mapping[str, Any]]) -> str:
    kept = [{name.lower(): _printable(value) for name, value in story.items() if value} for story in stories]
    return yaml.safe_dump({"stories": kept}, sort_keys=False, allow_unicode=True, width=110)


def _printable(value: Any) -> Any:
    return [printable(text) for text in value] if isinstance(value, list) else printable(value)
