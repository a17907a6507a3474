"""Reviews one task's change after each delivery, until all reviewers approve or its reviews are used up."""

from collections.abc import Iterable
from itertools import pairwise

from orchestrator.checks.content import hidden_text, runner_reach
from orchestrator.core.breakdown import Breakdown, Task
from orchestrator.core.calls.side_by_side import side_by_side
from orchestrator.core.command import Loop, Verdict
from orchestrator.core.contract import ArchitectureContract
from orchestrator.core.delivery import PastReview, ReviewBrief, Reviewed, ReviewIssue
from orchestrator.core.event import Level
from orchestrator.core.finding import Finding, Severity, Where, blocking, critical, major, minor
from orchestrator.core.sprint import ReviewOutcome, TaskOutcome, TaskStatus
from orchestrator.core.value import counted, draw_controls
from orchestrator.story.context import Progress, ReviewRound, Stage, TaskReviews, done_tasks

MOST_ADVICE = 20
"""Limit on the advisory findings that a reviewer is shown; the report names all."""


async def review_task(
    stage: Stage, progress: Progress, contract: ArchitectureContract, plan: Breakdown, task: Task
) -> Verdict:
    """Reviews the task's latest delivery on the branch and returns its route.

    An approved change without a new edit, or an empty change, is not reviewed again. A change after the last review
    continues unapproved, because no one has seen it.
    """
    known = progress.reviews[task.task_id]
    change = await _change(stage, contract, task, known)
    known.unread = change != known.read
    if not known.unread and (not known.rounds or _approved(known)):
        return Verdict.APPROVED
    if len(known.rounds) < stage.policies.most_reviews:
        advice = (*runner_reach(change), *hidden_text(change))
        progress.note_findings(advice)
        # Each review was followed by the delivery that the next one reads.
        followed = pairwise([*known.rounds, ReviewRound(known.answer, ())])
        brief = ReviewBrief(
            task=task,
            contract=contract,
            surface=progress.surface,
            diff=draw_controls(change),
            done_tasks=done_tasks(progress, plan, without=task.task_id),
            earlier=tuple(PastReview(reviews=one.reviews, answer=later.answer) for one, later in followed),
            previous=open_comments(known),
            advice=advice[:MOST_ADVICE],
        )
        said = tuple(await side_by_side([reviewer.review(brief) for reviewer in stage.reviewers]))
        known.rounds.append(ReviewRound(known.answer, said))
        known.read, known.unread = change, False
    approved = not known.unread and _approved(known)
    most = _most_reviews(stage, known)
    route = Verdict.SENT_BACK if len(known.rounds) < most else Verdict.UNAPPROVED
    route = Verdict.APPROVED if approved else route
    await _tell(stage, task, known, route, most)
    return route


def _most_reviews(stage: Stage, known: TaskReviews) -> int:
    """Returns the reviews that may send the task back: all must approve, so the least of those who do not count."""
    against = [reviewed.by for reviewed in unsettled(known) if not reviewed.approved and not known.unread]
    return min(map(stage.policies.reviews_of, against), default=stage.policies.most_reviews)


async def _change(stage: Stage, contract: ArchitectureContract, task: Task, known: TaskReviews) -> str:
    paths = sorted({*contract.task_files.get(task.task_id, ()), *known.paths})
    return await stage.do("patch", str, stage.workspace.patch, stage.story_id, known.since, paths)


def _approved(known: TaskReviews) -> bool:
    reviews = known.rounds[-1].reviews if known.rounds else ()
    return bool(reviews) and all(review.approved for review in reviews)


def unsettled(known: TaskReviews | None) -> tuple[Reviewed, ...]:
    """Returns the last review of a task unless all approved."""
    return () if known is None or not known.rounds or _approved(known) else known.rounds[-1].reviews


def open_comments(known: TaskReviews) -> tuple[ReviewIssue, ...]:
    """Returns the comments of all reviewers in the last review, numbered through; none when all approved."""
    issues = (issue for reviewed in unsettled(known) for issue in reviewed.comments)
    return tuple(issue.model_copy(update={"number": number}) for number, issue in enumerate(issues, start=1))


