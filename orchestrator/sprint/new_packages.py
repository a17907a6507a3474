"""The packages that a plan brings are asked of their registry before code is paid for."""

from collections.abc import Sequence

from packaging.utils import canonicalize_name

from orchestrator.checks.environment import build_failed, installing_cause, script_refused
from orchestrator.domain.breakdown import Breakdown
from orchestrator.domain.findings import Finding, Where, major
from orchestrator.domain.project_environment import NewPackages
from orchestrator.domain.status import StoryStatus
from orchestrator.sprint.context import Stage, StoryStopped

_TOLD = 1500
"""Characters of an installer's words, from their end."""


async def check_packages(stage: Stage, plan: Breakdown, there: Sequence[str]) -> list[Finding]:
    """What is said of packages that cannot be had; `there` are those that the project declares.

    Raises StoryStopped when it is the registry that cannot be reached.
    """
    known = {canonicalize_name(name) for name in there}
    asked = {**plan.dependencies.devDependencies, **plan.dependencies.dependencies}
    new = {name: version for name, version in asked.items() if canonicalize_name(name) not in known}
    files = sorted({path for task in plan.tasks for path in task.files_to_create})

    async def work(_step_id: str) -> NewPackages:
        return await stage.runner.new_packages(stage.workspace.root(stage.story_id), new, files)

    found = await stage.step.step("packages", work, NewPackages) if new else NewPackages()
    if cause := installing_cause(found.refusal):
        raise StoryStopped(StoryStatus.NEEDS_ATTENTION, [cause])
    if found.had or found.base_too:
        return []
    where = Where(story=plan.story_id, field="dependencies")
    if found.closed:
        return [script_refused(found.closed, found.setting, where)]
    if found.failed:
        return [build_failed(found.failed, where)]
    return [
        major(
            "breakdown.unavailable_package",
            f"not all of {', '.join(sorted(new))} can be installed here: {found.refusal[-_TOLD:]}",
            where=where,
            fix="Name packages and versions that the registry has ready-made, or do without them.",
        )
    ]
