"""Reviews over a whole run: what is approved is merged, what is not waits for a person, and the report says why."""

import json

import pytest

from tests.support import ALL_PASS, APPROVED, Played, Team, play, reviewed, suite_text, write_backlog

MORE = ("review.max_iterations=2", "review.reviewers=[reviewer, security]")


def written(value: int, story: str) -> dict[str, str]:
    return {f"{story.lower()}.py": f"def value():\n    return {value}\n"}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """MENDED is approved in its second review, STUCK never; LATER waits for STUCK."""
    folder, team = tmp_path_factory.mktemp("reviews"), Team()
    for story in ("MENDED", "STUCK"):
        team.plan(story, [f"{story.lower()}.py"])
        for value in (2, 1):
            team.deliver(story, 1, written(value, story))
        team.review(story, 1, APPROVED)
        team.review(story, 1, APPROVED)
        team.review(story, 1, reviewed("With fixes 1", f"[{story.lower()}.py:2] Two | is *wrong*"), by="security")
        stuck = reviewed("No", f"[{story.lower()}.py:1] Unsafe <b>", severity="Critical (Blocking)")
        team.review(story, 1, stuck if story == "STUCK" else APPROVED, by="security")
        team.suite(story, suite_text(story))
    return play(folder, team, write_backlog(folder / "b.csv", "MENDED", "STUCK", "LATER < STUCK"), *MORE, ALL_PASS)


def test_what_is_approved_in_the_end_is_merged(played: Played) -> None:
    assert {story.id: story.status.value for story in played.result.report.stories} == {
        "MENDED": "done", "STUCK": "needs_attention", "LATER": "blocked",
    }  # fmt: skip
    assert played.tasks("MENDED") == ["done"]
    assert played.tasks("STUCK") == ["unapproved"]
    assert played.asked("MENDED") == [
        "breakdown 1", "delivery 1", "review 1", "review 1", "delivery 2", "review 2", "review 2", "suite 1",
    ]  # fmt: skip
    assert played.tree("result") == ["mended.py", "tests/test_mended.py"]
    assert played.tree("STUCK") == ["stuck.py", "tests/test_stuck.py"]


def test_the_report_tells_reviews_and_open_comments(played: Played) -> None:
    report = json.loads(played.result.report_path.read_text())
    told = {story["id"]: story["tasks"] for story in report["stories"]}
    (stuck,) = told["STUCK"]
    assert [(one["iteration"], one["by"], one["verdict"], one["approved"]) for one in stuck["reviews"]] == [
        (1, "reviewer", "yes", True), (1, "security", "with_fixes", False),
        (2, "reviewer", "yes", True), (2, "security", "no", False),
    ]  # fmt: skip
    assert [(one["file"], one["line"], one["title"]) for one in stuck["comments"]] == [("stuck.py", 1, "Unsafe <b>")]
    assert told["MENDED"][0]["comments"] == []
    text = played.result.report_path.with_suffix(".md").read_text()
    assert "| T-STUCK-01 | 2 | security | no | 1, critical | no |" in text
    assert "| T-MENDED-01 | 2 | security | yes | none | yes |" in text
    assert "- T-STUCK-01, open: critical `stuck.py:1` Unsafe &lt;b>: It is wrong. → Mend it." in text
    assert "`review.unapproved` (`T-STUCK-01`): not approved in 2 reviews; open: stuck.py:1 Unsafe &lt;b>" in text
    assert "T-STUCK-01 goes on without approval after 2 reviews: security did not approve" in text
