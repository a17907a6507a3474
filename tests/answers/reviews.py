"""Reviews as models write them, well and badly, each with what may be read into it.

`Case.says`: the verdict; `issues`: (number, severity, file, line, title), as far as the case is about them.
"""

from typing import Any, NamedTuple

NONE, NO, FIXES, YES = "none", "no", "with_fixes", "yes"


class Case(NamedTuple):
    """One review."""

    name: str
    text: str
    says: str
    approved: bool = False
    issues: tuple[tuple[Any, ...], ...] | None = None
    fixes: tuple[int, ...] = ()
    cut_off: bool = False


GOOD = """## Review Summary

The totals are right now.

## Issues

### Critical (Blocking)

None

### Major (Should Fix)

1. [src/a.py:12] The sum ignores cents
   - Issue: `int()` drops them.
   - Why: Customers pay less.
   - Fix: Use Decimal.

### Minor (Nice to Have)

2. [src/b.py:3] Two names for one thing
   - Issue: `total` and `sum` are the same.
   - Why: Readers look for a difference.
   - Fix: Keep `total`.

## Good Patterns

- Values in, values out
- Small functions

## Verdict

Ready: With fixes 1
Rationale: The cents matter.
"""
ISSUES = ((1, "major", "src/a.py", 12, "The sum ignores cents"), (2, "minor", "src/b.py", 3, "Two names for one thing"))
CLEAN = GOOD[: GOOD.index("1. [src/a.py")] + "None\n\n### Minor (Nice to Have)\n\nNone\n\n## Verdict\n\nReady: Yes\n"
TEMPLATE = "Ready: Yes | No | With fixes 1-N"


def ended(line: str) -> str:
    """A clean review with another last line."""
    return CLEAN.replace("Ready: Yes", line)


def critical(text: str, verdict: str = "Ready: Yes") -> str:
    """A review that says Yes below this text under Critical."""
    return CLEAN.replace("### Critical (Blocking)\n\nNone", f"### Critical (Blocking)\n\n{text}").replace(
        "Ready: Yes", verdict
    )


def one(*issue: Any) -> tuple[tuple[Any, ...], ...]:
    return (issue,)


YES_LINES = (
    "Ready: Yes", "ready: yes", "READY: YES", "Ready: Yes.", "Ready : Yes", "Ready:Yes", "**Ready:** Yes",
    "**Ready: Yes**", "__Ready__: Yes", "Ready: **Yes**", "`Ready: Yes`", "Ready: `Yes`", "- Ready: Yes",
    "* **Ready:** Yes", "1. Ready: Yes", "### Ready: Yes", "Ready: [Yes]", 'Ready: "Yes"', "Ready: Yes ✅",
    "Ready: ✅ Yes", "✅ **Ready:** Yes", "Ready: Yes (mergeable as is)", "Ready: Yes — mergeable as is.",
    "Ready: Yes. Rationale: All of it is right.", "Ready: Yes | Rationale: fine", "Ready： Yes", "Ready:\u00a0Yes",
    "\u200bReady: Yes", "Ready: Yes  ", "Verdict: Ready: Yes", "Ready: No\nReady: Yes", f"{TEMPLATE}\nReady: Yes",
    "Ready: Yes\nRationale: No risk at all.", "Ready: Yes (no blocking issues)", "Ready: Yes, all criteria are covered",
    "Ready: Yes - the change does what the task asks for.", "Ready: Yes; no further changes needed",
)  # fmt: skip
"""Each approves as the last line of a clean review."""