async def _tell(stage: Stage, task: Task, known: TaskReviews, route: Verdict, most: int) -> None:
    done = len(known.rounds)
    last = () if known.unread else known.rounds[-1].reviews
    against = ", ".join(reviewed.by for reviewed in last if not reviewed.approved)
    if route is Verdict.UNAPPROVED:
        why = f"{against} did not approve" if last else "nobody has read its last change"
        verdict, told = Verdict.UNAPPROVED, f"goes on without approval after {counted(done, 'review')}: {why}"
    elif route is Verdict.SENT_BACK:
        comments = counted(len(open_comments(known)), "comment")
        verdict, told = Verdict.SENT_BACK, f"goes back after review {done} of {most}: {comments} of {against}"
    else:
        names = ", ".join(reviewed.by for reviewed in last)
        verdict, told = Verdict.APPROVED, f"is approved by {names} in review {done} of {most}"
    await stage.decide(
        "review_judged", f"{task.task_id} {told}", Loop.REVIEW, verdict,
        findings=_findings(task, last), attempt=max(done, 1), left=max(0, most - done), task=task.task_id,
        level=Level.INFO if verdict is Verdict.APPROVED else Level.WARN,
        reviews=[_short(reviewed, done).model_dump(mode="json") for reviewed in last],
    )  # fmt: skip


def _findings(task: Task, reviews: Iterable[Reviewed]) -> list[Finding]:
    """Returns the findings of reviews without approval: comments, else the review's own faults, else its reason."""
    found: list[Finding] = []
    for reviewed in reviews:
        if reviewed.approved:
            continue
        told = [*(_comment(task, reviewed.by, issue) for issue in reviewed.comments), *blocking(reviewed.findings)]
        found += told or [_without_comment(task, reviewed)]
    return found


def _comment(task: Task, by: str, issue: ReviewIssue) -> Finding:
    weigh = {Severity.CRITICAL: critical, Severity.MAJOR: major}.get(issue.severity, minor)
    where = Where(file=issue.file or None, line=issue.line, task=task.task_id)
    fix = issue.fix or "change it as the comment asks"
    return weigh("review.comment", f"{by}: {_words(issue)}", where=where, fix=fix)


def _without_comment(task: Task, reviewed: Reviewed) -> Finding:
    reason = reviewed.review.rationale or reviewed.review.summary or "no reason is given"
    return major(
        "review.not_approved",
        f"{reviewed.by} does not approve: {_line(reason)}",
        where=Where(task=task.task_id),
        fix="hold the change against the task and the criteria of its story",
    )


def _words(issue: ReviewIssue) -> str:
    return _line(f"{issue.title}: {issue.issue}" if issue.issue else issue.title)


def _line(text: str) -> str:
    return " ".join(text.split())


def _short(reviewed: Reviewed, iteration: int) -> ReviewOutcome:
    review = reviewed.review
    return ReviewOutcome(
        iteration=iteration,
        by=reviewed.by,
        verdict=review.verdict,
        severity=review.severity,
        issues=len(review.issues),
        approved=reviewed.approved,
    )


def task_outcomes(progress: Progress) -> tuple[TaskOutcome, ...]:
    """Returns each task's status with its reviews."""
    return tuple(_outcome(task, status, progress.reviews.get(task)) for task, status in progress.tasks.items())


def _outcome(task: str, status: TaskStatus, known: TaskReviews | None) -> TaskOutcome:
    if known is None:
        return TaskOutcome(id=task, status=status)
    told = [_short(reviewed, done) for done, one in enumerate(known.rounds, start=1) for reviewed in one.reviews]
    return TaskOutcome(id=task, status=status, reviews=tuple(told), comments=open_comments(known))


def unapproved(progress: Progress) -> list[Finding]:
    """Returns a finding per task that continued without approval, with its open comments."""
    tasks = [task for task, status in progress.tasks.items() if status is TaskStatus.UNAPPROVED]
    return [_unapproved(task, progress.reviews[task]) for task in tasks]


def _unapproved(task: str, known: TaskReviews) -> Finding:
    done = counted(len(known.rounds), "review")
    left = [f"{_place(issue)}{_words(issue)}" for issue in open_comments(known)]
    left += [f"{one.by}: {_line(why)}" for one in unsettled(known) if not one.approved for why in _besides(one)]
    unread = f"nobody has read its last change, after {done}"
    reason = unread if known.unread else f"not approved in {done}; open: {'; '.join(left)}"
    return major(
        "review.unapproved",
        reason,
        where=Where(task=task),
        fix="read its commits on the story's branch and merge it or mend it by hand; or `reset` or `replan` the story",
    )


def _besides(reviewed: Reviewed) -> list[str]:
    """Returns further reasons against approval besides the comments: faults of the review, or its reason."""
    faults = [finding.message for finding in blocking(reviewed.findings)]
    return faults or ([] if reviewed.comments else [reviewed.review.rationale or "no comment"])


def _place(issue: ReviewIssue) -> str:
    line = f":{issue.line}" if issue.line is not None else ""
    return f"{issue.file}{line} " if issue.file else ""
