"""An answer that is the prompt's own example, or has parts of it."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from orchestrator.domain.breakdown import Breakdown
from orchestrator.domain.delivery import Delivery
from orchestrator.domain.findings import Finding, Where, major
from orchestrator.domain.testing import FailureInstruction, TestSuite

_SAID = "is the prompt's own example, which belongs to another project"
_LINE_CHARS = 25
"""Shorter lines of code may well be the same by chance."""


def copied_plan(plan: Breakdown, examples: Sequence[str]) -> list[Finding]:
    """Major for every task that has the description or just the files of an example's task."""
    found: list[Finding] = []
    shown = [task for value in _values(examples) for task in value.get("tasks") or ()]
    texts = {_plain(task.get("description")) for task in shown}
    files = {frozenset(task.get("files_to_create") or ()) for task in shown} - {frozenset()}
    for task in plan.tasks:
        if _plain(task.description) in texts or frozenset(task.files_to_create) in files:
            fix = "Plan the story below: its own files, in the words of its own criteria."
            where = Where(story=plan.story_id, task=task.task_id)
            found.append(major("breakdown.prompt_example", f"the task {_SAID}", where=where, fix=fix))
    return found


def copied_suite(suite: TestSuite, examples: Sequence[str]) -> list[Finding]:
    """Major when most of an example's test code stands in the suite."""
    held = {line.strip() for line in suite.test_content.splitlines()}
    tests = [value.get("test_content") for value in _values(examples)]
    for text in (*tests, *(example for example in examples if not any(_values([example])))):
        if _is_most(_telling(text), held):
            fix = "Write tests of the story below, against the files below."
            message = f"the suite {_SAID}"
            return [major("suite.prompt_example", message, where=Where(file=suite.test_file), fix=fix)]
    return []


def copied_delivery(delivery: Delivery, examples: Sequence[str]) -> list[Finding]:
    """Major for every file that holds most of an example's code, under whatever path."""
    shown = [entry for value in _values(examples) for entry in value.get("files") or () if isinstance(entry, dict)]
    texts = [wanted for entry in shown if (wanted := _telling(entry.get("content")))]
    fix = "Write the file that the task below asks for."
    found = []
    for change in delivery.files:
        held = {line.strip() for line in change.content.splitlines()} if texts else set()
        if any(_is_most(wanted, held) for wanted in texts):
            where = Where(file=change.path, story=delivery.story_id, task=delivery.task_id)
            found.append(major("delivery.placeholder", f"the content of `{change.path}` {_SAID}", where=where, fix=fix))
    return found


def copied_analysis(instructions: Iterable[FailureInstruction], examples: Sequence[str]) -> list[Finding]:
    """Major for every instruction that an example gives."""
    shown = [entry for value in _values(examples) for entry in value.get("failure_analysis") or ()]
    texts = {_plain(entry.get(name)) for entry in shown for name in ("issue", "fix")}
    fix = "Explain the failures in the report below, by the files below."
    return [
        major("analysis.prompt_example", f"an instruction {_SAID}", where=Where(file=one.file), fix=fix)
        for one in instructions
        if {_plain(one.issue), _plain(one.fix)} & texts
    ]


def _values(examples: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Examples that are JSON objects; others are for other kinds of answers."""
    for text in examples:
        try:
            value = json.loads(text)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


def _plain(text: object) -> str:
    """The words alone."""
    return (
        " ".join("".join(c if c.isalnum() else " " for c in text.casefold()).split()) if isinstance(text, str) else ""
    )


def _telling(text: object) -> list[str]:
    """The lines that hardly stand anywhere else."""
    lines = [line.strip() for line in text.splitlines()] if isinstance(text, str) else []
    return [line for line in lines if len(line) >= _LINE_CHARS]


def _is_most(wanted: list[str], held: set[str]) -> bool:
    return bool(wanted) and 2 * sum(line in held for line in wanted) > len(wanted)
