"""Task plans as people bring them: one written out, those in plans/, and any number drawn."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from hypothesis import strategies as st

PLANS = Path(__file__).parent / "plans"
"""Plans in the styles of other tools, a file each."""
WRITTEN = """\
# Prices Implementation Plan

> **For agents:** carry this plan out task by task.

**Goal:** Customers see every price with its currency: never
a bare number.
**Architecture:** One module of pure functions, and the page that calls them.

**Tech Stack:** Python 3.12, pytest
**Packages:** `babel>=2.14,<3`, python-dateutil (for time zones)
**Dev packages:** none

---

### Task 1: Prices and currencies

**Files:**
- Create: `shop/prices.py`
- Create: `shop/money/__init__.py`, `shop/money/rates.py` (see `docs/rates.md`)
- Modify: `shop/page.py:123-145`, `:200` (the footer)
- Test: `tests/test_prices.py`

- [ ] **Step 1: Write the failing test**

```python
### Task 7: a comment of the test
def test_price() -> None:
    assert price(1, "EUR") == "1.00 EUR"
```

- [ ] **Step 2: See it fail**

Run: `pytest tests/test_prices.py -v`
Expected: FAIL

---

### Task 2.1 - The page

**Depends on:** Task 1 (its functions).

- Modify:
  - `shop/page.py`
  - [style.css](shop/static/style.css#L3-L9)
- Delete: `shop/old.py`

**Command:** `python -m shop.build_pages`

<!--
### Task 8: not now

- Create: `later.py`
-->

### Task 2.2
**Depends on:** Task 2.1 and Task 1 | **Satisfies:** AC-1
Create: shop/about.py, shop/faq.py — both small
Command: pytest -q

## Verification

Create: nothing.py
"""


class Facts(NamedTuple):
    """One task's, as they are to be read back."""

    number: str
    title: str
    files: tuple[str, ...]
    depends_on: tuple[str, ...]


def _title(words: list[str]) -> str:
    return " ".join(words)


_WORD = st.sampled_from(["Prices", "Über", "API", "v2", "currencies", "the", "page", "Task", "of", "a"])
_FOLDER = st.sampled_from(["src", "a_b", "__x__", "shop", "tests", "x.y", "@scope", "[id]"])
_NAME = st.sampled_from(["a.py", "__init__.py", ".env", "b-c.test.ts", "Makefile", "d.d.ts", "e"])
_PATH = st.builds(lambda folders, name: "/".join([*folders, name]), st.lists(_FOLDER, max_size=3), _NAME)
_SUFFIX = st.sampled_from(["", ":12", ":12-40", ":69-71,80", "#L3", "#L3-L9"])
_BULLET = st.sampled_from(["- {}: {}", "* **{}:** {}", "{}: {}", "**{}**: {}", "- [ ] {}: {}", "1. {}: {}"])
_MARK = st.sampled_from(["`{}`", "[{0}]({0})"])
_HEADING = st.sampled_from(["### Task {}: {}", "### Task {} - {}", "### **Task {}: {}**", "### Task {}. {} ###"])
_BETWEEN = st.sampled_from(
    [
        "",
        "---",
        "Some prose, with a `path/in.py`.",
        "```python\n### Task 99: no\nCreate: `no.py`\n```",
        "- Test: `t/x.py`",
    ]
)


@st.composite
def plans(draw: st.DrawFn) -> tuple[str, list[Facts]]:
    """A plan's text and what is in it."""
    titles = draw(st.lists(st.lists(_WORD, min_size=1, max_size=4).map(_title), min_size=1, max_size=6))
    parts, facts = ["# Plan", f"**Goal:** {draw(st.lists(_WORD, min_size=2, max_size=8).map(_title))}"], []
    for place, title in enumerate(titles, start=1):
        number = str(place) if draw(st.booleans()) else f"{place}.{draw(st.integers(1, 9))}"
        files = draw(st.lists(_PATH, min_size=1, max_size=4))
        needs = draw(st.lists(st.sampled_from([fact.number for fact in facts]), unique=True)) if facts else []
        parts += [draw(_HEADING).format(number, title), *_files(draw, files), draw(_BETWEEN)]
        if needs:
            parts.append("**Depends on:** " + ", ".join(f"Task {need}" for need in needs))
        facts.append(Facts(number, title, tuple(dict.fromkeys(files)), tuple(needs)))
    text = draw(st.sampled_from(["\n\n", "\n\n\n"])).join(part for part in parts if part) + "\n"
    return draw(st.sampled_from(["", "\ufeff"])) + draw(st.sampled_from([text, text.replace("\n", "\r\n")])), facts


def _files(draw: st.DrawFn, files: Sequence[str]) -> list[str]:
    lines = []
    for path in files:
        written = draw(_MARK).format(path + draw(_SUFFIX)) if draw(st.booleans()) else path
        lines.append(draw(_BULLET).format(draw(st.sampled_from(["Create", "Modify"])), written))
    return lines
