"""What the events of a story tell of its tasks: their commits, and the reviews of each."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from orchestrator.answers.review import parse_review
from orchestrator.core.delivery import ReviewIssue
from orchestrator.core.event import Event
from orchestrator.core.finding import Finding

Answers = Callable[[str, str, datetime], str]
"""Reviewer, task, time → the answer that the reviewer gave last before; "" where it is not kept."""


def list_deliveries(events: Iterable[Event], task: str) -> Iterator[dict[str, Any]]:
    """Yields the commits of a task, in order, each once."""
    own = (event for event in events if event.name == "task_committed" and event.task == task)
    made = {event.data["commit"]: event for event in own}
    for number, (commit, event) in enumerate(made.items(), start=1):
        files, removed = event.data.get("files") or [], event.data.get("removed") or []
        yield {"number": number, "commit": commit, "time": iso(event.time), "files": files, "removed": removed}


def list_reviews(events: Iterable[Event], answers: Answers) -> list[dict[str, Any]]:
    """Returns each review of a task with its comments, and the commit that was read."""
    commits: dict[str | None, str] = {}
    reviews = []
    for event in events:
        if event.name == "task_committed":
            commits[event.task] = event.data["commit"]
        elif event.name == "review_judged":
            reviews.append({**_review(event, answers), "commit": commits.get(event.task, "")})
    return reviews


def _review(event: Event, answers: Answers) -> dict[str, Any]:
    data, task = event.data, event.task or ""
    by = [{**one, "verdict": str(one.get("verdict", "")).replace("_", " ")} for one in data.get("reviews") or ()]
    comments = [_comment(raw) for raw in data.get("findings") or ()]
    for one in by:
        # Events have the comments that are to be mended; those of who approves stand in the answer alone.
        if one.get("approved") and one.get("issues"):
            review, _ = parse_review(answers(one["by"], task, event.time))
            comments += [_remark(issue, one["by"]) for issue in review.issues]
    return {
        "task": task,
        "time": iso(event.time),
        "number": data.get("attempt") or 0,
        "verdict": str(data.get("verdict") or "").replace("_", " "),
        "by": by,
        "comments": comments,
    }


def _remark(issue: ReviewIssue, by: str) -> dict[str, Any]:
    """Returns a comment of a reviewer who approves."""
    return {
        "code": "",
        "severity": issue.severity.value,
        "message": f"{by}: {issue.title}{f': {issue.issue}' if issue.issue else ''}",
        "fix": issue.fix,
        "place": issue.file,
        "file": issue.file,
        "line": issue.line,
    }


def _comment(raw: Mapping[str, Any]) -> dict[str, Any]:
    where = raw.get("where") or {}
    return {**show_finding(raw), "file": where.get("file") or "", "line": where.get("line")}


def show_finding(raw: Finding | Mapping[str, Any]) -> dict[str, Any]:
    """Returns a finding as pages show it."""
    one = Finding.model_validate(raw)
    return {**one.model_dump(mode="json", include={"code", "severity", "message", "fix"}), "place": str(one.where)}


def iso(time: datetime | None) -> str:
    """Returns a time as text; "" for none."""
    return time.isoformat() if time is not None else ""
