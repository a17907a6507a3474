"""The block format: read by the same door as JSON, cut ones told, nothing invented."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.answers import Extraction, Status, extract
from orchestrator.core.calls.wire import BreakdownAnswer, BreakdownMissingAnswer, DeliveryAnswer

ONE = {"task_id": "T-US-004-01", "description": "Show the shelf.\n\nEmpty shelves say so.",
       "files_to_create": ["src/shelf.js", "src/app.js"]}  # fmt: skip
TWO = {"task_id": "T-US-004-02", "description": "Lend a book", "files_to_create": [],
       "command_to_run": "npm run build", "dependencies": ["T-US-004-01"]}  # fmt: skip
PLAN = {"story_id": "US-004", "tasks": [ONE, TWO]}
TEXT = """STORY: US-004
TASK: T-US-004-01
FILES: src/shelf.js, src/app.js
DESCRIPTION: Show the shelf.

Empty shelves say so.
END_TASK

TASK: T-US-004-02
FILES: none
COMMAND: npm run build
DEPENDENCIES: T-US-004-01
DESCRIPTION: Lend a book
END_TASK
"""
DECORATED = """Sure, here is the plan. Task: break it down.

```text
### Story: US-004 - A shelf
**Task:** `T-US-004-01`
- **Files:**
  - `src/shelf.js` (new)
  - src/app.js
- **Description:** Show the shelf.

Empty shelves say so.
**End Task**
* **Task:** T-US-004-02
**Files:** []
**Command:** `npm run build`
**Depends on:** T-US-004-01
**Description:** Lend a book
__END_TASK__
```
That is all.
"""


def read(text: str, contract: Any = BreakdownAnswer) -> Extraction:
    return extract(text, contract)


def quoted(text: str) -> str:
    return "".join(f"> {line}" for line in text.splitlines(keepends=True))


def test_the_format_as_it_is_written() -> None:
    found = read(TEXT)
    assert (found.value, found.status, found.layer, found.repairs) == (PLAN, Status.OK, "blocks", ())
    assert (found.complete, found.problems) == (True, ())
    assert read(TEXT, BreakdownAnswer.model_json_schema()) == found
    assert read(TEXT, BreakdownMissingAnswer).value == PLAN


@pytest.mark.parametrize(
    "text",
    [DECORATED, quoted(TEXT), TEXT.replace("DESCRIPTION:", "Description:").replace("FILES:", "Files:")],
    ids=["decorated", "quoted", "mixed case"],
)
def test_other_spellings_are_repairs(text: str) -> None:
    found = read(text)
    assert (found.value, found.status) == (PLAN, Status.REPAIRED)
    assert {repair.kind for repair in found.repairs} <= {"block_key", "note"}
    assert all(text[repair.offset :].lstrip().startswith(repair.before) for repair in found.repairs if repair.after)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (f"Plan:\n\n```\n{TEXT}```\nShall I go on?", PLAN),
        (TEXT.replace("\n", "\r\n"), PLAN | {"tasks": [ONE | {"description": ONE["description"]}, TWO]}),
        (f"<think>\n{TEXT.replace('T-US', 'X')}</think>\n{TEXT}", PLAN),
        (f"{TEXT.replace('shelf', 'draft')}\nNo, better:\n{TEXT}", PLAN),
        (f"STORY: <story id>\nTASK: <task id>\nFILES: <paths>\nDESCRIPTION: <text>\nEND_TASK\n\n{TEXT}", PLAN),
        (f'An example: {{"story_id": "US-000"}}\n\n{TEXT}', PLAN),
        (TEXT.replace("\nTASK: T-US-004-02", "\nSTORY: US-004\nTASK: T-US-004-02"), PLAN),
        (TEXT.replace("Lend a book", 'Answer {"story_id": "US-1"}'),
         PLAN | {"tasks": [ONE, TWO | {"description": 'Answer {"story_id": "US-1"}'}]}),
        (TEXT.replace("Empty", "Files: two\nTask: this one\n```\nTASK: X\n```\nEmpty"),
         PLAN | {"tasks": [ONE | {"description": "Show the shelf.\n\nFiles: two\nTask: this one\n```\nTASK: X\n```\n"
                                                 "Empty shelves say so."}, TWO]}),
    ],
    ids=["fenced", "crlf", "thought", "draft", "format shown", "json example", "story again", "json inside",
         "keys in a description"],
)  # fmt: skip
def test_what_stands_around_and_inside_changes_nothing(text: str, value: Any) -> None:
    found = read(text)
    assert (found.value, found.complete) == (value, True), found.problems


def test_titles_are_kept_and_ids_are_not_invented() -> None:
    text = "TASK 1: Build it\nFILES: a.py\nEND_TASK\nTASK: Then this\nTASK_ID: T-2\nFILES: b.py\nEND_TASK\n"
    text += 'TASK: and that\nFILES: ["c.py"]\nDESCRIPTION: it\nEND_TASK\nTASK: T-4: four\nDESCRIPTION: it\nEND_TASK'
    found = read(text, BreakdownMissingAnswer)
    assert found.value == {
        "tasks": [
            {"task_id": "1", "description": "Build it", "files_to_create": ["a.py"]},
            {"task_id": "T-2", "description": "Then this", "files_to_create": ["b.py"]},
            {"description": "and that\nit", "files_to_create": ["c.py"]},
            {"task_id": "T-4", "description": "four\nit"},
        ]
    }


def test_no_cut_text_passes_for_a_whole_one() -> None:
    for cut in range(20, len(TEXT) - 10):
        found = read(TEXT[:cut])
        assert found.complete == TEXT[:cut].rstrip().endswith("END_TASK")
        tasks = found.value.get("tasks", []) if isinstance(found.value, dict) else []
        assert tasks == [ONE] * (TEXT.index("END_TASK") + 8 <= cut)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (TEXT.replace("STORY: US-004", "STORY: US-004\nTASK_COUNT: 3"), "3 tasks were announced"),
        (f"{TEXT}TASK_COUNT: 3", "3 tasks were announced"),
        (f"{TEXT}\n... (two more tasks)", "ellipsis"),
        (TEXT.replace("\n\nTASK:", "\n\n# … and so on\n\nTASK:"), "ellipsis"),
        (TEXT.replace("\n\nTASK:", "\nTASK: T-US-004-03\n\nTASK:"), "no fields"),
        (f"{TEXT}STORY: US-004", "no task follows"),
    ],
)
def test_what_says_that_more_belongs_to_it_is_truncated(text: str, why: str) -> None:
    found = read(text)
    assert (found.status, found.value and found.value["tasks"]) == (Status.TRUNCATED, [ONE, TWO])
    assert why in found.problems[0].message


def test_a_missing_end_before_the_next_task_is_a_repair() -> None:
    found = read(TEXT.replace("END_TASK\n\n", "\n"))
    assert (found.value, found.status) == (PLAN, Status.REPAIRED)
    assert [repair.kind for repair in found.repairs] == ["missing_closer"]


def test_json_and_other_contracts_go_first() -> None:
    whole = json.dumps({"story_id": "US-1", "architectural_conflict": {"detected": False}, "tasks": [ONE]})
    assert read(f"{TEXT}\n{whole}").value["story_id"] == "US-1"  # type: ignore[index,call-overload]
    assert read(f"{whole}\n{TEXT}").layer != "blocks"
    assert read(f"{TEXT}\n{whole[:-80]}").layer == "truncation"
    for contract in (None, DeliveryAnswer, {"properties": {"tasks": {"type": "array", "items": {"type": "string"}}}}):
        assert read(TEXT, contract).status is Status.REFUSED
    assert read("TASK: write a plan. I cannot do that.").status is Status.REFUSED
    assert read("The files: none\nTask: none").status is Status.REFUSED


_WORD = st.text(st.characters(codec="utf-8", exclude_characters="\r\n:", categories=("L", "N", "P", "Zs")), max_size=30)
_LINES = st.sampled_from(
    ["TASK: T-1", "TASK:", "FILES: a.py", "DESCRIPTION: x", "END_TASK", "STORY: S", "**Task:** T-2", "```", "<think>",
     "</think>", "> END_TASK", "TASK_COUNT: 9", "...", '{"story_id": "x"', "}", "STORY: S TASK: T-9 FILES: b END_TASK"]
)  # fmt: skip


@given(lines=st.lists(_LINES | _WORD, max_size=30))
def test_nothing_raises_and_nothing_is_invented(lines: list[str]) -> None:
    text = "\n".join(lines)
    found = read(text)
    tasks = found.value.get("tasks", []) if isinstance(found.value, dict) else []
    for entry in tasks if found.layer == "blocks" else []:
        said = [entry.get("task_id", ""), *entry.get("files_to_create", []), *entry.get("description", "").split("\n")]
        assert all(part in text for part in said)


@given(words=st.lists(st.tuples(_WORD, _WORD), min_size=1, max_size=5))
def test_what_is_written_as_blocks_comes_back(words: list[tuple[str, str]]) -> None:
    told = [(f"T-{n}", f"x{one}x\nx{two}x") for n, (one, two) in enumerate(words)]
    text = "".join(f"TASK: {name}\nFILES: src/{name}.py\nDESCRIPTION: {said}\nEND_TASK\n" for name, said in told)
    found = read(text, BreakdownMissingAnswer)
    assert found.status is Status.OK
    assert found.value == {
        "tasks": [{"task_id": name, "description": said, "files_to_create": [f"src/{name}.py"]} for name, said in told]
    }