NO_YES_LINES = (
    "", "Ready", "Ready:", "Ready: ", "Yes", "Ready Yes", "Ready = Yes", "Ready? Yes", "Ready:\nYes", TEMPLATE,
    "Ready: Yes / No / With fixes 1-N", "Ready: [Yes | No | With fixes 1-N]", "Ready: Yes or No", "Ready: Yes, No",
    "Ready: Yes|No", "Ready: Yes, but fix 1 first", "Ready: Yes after fixes", "Ready: Yes, once the tests pass",
    "Ready: Yes (conditionally)", "Ready: Yes?", "Ready: Yes…", "Ready: Yes...", "Ready: Yes - almost",
    "Ready: Yesterday", "Ready: Yes\nReady: No", f"Ready: Yes\n{TEMPLATE}", "Ready: Yes\nReady: it depends",
    "Ready: Yes\n\nReady:", "Ready: true", "Ready: 100 %", "Ready: Ja", "Ready: LGTM", "Ready: Approved",
    "Ready: ok", "Ready: 👍", "LGTM", "Approved.", "APPROVED ✅", "Looks good to me, ship it!",
    "This is ready: yes, it is.", "Not ready: Yes", "Ready: Not Yes", "Already: Yes", "Un-Ready: Yes",
    "❌ Ready: Yes", "Ready: Yes ❌", "Ready: ❌ Yes", "~~Ready: Yes~~", "Ready: ~~Yes~~ No", "- [ ] Ready: Yes",
    "- [x] Ready: Yes", "+ Ready: Yes", "+Ready: Yes", "-Ready: Yes", "> Ready: Yes", ">> **Ready:** Yes",
    "    Ready: Yes", " Ready: Yes", "\tReady: Yes", "```\nReady: Yes\n```", "~~~text\nReady: Yes\n~~~",
    "```\nReady: Yes", "<!-- Ready: Yes -->", "<!--\nReady: Yes\n-->", "<!--\nReady: Yes",
    "<think>\nReady: Yes\n</think>", "<think>\nReady: Yes", "[Ready: Yes](x)", '"Ready": "Yes"',
    '{"ready": "Ready: Yes"}', "| Ready: Yes |", "| Ready | Yes |", "The line `Ready: Yes` is missing.",
    "I would write Ready: Yes", "Ready: No", "Ready: **No**", "Ready: No.", "Ready: Not yet",
    "Ready: No, this is not mergeable. Approved otherwise.", "Ready: With fixes 1-2", "Ready: Yes with fixes 1-2",
    "Ready: Yes, with fixes", "Ready: No issues found", "Ready: Yes\x00", "Ready: Yes \ud800",
    "@@ -1,2 +1,2 @@\n Ready: No\n- Ready: Yes", "--- a/V.md\n+++ b/V.md\n Ready: Yes", "Ready: Yes Ready: No",
    "Ready: Ye", "Read: Yes", "Ready: Yes | No", "Ready: No | Yes",
)  # fmt: skip
"""None of them approves, as the last line of a clean review."""

NOTHING = (
    "None", "None.", "none", "NONE", "**None**", "_None_", "`None`", "(None)", "- None", "* None.", "1. None", "N/A",
    "n/a", "—", "-", "Nothing", "Nothing to report.", "No issues.", "No issues found.", "No critical issues",
    "No critical issues found ✅", "There are no critical issues in this change.", "None found.", "None identified",
    "None — the change is small.", "None. Well done!", "✅ None", "0", "Keine", "Keine.",
    "Keine kritischen Probleme gefunden.", "No critical or major issues.", "- **None**",
    "```\nNone\n```", "",
)  # fmt: skip
"""Under Critical, each says that there is nothing."""

SOMETHING = (
    "None of the inputs is checked", "No input validation at login", "None, except that db.py:12 is injectable",
    "None — but the lock is never released", "No issues except the race in a.py", "Nonexistent users can log in",
    "The SQL is injectable.", "Nothing is closed after use", "1. SQL", "- SQL", "* [a.py:1] SQL", "[a.py:1] SQL",
    "a.py:1: SQL", "**SQL**", "**1. [a.py:1] SQL**\n\n**Issue:** b", "#### 1. [a.py:1] SQL\n- Fix: c",
    "#### SQL injection\n\nIt is bad.", "- Issue: SQL\n- Fix: params",
    "1. [FILE:LINE] SQL injection",
    "1. [FILE:LINE] Title\n   - Issue: SQL injection in login", "```python\nexecute(f'… {name}')\n```",
    "> execute(name)", "1. [Minor] [a.py:1] SQL", "1. Minor: [a.py:1] SQL", "None\n\n1. [a.py:1] SQL",
    "1. None\n2. [a.py:1] SQL", "Minor: SQL", "🔥 [a.py:1] SQL", "0. SQL", "1) a.py:1 SQL", "(1) [a.py:1] SQL",
    "#1 [a.py:1] SQL", "Issue 1: SQL", "1. [a.py:1] SQL\n\n### Something else\n\nNone",
)  # fmt: skip
"""Under Critical, each is an issue, so that the Yes below it does not count."""

