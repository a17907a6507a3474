"""The optional parts of an architect's answer: read leniently, what does not fit is left out and told."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from orchestrator.checks.file_paths import tidy
from orchestrator.domain.breakdown import AcceptanceTest, TestToChange, Todos
from orchestrator.domain.findings import Finding, Where, minor

T = TypeVar("T")


def read_acceptance_tests(value: object, story_id: str, findings: list[Finding]) -> tuple[AcceptanceTest, ...]:
    """Entries {criterion, test}, or bare criteria as strings."""

    def read(entry: object) -> AcceptanceTest | None:
        criterion, test = _pair(entry, ("criterion", "criteria", "name"), ("test", "description"))
        return AcceptanceTest(criterion=criterion, test=test) if criterion else None

    return _entries(value, "acceptance_tests", story_id, findings, read)


def read_tests_to_change(value: object, story_id: str, findings: list[Finding]) -> tuple[TestToChange, ...]:
    """Entries {file, reason}, or bare paths as strings."""

    def read(entry: object) -> TestToChange | None:
        file, reason = _pair(entry, ("file", "path"), ("reason",))
        return TestToChange(file=tidy(file), reason=reason) if file else None

    return _entries(value, "tests_to_change", story_id, findings, read)


def read_todos(value: object, story_id: str, findings: list[Finding]) -> Todos:
    """{add, remove}, or a list of what to add."""
    if value is None:
        return Todos()
    parts = value if isinstance(value, Mapping) else {"add": value}

    def read(entry: object) -> str | None:
        return entry.strip() or None if isinstance(entry, str) else None

    return Todos(
        add=_entries(parts.get("add"), "todos.add", story_id, findings, read),
        remove=_entries(parts.get("remove"), "todos.remove", story_id, findings, read),
    )


def _entries(
    value: object, field: str, story_id: str, findings: list[Finding], read: Callable[[object], T | None]
) -> tuple[T, ...]:
    if value is None:
        return ()
    found = [read(entry) for entry in (value if isinstance(value, list) else [value])]
    kept = tuple(entry for entry in found if entry is not None)
    if len(kept) < len(found):
        message = f"{len(found) - len(kept)} entries of `{field}` were not understood and left out"
        fix = "Write every entry as the shape of the answer says."
        findings.append(minor("breakdown.notes", message, where=Where(story=story_id, field=field), fix=fix))
    return kept


def _pair(entry: object, first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, str]:
    if isinstance(entry, str):
        return entry.strip(), ""
    if not isinstance(entry, Mapping):
        return "", ""
    return _first_text(entry, first), _first_text(entry, second)


def _first_text(entry: Mapping[str, object], names: tuple[str, ...]) -> str:
    return next((text.strip() for name in names if isinstance(text := entry.get(name), str) and text.strip()), "")
