"""The plan's file: what stands in it, and that ticks stay."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from orchestrator.analysis.plan_file import is_plan, prd_summary, render_plan, ticked_titles
from orchestrator.core.analysis import Codebase, LeftOut, Mark, StageReport, StageStatus
from orchestrator.core.value import one_line, same_title
from tests.analysis.samples import plan, task
from tests.prompts.packaged import packaged_library

INSTRUCTIONS = packaged_library().note("notes/plan_instructions")


def text(*tasks: Any, agent: str = "Claude Code", **fields: Any) -> str:
    return render_plan(plan(*tasks, **fields), agent, INSTRUCTIONS)


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
    assert "## Instructions for Somebody" in text(agent="Somebody")


def test_boxes_badges_and_files() -> None:
    said = text(
        task("One", "critical", file="a/b.py", description="Why.\n\n- so"),
        task("Two", "high", done=True),
        task("Three", "medium", priority_stated="P1", near=(4,)),
        task("Four", "low", near=(3,), also=("testing",), marks=(Mark.NO_SUCH_FILE, Mark.NO_EVIDENCE)),
    )
    lines = said.splitlines()
    assert "- [ ] [CRITICAL] One (`a/b.py`)" in lines
    assert "- [x] [HIGH] Two" in lines
    assert "- [ ] [MEDIUM] Three" in lines
    assert "- [ ] [LOW] Four" in lines
    assert "nearly the same as task 4" in said
    assert "nearly the same as task 3" in said
    assert "priority stated as `P1`" in said
    assert "from security, testing" in said
    assert said.count("  - Note: ") == 2
    assert [lines.index(f"### {name} (1)") for name in ("Critical", "High", "Medium", "Low")] == sorted(
        lines.index(f"### {name} (1)") for name in ("Critical", "High", "Medium", "Low")
    )


def test_nothing_is_said_to_be_nothing() -> None:
    assert "No stages were executed" in text(stages=())
    not_begun = StageReport(id="a", status=StageStatus.NOT_BEGUN)
    assert "No stages were executed" in text(stages=(not_begun,))
    assert "No tasks were identified" in text()
    assert "No PRD was given" in text()
    failed = StageReport(id="a", status=StageStatus.FAILED)
    assert "This stage failed." in text(stages=(failed,))


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
    assert ticked_titles(said) == frozenset()
    headings = [
        token.map for token in MarkdownIt("commonmark").parse(said) if token.type == "heading_open" and token.level == 0
    ]
    lines = [said.splitlines()[place[0]] for place in headings if place]
    assert lines == [
        "# MVP Improvement Plan", "## PRD Summary", "## Analysis", "### a", "## Tasks", "### Medium (1)",
        "## What the stages were shown", "## Instructions for Claude Code",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "ticked"),
    [
        ("- [x] [HIGH] Fix login (`src/a.py`)", True),
        ("* [X] **[HIGH]** Fix Login!", True),
        ("- [x] Fix login", True),
        ("- [ ] [HIGH] Fix login (`src/a.py`)", False),
        ("  - [x] [HIGH] Fix login", False),
        ("> - [x] [HIGH] Fix login", False),
        ("- [-] [HIGH] Fix login", False),
    ],
)
def test_which_boxes_are_ticked(line: str, ticked: bool) -> None:
    assert ("fix login" in ticked_titles(f"{line}\n")) is ticked


@given(st.text(min_size=1).map(one_line).filter(bool), st.booleans(), st.sampled_from(["", "src/a.py", "b`c"]))
def test_a_tick_survives_any_title(title: str, done: bool, file: str) -> None:
    said = text(task(title, done=done, file=file, description="- [x] [LOW] Other"))
    assert (same_title(title) in ticked_titles(said)) is done
    assert is_plan(said)


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