CASES = (
    Case("good", GOOD, FIXES, issues=ISSUES, fixes=(1,)),
    Case("clean", CLEAN, YES, True, issues=()),
    Case("wrapped", f"```markdown\n{GOOD}```", FIXES, issues=ISSUES, fixes=(1,)),
    Case("wrapped yes", f"```markdown\n{CLEAN}```\n", YES, True),
    Case("wrapped md, announced", f"Here is my review:\n\n```md\n{CLEAN}```\n\nLet me know!", YES, True),
    Case(
        "wrapped with a block inside that closes it",
        "```markdown\n" + GOOD.replace("Use Decimal.", "Use\n```python\nDecimal(x)\n```") + "```\n",
        FIXES,
        issues=ISSUES,
        fixes=(1,),
    ),
    Case("a quoted review and no own", f"The change adds this file:\n\n```markdown\n{CLEAN}```\n\nI stop here.", NONE),
    Case("quoted in a quotation", "".join(f"> {line}\n" for line in CLEAN.splitlines()), NONE),
    Case("a quoted review, then its own No", f"```markdown\n{CLEAN}```\n\n{ended('Ready: No')}", NO),
    Case("behind it a block that is never closed", f"Ready: Yes\n```\n\n{ended('Ready: No')}", NONE),
    Case("behind it a comment that is never closed", f"{CLEAN}\n<!--\n{ended('Ready: No')}", NO),
    Case("behind it thoughts without an end", f"{CLEAN}\n<think>\n{ended('Ready: No')}", NO),
    Case("a review in a block, a yes outside", f"So.\n\n```\n{critical('1. SQL', '')}```\n\nReady: Yes\n", NONE),
    Case("thoughts with a review, their beginning lost", f"{ended('Ready: No')}\n</think>\n{CLEAN}", NONE),
    Case("empty", "", NONE, issues=()),
    Case("only the line", "Ready: Yes", YES, True),
    Case("prose", "I have read it all. It is approved. LGTM, looks good, ready to merge: yes!", NONE),
    Case("prose and the line", "Nothing to complain about.\n\nReady: Yes", YES, True),
    Case("json", '{"verdict": "approved", "approved": true,\n "Ready": "Yes",\n "issues": []}', NONE),
    Case("in an answer tag", f"<review>\n{CLEAN}\n</review>", YES, True),
    Case("cut off", GOOD[: GOOD.index("   - Why: Readers")], NONE, issues=ISSUES, cut_off=True),
    Case("cut off in the line", CLEAN[: CLEAN.index("Ready: Yes") + 8], NONE, cut_off=True),
    Case("cut off behind its Yes", CLEAN, YES, cut_off=True),
    Case("yes beside critical", critical("1. [a.py:3] SQL"), YES, issues=one(1, "critical", "a.py", 3, "SQL")),
    Case("the template, all of it", GOOD.replace("Ready: With fixes 1", TEMPLATE), NONE, issues=ISSUES),
    Case("the template before", f"{TEMPLATE}\n\n{CLEAN}", YES, True),
    Case("the template behind", f"{CLEAN}\n{TEMPLATE}\n", NONE),
    Case("thoughts before", f"<think>Ready: No\n## Issues\n### Critical\n1. SQL\n</think>\n{CLEAN}", YES, True, ()),
    Case("thoughts whose beginning is lost", f"Let me see.\nReady: No\n</think>\n\n{CLEAN}", YES, True),
    Case("thoughts without an end", f"<think>\n{CLEAN}", NONE),
    Case("a draft, then another", GOOD + "\n# Final review\n\n" + CLEAN, YES, True, issues=()),
    Case("a draft with a critical issue", critical("1. [a.py:3] SQL", "Ready: No") + CLEAN, YES),
    Case("approved in the draft only", CLEAN + "\n" + ended("Ready: No"), NO),
    Case("a draft, then nothing", CLEAN + "\n## Review Summary\n\nAnd again", NONE),
    Case("verdict first", "## Verdict\n\nReady: Yes\n\n## Issues\n\n### Minor\n\n1. [a.py:2] n\n", YES, True),
    Case(
        "verdict first, critical behind",
        "## Verdict\n\nReady: Yes\n\n## Issues\n\n### Critical\n\n1. [a.py:2] n\n",
        YES,
    ),
    Case(
        "yes in the summary, no verdict under its heading",
        ended("").replace("The totals", "Ready: Yes\n\nThe totals"),
        NONE,
    ),
    Case("yes before the issues", "Ready: Yes\n\n## Issues\n\n### Minor\n\nNone\n", NONE),
    Case("no heading for the verdict", CLEAN.replace("## Verdict\n\n", ""), YES, True),
    Case(
        "quoted in an issue",
        GOOD[: GOOD.index("## Good")].replace("`int()` drops them.", "It says\n     Ready: Yes"),
        NONE,
    ),
    Case(
        "quoted in an issue that is a heading",
        "## Issues\n### Minor\n#### 1. [R.md:1] Says\n\nReady: Yes\n\n**Why:** x",
        NONE,
    ),
    Case("as an item among issues", "## Issues\n### Minor\n- Ready: Yes\n", NONE),
    Case(
        "a diff without a block around it",
        "## Issues\n\n### Minor\n\n1. [V.md:1] This:\n\ndiff --git a/V.md b/V.md\n--- a/V.md\n+++ b/V.md\n"
        "@@ -1,2 +1,3 @@\n"
        " ## Verdict\n+\n Ready: Yes\n- Ready: Yes\n",
        NONE,
    ),
    Case("No", ended("Ready: No"), NO, issues=()),
    Case("fixes in a row", GOOD.replace("fixes 1", "fixes 1-2"), FIXES, fixes=(1, 2)),
    Case("fixes with signs", GOOD.replace("fixes 1", "fixes: #1 and #2."), FIXES, fixes=(1, 2)),
    Case("fixes up to N", GOOD.replace("fixes 1", "fixes 1-N"), FIXES, fixes=(1, 2)),
    Case("fixes up to the sky", GOOD.replace("fixes 1", "fixes 2-999999"), FIXES, fixes=(2,)),
    Case("fixes without numbers", GOOD.replace("fixes 1", "fixes"), FIXES, fixes=()),
    Case("fixes nobody knows", GOOD.replace("fixes 1", "fixes 7"), FIXES, fixes=()),
    Case("yes with fixes", GOOD.replace("With fixes 1", "Yes, with fixes 2"), FIXES, fixes=(2,)),
    Case(
        "bold for headings",
        "**Review Summary**\nok\n**Issues**\n**Critical (Blocking):**\nNone\n**Major (Should Fix)**\n1. [a.py:3] x\n"
        "   - Issue: b\n**Good Patterns**\n- a\n**Verdict**\n**Ready:** No\n**Rationale:** because",
        NO,
        issues=one(1, "major", "a.py", 3, "x"),
    ),
    Case(
        "underlined headings",
        "Review Summary\n==============\nok\nIssues\n------\nCritical (Blocking)\n\nNone\n\nVerdict\n"
        "-------\nReady: Yes",
        YES,
        True,
    ),
    Case(
        "colours",
        "## 📝 Review Summary\nok 🎉\n## 🐛 Issues\n### 🔴 Critical (Blocking)\nNone ✅\n### 🟠 Major (Should Fix)\n"
        "1. 🐞 [a.py:3] x\n### 🟡 Minor (Nice to Have)\nNone\n## 👍 Good Patterns\n- ✨ neat\n## ✅ Verdict\n"
        "**Ready:** ✅ Yes",
        YES,
        True,
        issues=one(1, "major", "a.py", 3, "x"),
    ),
    Case(
        "severities at the issues",
        "## Issues\n1. **Critical**: [a.py:3] SQL\n2. Minor: [a.py:4] name\n3. [b.py:1] other\n## Verdict\nReady: Yes",
        YES,
        issues=((1, "critical", "a.py", 3, "SQL"), (2, "minor", "a.py", 4, "name"), (3, "major", "b.py", 1, "other")),
    ),
    Case(
        "a severity among the fields",
        "## Issues\n1. [a.py:3] SQL\n   - Severity: Critical\n## Verdict\nReady: Yes",
        YES,
    ),
    Case(
        "German with English headings",
        "## Review Summary\nGut.\n## Issues\n### Critical (Blocking)\nKeine\n### Major (Should Fix)\n"
        "Keine Probleme gefunden.\n"
        "### Minor (Nice to Have)\n1. [a.py:3] Name zu lang\n   - Issue: lang\n   - Fix: kürzen\n## Verdict\n"
        "Ready: Yes",
        YES,
        True,
        issues=one(1, "minor", "a.py", 3, "Name zu lang"),
    ),
    Case(
        "numbered from 0",
        GOOD.replace("1. [", "0. [").replace("2. [", "1. [").replace("fixes 1", "fixes 0"),
        FIXES,
        fixes=(0,),
    ),
    Case(
        "numbers begin again",
        GOOD.replace("2. [src/b.py", "1. [src/b.py").replace("fixes 1", "fixes 2"),
        FIXES,
        issues=ISSUES,
        fixes=(2,),
    ),
    Case(
        "a critical issue as the row of a table",
        "## Issues\n\n| # | Severity | Place |\n|---|---|---|\n| 1 | Critical | a.py:3 |\n\n## Verdict\n\nReady: Yes\n",
        YES,
        issues=one(1, "critical", "a.py", 3, "a.py"),
    ),
    Case(
        "a comment hides something",
        CLEAN.replace("None", "<!-- 1. SQL -->", 1),
        YES,
        issues=one(1, "critical", "", None, "SQL"),
    ),
    Case("CRLF", GOOD.replace("\n", "\r\n"), FIXES, issues=ISSUES, fixes=(1,)),
    Case("a byte order mark", f"\ufeff{CLEAN}", YES, True),
)

