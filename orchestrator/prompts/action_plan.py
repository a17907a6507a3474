"""Reports on an action plan, as Markdown: why it was not carried out, and how it went."""

from collections.abc import Sequence

from orchestrator.domain.execution import ActionResult, ExecutionReport
from orchestrator.domain.findings import Finding
from orchestrator.prompts.budget import cap, cap_middle, fence

MAX_FINDINGS = 40
MAX_MESSAGE = 4000
"""Characters of one finding: a nearest text with its difference."""
MAX_PLAN = 120_000
"""Characters of the plan that are given back; beyond that its middle is left out and that is said."""
MAX_OUTPUT = 4000
"""Characters of one command's output."""


def render_validation_report(findings: Sequence[Finding], text: str) -> str:
    """What failed, where, the nearest match and what to do, and the plan as it came; "" without findings."""
    if not findings:
        return ""
    told = sorted(findings, key=lambda finding: -finding.severity.rank)[:MAX_FINDINGS]
    parts = ["## Plan Validation Report", "The plan was checked and nothing of it was carried out."]
    parts += [_finding(number, finding) for number, finding in enumerate(told, start=1)]
    if len(findings) > len(told):
        parts.append(f"[{len(findings) - len(told)} more findings, none of them graver, are left out.]")
    if text.strip():
        parts += ["### The plan, verbatim", fence(cap_middle(text, MAX_PLAN), "markdown")]
    return "\n\n".join(parts) + "\n"


def _finding(number: int, finding: Finding) -> str:
    where = finding.where
    place = ", ".join(
        part for part in (f"line {where.line}" if where.line else "", where.file or "", where.field or "") if part
    )
    said, _, shown = cap(finding.message.strip(), MAX_MESSAGE).partition("\n")
    parts = [
        f"### {number}. {' '.join(place.split()) or 'The plan as a whole'}",
        f"- Issue ({finding.severity}, `{finding.code}`): {said}",
    ]
    parts += [fence(shown, "diff" if shown.startswith("---") else "text")] if shown else []
    parts += [f"- To do: {' '.join(finding.fix.split())}"] if finding.fix.strip() else []
    return "\n\n".join(parts)


def render_execution_report(report: ExecutionReport) -> str:
    """Per action: done, skipped or failed, with the reason and what a command printed."""
    parts = ["## Execution Report", "The plan was carried out." if report.ok else "The plan was carried out in part."]
    return "\n\n".join([*parts, *(_action(action) for action in report.actions)]) + "\n"


def _action(action: ActionResult) -> str:
    reason = f": {' '.join(action.reason.split())}" if action.reason else ""
    line = f"{action.number}. **{action.state}** `{action.verb}` {' '.join(action.subject.split())}{reason}"
    if not action.output.strip():
        return line
    return f"{line}\n\n{fence(cap_middle(action.output.strip(), MAX_OUTPUT), 'text')}"
