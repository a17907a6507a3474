"""The files of an analysis: its plan for people and for programs, and its tasks as stories of a backlog."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import yaml

from orchestrator.analysis.plan_file import render_plan
from orchestrator.core.analysis import ImprovementPlan, ImprovementTask, StageStatus
from orchestrator.core.errors import ConfigError
from orchestrator.core.finding import Finding, Where, blocking, major, minor
from orchestrator.core.secrets import redacted
from orchestrator.core.value import escape_json, printable, same_title
from orchestrator.files.atomic_file import replace_content
from orchestrator.prompts.render import PromptLibrary
from orchestrator.settings import packaged
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
    """Whether files that are there may be overwritten."""

    @classmethod
    def of(cls, options: AnalyseOptions) -> "Outputs":
        """Returns the outputs that a command line names."""
        return cls(folder=options.out, backlog=options.to_backlog, replace=options.replace)

    def check(self, analysis: str | None = None) -> None:
        """Raises ConfigError for what could not be written in the end, or is there and no file of `analysis`."""
        out, backlog = self.folder, self.backlog
        if out.exists() and not out.is_dir():
            raise ConfigError(f"--out {out} is no folder")
        if backlog is not None:
            if backlog.suffix.lower() not in FORMATS:
                raise ConfigError(f"--to-backlog {backlog}: its name ends with .csv, .yaml or .yml")
            if not backlog.absolute().parent.is_dir():
                raise ConfigError(f"--to-backlog {backlog}: there is no folder {backlog.parent}")
        if self.replace or (analysis is not None and _analysis_of(out / PLAN_JSON) == analysis):
            return
        for path in filter(None, (out / PLAN, out / PLAN_JSON, backlog)):
            if path.exists():
                raise ConfigError(f"{path} is there already; add --replace to write over it, or name another path")


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
    outputs: Outputs, plan: ImprovementPlan, library: PromptLibrary, *, secrets: Sequence[str] = ()
) -> Written:
    """Writes the files, each whole or not at all. When no stage answered, files that are there stay as they are.

    No file holds what looks like a secret, nor one of `secrets`. Raises ConfigError for a file that cannot be written;
    the same command then resumes, and nothing is lost.
    """
    plan_path = outputs.folder / PLAN
    plan = ImprovementPlan.model_validate(redacted(plan.model_dump(mode="json"), secrets))
    answered = {stage.status for stage in plan.stages} & {StageStatus.ANSWERED, StageStatus.PROSE}
    if plan_path.exists() and not answered:
        message = f"no stage answered: {plan_path} stays as it was before"
        stays = major("improve.plan_stays", message, fix="remove the cause; the same command then writes it")
        return Written(plan=plan.model_copy(update={"findings": (*plan.findings, stays)}), plan_path=plan_path)
    backlog = outputs.backlog if plan.tasks else None
    text, said = backlog_text(plan, backlog.suffix.lower(), _header()) if backlog is not None else ("", ())
    plan = plan.model_copy(update={"findings": (*plan.findings, *said)})
    # First: by it the same command knows the others as its own.
    held = json.dumps(plan.model_dump(mode="json"), indent=2, ensure_ascii=False)
    _write(outputs.folder / PLAN_JSON, escape_json(held) + "\n")
    _write(plan_path, render_plan(plan, library.note(INSTRUCTIONS)))
    if backlog is not None:
        _write(backlog, text)
    return Written(plan=plan, plan_path=plan_path, backlog_path=backlog)


def _header() -> list[str]:
    text = (packaged("examples") / "init" / "backlog.csv").read_text(encoding="utf-8")
    return next(csv.reader([text.split("\n", 1)[0]]))


def _analysis_of(path: Path) -> str:
    """Returns the id of the analysis that wrote the plan; "" where there is none."""
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return ""
    return str(held.get("analysis", "")) if isinstance(held, dict) else ""


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


def story_id(task: ImprovementTask) -> str:
    """IMP-001 for the plan's first task."""
    return f"{PREFIX}-{task.number:03d}"


def backlog_text(plan: ImprovementPlan, suffix: str, header: Sequence[str]) -> tuple[str, tuple[Finding, ...]]:
    """The file's text, by its suffix (FORMATS) and with the columns of `header`; what is said about dependencies.

    Dependencies are those that tasks state; a cycle is not closed.
    """
    needs, findings = dependencies(plan.tasks)
    stories = [_story(task, needs[task.number], plan) for task in plan.tasks]
    return (_csv(stories, header) if suffix == ".csv" else _yaml(stories)), findings


def dependencies(tasks: Sequence[ImprovementTask]) -> tuple[dict[int, tuple[int, ...]], tuple[Finding, ...]]:
    """Task → the tasks it waits for, by number, and what could not be kept of what is stated."""
    by_title = {same_title(task.title): task.number for task in tasks}
    needs: dict[int, tuple[int, ...]] = {task.number: () for task in tasks}
    findings = []
    for task, told in [(one, told) for one in tasks for told in one.depends_on]:
        other = by_title.get(same_title(told))
        tried = needs if other is None else needs | {task.number: (*needs[task.number], other)}
        why = "it names no task of the plan" if other is None else "they would wait for each other"
        if other is not None and not _is_cyclic(tried):
            needs = tried
            continue
        message = f"{story_id(task)} does not wait for {told[:80]!r}: {why}"
        where = Where(story=story_id(task), field="Dependencies")
        findings.append(minor("improve.dependency", message, where=where, fix="put it into the backlog by hand"))
    return needs, tuple(findings)


def _is_cyclic(needs: Mapping[int, Sequence[int]]) -> bool:
    try:
        TopologicalSorter(needs).prepare()
    except CycleError:
        return True
    return False


def _story(task: ImprovementTask, needs: Sequence[int], plan: ImprovementPlan) -> dict[str, Any]:
    """Columns of a backlog → cells; lists where a cell holds several things."""
    names = {stage.id: stage.name for stage in plan.stages}
    stages = [f"{names[one]} ({one})" if names.get(one, one) != one else one for one in (task.stage, *task.also)]
    notes = [f"Source stage: {', '.join(stages)}; task {task.number} of analysis {plan.analysis}"]
    notes += [f"File: {task.file}"] if task.file else []
    notes += [f"Priority stated as: {task.priority_stated}"] if task.priority_stated else []
    notes += ["A mock: no model was asked"] if plan.mock else []
    place = f"Concerns {task.file}" if task.file else ""
    description = printable(task.description).strip()
    return {
        "Story_ID": story_id(task),
        "Title": task.title,
        "Functional_Requirements": "\n".join(part for part in (description, place) if part),
        "Dependencies": [f"{PREFIX}-{one:03d}" for one in needs],
        # A story needs a criterion: where a task says none, its title is the promise.
        "Acceptance_Criteria": list(task.acceptance_criteria or (task.title,)),
        "Priority": task.priority.capitalize(),
        "Status": "Backlog",
        "Notes": "; ".join(notes),
    }


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
