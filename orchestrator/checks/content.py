"""What delivered files hold, looked at before anything is written."""

from collections.abc import Iterator, Mapping, Sequence
from posixpath import basename

from orchestrator.checks.around import Around
from orchestrator.checks.lost_exports import Lost, check_gone, check_lost, lost_exports
from orchestrator.checks.manifest_loss import manifest_losses
from orchestrator.checks.placeholders import placeholders
from orchestrator.domain.delivery import Delivery, FileChange
from orchestrator.domain.file_kinds import is_manifest
from orchestrator.domain.findings import Finding, Where, major, minor
from orchestrator.syntax.check import check_syntax, unchecked_language
from orchestrator.syntax.sql_check import check_sql_strings
from orchestrator.syntax.sql_dialect import Project
from orchestrator.syntax.target import target_of

SMALL_BEFORE = 500
"""Characters below which a file may lose any share of its text."""
KEPT_SHARE = 0.2
_MAY_BE_EMPTY = frozenset({"__init__.py", "py.typed", ".gitkeep", ".keep", ".nojekyll"})


def check_content(
    delivery: Delivery,
    before: Mapping[str, str],
    around: Around | None = None,
    lost: Sequence[Lost] | None = None,
) -> list[Finding]:
    """Findings on the files' contents; `before` holds the present text of those that exist, `lost` what they lose.

    Syntax, SQL, omissions and placeholders, lost text, lost exports and routes, imports of removed files, and manifests
    that lose something; a minor one for code that has no parser here. Never raises.
    """
    findings: list[Finding] = []
    around = around or Around()
    project = Project(packages=around.packages, stack=around.stack)
    for change in delivery.files:
        old, target = before.get(change.path), target_of(around.runtime_at(change.path))
        broken = check_syntax(change.path, change.content, code="delivery.syntax", target=target, project=project)
        said = [*broken, *_unchecked(change)]
        said += check_sql_strings(change.content, change.path, code="delivery.sql", project=project, before=old or "")
        said += placeholders(change.path, change.content, before=old or "")
        said += _shrunk(change, old)
        if old is not None and is_manifest(change.path):
            said += (
                one for one in manifest_losses(change, old, around.task) if not broken or one.code != "delivery.syntax"
            )
        findings += (_placed(finding, delivery) for finding in said)
    lost = lost_exports(delivery, before, around.task) if lost is None else lost
    taken = [*check_lost(delivery, lost, around.others), *check_gone(delivery, before)]
    return [*findings, *(_placed(finding, delivery) for finding in taken)]


def check_whole(delivery: Delivery, files: Sequence[str], before: Mapping[str, str]) -> list[Finding]:
    """A finding for each of the task's `files` that neither exists yet nor is delivered."""
    there = {*delivery.paths, *before}
    return [
        major(
            "delivery.missing_file",
            f"`{path}` is a file of the task, does not exist yet and was not delivered",
            where=Where(file=path, story=delivery.story_id, task=delivery.task_id),
            fix=f"Deliver `{path}` too.",
        )
        for path in files
        if path not in there
    ]


def _placed(finding: Finding, delivery: Delivery) -> Finding:
    where = finding.where.model_copy(update={"story": delivery.story_id, "task": delivery.task_id})
    return finding.model_copy(update={"where": where})


def _unchecked(change: FileChange) -> Iterator[Finding]:
    """Code that nobody here can say anything about passes, and that is told."""
    if language := unchecked_language(change.path, change.content):
        message = f"`{change.path}` was not checked: there is no parser for {language} here"
        fix = "Nothing needs to be done; look at the file where it matters."
        yield minor("delivery.unchecked", message, where=Where(file=change.path), fix=fix)


def _shrunk(change: FileChange, before: str | None) -> Iterator[Finding]:
    where = Where(file=change.path)
    now, fix = change.content.strip(), "Give the whole file."
    if not now and (before or "").strip() and not is_manifest(change.path):  # its losses are told by name
        yield major("delivery.shrunk", "the file lost all of its content", where=where, fix=fix)
    elif not now and basename(change.path) not in _MAY_BE_EMPTY:
        yield minor("delivery.empty", "the file is empty", where=where, fix=fix)
    elif before and len(before) > SMALL_BEFORE and len(change.content) < KEPT_SHARE * len(before):
        message = f"the file shrank from {len(before)} to {len(change.content)} characters"
        yield minor("delivery.shrunk", message, where=where, fix=fix)
