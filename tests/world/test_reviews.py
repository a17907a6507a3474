"""Reviews: a Yes counts where nothing takes it back, and where nothing in the text is critical or was left unseen."""

from orchestrator.answers.review import parse_review
from orchestrator.core.delivery import Verdict
from tests.world.case import Case, table

YES, NO, AGAIN = "approved", "not approved", "asked again"


def review(verdict: str = "Ready: Yes", *, summary: str = "The cap holds now.", minor: str = "None") -> str:
    return (
        f"## Review Summary\n\n{summary}\n\n## Issues\n\n### Critical (Blocking)\n\nNone\n\n### Major (Should Fix)\n\n"
        f"None\n\n### Minor (Nice to Have)\n\n{minor}\n\n## Verdict\n\n{verdict}\n"
    )


def cases(kind: str, right: str, seen: str, *given: str) -> tuple[Case, ...]:
    return tuple(Case(name=f"{kind} {at}", given=one, right=right, seen=seen) for at, one in enumerate(given, start=1))


SERVERS = "answers of open models behind servers that keep the end of a turn"
ENDS = (
    "</s>", "<end_of_turn>", "<|eot_id|>", " <|im_end|>", ".<|endoftext|>", "<｜end▁of▁sentence｜>", "<|return|>",
    "\n<|im_end|>\n<|im_start|>assistant", "\nRationale: small and tested.</s>",
)  # fmt: skip
BEHIND_YES = (
    ", ship with confidence", ". Nothing else to do.", ", merge it with confidence!", ". Nothing more to add.",
    "; ready to be merged", ". Well tested.", "\nRationale: no doubt is left, but watch the first orders.",
)  # fmt: skip
TAKEN_BACK = (
    "\n\nBut only once the cap is read from the settings.", "\n\nHowever, the lock is never released.",
    " with reservations", ", unless the cap is zero", "\n\nExcept for the import.",
)  # fmt: skip
CRITICAL = (
    "**Critical:** the token is written to the log in cart/cap.py:7", "P0: the token is logged", "[P0] token is logged",
    "🔴 Critical: a token in the log", "- **Blocker** – the token is logged", "This is a blocker.", "Do not merge.",
    "Small. But this must not be merged.", "The token is logged, so it should not be merged", "Severity: P0",
    "`Critical:` the token is logged", "- `P0` - the token is logged", "There are two critical issues.",
    "The query is a critical vulnerability.", "This is not ready for production.",
    "Critical:\nthe token is logged", "| Severity | What |\n|---|---|\n| Critical | token in the log |",
)  # fmt: skip
UNSEEN = (
    "I was unable to read the patch; nothing stood out.", "I could not see the change.", "The diff was not provided.",
    "I have not finished reviewing.", "No diff was attached.", "The review is incomplete.", "The patch is truncated.",
    "I only reviewed the first file.", "I did not receive the diff, so I assume it is fine.", "Unable to open files.",
)  # fmt: skip
HARMLESS = (
    "| Criterion | Held |\n|---|---|\n| cap | yes |", "<!-- second reading -->\nThe cap holds.",
    "<!--\nnotes\n\nof mine\n-->\nThe cap holds.", "| Severity | Count |\n|---|---|\n| Critical | 0 |\n| Minor | 1 |",
    "Critical: 0, Major: 0, Minor: 1", "No critical issues, no blockers.", "It fixes the critical bug of the cap.",
    "All critical issues of the last review are fixed.", "The critical path is covered.", "The ad blocker is skipped.",
    "Customers are unable to read the file of another customer, as asked.", "The story is P0 and small.",
    "`Critical:` is read as a label now.", "- `P0:` stands for what is urgent.",
    "`Do not merge` is a label of the forge.",
    "`Severity: critical` means that the line is shown in red.", "`[P0]` was missing in the table, and is there now.",
    "Carts of two customers must not be merged, and a test holds that.", "The review of the change is complete.",
)  # fmt: skip


@table(
    *cases("end of a turn", YES, SERVERS, *(review(f"Ready: Yes{end}") for end in ENDS)),
    *cases("words behind", YES, "reviews by chat models", *(review(f"Ready: Yes{words}") for words in BEHIND_YES)),
    *cases("harmless", YES, "reviews with tables and comments", *(review(summary=text) for text in HARMLESS)),
    *cases("taken back", AGAIN, "reviews by small models", *(review(f"Ready: Yes{words}") for words in TAKEN_BACK)),
    *cases("unseen", AGAIN, "reviews of diffs that were lost", *(review(summary=text) for text in UNSEEN)),
    *cases("unseen rationale", AGAIN, "the same", review("Ready: Yes\nRationale: I have not finished yet.")),
    *cases("critical", NO, "reviews that name it in the summary", *(review(summary=text) for text in CRITICAL)),
    *cases("critical rationale", NO, "the same", review("Ready: Yes\nRationale: P0: the token is logged")),
    *cases("critical below minor", NO, "the same", review(minor="1. [cap.py:3] Log\n   - Issue: must not be merged")),
)
def test_a_yes_counts_only_for_what_was_seen_and_is_not_critical(case: Case) -> None:
    said, findings = parse_review(case.given)
    again = said.verdict is Verdict.NONE and [one.code for one in findings] == ["review.no_verdict"]
    assert (YES if said.approved else AGAIN if again else NO) == case.right
    if case.right == NO:
        assert [one.severity.value for one in said.comments][-1] == "critical"
