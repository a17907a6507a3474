"""What an answer may hold beside its form: paths of real files, no name of a secret.

Also what a delivery is held against, and what bash says of its shell files.
"""

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from posixpath import basename, dirname
from typing import NamedTuple

from orchestrator.code.check import is_generated, language_of
from orchestrator.core.delivery import FileChange
from orchestrator.core.finding import Finding, Where, major, minor
from orchestrator.core.paths import RepoPath, is_binary_file, is_test_file, parents, unsafe_reason
from orchestrator.core.secrets import Masks
from orchestrator.core.value import Value

# A dot with something before it: `.gitignore` is a name, no suffix.
_SUFFIX = re.compile(r"[^.]\.[A-Za-z0-9_+~-]{1,16}$")
_PLAIN_NAMES = frozenset(
    {"makefile", "gnumakefile", "dockerfile", "containerfile", "license", "licence", "copying", "notice", "readme"}
    | {"changelog", "changes", "history", "news", "authors", "contributors", "contributing", "codeowners", "install"}
    | {"procfile", "gemfile", "rakefile", "jenkinsfile", "vagrantfile", "pipfile", "brewfile", "justfile", "caddyfile"}
    | {"version", "todo", "manifest", "owners", "security", "wscript", "sconstruct", "build", "workspace", "tiltfile"}
    | {"cname", "gradlew", "mvnw", "podfile", "fastfile", "snakefile", "taskfile", "earthfile", "berksfile"}
)
_PLAIN_STEMS = re.compile(r"^(makefile|dockerfile|containerfile|licen[cs]e|copying|readme)[-_][a-z0-9_-]{1,20}$")
"""Plain names with an addition: LICENSE-MIT, Dockerfile-dev."""
_SCRIPT_FOLDERS = frozenset({"bin", "scripts", "script", "hooks", ".husky", "sbin"})


class PathProblem(NamedTuple):
    """Why a path may not stand in a plan."""

    code: str
    """Of the finding."""
    reason: str


def plan_problem(path: str, existing: frozenset[str], folders: frozenset[str]) -> PathProblem | None:
    """Why a task may not name `path`, or None. `existing`: tracked files; `folders`: their folders (see folders_of)."""
    if path.endswith("/") and not unsafe_reason(path.rstrip("/")):
        return PathProblem("breakdown.abstract_path", "is a folder, not a file")
    reason = unsafe_reason(path)
    if reason is not None:
        return PathProblem("breakdown.unsafe_path", f"is unsafe: {reason}")
    if is_test_file(path):
        return PathProblem("breakdown.test_file", "is a test file; the tester writes those")
    if is_binary_file(path):
        return PathProblem("breakdown.binary_file", "is a binary file, which nobody here can write as text")
    if path in existing:
        return None
    if path in folders:
        return PathProblem("breakdown.abstract_path", "is a folder of the project, not a file")
    if not existing.isdisjoint(parents(path)):
        return PathProblem("breakdown.abstract_path", "lies below something that is a file")
    if not _looks_like_file(path):
        reason = "reads like an idea, not like a file: it has no suffix and does not exist"
        return PathProblem("breakdown.abstract_path", reason)
    return None


def _looks_like_file(path: str) -> bool:
    name = basename(path)
    if name.startswith(".") or _SUFFIX.search(name):
        return True
    plain = name.lower() in _PLAIN_NAMES or bool(_PLAIN_STEMS.match(name.lower()))
    return plain or not _SCRIPT_FOLDERS.isdisjoint(path.split("/")[:-1])


class Around(Value):
    """What is known around a task; what is empty is unknown, and the checks that need it say less."""

    packages: frozenset[str] = frozenset()
    """Normalised names from the manifests and the plan: they tell the dialect of SQL."""
    stack: tuple[str, ...] = ()
    """What was recorded on the tech stack, line by line."""
    runtime: str = ""
    """What the project scan says of it: Python has to compile for the oldest one that the project promises."""
    runtimes: Mapping[str, str] = {}
    """The same by folder, of projects inside the project."""
    task: str = ""
    """The task's description and instructions: what they name may go."""
    others: Mapping[str, str] = {}
    """Texts of other project files, in which uses of lost names are found; without them losses are only noted."""

    def runtime_at(self, path: str) -> str:
        """Returns what the nearest manifest above a file says."""
        folder = dirname(path)
        while folder:
            if folder in self.runtimes:
                return self.runtimes[folder]
            folder = dirname(folder)
        return self.runtime


FIX = (
    "Leave each such name as it stands, in its own file and place; a value that is needed elsewhere is read from the "
    "environment or a file of settings when the program runs."
)


def with_secrets(
    masks: Masks, files: Sequence[FileChange], before: Mapping[RepoPath, str]
) -> tuple[list[FileChange], list[Finding]]:
    """The files with the secrets of `before`, the same files as they are, in place of the names that stand for them.

    A file that names a secret which it does not hold is left out, with a major finding: no name is ever written over a
    secret, and no secret moves into another file.
    """
    kept: list[FileChange] = []
    findings: list[Finding] = []
    for change in files:
        text, unknown = masks.restored(change.content, before.get(change.path))
        if unknown:
            message = f"`{change.path}` holds `{unknown[0]}`, which stands for a secret that is not in that file"
            findings.append(major("delivery.masked_secret", message, where=Where(file=change.path), fix=FIX))
        else:
            kept.append(change if text == change.content else change.model_copy(update={"content": text}))
    return kept, findings


_BASH = re.compile(r"#!.*?\b(bash|sh|dash|ash)\b")
_TOLD = re.compile(r"^(?P<file>\S.*?): line (?P<line>\d+): (?P<message>.+)$", re.MULTILINE)


def shell_files(changes: Iterable[FileChange]) -> tuple[str, ...]:
    """Returns the paths of those files that bash reads: no other shell's, no templates, no tests of bats."""
    return tuple(change.path for change in changes if _is_bash(change.path, change.content))


def _is_bash(path: str, text: str) -> bool:
    if language_of(path, text) != "Shell" or path.lower().endswith(".bats") or is_generated(path, text) or "{%" in text:
        return False
    return not text.startswith("#!") or _BASH.match(text) is not None


def syntax_command(paths: Iterable[str]) -> str:
    """Returns the command that has bash read these files, in the folder that they are in."""
    files = " ".join(shlex.quote(f"./{path}") for path in paths)
    # Without running `shopt`, bash does not know that a script asks for extended patterns: both readings must fail.
    judged = 'said=$(bash -n "$file" 2>&1); [ -z "$said" ] || bash -O extglob -n "$file"'
    return f"export LC_ALL=C; for file in {files}; do {judged}; done"


def read_syntax(paths: Collection[str], output: str) -> list[Finding]:
    """Returns what bash said about the files: a major finding for each that does not parse, at its first line.

    Also a warning of bash is one: a here-document without its end. Without bash the files were not checked, which is a
    minor finding.
    """
    first: dict[str, Finding] = {}
    for told in _TOLD.finditer(output):
        path = told["file"].removeprefix("./")
        if path in paths and path not in first:
            where = Where(file=path, line=int(told["line"]))
            message = f"does not parse as Shell: {told['message']}"
            first[path] = major("delivery.syntax", message, where=where, fix="Write the whole file so that it parses.")
    if not first and output.strip():
        message = f"`{'`, `'.join(paths)}` was not checked: {output.strip().splitlines()[-1][:200]}"
        return [
            minor("delivery.unchecked", message, fix="Nothing needs to be done; look at the file where it matters.")
        ]
    return list(first.values())
