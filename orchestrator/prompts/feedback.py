"""Findings → the text that asks a persona to answer anew."""

from collections.abc import Sequence

from orchestrator.domain.findings import Finding
from orchestrator.prompts.budget import cap, cap_middle, fence
from orchestrator.prompts.data import as_data

MAX_FINDINGS = 40
"""Findings told in one feedback; the gravest come first into it, the number of the others is told."""
MAX_TEXT = 1500
"""Characters of one message or one fix."""
MAX_PREVIOUS = 120_000
"""Characters of the previous answer; beyond that its middle is left out and that is said."""

_WHOLE = "The answer as a whole"


def render_feedback(findings: Sequence[Finding], previous: str | None) -> str:
    """What was wrong with the last answer, per task or file, and that answer verbatim; "" without findings."""
    return _render(
        "## Corrections Required",
        "Your last answer was checked and could not be accepted.",
        "Answer again, completely and in the shape asked for. Correct every point above and change nothing else.",
        "### Your last answer, verbatim",
        findings,
        previous,
    )


def render_revision(findings: Sequence[Finding], previous: str | None) -> str:
    """The plan revision section: one bullet per issue with its fix; "" when there are no findings."""
    return _render(
        "## Plan Revision Required",
        "Your last plan was checked and is not valid yet.",
        "Send the whole plan again. Address all of these issues and change nothing else.",
        "### The previous plan, verbatim",
        findings,
        previous,
    )


def render_reasons(findings: Sequence[Finding]) -> str:
    """One line per finding: what was said, without what should be done about it."""
    return "\n".join(f"- {' '.join(cap(finding.message, MAX_TEXT).split())}" for finding in findings[:MAX_FINDINGS])


def _render(
    heading: str, opening: str, request: str, previous_heading: str, findings: Sequence[Finding], previous: str | None
) -> str:
    if not findings:
        return ""
    told = sorted(findings, key=lambda finding: -finding.severity.rank)[:MAX_FINDINGS]
    parts = [heading, opening, *_groups(told)]
    if len(findings) > len(told):
        parts.append(f"[{len(findings) - len(told)} more findings, none of them graver, are left out.]")
    parts.append(request)
    if previous is not None and previous.strip():
        parts += [previous_heading, fence(cap_middle(previous, MAX_PREVIOUS))]
    return "\n\n".join(parts)


def _groups(findings: Sequence[Finding]) -> list[str]:
    groups: dict[str, list[str]] = {}
    for finding in findings:
        groups.setdefault(_subject(finding), []).append(_bullet(finding))
    return [f"### {subject}\n\n" + "\n".join(bullets) for subject, bullets in groups.items()]


def _subject(finding: Finding) -> str:
    named = finding.where.task or finding.where.file
    return cap(" ".join(named.split()), 200) if named and named.strip() else _WHOLE


def _bullet(finding: Finding) -> str:
    place = " ".join(_place(finding))
    issue = _text(finding.message)
    lines = [f"- Issue ({finding.severity}{f', {place}' if place else ''}): {issue}"]
    if finding.fix.strip():
        lines.append(f"  Fix: {_text(finding.fix)}")
    return "\n".join(lines)


def _place(finding: Finding) -> list[str]:
    """Where inside its subject the finding speaks."""
    where = finding.where
    parts = [where.file] if where.task and where.file else []
    if where.line is not None:
        parts.append(f"line {where.line}" + (f" column {where.column}" if where.column is not None else ""))
    if where.field:
        parts.append(where.field)
    return [cap(" ".join(part.split()), 200) for part in parts]


def _text(text: str) -> str:
    """One line as it is; several lines, which are what a program printed, fenced and marked as data."""
    kept = cap(text.strip(), MAX_TEXT)
    if "\n" not in kept:
        return kept
    return "\n\n" + "\n".join(f"  {line}" for line in as_data(fence(kept, "text"), "output").split("\n")) + "\n"
