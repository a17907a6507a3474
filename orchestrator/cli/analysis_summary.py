"""What an analysis has come to, for people."""

import shlex
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from orchestrator.cli.common import Exit, print_json
from orchestrator.domain.analysis import ImprovementPlan, StageStatus, TaskPriority
from orchestrator.domain.words import counted

if TYPE_CHECKING:
    from orchestrator.wiring.analysis_output import Written


def tell_written(written: "Written", tell: Callable[[str], None], *, as_json: bool, there: bool = False) -> int:
    """Say it, and with `as_json` print plan.json; the exit code. `there`: a daemon has made it."""
    if as_json:
        print_json(written.plan.model_dump(mode="json"))
    for line in _summary(written, there):
        tell(line)
    return Exit.GOOD if written.whole else Exit.NOT_DONE


def _summary(written: "Written", there: bool) -> Iterator[str]:
    plan = written.plan
    yield ""
    yield f"Analysis {plan.analysis}, {plan.profile}"
    for stage in plan.stages:
        how = counted(stage.tasks, "task") if stage.status is StageStatus.ANSWERED else stage.status.replace("_", " ")
        yield f"  {stage.id:<20} {how}"
        for finding in stage.findings:
            if finding.severity.blocks:
                yield f"      {finding.code}: {finding.message}; {finding.fix}"
    for finding in plan.findings:
        yield f"{'error' if finding.severity.blocks else 'note'}: {finding}; {finding.fix}"
    yield _totals(plan)
    yield f"Plan: {written.plan_path} (and plan.json beside it)"
    if written.backlog_path is not None:
        words = ["submit", "--dry-run"] if there else ["run", "--repo", plan.repo, "--dry-run"]
        command = shlex.join(["orchestrator", words[0], str(written.backlog_path), *words[1:]])
        yield f"Backlog: {written.backlog_path}; `{command}` shows what it comes to"


def _totals(plan: ImprovementPlan) -> str:
    counts = {priority: sum(task.priority is priority for task in plan.tasks) for priority in TaskPriority}
    told_counts = ", ".join(f"{count} {priority}" for priority, count in counts.items() if count)
    marked = sum(bool(task.marks) for task in plan.tasks)
    cost = f"{plan.cost_usd:.2f} USD" if plan.cost_usd is not None else "cost unknown"
    return (
        f"{counted(len(plan.tasks), 'task')}{f' ({told_counts})' if told_counts else ''}"
        f"{f', {marked} to be looked at first' if marked else ''}; {counted(plan.calls, 'call')}, "
        f"{plan.tokens.input} tokens in ({plan.tokens.cached} cached), {plan.tokens.output} out, {cost}"
    )
