"""What may be added to a frozen contract: wanted by a delivery, granted by the architect, bounded, checked itself."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from posixpath import basename, dirname, join
from typing import Any

from packaging.utils import canonicalize_name

from orchestrator.code.manifests import distributions
from orchestrator.code.manifests.manifest import read_manifest
from orchestrator.code.packages import normal_names, read_packages
from orchestrator.contract.world import World
from orchestrator.core.contract import Amendment, ArchitectureContract
from orchestrator.core.finding import Finding, Where, minor
from orchestrator.core.paths import is_binary_file, is_manifest, is_test_file, parents, spelling, unsafe_reason
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
    if path in world.folders or not world.files.isdisjoint(parents(path)):
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
    listed, declared = value.get("files"), read_packages(value.get("dependencies"))[0]
    for path in (entry.strip() for entry in (listed if isinstance(listed, list) else ()) if isinstance(entry, str)):
        why = "was not asked for" if path not in asked.files else _file_problem(world, path)
        if why:
            message = f"`{path[:200]}` {why} and is left out"
            findings.append(minor("contract.amendment", message, where=where, fix=_LEFT_OUT))
        else:
            files[path] = None
    for name, version in {**declared.dependencies, **declared.devDependencies}.items():
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
        dependencies=tuple(sorted(normal_names(packages))),
        packages=packages,
        by=by,
        reason=reason,
    )
    return amendment, findings


def not_granted(asked: Wanted, contract: ArchitectureContract) -> list[str]:
    """Returns what of it the contract does not allow."""
    files = [path for path in asked.files if path not in contract.allowed_files]
    return files + [
        module for module in asked.packages if not any(brings(name, module) for name in contract.allowed_dependencies)
    ]


def brings(name: str, module: str) -> bool:
    """Returns whether a distribution of this name is, or usually brings, what was asked for under another one."""
    same = canonicalize_name(name) == canonicalize_name(module) or name.lower() == module.lower()
    return same or distributions.python_allowed(module, normal_names([name]))


def amended(contract: ArchitectureContract, amendment: Amendment) -> ArchitectureContract:
    """The contract with the amendment in it."""
    own = {*contract.task_files.get(amendment.task_id, ()), *amendment.files}
    return contract.model_copy(
        update={
            "declared_files": tuple(sorted({*contract.declared_files, *amendment.files})),
            "task_files": contract.task_files | {amendment.task_id: tuple(sorted(own))},
            "declared_dependencies": tuple(sorted({*contract.declared_dependencies, *amendment.dependencies})),
            "amendments": (*contract.amendments, amendment),
        }
    )


_SCRIPTS = (".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".vue", ".svelte", ".astro")
_PYTHON = ("pyproject.toml", "requirements.txt")
_PROJECT = re.compile(r"^\[project\][ \t]*(#.*)?\n", re.MULTILINE)
_LISTED = re.compile(r"(?<![\w-])dependencies\s*=\s*\[(?P<first>[ \t]*\n?)")
_POETRY = re.compile(r"^\[tool\.poetry\.dependencies\][ \t]*\n", re.MULTILINE)
# The next table ends the one before.
_TABLE = re.compile(r"^\[", re.MULTILINE)


def add_packages(packages: Mapping[str, str], texts: Mapping[str, str], near: Sequence[str]) -> dict[str, str]:
    """Returns path → new text of the manifests that declare `packages` (name → version) then.

    `texts` are the project's manifests; one that declares a package already stays. `near` are files that use them: the
    manifest nearest to these is taken, and a new one where the project has none of their kind.
    """
    declared = {name for path, text in texts.items() for name in read_manifest(path, text).dependencies}
    lacking = {
        name: version
        for name, version in packages.items()
        if declared.isdisjoint({name.lower(), str(canonicalize_name(name))})
    }
    if not lacking:
        return {}
    of_node = [path for path in near if path.lower().endswith(_SCRIPTS)]
    node = bool(of_node) and not any(path.endswith(".py") for path in near)
    path = _nearest(("package.json",) if node else _PYTHON, texts, of_node if node else near)
    text = texts.get(path, "")
    return {path: _package_json(text, lacking) if node else _python(path, text, lacking)}


def _nearest(names: Sequence[str], texts: Mapping[str, str], near: Sequence[str]) -> str:
    """The manifest in the deepest folder above the first of `near`; of several the one that can take a line."""
    folder = dirname(near[0]) if near else ""
    while True:
        here = [join(folder, name) for name in names]
        found = [path for path in here if path in texts and _takes(path, texts[path])]
        if found or not folder:
            return (found or [names[-1]])[0]
        folder = dirname(folder)


def _takes(path: str, text: str) -> bool:
    if basename(path) != "pyproject.toml":
        return is_manifest(path)
    computed = re.search(r"^dynamic\s*=\s*\[[^\]]*[\"']dependencies[\"']", text, re.MULTILINE)
    return (_PROJECT.search(text) is not None and computed is None) or _POETRY.search(text) is not None


def _python(path: str, text: str, packages: Mapping[str, str]) -> str:
    lines = [f"{name}{_python_version(version)}" for name, version in sorted(packages.items())]
    if basename(path) != "pyproject.toml":
        return "".join(f"{line}\n" for line in (*text.splitlines(), *lines))
    if (project := _PROJECT.search(text)) is None:
        told = "".join(f'{name} = "{version or "*"}"\n' for name, version in sorted(packages.items()))
        return _POETRY.sub(lambda found: found[0] + told, text, count=1)
    end = _TABLE.search(text, project.end())
    table = text[project.end() : end.start() if end else len(text)]
    entries = "".join(f'    "{line}",\n' for line in lines)
    if found := _LISTED.search(table):
        table = f"{table[: found.start('first')]}\n{entries}{_indented(table[found.end() :], found['first'])}"
    else:
        table = f"dependencies = [\n{entries}]\n{table}"
    return text[: project.end()] + table + (text[end.start() :] if end else "")


def _indented(rest: str, first: str) -> str:
    """What stood in the list: on lines of its own as it was, else on one line of its own."""
    return rest if "\n" in first or rest.lstrip().startswith("]") else f"    {rest.lstrip()}"


def _python_version(told: str) -> str:
    """A version of a plan as Python writes it: `^1.2` and a bare number are a lower limit."""
    told = told.strip()
    if re.match(r"^([<>=!~]=|[<>])", told):
        return told
    number = re.match(r"^[\^~v]?(\d[\w.]*)$", told)
    return f">={number[1]}" if number else ""


def _package_json(text: str, packages: Mapping[str, str]) -> str:
    told = json.loads(text) if text.strip() else {}
    held = told.get("dependencies") or {}
    told["dependencies"] = dict(
        sorted({**held, **{name: version or "*" for name, version in packages.items()}}.items())
    )
    indent = re.search(r"\n([ \t]+)\"", text)
    return json.dumps(told, indent=indent[1] if indent else 2, ensure_ascii=False) + "\n"
