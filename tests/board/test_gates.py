"""A question shows all that it is answered from: the plan with its findings in place, four texts, both sides."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestrator.board.gates import read_branch, show_gate, show_gates
from orchestrator.board.templates import render
from orchestrator.core.breakdown import PlanValidationResult
from orchestrator.core.command import Gate
from orchestrator.core.delivery import CommitNote, FileChange
from orchestrator.core.finding import Where, major, minor
from orchestrator.core.paths import RepoPath
from orchestrator.git.workspace import GitWorkspace
from orchestrator.records.sprint_reader import Reader
from orchestrator.settings import Environment, load
from orchestrator.sprint.plan_edit import read_edit
from orchestrator.story.gate import merge_gate, plan_gate
from tests.cli.waiting import CONFLICT, NOON, SPRINT, Waiting, about_conflict, about_plan, plan
from tests.server.stand import Stand, running
from tests.support import plain_environment, task

FILES = {"app.py": "A = 1\n", "requirements.txt": "flask>=2\n", "shared.py": "ONE = 1\nTWO = 2\n"}
LATER = NOON + timedelta(hours=1)
"""When the pages are looked at."""


def rich_plan(story: str, *tasks: dict[str, Any]) -> Any:
    """A plan that fills every part of the page."""
    return plan(
        story, *tasks,
        dependencies={"dependencies": {"flask": "2.0", "httpx": "0.27"}, "devDependencies": {"pytest": "8"}},
        acceptance_tests=[{"criterion": "it works", "test": "calls it"}],
        tests_to_change=[{"file": "tests/test_app.py", "reason": "another name"}],
        database_design={"table": "books"},
        technical_notes="Small steps.",
        todos={"add": ["an index"], "remove": []},
    )  # fmt: skip


def written_and_mended() -> tuple[Any, Any]:
    """The plan that the architect wrote, and its mended form."""
    first = task("US-1", 1, ["app.py", "src/"], "make")
    second = task("US-1", 2, ["new.py"], dependencies=["T-US-1-01"], dependency_reason="it needs the first")
    return rich_plan("US-1", first, second), rich_plan("US-1", {**first, "files_to_create": ["app.py"]}, second)


FOUND = (
    major("breakdown.abstract_path", "`src/` is a folder", where=Where(task="T-US-1-01"), fix="Name real files."),
    major("breakdown.task_id", "the id is odd", where=Where(field="tasks[1].task_id")),
    minor("breakdown.struck", "a package was struck", where=Where(field="dependencies.dependencies")),
    major("breakdown.whole", "it is too large", where=Where(story="US-1")),
)
MENDED = minor("breakdown.mended", "`src/` was struck", where=Where(task="T-US-1-01"))


def waiting_at(folder: Path) -> Waiting:
    """US-1 asks about its mended plan, US-2 about a conflict, US-3 about a merge; US-4 was answered."""
    made = Waiting(folder, ("US-1", "US-2", "US-3", "US-4", "US-5"))
    made.open_branch("US-1", FILES)
    written, mended = written_and_mended()
    made.judge("US-1", written, *FOUND)
    result = PlanValidationResult.of(())
    made.ask("US-1", plan_gate(mended, result, iteration=3, plan_file="", changes=[MENDED]))
    made.ask("US-2", about_conflict("US-2"), deadline=NOON + timedelta(days=400))
    asyncio.run(two_sides(made))
    made.ask("US-3", about_merge())
    made.ask("US-4")
    assert made.cli("reject", "US-4", "--comment", "use the table that is there").exit_code == 0
    return made


async def two_sides(made: Waiting) -> None:
    """US-5 is merged, and has changed the line that US-3 changes, too."""
    repo = Path(made.record.repo)
    space = GitWorkspace(
        mirror=made.state.mirror(repo), folder=made.state.worktrees(SPRINT), sprint=SPRINT, base=made.record.base
    )
    for story, two in (("US-5", "22"), ("US-3", "33")):
        await space.open(story)
        change = FileChange(path=RepoPath("shared.py"), content=f"ONE = 1\nTWO = {two}\n")
        note = CommitNote(subject=f"Two is {two}", sprint=SPRINT, story=story, task="T-1", step=f"{story}:1")
        await space.commit(story, [change], note)

    async def check(_folder: Path) -> str:
        return ""

    await space.merge("US-5", CommitNote(subject="US-5", sprint=SPRINT, story="US-5", step="US-5:merge"), check)
    space.close()


def about_merge() -> Gate:
    refused = major("merge.conflict", "the branch and what was merged before it both change shared.py")
    return merge_gate(plan("US-3"), refused, branch="orchestrator/S1/US-3", iteration=1, vanished=False, asked=True)


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Waiting:
    return waiting_at(tmp_path_factory.mktemp("gates"))


def environment_of(waiting: Waiting) -> Environment:
    _, environment = load(None, (), plain_environment(ORCHESTRATOR_HOME=str(waiting.state.home)), waiting.folder)
    return environment


def shown(waiting: Waiting, story: str, now: datetime = LATER) -> dict[str, Any]:
    """The values of a question's page, which render."""
    environment = environment_of(waiting)
    view = Reader(environment).story(SPRINT, story)
    values = show_gate(view, story, asyncio.run(read_branch(environment, view, story)), now)
    assert "</html>" in render("gate.html", values | {"place": 1})
    return values


