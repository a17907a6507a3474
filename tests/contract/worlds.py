"""Closed worlds for the tests of this folder: contracts of one task, frozen from files, manifests and packages."""

from collections.abc import Iterable, Mapping

from orchestrator.contract.enforce import check_delivery
from orchestrator.contract.freeze import freeze
from orchestrator.contract.world import NOTHING_KNOWN
from orchestrator.core.breakdown import ArchitecturalConflict, Breakdown, PackageDependencies, Task
from orchestrator.core.contract import ArchitectureContract, InstalledPackages
from orchestrator.core.delivery import Delivery, FileChange
from orchestrator.core.finding import Finding


def closed_world(
    new: Iterable[str], files: Iterable[str], manifests: Mapping[str, str], packages: Iterable[str] = ()
) -> ArchitectureContract:
    plan = Breakdown(
        story_id="US-001",
        architectural_conflict=ArchitecturalConflict(detected=False),
        task_count=1,
        tasks=(Task(task_id="T1", description="x", files_to_create=tuple(new)),),
        dependencies=PackageDependencies(dependencies=dict.fromkeys(packages, "*")),
    )
    return freeze(breakdown=plan, base_commit="abc", files=tuple(files), manifests=manifests)


def judged(
    world: ArchitectureContract,
    files: Mapping[str, str],
    before: Mapping[str, str] | None = None,
    installed: InstalledPackages = NOTHING_KNOWN,
) -> list[Finding]:
    # `model_construct`, as if a path had come past its type.
    changes = tuple(FileChange.model_construct(path=path, content=text) for path, text in files.items())
    delivery = Delivery.model_construct(story_id="US-001", task_id="T1", files=changes)
    return check_delivery(world, delivery, before or {}, installed)
