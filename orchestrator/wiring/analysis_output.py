"""What an analysis leaves: the plan as Markdown and JSON, and a backlog when one is asked for."""

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.adapters.atomic_file import replace_content
from orchestrator.analysis.tasks import aggregate
from orchestrator.analysis.backlog import backlog_text
from orchestrator.analysis.tasks import World
from orchestrator.analysis.stages import Ledger
from orchestrator.analysis.plan_file import render_plan
from orchestrator.analysis.plan_file import prd_summary
from orchestrator.analysis.plan_file import holds_tasks, ticked_titles, ticks_left
from orchestrator.domain.analysis import (
    AnalysisRecord,
    Codebase,
    ImprovementPlan,
    Packed,
    StageReport,
    StageResult,
    StageStatus,
    Triaged,
)
from orchestrator.domain.findings import Finding, blocking, major
from orchestrator.domain.redaction import redacted
from orchestrator.domain.titles import same_title
from orchestrator.errors import ConfigError
from orchestrator.ports import Clock
from orchestrator.prompts.render import PromptLibrary
from orchestrator.settings import Settings, packaged
from orchestrator.wiring.analysis_input import PLAN, PLAN_JSON, content_hash
from orchestrator.wiring.options import AnalyseOptions

INSTRUCTIONS = "notes/plan_instructions"
_SAID = frozenset({StageStatus.ANSWERED, StageStatus.PROSE})
Outcome = tuple[AnalysisRecord, Packed, Sequence[StageResult], Triaged, Ledger]


@dataclass(frozen=True, kw_only=True)
class Written:
    """What an analysis left."""

    plan: ImprovementPlan
    plan_path: Path
    """mvp_improvement_plan.md; plan.json lies beside it."""
    backlog_path: Path | None = None
    """The backlog, where one was asked for and there was a task."""

    @property
    def whole(self) -> bool:
        """See `is_whole`."""
        return is_whole(self.plan)


def is_whole(plan: ImprovementPlan) -> bool:
    """Whether every stage answered as asked, and there is a task to do."""
    sound = all(stage.status is StageStatus.ANSWERED and not blocking(stage.findings) for stage in plan.stages)
    return sound and bool(plan.tasks)


def write_results(
    options: AnalyseOptions,
    settings: Settings,
    library: PromptLibrary,
    outcome: Outcome,
    clock: Clock,
    wrote: Callable[[Path, str], None],
    secrets: Sequence[str] = (),
) -> Written:
    """Write the files, each whole or not at all; boxes that were ticked in a plan that is there stay ticked, and when
    no stage answered a plan with tasks stays as it is.

    None of them holds what looks like a secret, nor one of `secrets`. `wrote` is told the backlog and its hash before
    it is written. Raises ConfigError for a file that cannot be written: what was paid for is kept, and the same command
    goes on.
    """
    before = _text(options.out / PLAN)
    told = _plan(outcome, clock, before)
    plan = ImprovementPlan.model_validate(redacted(told.model_dump(mode="json"), secrets))
    return _put(options, settings, library, plan, before, wrote)


def write_plan(options: AnalyseOptions, settings: Settings, library: PromptLibrary, plan: ImprovementPlan) -> Written:
    """The same for a plan that a daemon has made: ticked boxes of the plan that is there stay ticked too."""
    before = _text(options.out / PLAN)
    ticked = ticked_titles(before)
    tasks = tuple(
        task.model_copy(update={"done": task.done or same_title(task.title) in ticked}) for task in plan.tasks
    )
    answered = all(stage.status is StageStatus.ANSWERED for stage in plan.stages)
    left = () if answered else (*plan.ticks_left, *ticks_left(before, (task.title for task in tasks)))
    plan = plan.model_copy(update={"tasks": tasks, "ticks_left": tuple(dict.fromkeys(left))})
    return _put(options, settings, library, plan, before, lambda _path, _content: None)


def _put(
    options: AnalyseOptions,
    settings: Settings,
    library: PromptLibrary,
    plan: ImprovementPlan,
    before: str,
    wrote: Callable[[Path, str], None],
) -> Written:
    plan_path, json_path = options.out / PLAN, options.out / PLAN_JSON
    backlog, header = options.to_backlog, _header()
    if backlog is not None and plan.tasks:
        text, said = backlog_text(plan, backlog.suffix.lower(), header)
        plan = plan.model_copy(update={"findings": (*plan.findings, *said)})
        wrote(backlog, content_hash(text.encode("utf-8", "replace")))
        _write(backlog, text)
    if holds_tasks(before) and not any(stage.status in _SAID for stage in plan.stages):
        plan = plan.model_copy(update={"findings": (*plan.findings, _stays(plan_path))})
        return Written(plan=plan, plan_path=plan_path)
    _write(json_path, json.dumps(plan.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n")
    _write(plan_path, render_plan(plan, settings.analysis.agent_name, library.note(INSTRUCTIONS)))
    return Written(plan=plan, plan_path=plan_path, backlog_path=backlog if plan.tasks else None)


def _stays(path: Path) -> Finding:
    message = f"no stage answered: {path} stays as it was before"
    return major("improve.plan_stays", message, fix="remove the cause; the same command then writes it anew")


def _plan(outcome: Outcome, clock: Clock, before: str) -> ImprovementPlan:
    """`before`: the plan that is written over."""
    record, packed, results, triaged, ledger = outcome
    tasks = aggregate(results, World(packed.paths, (packed.text, record.prd)), ticked_titles(before))
    answered = all(result.status is StageStatus.ANSWERED for result in results)
    return ImprovementPlan(
        analysis=record.analysis,
        generated=clock.now(),
        profile=record.profile,
        repo=record.repo,
        prd_file=record.prd_file,
        prd_summary=prd_summary(record.prd),
        stages=tuple(_report(result) for result in results),
        tasks=tasks,
        ticks_left=() if answered else ticks_left(before, (task.title for task in tasks)),
        findings=(*triaged.findings, *([] if tasks else [_empty(results)])),
        codebase=Codebase(
            files=len(packed.paths),
            shown=len(packed.shown),
            cut=packed.cut,
            left_out=packed.left_out,
            masked=packed.masked,
            tokens=packed.tokens,
        ),
        calls=ledger.calls,
        tokens=ledger.tokens,
        cost_usd=ledger.cost_usd,
    )


def _report(result: StageResult) -> StageReport:
    held = result.model_dump(exclude={"tasks", "stop"})
    return StageReport.model_validate({**held, "tasks": len(result.tasks)})


def _empty(results: Sequence[StageResult]) -> Finding:
    """A plan without a task is never silent."""
    answered = sum(result.status is StageStatus.ANSWERED for result in results)
    message = f"the plan holds no task: {answered} of {len(results)} stages answered as asked"
    fix = "read the summaries and what is said of the stages; ask another profile or another model"
    return major("improve.no_tasks", message, fix=fix)


def _header() -> list[str]:
    text = (packaged("examples") / "init" / "backlog.csv").read_text(encoding="utf-8")
    return next(csv.reader([text.split("\n", 1)[0]]))


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
            f"{path} cannot be written: {error.strerror}; nothing is lost, the same command goes on"
        ) from error
