"""Alex and Jordan as models answer them that keep to no form: what is right stands, and nothing else does."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from orchestrator.core.breakdown import Breakdown
from orchestrator.core.calls.exchange import Delivered, SuiteBrief, TaskBrief
from orchestrator.core.delivery import Delivery
from orchestrator.core.finding import Finding
from orchestrator.core.suite import TestSuite
from orchestrator.personas.alex import Alex
from orchestrator.personas.jordan import Jordan
from orchestrator.settings import Policies
from tests.personas.desks import STORY, SURFACE, Bench, bench, brief
from tests.prompts.packaged import examples_in
from tests.support import breakdown, task

PLAN = Breakdown.model_validate(breakdown(STORY, task(STORY, 1, ["words.py"], description="A function count_words.")))
CODE = "def count_words(text):\n    return len(text.split())\n"
OLD = f"import re\n\n\n{CODE}\n\ndef lines(text):\n    return re.split('\\n', text)\n"
EXAMPLE = examples_in("developer/delivery_plan")[0]
HEAD = "# Words\n\n## Rationale\n\nAsked for.\n\n## Action Plan\n\n"
CREATE = f"### `CREATE`\n\n- **File Path:** [words.py](/words.py)\n\n```python\n{CODE}```\n"
EDIT_OF_EXAMPLE = EXAMPLE[EXAMPLE.index("### `EDIT`") :]


def says(text: str, purpose: str = "delivery", **more: Any) -> dict[str, Any]:
    return {"persona": "alex", "purpose": purpose, "task": "T-US-1-01", "text": text, **more}


async def delivered(at: Bench, old: dict[str, str] | None = None) -> Delivered:
    given = TaskBrief(
        task=PLAN.tasks[0], breakdown=PLAN, surface=SURFACE, allowed_dependencies=(), modified_files=old or {},
        files=("app.py", *(old or {})),
    )  # fmt: skip

    async def judge(_delivery: Delivery) -> list[Finding]:
        return []

    async def look(_paths: Sequence[str]) -> dict[str, str]:
        return {}

    return await Alex(at.desk, brief()).deliver(given, judge, look)


def files(result: Delivered) -> dict[str, str]:
    assert result.accepted, result.findings
    assert result.delivery is not None
    return {change.path: change.content for change in result.delivery.files}


@pytest.mark.parametrize(
    "text",
    [
        f"```python\n{CODE}```",
        f"- **File Path:** [words.py](/words.py)\n\n```python\n{CODE}```",
        f"{HEAD}{CREATE.replace('### `CREATE`', '#### CREATE')}\n---\n\n{EDIT_OF_EXAMPLE}",
        f"{HEAD}{CREATE.replace('### `CREATE`', '### words.py')}",
        f"{CREATE}\n---\n\n{CREATE.replace('words.py', 'test_words.py')}",
        json.dumps({"files": [{"path": "broken/words.py", "content": CODE}]}),
        json.dumps({"files": {"words.py": CODE, "<path>": "x"}}),
    ],
    ids=["a block", "no verb", "beside the example", "a path for a verb", "beside a test", "a folder", "JSON"],
)
async def test_the_right_part_of_an_answer_is_the_delivery(text: str) -> None:
    at = bench(says(text))
    assert files(await delivered(at)) == {"words.py": CODE}
    assert at.asked == ["delivery 1"]


async def test_what_the_tasks_files_need_is_not_left_out() -> None:
    text = f"{HEAD}{CREATE.replace('def count', 'from tests.test_words import N' + chr(10) + 'def count')}\n---\n\n"
    at = bench(says(f"{text}{CREATE.replace('words.py', 'tests/test_words.py')}"))
    assert set(files(await delivered(at))) == {"words.py", "tests/test_words.py"}, "the contract's to judge"


async def test_an_excerpt_of_a_file_is_sent_back_and_the_whole_file_taken() -> None:
    part, whole = CODE.replace("split()", "split(None)"), OLD.replace("split())", "split(None))")
    at = bench(says(f"words.py\n```python\n{part}```"), says(f"words.py\n```python\n{whole}```"))
    assert files(await delivered(at, {"words.py": OLD})) == {"words.py": whole}
    assert "`words.py` is not whole: `lines` of it did not come" in at.segment(1, "feedback")


async def test_whole_files_are_asked_for_where_that_is_set_and_never_of_a_long_one() -> None:
    answer = f"`words.py`\n\n```python\n{CODE}```"
    at = bench(says(answer), policies=Policies(formats={"alex": "whole"}))
    assert files(await delivered(at)) == {"words.py": CODE}
    assert at.step.prompts[0].name == "developer/delivery_whole"
    assert not at.sink.named("answer_healed")
    long = {"words.py": OLD + "# words\n" * 9000}
    at = bench(says(answer), says(answer), says(answer), policies=Policies(formats={"alex": "whole"}))
    assert not (await delivered(at, long)).accepted
    assert at.step.prompts[0].name == "developer/delivery_plan"


TESTS = "from words import count_words\n\n\ndef test_count():\n    assert count_words('a b') == 2\n"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (f"Here it is:\n\n```python\n{TESTS}```", "tests/test_us_1.py"),
        (f"tests/test_words.py\n```python\n{TESTS}```", "tests/test_words.py"),
        (json.dumps({"test_file": "words", "test_content": TESTS}), "tests/test_us_1.py"),
    ],
    ids=["a block", "a path and a block", "JSON without cases"],
)
async def test_a_suite_needs_no_form_and_no_name_of_its_own(text: str, path: str) -> None:
    at = bench({"persona": "jordan", "purpose": "suite", "text": text})

    async def agrees(_suite: TestSuite) -> list[Finding]:
        return []

    given = SuiteBrief(breakdown=PLAN, surface=SURFACE, files={"words.py": CODE})
    suite = (await Jordan(at.desk, brief()).suite(given, agrees)).suite
    assert suite is not None
    assert (suite.test_file, suite.test_content, suite.expected_names) == (path, TESTS, ("test_count",))
