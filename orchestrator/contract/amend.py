"""What may be added to a frozen contract: wanted by a delivery, granted by the architect, bounded, checked itself."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from packaging.utils import canonicalize_name

from orchestrator.code.manifests import distributions
from orchestrator.contract.freeze import both_spellings
from orchestrator.contract.world import World
from orchestrator.core.contract import Amendment, ArchitectureContract
from orchestrator.core.finding import Finding, Where, minor
from orchestrator.core.paths import is_binary_file, is_test_file, spelling, unsafe_reason
from orchestrator.core.value import Value

FILE, OTHER_TASK = "contract.file", "contract.other_task"
PACKAGES = frozenset({"contract.dependency", "contract.import"})
MAX_NAMES = 40
"""Files and packages that one request may be about: an architect still weighs each of them, more is another plan."""
_LEFT_OUT = "If the story cannot end well without it, have it planned again: `replan` with a comment that says so."
_VERSION = re.compile(r"^[\^~<>=!v\d][\w.*+!<>=~^, -]*$")
_PACKAGE = re.compile(r"^(@[a-z0-9~][\w.~-]*/)?[A-Za-z0-9_][\w.-]*$")


class Wanted(Value):
    """What a delivery, an analysis or a review needs beyond the contract."""

    files: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    """Names as they were used; an imported module may belong to a distribution of another name."""

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.files, *self.packages)


def is_for_architect(finding: Finding) -> bool:
    """Returns whether a finding asks for a file or a package, which the architect decides."""
    return finding.ask and finding.code in {FILE, OTHER_TASK, *PACKAGES}


def subject(finding: Finding) -> str:
    """Returns the path or the package that a question is about."""
    return (finding.where.field if finding.code in PACKAGES else finding.where.file) or ""


def wanted(findings: Iterable[Finding]) -> Wanted:
    """Returns the files and packages that these questions are about, each once."""
    asked = [finding for finding in findings if is_for_architect(finding)]
    files = dict.fromkeys(subject(finding) for finding in asked if finding.code not in PACKAGES)
    packages = dict.fromkeys(subject(finding) for finding in asked if finding.code in PACKAGES)
    return Wanted(files=tuple(files), packages=tuple(packages))


def grantable(contract: ArchitectureContract, asked: Wanted) -> tuple[Wanted, dict[str, str]]:
    """Returns what of it an amendment can bring, and why it cannot bring the rest."""
    world = World(contract)
    never = {path: f"it {why}" for path in asked.files if (why := _file_problem(world, path))}
    never |= dict.fromkeys((name for name in asked.packages if not _PACKAGE.match(name)), "it names no package")
    files = [path for path in asked.files if path not in never]
    packages = [name for name in asked.packages if name not in never]
    if len(files) + len(packages) > MAX_NAMES:
        return Wanted(), never | dict.fromkeys((*files, *packages), f"more than {MAX_NAMES} at once is another plan")
    return Wanted(files=tuple(files), packages=tuple(packages)), never


def _file_problem(world: World, path: str) -> str:
    """Returns why no amendment may name this path, "" when it may: it need not be new, but no task has it."""
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
    """Returns what an architect's answer grants, None when that is nothing; reports omitted parts as minor.

    Only what was asked for can be granted: its files by their paths, its packages by their names or by a distribution
    that brings the imported module.
    """
    world, where = World(contract), Where(story=contract.story_id, task=task_id)
    findings: list[Finding] = []
    files: dict[str, None] = {}
    packages: dict[str, str] = {}
    for path in _names(value.get("files")):
        why = "was not asked for" if path not in asked.files else _file_problem(world, path)
        if why:
            message = f"`{path[:200]}` {why} and is left out"
            findings.append(minor("contract.amendment", message, where=where, fix=_LEFT_OUT))
        else:
            files[path] = None
    for name, version in _versions(value.get("dependencies")).items():
        if not any(brings(name, module) for module in asked.packages):
            message = f"the package `{name[:120]}` was not asked for and is left out"
            findings.append(minor("contract.amendment", message, where=where, fix=_LEFT_OUT))
        else:
            packages[name] = version if _VERSION.match(version) else "*"
    if not files and not packages:
        return None, findings
    reason = " ".join(str(value.get("reason") or "").split())
    amendment = Amendment(
        task_id=task_id,
        files=tuple(files),
        dependencies=tuple(sorted(both_spellings(packages))),
        packages=packages,
        by=by,
        reason=reason,
    )
    return amendment, findings


def _names(value: object) -> list[str]:
    return [entry.strip() for entry in value if isinstance(entry, str)] if isinstance(value, list) else []


def _versions(value: object) -> dict[str, str]:
    """Name → version in a list of requirements, a map to versions, or package.json's two groups."""
    if not isinstance(value, Mapping):
        split = [re.split(r"(?<=.)(?=[@<>=!~\[; ])", entry, maxsplit=1) for entry in _names(value)]
        return {name: "".join(rest).lstrip("@ ") for name, *rest in split}
    groups = [value[key] for key in ("dependencies", "devDependencies") if isinstance(value.get(key), Mapping | list)]
    if groups:
        return {name: version for group in groups for name, version in _versions(group).items()}
    return {str(name).strip(): str(version or "").strip() for name, version in value.items()}


def not_granted(asked: Wanted, contract: ArchitectureContract) -> list[str]:
    """Returns what of it the contract does not allow."""
    files = [path for path in asked.files if path not in contract.allowed_files]
    return files + [
        module for module in asked.packages if not any(brings(name, module) for name in contract.allowed_dependencies)
    ]


def brings(name: str, module: str) -> bool:
    """Returns whether a distribution of this name is, or usually brings, what was asked for under another one."""
    same = canonicalize_name(name) == canonicalize_name(module) or name.lower() == module.lower()
    return same or distributions.python_allowed(module, both_spellings([name]))


def amended(contract: ArchitectureContract, amendment: Amendment) -> ArchitectureContract:
    """Returns the contract with the amendment, sealed again."""
    own = {*contract.task_files.get(amendment.task_id, ()), *amendment.files}
    return contract.model_copy(
        update={
            "declared_files": tuple(sorted({*contract.declared_files, *amendment.files})),
            "task_files": contract.task_files | {amendment.task_id: tuple(sorted(own))},
            "declared_dependencies": tuple(sorted({*contract.declared_dependencies, *amendment.dependencies})),
            "amendments": (*contract.amendments, amendment),
        }
    ).sealed()
