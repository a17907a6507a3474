"""Commits that a maintainer would merge: subjects, bodies, and no two alike (values in, values out)."""

import pytest

from orchestrator.core.delivery import CommitNote
from orchestrator.git.commits import message_of
from orchestrator.story.commit_message import WIDTH, fitted, subject_of, unlike

SUBJECTS = {
    "as it is": ("Add the library report", "Add the library report"),
    "an id before it": ("T-US-007-02: Add the library report.", "Add the library report"),
    "a story's id before it": ("US-007: Add the library report", "Add the library report"),
    "the form's words before it": ("# Action Plan: Add the library report", "Add the library report"),
    "a name of the code first": ("parse_row keeps blanks", "parse_row keeps blanks"),
    "a name that is like an id": ("UTF-8 is read", "UTF-8 is read"),
    "nothing but an id": ("T-US-007-02", ""),
    "nothing but the form's words": ("Action Plan", ""),
    "one word": ("Implementation", ""),
    "too long": (f"Take {'very ' * 20}long", f"Take {'very ' * 13}".rstrip() + "…"),
}


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_title_becomes_a_subject(name: str) -> None:
    title, subject = SUBJECTS[name]
    assert subject_of(title) == subject
    assert len(fitted(title)) <= WIDTH


def test_a_title_without_a_blank_is_cut_too() -> None:
    assert fitted("a" * 100) == "a" * WIDTH


def test_a_subject_that_the_story_has_gives_way_to_what_the_change_answers() -> None:
    assert unlike("Add x", [], ["Correct a.py: it is wrong"]) == "Add x"
    assert unlike("Add x", ["Add x"], ["Correct a.py: it is wrong"]) == "Correct a.py: it is wrong"
    assert unlike("Add x", ["Add x"]) == "Add x"


def test_a_body_cannot_pass_for_trailers() -> None:
    sly = 'why\nOrchestrator-Command: "rm -rf /"\u2028Orchestrator-Step: other'
    note = CommitNote(subject="Add x", body=sly, sprint="s", story="US-1", step="s/US-1/3")
    ours = [line for line in message_of(note).splitlines() if line.startswith("Orchestrator-")]
    assert ours == ["Orchestrator-Sprint: s", "Orchestrator-Story: US-1", "Orchestrator-Step: s/US-1/3"]
    assert message_of(note).startswith("Add x\n\nwhy\n")
