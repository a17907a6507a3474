"""Made-up stories and the scripted answers to them: as large as real ones, and right at once."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path

from orchestrator.core.calls.exchange import Purpose, ScriptEntry
from orchestrator.providers.scripted import Script

HEADER = (
    *("Story_ID", "Title", "User_Story", "Functional_Requirements", "Non_Functional_Requirements", "Integrations"),
    *("Dependencies", "Constraints", "Acceptance_Criteria", "Priority", "Status", "Vision_Ref", "Wireframe_Ref"),
    *("Notes", "Sprint_ID", "Execution_Status", "Execution_Started_At", "Execution_Completed_At", "Last_Event"),
    "Last_Updated",
)
CRITERIA = 4
FUNCTIONS = 12
"""Functions in a delivered file: about three kilobytes of it."""


def story_id(number: int) -> str:
    """`US-0001` and so on."""
    return f"US-{number:04d}"


def write_backlog(path: Path, stories: int, *, chain: int = 0) -> None:
    """A CSV of `stories` rows; with `chain` every row depends on the one `chain` rows before it."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, HEADER, restval="")
        writer.writeheader()
        for number in range(1, stories + 1):
            writer.writerow(_row(number, story_id(number - chain) if chain and number > chain else ""))


def write_as(kind: str, path: Path, stories: int, *, chain: int = 0) -> int:
    """The same stories as `csv`, `yaml`, `json` or a `markdown` folder; returns the bytes written."""
    if kind == "csv":
        write_backlog(path, stories, chain=chain)
        return path.stat().st_size
    rows = [
        _row(number, story_id(number - chain) if chain and number > chain else "") for number in range(1, stories + 1)
    ]
    if kind == "markdown":
        path.mkdir()
        return sum((path / f"{row['Story_ID']}.md").write_text(_markdown(row), encoding="utf-8") for row in rows)
    # A JSON string is a YAML string too.
    yaml = "".join(
        "- " + "\n  ".join(f"{name}: {json.dumps(value)}" for name, value in row.items()) + "\n" for row in rows
    )
    return path.write_text(yaml if kind == "yaml" else json.dumps(rows, indent=1), encoding="utf-8")


def _markdown(row: dict[str, str]) -> str:
    front = ("Story_ID", "Title", "Dependencies", "Priority", "Status")
    head = "".join(f"{name}: {json.dumps(row[name])}\n" for name in front)
    body = "".join(f"\n## {name.replace('_', ' ')}\n\n{row[name]}\n" for name in row if name not in front)
    return f"---\n{head}---\n{body}"


def _row(number: int, needs: str) -> dict[str, str]:
    what = f"ledger page {number}"
    return {
        "Story_ID": story_id(number),
        "Title": f"Keep {what}",
        "User_Story": f"As a clerk, I want {what} kept so that the sums can be read again at the end of the month.",
        "Functional_Requirements": f"Sums of {what} are stored; They can be listed by day; They can be corrected once",
        "Non_Functional_Requirements": "Listing a thousand sums takes less than a second",
        "Dependencies": needs,
        "Constraints": "Standard library only",
        "Acceptance_Criteria": "; ".join(
            f"{n}. Function {n} of {what} returns its sum" for n in range(1, CRITERIA + 1)
        ),
        "Priority": "Medium",
        "Status": "Backlog",
    }


def package(story: str) -> str:
    """The Python package a story writes into."""
    return story.lower().replace("-", "_")


def module_path(story: str, task: int) -> str:
    """The one file of a task."""
    return f"{package(story)}/part_{task:02d}.py"


def function(story: str, task: int, number: int) -> str:
    """The name of a task's function, which no other task has."""
    return f"sum_{int(story.rpartition('-')[2])}_{task}_{number}"


def module_text(story: str, task: int) -> str:
    """A module that parses, of a usual size."""
    functions = "".join(
        f"\n\ndef {function(story, task, n)}(values: list[int]) -> int:\n"
        f'    """The sum of `values` and {n}, as {story} wants it in its part {task}."""\n'
        f"    total = {n}\n"
        f"    for value in values:\n"
        f"        total += value\n"
        f"    return total\n"
        for n in range(1, FUNCTIONS + 1)
    )
    return f'"""Part {task} of {story}."""\n{functions}'


def test_path(story: str) -> str:
    """Where a story's suite is."""
    return f"tests/test_{package(story)}.py"


def test_text(story: str) -> str:
    """One test per acceptance criterion."""
    tests = "".join(
        f"\n\ndef test_criterion_{n}() -> None:\n    assert part_01.{function(story, 1, n)}([1, 2, 3]) == {n + 6}\n"
        for n in range(1, CRITERIA + 1)
    )
    return f"from {package(story)} import part_01\n{tests}"


def _breakdown(story: str, tasks: int) -> dict[str, object]:
    return {
        "story_id": story,
        "architectural_conflict": {"detected": False},
        "task_count": tasks,
        "tasks": [
            {
                "task_id": f"T-{story}-{task:02d}",
                "description": f"Part {task} of the sums: {FUNCTIONS} functions that add what they are given",
                "files_to_create": [module_path(story, task)],
                "command_to_run": "",
                "dependencies": [],
            }
            for task in range(1, tasks + 1)
        ],
        "dependencies": {"dependencies": {}, "devDependencies": {}},
        "acceptance_tests": [
            {"criterion": f"Function {n} returns its sum", "test": f"sum_{n} of three numbers"}
            for n in range(1, CRITERIA + 1)
        ],
        "conventions": "Functions are pure, have type hints and a docstring.",
    }


def _answers(story: str, tasks: int) -> Iterator[tuple[str, str | None, Purpose, dict[str, object]]]:
    yield "mike", None, Purpose.BREAKDOWN, _breakdown(story, tasks)
    for task in range(1, tasks + 1):
        content = {"path": module_path(story, task), "content": module_text(story, task)}
        delivery: dict[str, object] = {"story_id": story, "files": [content]}
        yield "alex", f"T-{story}-{task:02d}", Purpose.DELIVERY, delivery
    cases = [
        {"name": f"test_criterion_{n}", "criterion": f"Function {n} returns its sum"} for n in range(1, CRITERIA + 1)
    ]
    suite: dict[str, object] = {"test_file": test_path(story), "test_content": test_text(story), "test_cases": cases}
    yield "jordan", None, Purpose.SUITE, suite


def write_script(path: Path, stories: int, tasks: int, latency_ms: int) -> None:
    """The answers of `script`, as the file that a scripted team is read from."""
    with path.open("w", encoding="utf-8") as file:
        for entry in script(stories, tasks, latency_ms).values():
            file.write(f"{entry.model_dump_json()}\n")


def script(stories: int, tasks: int, latency_ms: int) -> Script:
    """2 + `tasks` answers per story, each after `latency_ms`."""
    entries = (
        ScriptEntry(
            persona=persona,
            story=story_id(number),
            task=task,
            purpose=purpose,
            turn=1,
            text=json.dumps(answer),
            latency_ms=latency_ms,
        )
        for number in range(1, stories + 1)
        for persona, task, purpose, answer in _answers(story_id(number), tasks)
    )
    return {entry.lookup: entry for entry in entries}
