"""Replies that only ask to be shown files, as models write them; and answers that must not be taken for one."""

import pytest

from orchestrator.answers.looks import look_in
from tests.answers.reviews import CLEAN, GOOD

PLAN = """# Look first

## Rationale

The module is not shown.

## Action Plan

### `READ`

- **Resource:** [src/shop/prices.py](/src/shop/prices.py)
"""


@pytest.mark.parametrize(
    "text",
    [
        "READ src/shop/prices.py",
        "I need to see the module first.\n\n- READ `src/shop/prices.py`\n",
        "### `READ` ./src/shop/prices.py",
        "READ: [src/shop/prices.py](/src/shop/prices.py)",
        "```\nREAD /src/shop/prices.py\n```",
        '{"read": ["src/shop/prices.py"]}',
        '```json\n{"READ": "src/shop/prices.py"}\n```',
        PLAN,
    ],
)
def test_one_file_is_asked_for(text: str) -> None:
    found = look_in(text)
    assert found is not None
    assert found.reads == ("src/shop/prices.py",)


def test_several_files_and_what_is_no_longer_needed() -> None:
    found = look_in("READ a.py\nREAD b.py\nPRUNE c.py")
    assert found is not None
    assert (found.reads, found.prunes) == (("a.py", "b.py"), ("c.py",))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "PRUNE a.py",
        "READ the file before you change it.",
        "READ a.py\n\nThen I would change the total there.",
        'READ a.py\n\n{"failure_analysis": []}',
        '{"read": ["a.py"], "files": []}',
        '{"read": 1}',
        f"READ app.py\n\n{GOOD}",
        CLEAN,
        PLAN + "\n---\n\n### `CREATE`\n\n- **File Path:** [a.py](/a.py)\n\n```python\nA = 1\n```\n",
        "READ a.py\n" * 2000,
    ],
)
def test_an_answer_is_no_look(text: str) -> None:
    assert look_in(text) is None