def test_the_open_questions_of_all_sprints_the_oldest_first(waiting: Waiting) -> None:
    values = show_gates([Reader(environment_of(waiting)).sprint(SPRINT)], LATER)
    assert [(one["story"], one["kind"], one["gate"]) for one in values["questions"]] == [
        ("US-1", "plan", 1), ("US-2", "conflict", 1), ("US-3", "merge", 1),
    ]  # fmt: skip
    assert values["questions"][1]["deadline"].startswith("2027-04-05")
    assert "nobody works on the sprint" in render("gates.html", values | {"place": 1})
    assert "Nobody is asked" in render("gates.html", {"questions": [], "place": 1})


def test_findings_stand_at_the_task_file_or_part_that_they_are_about(waiting: Waiting) -> None:
    told = shown(waiting, "US-1")["plan"]

    def codes(findings: list[dict[str, Any]]) -> list[str]:
        return [one["code"].removeprefix("breakdown.") for one in findings]

    first, second = told["tasks"]
    assert codes(told["top"]) == ["whole"]
    assert [(one["path"], one["kind"], codes(one["findings"])) for one in first["files"]] == [
        ("app.py", "changed", []), ("src/", "new", ["abstract_path"]),
    ]  # fmt: skip
    assert (codes(first["findings"]), codes(second["findings"])) == ([], ["task_id"])
    assert codes(told["packages_findings"]) == ["struck"]
    assert second["files"][0] == {"path": "new.py", "kind": "new", "findings": []}
    assert (second["after"], second["why_after"], first["command"]) == (["T-US-1-01"], "it needs the first", "make")


def test_the_plan_is_shown_as_written_with_what_its_mended_form_changes_and_the_contract(waiting: Waiting) -> None:
    values = shown(waiting, "US-1")
    told = values["plan"]
    assert [one["code"] for one in told["mended"]] == ["breakdown.mended"]
    assert [one["text"].strip() for one in told["changes"] if one["kind"] in {"added", "removed"}] == ["-  - src/"]
    assert [one["title"] for one in told["design"]] == ["Database design", "Technical notes"]
    assert values["contract"]["files"] == [{"path": "app.py", "is_new": False}, {"path": "new.py", "is_new": True}]
    assert [(one["name"], one["is_new"]) for one in values["contract"]["packages"]] == [
        ("flask", False), ("httpx", True), ("pytest", True),
    ]  # fmt: skip
    # What is edited is what would be built, and it is accepted as it stands.
    _, mended = written_and_mended()
    assert read_edit(values["edit"]["text"], "US-1", frozenset(FILES), frozenset({"flask"})).plan == mended


