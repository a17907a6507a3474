"""Reads the example's scripted team for the tests: what each story ends with, and how a suite is run on it."""

import csv
import importlib.util
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from orchestrator.answers.action_plan import is_plan, parse_plan
from orchestrator.checks.action_plan import apply_plan, named_paths, suite_value
from orchestrator.checks.action_plan_files import PlanWorld
from orchestrator.core.action_plan import ActionPlan
from orchestrator.core.calls.exchange import Purpose, ScriptEntry
from orchestrator.core.story import IdIndex, parse_dependencies
from orchestrator.core.value import parse_criteria
from orchestrator.providers.scripted import load_script

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "library"


@cache
def builder() -> ModuleType:
    """build_team.py as a module."""
    spec = importlib.util.spec_from_file_location("build_team", FOLDER / "build_team.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def entries() -> tuple[ScriptEntry, ...]:
    """The script as the provider reads it, in its own order."""
    return tuple(load_script(FOLDER / "team.jsonl").values())


@cache
def rows() -> dict[str, dict[str, str]]:
    """The backlog by story id."""
    with (FOLDER / "backlog.csv").open(encoding="utf-8", newline="") as file:
        return {row["Story_ID"]: row for row in csv.DictReader(file)}


def needs(story: str) -> set[str]:
    """Everything a story waits for, directly or not."""
    index = IdIndex(rows())
    direct = parse_dependencies(rows()[story]["Dependencies"], index).ids
    return set(direct).union(*(needs(need) for need in direct))


def criteria(story: str) -> tuple[str, ...]:
    """A story's acceptance criteria as the backlog's reader understands them."""
    return parse_criteria(rows()[story]["Acceptance_Criteria"])


def of(story: str, purpose: Purpose, turn: int | None = None) -> list[ScriptEntry]:
    """A story's replies of one purpose (of one turn), errors left out."""
    return [
        e for e in entries() if (e.story, e.purpose) == (story, purpose) and e.error is None and turn in (None, e.turn)
    ]


def answer(entry: ScriptEntry) -> Any:
    """The JSON of a whole answer, with or without a fence around it; of an action plan the JSON that says the same."""
    if is_plan(entry.text):
        plan = parse_plan(entry.text).plan
        assert plan is not None
        return suite_value(plan)[0] if entry.purpose is Purpose.SUITE else _applied(entry, plan)
    return json.loads(entry.text.partition("```json\n")[2].rpartition("\n```")[0] or entry.text)


def _applied(entry: ScriptEntry, plan: ActionPlan) -> dict[str, Any]:
    team, key = FOLDER / "team", (entry.story, entry.task, entry.purpose, str(entry.turn))
    turn = next(
        row for row in builder().read_turns(team) if key == (row["story"], row["task"], row["purpose"], row["turn"])
    )
    old = {path: builder().earlier(team, turn, path) for path in named_paths(plan)}
    texts = {path: text for path, text in old.items() if text is not None}
    applied = apply_plan(plan, PlanWorld(paths=frozenset(texts), texts=texts, context=frozenset(texts)))
    assert applied.valid, applied.findings
    files = [{"path": path, "content": text} for path, text in applied.changes.items()]
    return {"story_id": entry.story, "task_id": entry.task, "files": files}


def deliveries(story: str, *, last: bool = True) -> dict[str, dict[str, str]]:
    """Task → path → content of its last (or first) delivery."""
    found: dict[str, dict[str, str]] = {}
    for entry in of(story, Purpose.DELIVERY):
        files = {file["path"]: file["content"] for file in answer(entry)["files"]}
        if files and (last or entry.task not in found):
            found[str(entry.task)] = files
    return found


def suite(story: str) -> dict[str, Any]:
    """A story's test suite."""
    (entry,) = of(story, Purpose.SUITE)
    found: dict[str, Any] = answer(entry)
    return found


def write(root: Path, files: dict[str, str]) -> None:
    """Put files into a tree."""
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content, encoding="utf-8")


def build(root: Path, stories: set[str]) -> None:
    """Put the final deliveries and suites of some stories into a tree, in backlog order."""
    for story in rows():
        if story in stories:
            for files in deliveries(story).values():
                write(root, files)
            write(root, {suite(story)["test_file"]: suite(story)["test_content"]})


def run_tests(root: Path, *files: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a tree as the orchestrator does: the tree on pythonpath, nothing else of ours."""
    options = ["-o", f"pythonpath={root}", f"--rootdir={root}", "-p", "no:cacheprovider", "-W", "error", "-q"]
    clean = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    clean["COLUMNS"] = "200"  # whole messages in the summary
    clean["PYTEST_DEBUG_TEMPROOT"] = str(root.parent)  # else it clears away what earlier runs of ours left, at its end
    command = [sys.executable, "-P", "-m", "pytest", *options, *files]
    return subprocess.run(command, cwd=root, env=clean, capture_output=True, text=True, check=False, timeout=60)
