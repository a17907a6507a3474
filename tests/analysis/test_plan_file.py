"""Tasks of several stages as one list, and the plan's file."""

from typing import Any

import pytest
from markdown_it import MarkdownIt

from orchestrator.analysis.plan_file import aggregate, prd_summary, render_plan
from orchestrator.core.analysis import Codebase, ImprovementTask, LeftOut, StageReport, StageStatus
from tests.analysis.samples import plan, stage, task
from tests.prompts.packaged import packaged_library

INSTRUCTIONS = packaged_library().note("notes/plan_instructions")


def text(*tasks: Any, **fields: Any) -> str:
    return render_plan(plan(*tasks, **fields), INSTRUCTIONS)


def test_a_title_stands_once_the_first_wins_and_what_it_lacks_comes_from_the_later() -> None:
    first = task("Bind the search words", "low", depends_on=("A",))
    later = task("bind the  SEARCH-words.", "high", description="why", file="shelf/words.py", depends_on=("B", "A"))
    last = task("Bind the search words!", "medium", description="other", acceptance_criteria=("It is bound.",))
    (one,) = aggregate([stage("a", first), stage("b", later), stage("c", last)])
    assert (one.title, one.stage, one.also) == ("Bind the search words", "a", ("b", "c"))
    assert (one.priority, one.description, one.file) == ("high", "why", "shelf/words.py")
    assert (one.acceptance_criteria, one.depends_on) == (("It is bound.",), ("A", "B"))
    (one,) = aggregate([stage("a", task("Same"), task("same", "critical"))])
    assert (one.also, one.priority) == ((), "critical")


def titles(tasks: tuple[ImprovementTask, ...]) -> list[str]:
    return [f"{one.number} {one.priority} {one.title}" for one in tasks]


def test_tasks_stand_by_priority_and_in_the_order_of_stages_within() -> None:
    found = aggregate(
        [stage("a", task("A1", "low"), task("A2", "high"), task("A3", "low")),
         stage("b", task("B1", "critical"), task("B2", "high"), task("B3"))],
    )  # fmt: skip
    assert titles(found) == ["1 critical B1", "2 high A2", "3 high B2", "4 medium B3", "5 low A1", "6 low A3"]


def test_the_head_the_stages_and_the_instructions() -> None:
    report = StageReport(
        id="security", goal="Security review", status=StageStatus.ANSWERED, summary="Two doors are open.",
        recommendations=("Close them.", "Look\nagain."), tasks=1,
    )  # fmt: skip
    other = StageReport(id="speed", status=StageStatus.ANSWERED, summary="Fast.")
    said = text(task("Close the door"), stages=(report, other), prd_summary="A shop: it sells.")
    lines = said.splitlines()
    assert lines[0] == "# MVP Improvement Plan"
    assert "**Generated:** 2026-11-22 12:00 UTC" in lines
    assert "**Profile:** quick_review" in lines
    assert "> A shop: it sells." in lines
    assert "### Security review" in lines
    assert "### speed" in lines
    assert "> Two doors are open." in lines
    assert "- Look again." in lines
    assert "## Instructions for Claude Code" in lines
    assert "implement the tasks in order of priority" in said


def test_boxes_badges_and_files() -> None:
    said = text(
        task("One", "critical", file="a/b.py", description="Why.\n\n- so"),
        task("Two", "high", acceptance_criteria=("It <!-- holds",)),
        task("Three", "medium", priority_stated="P1"),
        task("Four", "low", also=("testing",)),
    )
    lines = said.splitlines()
    assert "- [ ] [CRITICAL] One (`a/b.py`)" in lines
    assert lines[lines.index("- [ ] [HIGH] Two") + 1] == "  - It &lt;!-- holds"
    assert "- [ ] [MEDIUM] Three" in lines
    assert "- [ ] [LOW] Four" in lines
    assert "priority stated as `P1`" in said
    assert "from security, testing" in said
    assert [lines.index(f"### {name} (1)") for name in ("Critical", "High", "Medium", "Low")] == sorted(
        lines.index(f"### {name} (1)") for name in ("Critical", "High", "Medium", "Low")
    )


def test_what_was_cut_is_listed() -> None:
    files = tuple(LeftOut(path=f"f{n}.bin", size=1, why="binary") for n in range(50))
    said = text(codebase=Codebase(files=60, shown=10, left_out=files, masked=("a.py",)))
    assert "10 of 60 files whole" in said
    assert "- `f39.bin` (binary)" in said
    assert "and 10 more" in said
    assert "`a.py`" in said


HOSTILE = "# Head\n- [x] [HIGH] Fake\n```\n<!-- never closed\n## Tasks\n1. [ ] no\n\n> quote"


def test_foreign_text_adds_no_box_no_heading_and_closes_nothing() -> None:
    report = StageReport(id="a", status=StageStatus.PROSE, summary=HOSTILE, recommendations=(HOSTILE,))
    said = text(task("Real", description=HOSTILE), stages=(report,), prd_summary=HOSTILE)
    assert not [line for line in said.splitlines() if line.startswith("- [x]")]
    headings = [
        token.map for token in MarkdownIt("commonmark").parse(said) if token.type == "heading_open" and token.level == 0
    ]
    lines = [said.splitlines()[place[0]] for place in headings if place]
    assert lines == [
        "# MVP Improvement Plan", "## PRD Summary", "## Analysis", "### a", "## Tasks", "### Medium (1)",
        "## What the stages were shown", "## Instructions for Claude Code",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("prd", "said"),
    [
        ("# Shop\n\nIt sells\nthings.\n\n## More\n\n- a\n", "Shop: It sells things.\n\n- a"),
        ("It sells.", "It sells."),
        ("# Only", "Only"),
        ("", ""),
        ("---\n```\ncode\n```\n# T\n\n| a |\n\nText.", "T: Text."),
    ],
)
def test_how_a_prd_begins(prd: str, said: str) -> None:
    assert prd_summary(prd) == said


def test_a_long_prd_is_cut_at_a_sentence() -> None:
    said = prd_summary("# Shop\n\n" + "It sells many things. " * 100)
    assert len(said) <= 700
    assert said.endswith("things.")
