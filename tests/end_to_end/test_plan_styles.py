"""Plans as other tools have people write them are built as stories, without a change: tests/answers/plans."""

from pathlib import Path
from typing import Any

import pytest

from tests.answers.task_plans import PLANS
from tests.support import ALL_PASS, Played, Team, make_repo, play, write_backlog

BUDGET, HTTP, DOCS = "src/client/retry_budget.py", "src/client/http.py", "docs/client.md"
SUITE = "tests/client/test_retry_budget.py"
ENDLESS = """\
def get(send):
    while True:
        try:
            return send()
        except OSError:
            continue
"""
REPO = {
    "src/client/__init__.py": "",
    HTTP: ENDLESS,
    "src/client/session.py": "class Session:\n    pass\n",
    "tests/client/test_http.py": "from client.http import get\n\n\ndef test_get():\n    assert get(lambda: 1) == 1\n",
    DOCS: "# Client\n",
}
ASKED = """\
def get(send, budget=None):
    while True:
        try:
            return send()
        except OSError{}:
            if budget is not None and not budget.take():
                raise{}
"""
RAISED = f"class BudgetSpent(Exception):\n    pass\n\n\n{ASKED.format(' as error', ' BudgetSpent from error')}"
WRITTEN: dict[str, dict[str, str]] = {
    "budget": {
        BUDGET: """\
class RetryBudget:
    def __init__(self, limit):
        self.left = limit

    def take(self):
        if self.left == 0:
            return False
        self.left -= 1
        return True
"""
    },
    "asked": {HTTP: ASKED.format("", "")},
    "raised": {HTTP: RAISED},
    "docs": {DOCS: "# Client\n\nA budget limits the retries of a session.\n"},
}
TESTS = """\
import pytest

from client.http import BudgetSpent, get
from client.retry_budget import RetryBudget


def test_budget_is_spent_after_limit():
    budget = RetryBudget(limit=1)
    assert budget.take()
    assert not budget.take()


def test_a_session_with_limit_1_retries_once():
    sent = []

    def send():
        sent.append(1)
        raise OSError

    with pytest.raises(BudgetSpent):
        get(send, RetryBudget(limit=1))
    assert len(sent) == 2
"""
STYLES: dict[str, tuple[list[str], list[str]]] = {
    "superpowers": (["budget", "raised", "docs"], ["RetryBudget value", "Client asks the budget"]),
    "spec_kit": (["budget", "asked", "raised", "docs"], [f"Unit test for RetryBudget in {SUITE}"]),
    "plan_mode": (
        ["budget", "raised", "docs"],
        [f"Tests: `{SUITE}` for the value, extend `tests/client/test_http.py` for a session with limit 1."],
    ),
}
"""Style → what the developer writes task by task, and what is to be tested."""


def built(folder: Path, style: str, read: dict[str, Any] | None = None) -> Played:
    """The plan of a style as the one story of a sprint."""
    make_repo(folder / "repo", REPO)
    said = Team()
    if read is not None:
        said.say("mike", "US-1", "plan_extract", read)
    for number, what in enumerate(STYLES[style][0], start=1):
        said.deliver("US-1", number, WRITTEN[what])
    said.suite("US-1", TESTS, SUITE)
    return play(folder, said, write_backlog(folder / "b.csv", "US-1"), ALL_PASS, plans=[str(PLANS / f"{style}.md")])


@pytest.mark.parametrize("style", STYLES)
def test_a_plan_is_built_as_it_is_written(tmp_path: Path, style: str) -> None:
    played = built(tmp_path, style)
    assert played.status("US-1") == "done", played.story("US-1").findings
    tasks, tested = STYLES[style]
    work = ["delivery 1", "review 1"] * len(tasks)
    assert [one for one in played.asked("US-1") if not one.startswith("plan_extract")] == [*work, "suite 1"]
    assert {BUDGET, SUITE} <= {*played.tree("result")}
    assert "BudgetSpent" in played.text("result", HTTP)
    plan = played.told_of("US-1", "plan_judged")[-1].data["plan"]
    assert [test["criterion"] for test in plan["acceptance_tests"]] == tested
    assert plan["tests_to_change"] == []


def test_what_a_model_reads_in_a_plan_of_boxes_is_taken_by_the_numbers_of_the_boxes(tmp_path: Path) -> None:
    files = [[], [BUDGET], [SUITE], [HTTP], [HTTP], [DOCS], []]
    numbers = [f"T{number:03d}" for number in range(1, len(files) + 1)]
    tasks = [{"number": number, "files": paths} for number, paths in zip(numbers, files, strict=True)]
    played = built(tmp_path, "spec_kit", {"goal": "", "tasks": tasks})
    assert played.status("US-1") == "done"
    assert {"task_plan.unclear"} <= played.codes("US-1")
    assert "task_plan.read_by_rules" not in played.codes("US-1")
