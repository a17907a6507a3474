"""A breakdown and a tree → the closed world of one story."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from posixpath import basename, dirname
from typing import Any

from pathspec import GitIgnoreSpec

from orchestrator.code.manifests.manifest import read_manifest
from orchestrator.code.manifests.npm import aliases, local_modules, names_modules
from orchestrator.code.packages import normal_names
from orchestrator.core.breakdown import Breakdown
from orchestrator.core.contract import ArchitectureContract
from orchestrator.core.errors import ContractViolation
from orchestrator.core.finding import Where, critical
from orchestrator.core.paths import is_manifest, spelling, unsafe_reason


def freeze(
    *, breakdown: Breakdown, base_commit: str, files: Sequence[str], manifests: Mapping[str, str]
) -> ArchitectureContract:
    """Returns the contract of an accepted breakdown.

    `files` are the tracked files at `base_commit`, `manifests` the texts of those among them that declare dependencies
    or name modules (`worth_freezing`); what cannot be read in them allows nothing. A declared path that is another one
    on a file system without case or with its own Unicode form is taken for that one, first for a file that is there.
    Raises ContractViolation when a task still names an unsafe path: such a breakdown was never acceptable.
    """
    fix = "Name files by their path from the repository's root."
    unsafe = [
        critical("contract.file", f"`{path[:200]}` is unsafe: {reason}", where=Where(story=breakdown.story_id), fix=fix)
        for path in sorted({path for task in breakdown.tasks for path in task.files_to_create})
        if (reason := unsafe_reason(path)) is not None
    ]
    if unsafe:
        raise ContractViolation(f"the breakdown of {breakdown.story_id} names unsafe paths", findings=unsafe)
    one_of = _one_spelling(files, breakdown)
    task_files = {
        task.task_id: tuple(sorted({one_of[path] for path in task.files_to_create})) for task in breakdown.tasks
    }
    declared = {path for paths in task_files.values() for path in paths}
    return ArchitectureContract(
        story_id=breakdown.story_id,
        declared_files=tuple(sorted(declared)),
        task_files=dict(sorted(task_files.items())),
        declared_dependencies=tuple(sorted(normal_names(breakdown.dependencies.names))),
        **_baseline(base_commit, files, manifests),
    )


def rebased(
    contract: ArchitectureContract, *, base_commit: str, files: Sequence[str], manifests: Mapping[str, str]
) -> ArchitectureContract:
    """The same contract on another base: what was merged before may be imported, and is not this story's to declare.

    What the plan and its amendments allow stays; `files` and `manifests` are as for `freeze`.
    """
    return contract.model_copy(update=_baseline(base_commit, files, manifests))


def widened(contract: ArchitectureContract, task_id: str, files: Iterable[str]) -> ArchitectureContract:
    """Returns the contract under which one task may write all files of the story, and `files` that the baseline has."""
    own = {*contract.declared_files, *files}
    return contract.model_copy(update={"task_files": {**contract.task_files, task_id: tuple(sorted(own))}})


def _baseline(base_commit: str, files: Sequence[str], manifests: Mapping[str, str]) -> dict[str, Any]:
    """Everything of a contract that is so because the tree is so."""
    read = {path: read_manifest(path, text) for path, text in manifests.items()}
    local = {name for found in read.values() for name in found.local}
    local |= {name for path, text in manifests.items() for name in local_modules(path, text)}
    return {
        "base_commit": base_commit,
        "baseline_files": tuple(sorted(set(files))),
        "baseline_dependencies": tuple(sorted({name for found in read.values() for name in found.dependencies})),
        "local_names": tuple(sorted(local)),
        "ignored": tuple(_ignored(manifests)),
        "module_roots": tuple(sorted({root for path, text in manifests.items() for root in aliases(path, text).roots})),
    }


_SPECIAL = re.compile(r"([*?\[\]\\])")


def _ignored(texts: Mapping[str, str]) -> Iterator[str]:
    """Yields the patterns of every .gitignore as one at the root would have them; a deeper one counts more."""
    files = [path for path in texts if _is_ignore_file(path)]
    for path in sorted(files, key=lambda one: (one.count("/"), one)):
        folder = _SPECIAL.sub(r"\\\1", f"/{dirname(path)}/") if dirname(path) else "/"
        for line in texts[path].removeprefix("\ufeff").splitlines():
            pattern = line if line.endswith("\\ ") else line.rstrip()
            if pattern and not pattern.startswith("#"):
                sign, pattern = ("!", pattern[1:]) if pattern.startswith("!") else ("", pattern)
                # A pattern with a `/` inside holds from its folder, any other at every depth below.
                below = "" if "/" in pattern.rstrip("/") else "**/"
                placed = f"{sign}{folder}{below}{pattern.removeprefix('/')}"
                with suppress(ValueError, re.error):  # of git it matches nothing
                    GitIgnoreSpec.from_lines([placed])
                    yield placed


def _is_ignore_file(path: str) -> bool:
    return basename(path) == ".gitignore"


def worth_freezing(path: str) -> bool:
    """Returns whether `freeze` wants the text of this file."""
    return is_manifest(path) or names_modules(path) or _is_ignore_file(path)


def _one_spelling(files: Sequence[str], breakdown: Breakdown) -> dict[str, str]:
    """Declared path → the path that is meant by it in this tree."""
    there = set(files)
    known = {spelling(path): path for path in sorted(there, reverse=True)}
    declared = dict.fromkeys(path for task in breakdown.tasks for path in task.files_to_create)
    return {path: path if path in there else known.setdefault(spelling(path), path) for path in declared}
