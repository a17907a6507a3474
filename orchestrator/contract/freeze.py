"""A breakdown and a tree → the closed world of one story."""

from collections.abc import Iterable, Mapping, Sequence

from packaging.utils import canonicalize_name

from orchestrator.contract.manifests import dependencies_of
from orchestrator.domain.breakdown import Breakdown
from orchestrator.domain.contract import ArchitectureContract
from orchestrator.domain.findings import Where, critical
from orchestrator.domain.paths import unsafe_reason
from orchestrator.errors import ContractViolation


def freeze(
    *, breakdown: Breakdown, base_commit: str, files: Sequence[str], manifests: Mapping[str, str]
) -> ArchitectureContract:
    """The sealed contract of an accepted breakdown.

    `files` are the tracked files at `base_commit`, `manifests` the texts of those among them that declare
    dependencies; what cannot be read in them allows nothing. Raises ContractViolation when a task still names an
    unsafe path: such a breakdown was never acceptable.
    """
    task_files = {task.task_id: tuple(sorted(set(task.files_to_create))) for task in breakdown.tasks}
    declared = sorted({path for paths in task_files.values() for path in paths})
    unsafe = [
        critical("contract.file", f"`{path[:200]}` is unsafe: {reason}", where=Where(story=breakdown.story_id))
        for path in declared
        if (reason := unsafe_reason(path)) is not None
    ]
    if unsafe:
        raise ContractViolation(f"the breakdown of {breakdown.story_id} names unsafe paths", findings=unsafe)
    baseline = {name for path, text in manifests.items() for name in dependencies_of(path, text)}
    return ArchitectureContract(
        story_id=breakdown.story_id,
        base_commit=base_commit,
        baseline_files=tuple(sorted(set(files))),
        declared_files=tuple(declared),
        task_files=dict(sorted(task_files.items())),
        baseline_dependencies=tuple(sorted(baseline)),
        declared_dependencies=tuple(sorted(_both_spellings(breakdown.dependencies.names))),
    ).sealed()


def _both_spellings(names: Iterable[str]) -> frozenset[str]:
    """A breakdown does not say which ecosystem a name is of: lower case is npm's spelling, PEP 503 is Python's."""
    lowered = {name.strip().lower() for name in names if name.strip()}
    return frozenset(lowered | {str(canonicalize_name(name)) for name in lowered})
