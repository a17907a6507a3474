"""Shell files are judged by bash itself: `bash -n` reads a script and runs nothing of it."""

import re
import shlex
from collections.abc import Collection, Iterable

from orchestrator.domain.delivery import FileChange
from orchestrator.domain.findings import Finding, Where, major, minor
from orchestrator.syntax.languages import language_of
from orchestrator.syntax.templates import is_generated

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
