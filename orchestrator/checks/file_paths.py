"""What a path in an answer may be: safe, a file, and not somebody else's."""

import re
from posixpath import basename
from typing import NamedTuple

from orchestrator.domain.file_kinds import is_binary_file, is_test_file
from orchestrator.domain.paths import unsafe_reason

_SUFFIX = re.compile(r"[^.]\.[A-Za-z0-9_+~-]{1,16}$")
_PLAIN_NAMES = frozenset(
    {"makefile", "gnumakefile", "dockerfile", "containerfile", "license", "licence", "copying", "notice", "readme"}
    | {"changelog", "changes", "history", "news", "authors", "contributors", "contributing", "codeowners", "install"}
    | {"procfile", "gemfile", "rakefile", "jenkinsfile", "vagrantfile", "pipfile", "brewfile", "justfile", "caddyfile"}
    | {"version", "todo", "manifest", "owners", "security", "wscript", "sconstruct", "build", "workspace", "tiltfile"}
    | {
        "cname",
        "gradlew",
        "mvnw",
        "podfile",
        "fastfile",
        "snakefile",
        "taskfile",
        "earthfile",
        "berksfile",
        "guardfile",
    }
)
_PLAIN_STEMS = re.compile(r"^(makefile|dockerfile|containerfile|licen[cs]e|copying|readme)[-_][a-z0-9_-]{1,20}$")
"""Plain names with an addition: LICENSE-MIT, Dockerfile-dev."""
_SCRIPT_FOLDERS = frozenset({"bin", "scripts", "script", "hooks", ".husky", "sbin"})


class PathProblem(NamedTuple):
    """Why a path may not stand in a plan."""

    code: str
    """Of the finding."""
    reason: str


def tidy(path: str) -> str:
    """The path without the blanks around it and the `./` before it that mean nothing."""
    path = path.strip()
    while path.startswith("./") and len(path) > 2:
        path = path[2:]
    return path


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
    if not existing.isdisjoint(_parents(path)):
        return PathProblem("breakdown.abstract_path", "lies below something that is a file")
    if not _looks_like_file(path):
        reason = "reads like an idea, not like a file: it has no suffix and does not exist"
        return PathProblem("breakdown.abstract_path", reason)
    return None


def folders_of(files: frozenset[str]) -> frozenset[str]:
    """Every folder above these files."""
    return frozenset(parent for path in files for parent in _parents(path))


def _parents(path: str) -> frozenset[str]:
    parts = path.split("/")
    return frozenset("/".join(parts[:end]) for end in range(1, len(parts)))


def _looks_like_file(path: str) -> bool:
    name = basename(path)
    if name.startswith(".") or _SUFFIX.search(name):
        return True
    plain = name.lower() in _PLAIN_NAMES or bool(_PLAIN_STEMS.match(name.lower()))
    return plain or not _SCRIPT_FOLDERS.isdisjoint(path.split("/")[:-1])
