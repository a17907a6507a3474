"""What may be added to a frozen contract: wanted by a delivery, granted by the architect, bounded, checked itself."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from packaging.utils import canonicalize_name

from orchestrator.contract import import_names
from orchestrator.contract.freeze import both_spellings
from orchestrator.contract.rules import is_test_file
from orchestrator.contract.world import World, spelling
from orchestrator.domain.base import Value
from orchestrator.domain.contract import Amendment, ArchitectureContract
from orchestrator.domain.file_kinds import is_binary_file
from orchestrator.domain.findings import Finding, Where, blocking, minor
from orchestrator.domain.paths import unsafe_reason

FILE, OTHER_TASK = "contract.file", "contract.other_task"
PACKAGES = frozenset({"contract.dependency", "contract.import"})
MAX_FILES = MAX_PACKAGES = 3
"""Most of either kind that one amendment may bring: more is another plan."""
_LEFT_OUT = "If the story cannot end well without it, have it planned anew: `replan` with a comment that says so."
_PACKAGE = re.compile(r"^(@[a-z0-9~][\w.~-]*/)?[A-Za-z0-9_][\w.-]*$")


class Wanted(Value):
    """What a refused delivery would need beyond its contract."""

    files: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    """Names as they were used; an imported module may belong to a distribution of another name."""


def wanted(contract: ArchitectureContract, findings: Iterable[Finding]) -> Wanted | None:
    """What would make a delivery with these findings right, None when no amendment can.

    Only files outside and packages outside count; one finding of another kind, a path that no plan could name, or more
    than an amendment may bring, and there is nothing to ask for.
    """
    blocked = blocking(findings)
    if any(finding.code not in {FILE, OTHER_TASK, *PACKAGES} for finding in blocked):
        return None
    files = dict.fromkeys(finding.where.file or "" for finding in blocked if finding.code == FILE)
    packages = dict.fromkeys(finding.where.field or "" for finding in blocked if finding.code in PACKAGES)
    world = World(contract)
    if not (files or packages) or len(files) > MAX_FILES or len(packages) > MAX_PACKAGES:
        return None
    if any(_file_problem(world, path) for path in files) or not all(_PACKAGE.match(name) for name in packages):
        return None
    return Wanted(files=tuple(files), packages=tuple(packages))


def wanted_files(contract: ArchitectureContract, paths: Iterable[str]) -> Wanted | None:
    """The first of `paths`, files of no task, that an amendment may give to one; None when there is none."""
    world = World(contract)
    able = [path for path in dict.fromkeys(paths) if not _file_problem(world, path)]
    return Wanted(files=tuple(able[:MAX_FILES])) if able else None


def _file_problem(world: World, path: str) -> str:
    """Why no amendment may name this path, "" when it may: it need not be new, but no task has it."""
    if unsafe_reason(path) is not None:
        return "is unsafe"
    if is_test_file(path):
        return "is a test file"
    if is_binary_file(path):
        return "is a binary file"
    if world.spellings.get(spelling(path), path) != path:
        return f"is another spelling of `{world.spellings[spelling(path)]}`"
    if any(path in files for files in world.contract.task_files.values()):
        return "belongs to a task"
    parts = path.split("/")
    if path in world.folders or any("/".join(parts[:end]) in world.files for end in range(1, len(parts))):
        return "would be a file and a folder"
    return ""


def read_amendment(
    value: Mapping[str, Any], contract: ArchitectureContract, asked: Wanted, *, task_id: str, by: str
) -> tuple[Amendment | None, list[Finding]]:
    """What an architect's answer grants, None when that is nothing; what is left out of it is told, minor.

    Only what was asked for can be granted: its files by their paths, its packages by their names or by a distribution
    that brings the imported module.
    """
    world, where = World(contract), Where(story=contract.story_id, task=task_id)
    findings: list[Finding] = []
    files: dict[str, None] = {}
    packages: dict[str, None] = {}
    for path in _names(value.get("files")):
        why = "was not asked for" if path not in asked.files else _file_problem(world, path)
        if why:
            message = f"`{path[:200]}` {why} and is left out"
            findings.append(minor("contract.amendment", message, where=where, fix=_LEFT_OUT))
        else:
            files[path] = None
    for name in _names(value.get("dependencies")):
        if not any(_brings(name, module) for module in asked.packages):
            message = f"the package `{name[:120]}` was not asked for and is left out"
            findings.append(minor("contract.amendment", message, where=where, fix=_LEFT_OUT))
        else:
            packages[name] = None
    if not files and not packages:
        return None, findings
    reason = " ".join(str(value.get("reason") or "").split())
    granted = tuple(sorted(both_spellings(packages)))
    return Amendment(task_id=task_id, files=tuple(files), dependencies=granted, by=by, reason=reason), findings


def _names(value: object) -> Sequence[str]:
    """Names in a list, a map to versions, or package.json's two groups."""
    if isinstance(value, Mapping):
        groups = [
            value[key] for key in ("dependencies", "devDependencies") if isinstance(value.get(key), Mapping | list)
        ]
        return [name for group in groups for name in _names(group)] if groups else [str(name).strip() for name in value]
    found = [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []
    return [re.split(r"(?<=.)[@<>=!~\[; ]", entry.strip(), maxsplit=1)[0] for entry in found]


def _brings(name: str, module: str) -> bool:
    same = canonicalize_name(name) == canonicalize_name(module) or name.lower() == module.lower()
    return same or import_names.python_allowed(module, both_spellings([name]))


def amended(contract: ArchitectureContract, amendment: Amendment) -> ArchitectureContract:
    """The contract with the amendment in it, sealed anew."""
    own = {*contract.task_files.get(amendment.task_id, ()), *amendment.files}
    return contract.model_copy(
        update={
            "declared_files": tuple(sorted({*contract.declared_files, *amendment.files})),
            "task_files": contract.task_files | {amendment.task_id: tuple(sorted(own))},
            "declared_dependencies": tuple(sorted({*contract.declared_dependencies, *amendment.dependencies})),
            "amendments": (*contract.amendments, amendment),
        }
    ).sealed()