PLACES = (
    ("1. [a.py:3] x", "a.py", 3, "x"),
    ("1. **[a.py:3] x**", "a.py", 3, "x"),
    ("1. `a.py:3` — x", "a.py", 3, "x"),
    ("1. `a.py:3`: x", "a.py", 3, "x"),
    ("1. a.py:3 x", "a.py", 3, "x"),
    ("1. [a.py:3-9] x", "a.py", 3, "x"),
    ("1. [a.py:L3-L9] x", "a.py", 3, "x"),
    ("1. [a.py, line 3] x", "a.py", 3, "x"),
    ("1. [a.py:3](a.py#L3) x", "a.py", 3, "x"),
    ("1. [a.py] x", "a.py", None, "x"),
    ("1. [src/my file.md:3] x", "src/my file.md", 3, "x"),
    ("1. [app/[id]/page.tsx:3] x", "app/[id]/page.tsx", 3, "x"),
    ("1. [Makefile:3] x", "Makefile", 3, "x"),
    ("1. x\n   - File: `a.py:3`", "a.py", 3, "x"),
    ("1. [FILE:LINE] x", "", None, "x"),
    ("1. x", "", None, "x"),
    ("#### 1. [a.py:3] x", "a.py", 3, "x"),
    ("**1. [a.py:3] x**", "a.py", 3, "x"),
    ("[a.py:3] x", "a.py", 3, "x"),
    ("- [a.py:3] x", "a.py", 3, "x"),
)
"""One issue's first line, its file, line and title."""