def test_a_conflict_is_shown_as_four_texts_and_offers_no_edit(waiting: Waiting) -> None:
    values = shown(waiting, "US-2")
    assert {one["title"]: one["text"] for one in values["conflict"]} == {
        name.replace("_", " ").capitalize(): text for name, text in CONFLICT.items() if name != "detected"
    }
    assert [one["choice"] for one in values["question"]["answers"]] == ["approve", "reject", "replan", "cancel"]
    assert values["edit"] is None
    assert values["question"]["answers"][0]["means"].startswith("override it")


def test_a_merge_is_shown_with_both_sides_and_offers_what_its_question_takes(waiting: Waiting) -> None:
    values = shown(waiting, "US-3")
    assert [one["code"] for one in values["refused"]] == ["merge.conflict"]
    (file,) = values["sides"]["files"]
    assert file["path"] == "shared.py"
    assert [line for line in file["patch"].splitlines() if "=" in line] == [" ONE = 1", "-TWO = 22", "+TWO = 33"]
    assert [one["story"] for one in values["sides"]["merged"]] == ["US-5"]
    assert [one["choice"] for one in values["question"]["answers"]] == ["reject", "cancel"]
    assert values["question"]["barred"] == "nothing is merged with a conflict or a red suite"
    assert "Its work stays on its branch" in values["question"]["answers"][1]["warning"]


def test_who_comes_second_sees_who_answered_what_and_when(waiting: Waiting) -> None:
    values = shown(waiting, "US-4")
    assert values["question"] is None
    (answer,) = values["answers"]
    assert answer["said"] == "the plan is rejected by anna: use the table that is there"
    page = render("gate.html", values | {"place": 1})
    assert 'data-gate=""' in page
    assert "the plan is rejected by anna: use the table that is there" in page
    assert "<textarea" not in page


def test_a_question_whose_time_is_over_takes_no_answer(waiting: Waiting) -> None:
    values = shown(waiting, "US-2", datetime(2028, 1, 1, tzinfo=UTC))
    page = render("gate.html", values | {"place": 1})
    assert "the time to answer ended at 2027-04-05" in page
    assert "<button" not in page.partition("<main")[2]


def test_a_question_without_its_branch_says_why_and_can_be_answered(tmp_path: Path) -> None:
    made = Waiting(tmp_path)
    made.ask("US-1", about_plan("US-1", major("x.y", "<img src=x onerror=alert(1)>")))
    values = shown(made, "US-1")
    assert values["branch_problem"] == "its branch is not on this machine"
    assert values["contract"]["known"] is False
    page = render("gate.html", values | {"place": 1})
    assert "Approve" in page
    assert "<img" not in page


async def test_the_pages_are_there_over_http_and_show_an_answer_at_once(tmp_path: Path) -> None:
    made = await asyncio.to_thread(waiting_at, tmp_path)
    stand = await asyncio.to_thread(Stand, made.state.home)
    async with running(stand) as daemon:

        async def read(path: str, status: int = 200) -> str:
            answer = await daemon.client.get(path)
            assert answer.status_code == status, answer.text
            return str(answer.text)

        assert [story in await read("/gates") for story in ("US-1", "US-2", "US-3", "US-4")] == [True] * 3 + [False]
        assert "T-US-1-02" in await read(f"/sprints/{SPRINT}/stories/US-1/gate")
        assert "US-9" in await read(f"/sprints/{SPRINT}/stories/US-9/gate", 404)
        assert "8,192 kB" in await read("/submit")
        body = {"choice": "approve", "gate": 1, "by": "bea"}
        done = await daemon.client.post(f"/api/v1/sprints/{SPRINT}/stories/US-2/answer", json=body)
        assert done.status_code == 200, done.text
        assert "US-2" not in await read("/gates")
        assert "the conflict is overridden by bea" in await read(f"/sprints/{SPRINT}/stories/US-2/gate")
