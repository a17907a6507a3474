"""What the events of a story tell of its tasks: their commits, and the reviews of each."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from orchestrator.core.event import Event
from orchestrator.core.finding import Finding


def list_deliveries(events: Iterable[Event]) -> Iterator[dict[str, Any]]:
    """Yields the commits of a task, in order, each once."""
    made = {event.data["commit"]: event for event in events if event.name == "task_committed"}
    for number, (commit, event) in enumerate(made.items(), start=1):
        files, removed = event.data.get("files") or [], event.data.get("removed") or []
        yield {"number": number, "commit": commit, "time": iso(event.time), "files": files, "removed": removed}


def list_reviews(events: Iterable[Event]) -> list[dict[str, Any]]:
    """Returns each review of a task with its comments, and the commit that was read."""
    commits: dict[str | None, str] = {}
    reviews = []
    for event in events:
        if event.name == "task_committed":
            commits[event.task] = event.data["commit"]
        elif event.name == "review_judged":
            data = event.data
            reviews.append(
                {
                    "task": event.task or "",
                    "time": iso(event.time),
                    "number": data.get("attempt") or 0,
                    "verdict": str(data.get("verdict") or "").replace("_", " "),
                    "message": event.message,
                    "commit": commits.get(event.task, ""),
                    "by": [
                        {**one, "verdict": str(one.get("verdict", "")).replace("_", " ")}
                        for one in data.get("reviews") or ()
                    ],
                    "comments": [_comment(one) for one in data.get("findings") or ()],
                }
            )
    return reviews


def _comment(raw: Mapping[str, Any]) -> dict[str, Any]:
    where = raw.get("where") or {}
    return {**show_finding(raw), "file": where.get("file") or "", "line": where.get("line")}


def show_finding(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a finding as pages show it."""
    one = Finding.model_validate(raw)
    return {**one.model_dump(mode="json", include={"code", "severity", "message", "fix"}), "place": str(one.where)}


def iso(time: datetime | None) -> str:
    """Returns a time as text; "" for none."""
    return time.isoformat() if time is not None else ""