FIELDS = (
    "1. [a.py:3] x\n   - Issue: i\n   - Why: w\n   - Fix: f",
    "1. [a.py:3] x\n   - **Issue:** i\n   - **Why:** w\n   - **Fix:** f",
    "1. [a.py:3] x\n   - **Issue**: i\n   - *Why*: w\n   - __Fix__: f",
    "1. [a.py:3] x\n   Issue: i\n   Why: w\n   Fix: f",
    "1. [a.py:3] x\n   * Issue: i\n   * Why it matters: w\n   * Suggested fix: f",
    "1. [a.py:3] x\n- Issue: i\n- Why: w\n- Fix: f",
    "1. [a.py:3] x\n  - Issue: i\n  - Why: w\n  - Fix: f",
    "1. [a.py:3] x\n\n   - Issue: i\n\n   - Why: w\n\n   - Fix: f",
    "1. [a.py:3] x\n\n   **Issue:**\n   i\n\n   **Why:**\n\n   w\n\n   **Fix:** f",
    "#### 1. [a.py:3] x\n\n**Issue:** i\n\n**Why:** w\n\n**Fix:** f",
    "**1. [a.py:3] x**\nIssue: i\nWhy: w\nFix: f",
    "1. **[a.py:3] x**\n   1. Issue: i\n   2. Why: w\n   3. Fix: f",
)
"""The same issue, with its three fields."""
