"""The review's format in prompt and reader, the diff a reviewer sees, the comments a developer gets."""

import re

import pytest

from orchestrator.answers.review import parse_review
from orchestrator.core.delivery import (
    CHOICES,
    FIX,
    GOOD_PATTERNS,
    ISSUE,
    ISSUES,
    PLACE,
    RATIONALE,
    READY,
    SUMMARY,
    VERDICT,
    WHY,
    Review,
    Reviewed,
    ReviewIssue,
    Verdict,
)
from orchestrator.core.finding import Severity
from orchestrator.prompts.feedback import MAX_COMMENTS, render_comments, render_diff
from tests.answers.review_text import NO_ISSUE, SEVERITIES, render_review
from tests.prompts.packaged import fenced, packaged_files, packaged_texts

FILES, TEXTS = packaged_files(), packaged_texts()
FORMAT = FILES["shared/review_format"]


def test_the_format_and_the_words_of_the_reader_are_the_same() -> None:
    (form,) = fenced(FORMAT)
    headings = [line.lstrip("# ") for line in form.splitlines() if line.startswith("#")]
    assert headings == [SUMMARY, ISSUES, *SEVERITIES.values(), GOOD_PATTERNS, VERDICT]
    assert list(SEVERITIES) == [Severity.CRITICAL, Severity.MAJOR, Severity.MINOR]
    labels = re.findall(r"^ +- (\w+): ", form, re.MULTILINE)
    assert set(labels) == {ISSUE, WHY, FIX}
    assert f"1. [{PLACE}] " in form
    assert f"\n\n{NO_ISSUE}\n" in form
    assert f"\n{READY}: {' | '.join(CHOICES.values())} 1-N\n{RATIONALE}: " in form


@pytest.mark.parametrize(
    ("line", "verdict"),
    [("Ready: Yes | No | With fixes 1-N", Verdict.YES), ("Ready: No", Verdict.NONE), ("Ready: Yes", Verdict.NONE)],
)
def test_a_review_below_the_format_given_back_counts_and_below_another_review_in_a_fence_does_not(
    line: str, verdict: Verdict
) -> None:
    written = render_review(Review(summary="It is right.", verdict=Verdict.YES, rationale="Nothing is missing."))
    before = FORMAT.replace("Ready: Yes | No | With fixes 1-N", line)
    assert parse_review(f"{before}\n\n{written}")[0].verdict is verdict


def a_diff(path: str, lines: int = 3, text: str = "x") -> str:
    return (
        f"diff --git a/{path} b/{path}\nindex 1..2 100644\n--- a/{path}\n+++ b/{path}\n@@ -1 +1,{lines} @@\n"
        + f"+{text}\n" * lines
    )


def test_a_huge_file_hides_no_other_and_what_is_cut_is_said() -> None:
    diff = a_diff("huge.py", 5000) + a_diff("small.py") + a_diff("vast.py", 9000) + a_diff("last.py")
    shown = render_diff(diff, 2000)
    assert shown.cut == ("huge.py", "vast.py")
    assert len(shown.text) <= 2000 * 4
    assert a_diff("small.py") in shown.text
    assert a_diff("last.py") in shown.text
    assert "huge.py: cut here" in shown.text or "Left out for lack of room" in shown.text
    assert "vast.py" in shown.text


def an_issue(number: int, **fields: object) -> ReviewIssue:
    return ReviewIssue.model_validate({"number": number, "severity": "major", "title": f"t{number}", **fields})


def reviewed(*issues: ReviewIssue, **fields: object) -> Reviewed:
    return Reviewed(by="reviewer", review=Review.model_validate({"issues": issues, "verdict": "no", **fields}))


def test_what_is_named_and_what_is_approved_decides_what_is_told() -> None:
    both = (an_issue(1), an_issue(2))
    assert "t2" not in render_comments([reviewed(*both, verdict="with_fixes", fixes=(1,))])
    assert render_comments([reviewed(*both, verdict="yes")]) == ""
    assert render_comments([]) == ""
    assert "What to mend was not said" in render_comments([reviewed(rationale="")])
    assert "The lock stays" in render_comments([reviewed(rationale="The lock stays.")])
    unseen = reviewed(verdict="yes", rationale="Fine.").model_copy(update={"unseen": ("huge.py",)})
    assert "huge.py" in render_comments([unseen])
    assert "Fine." not in render_comments([unseen])
    assert "t1" in render_comments([reviewed(verdict="yes"), reviewed(*both)])


def test_floods_of_comments_are_bounded_and_said() -> None:
    many = [an_issue(number, title="x" * 50, issue="y" * 9000) for number in range(MAX_COMMENTS + 7)]
    said = render_comments([reviewed(*many, an_issue(999, severity="critical"))])
    assert "t999" in said
    assert "[8 more comments, none of them graver, are left out.]" in said
    assert "more characters left out" in said
