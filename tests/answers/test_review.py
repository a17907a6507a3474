"""Reviews read: what is written is what is read, and nobody approves what they did not approve."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from orchestrator.answers.review import parse_review
from orchestrator.core.delivery import Review, ReviewIssue, Verdict
from orchestrator.core.finding import Severity
from tests.answers import reviews
from tests.answers.review_text import render_review
from tests.answers.reviews import (
    CASES,
    CLEAN,
    FIELDS,
    GOOD,
    NO_YES_LINES,
    NOTHING,
    PLACES,
    SOMETHING,
    YES_LINES,
    Case,
)
from tests.effort import examples


def told(review: Review) -> tuple[tuple[object, ...], ...]:
    return tuple((one.number, one.severity.value, one.file, one.line, one.title) for one in review.issues)


def codes(text: str, *, cut_off: bool = False) -> list[str]:
    return [finding.code for finding in parse_review(text, cut_off=cut_off)[1]]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_reviews_as_models_write_them(case: Case) -> None:
    review, findings = parse_review(case.text, cut_off=case.cut_off)
    assert review.verdict is Verdict(case.says)
    assert review.approved is case.approved
    assert review.fixes == case.fixes
    assert review.complete is not case.cut_off
    if case.issues is not None:
        assert told(review) == case.issues
    assert ("review.no_verdict" in {finding.code for finding in findings}) is (case.says == "none")
    assert all(finding.fix for finding in findings)


@pytest.mark.parametrize("line", YES_LINES)
def test_a_yes_is_heard(line: str) -> None:
    assert parse_review(reviews.ended(line))[0].approved
    assert not parse_review(reviews.ended(line), cut_off=True)[0].approved
    assert not parse_review(reviews.critical("1. [a.py:1] SQL", line))[0].approved


def test_why_a_yes_does_not_count_is_told() -> None:
    (said,) = parse_review(reviews.ended("Ready: Yes, but rename the field"))[1]
    assert "but rename the field" in said.message
    (said,) = parse_review("## Verdict\n\nReady: Yes\n\n```python\nx = 1\n")[1]
    assert (said.where.line, "never closed" in said.message) == (5, True)


@pytest.mark.parametrize("line", NO_YES_LINES)
def test_what_is_no_clear_yes_approves_nothing(line: str) -> None:
    assert not parse_review(reviews.ended(line))[0].approved
    assert not parse_review(f"{line}\n")[0].approved


@pytest.mark.parametrize("text", NOTHING)
def test_none_under_a_heading_is_no_issue(text: str) -> None:
    review = parse_review(reviews.critical(text))[0]
    assert told(review) == ()
    assert review.approved
    assert review.severity is Severity.NONE


@pytest.mark.parametrize("text", SOMETHING)
def test_anything_else_under_critical_is_one(text: str) -> None:
    review, findings = parse_review(reviews.critical(text))
    assert review.severity is Severity.CRITICAL
    assert all(one.title for one in review.issues)
    assert review.verdict is Verdict.YES
    assert not review.approved
    assert "review.contradiction" in {finding.code for finding in findings}
    assert review.comments == review.issues


@pytest.mark.parametrize(("text", "file", "line", "title"), PLACES)
def test_places_are_read_with_and_without_their_marks(text: str, file: str, line: int | None, title: str) -> None:
    review = parse_review(reviews.critical(text, "Ready: No"))[0]
    assert [(one.file, one.line, one.title) for one in review.issues] == [(file, line, title)]


@pytest.mark.parametrize("text", FIELDS)
def test_fields_are_read_in_every_layout(text: str) -> None:
    (issue,) = parse_review(reviews.critical(text, "Ready: No"))[0].issues
    assert (issue.number, issue.title, issue.issue, issue.why, issue.fix) == (1, "x", "i", "w", "f")


def test_code_and_further_words_stay_with_their_field() -> None:
    text = "1. [a.py:3] x\n   - Fix: write\n\n     ```python\n     a = 1\n     ```\n\n     - at the top\n2. [b.py:1] y"
    review = parse_review(reviews.critical(text, "Ready: No"))[0]
    assert [one.title for one in review.issues] == ["x", "y"]
    assert review.issues[0].fix == "write\n```python\na = 1\n```\n- at the top"


def test_a_critical_issue_is_a_comment_whatever_is_named() -> None:
    review = parse_review(
        GOOD.replace("### Critical (Blocking)\n\nNone", "### Critical (Blocking)\n\n3. [c.py:1] SQL")
    )[0]
    assert review.fixes == (1,)
    assert [one.number for one in review.comments] == [3, 1]
    for text in ("Ready: With fixes", "Ready: With fixes 9", "Ready: No", "LGTM"):
        assert [one.number for one in parse_review(GOOD.replace("Ready: With fixes 1", text))[0].comments] == [1, 2]
    assert parse_review(CLEAN)[0].comments == ()


def test_what_is_wrong_with_a_review_is_told() -> None:
    assert codes(GOOD.replace("fixes 1", "fixes 1, 8-9")) == ["review.fix_numbers"]
    assert "8, 9" in parse_review(GOOD.replace("fixes 1", "fixes 1, 8-9"))[1][0].message
    assert codes(GOOD.replace("fixes 1", "fixes")) == ["review.fix_numbers"]
    assert codes(GOOD[:200], cut_off=True) == ["review.no_verdict", "review.cut_off"]
    (said,) = parse_review("I like it.\nApproved! " + "x" * 5000)[1]
    assert "I like it. Approved! x" in said.message
    assert len(said.message) < 500
    assert parse_review("")[1][0].message == "the review is empty"


def test_too_many_blocks_are_no_review() -> None:
    review, findings = parse_review("a\n\n" * 25_000 + CLEAN)
    assert (review.approved, review.issues, [one.code for one in findings]) == (False, (), ["review.no_verdict"])


WORDS = st.sampled_from(
    [
        "Ready",
        "Yes",
        "approved",
        "LGTM",
        "None",
        "critical",
        "`x",
        "=",
        "1`",
        "**bold**",
        "a.py:3",
        "why",
        "fix",
        "ü",
        "👍",
        "1",
        "#",
        ">",
        "|",
    ]
)
LINE = st.lists(WORDS, min_size=1, max_size=6).map(lambda words: "The " + " ".join(words) + " end")
ISSUE = st.builds(
    ReviewIssue,
    number=st.just(0),
    severity=st.sampled_from([Severity.CRITICAL, Severity.MAJOR, Severity.MINOR]),
    file=st.sampled_from(["src/a.py", "app/[id]/page.tsx", "docs/my file.md", "Makefile"]),
    line=st.integers(1, 99_999),
    title=LINE,
    issue=st.just("") | LINE,
    why=st.just("") | LINE,
    fix=st.just("") | LINE | LINE.map(lambda text: f"{text}\n```py\n{text}\n```"),
)


@st.composite
def a_review(draw: st.DrawFn, verdict: Verdict | None = None) -> Review:
    found = sorted(draw(st.lists(ISSUE, max_size=8)), key=lambda one: -one.severity.rank)
    issues = tuple(one.model_copy(update={"number": at}) for at, one in enumerate(found, start=1))
    says = verdict or draw(st.sampled_from([one for one in Verdict if one is not Verdict.NONE]))
    fixes = (
        draw(st.sets(st.sampled_from([one.number for one in issues]))) if issues and says is Verdict.WITH_FIXES else ()
    )
    return Review(
        summary=draw(LINE),
        issues=issues,
        good_patterns=tuple(draw(st.lists(LINE, max_size=3))),
        verdict=says,
        fixes=tuple(sorted(fixes)),
        rationale=draw(st.just("") | LINE),
    )


@settings(max_examples=examples(300))
@given(a_review())
def test_what_is_written_is_what_is_read(review: Review) -> None:
    assert parse_review(render_review(review))[0] == review


@settings(max_examples=examples(150))
@given(a_review(Verdict.YES), st.data())
def test_a_review_that_ends_before_its_verdict_approves_nothing(review: Review, data: st.DataObject) -> None:
    text = render_review(review)
    end = data.draw(st.integers(0, text.rindex("Ready: Yes") + len("Ready: Ye")))
    cut = parse_review(text[:end])[0]
    assert not cut.approved
    whole = [one for one in review.issues if f"\n\n{one.number + 1}. [" in text[:end]]
    assert [(one.file, one.title) for one in cut.issues][: len(whole)] == [(one.file, one.title) for one in whole]
    assert not parse_review(text, cut_off=True)[0].approved


PIECES = st.sampled_from(
    [
        *NO_YES_LINES, *SOMETHING, *NOTHING, "## Verdict", "### Critical", "## Issues", "## Review Summary", "```",
        "```markdown", "<think>", "</think>", "<!--", "-->", "---", "@@ -1 +1 @@", "diff --git a/x b/x", "> ", "- ",
        "1.", "    ", "\t- x", "|", "[", "**",
    ]
)  # fmt: skip
TEXTS = st.text(max_size=300) | st.lists(PIECES | st.text(max_size=20), max_size=12).map("\n".join)


@settings(max_examples=examples(600))
@given(TEXTS, st.booleans())
@example("1.\n\n## Verdict\n-\n\nx", False)
def test_no_text_breaks_the_reader_and_none_without_a_clear_line_approves(text: str, cut_off: bool) -> None:
    review, findings = parse_review(text, cut_off=cut_off)
    assert review.verdict is not Verdict.NONE or findings
    if "yes" not in text.casefold() or "ready" not in text.casefold() or cut_off:
        assert not review.approved
    assert len({one.number for one in review.issues}) == len(review.issues)
    assert set(review.fixes) <= {one.number for one in review.issues}
    assert all(one.title for one in review.issues)
    assert Review.model_validate_json(review.model_dump_json()) == review


@settings(max_examples=examples(300))
@given(TEXTS)
def test_nothing_before_a_whole_review_makes_it_approve_beside_a_critical_issue(text: str) -> None:
    """Whatever stands before it: an issue under Critical and a last `Ready: No` never approve."""
    assert not parse_review(f"{text}\n\n{CLEAN}\n\nReady: No\n")[0].approved


@settings(max_examples=examples(300))
@given(st.lists(LINE, max_size=10).map("\n".join))
def test_words_of_praise_change_no_verdict(text: str) -> None:
    assert not parse_review(reviews.ended(text))[0].approved
    assert parse_review(CLEAN.replace("The totals are right now.", text))[0].approved
