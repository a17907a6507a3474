"""In a project with tests the story's go into the file that covers its subject, or one named as its neighbours."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.core.sprint import StoryStatus
from orchestrator.core.suite import TestCase, TestReport, TestSuite
from orchestrator.story import context
from orchestrator.story.suite_runs import of_story
from tests.simulated import report
from tests.story.test_story import A, Stand, codes, provider
from tests.support import suite

OLD = "tests/test_shop.py"
BEFORE = "import pytest\n\nfrom shop import price\n\n\ndef test_price():\n    assert price() == 1\n"
ADDED = "\n\ndef test_rate():\n    assert rate() == 2\n"
AFTER = BEFORE.replace("import price", "import price, rate") + ADDED
SHOP = "def price():\n    return 1\n"
BASE = {OLD: BEFORE, "tests/conftest.py": "HELPS = 1\n", "shop.py": SHOP, "tests/test_bank.py": "import bank\n"}
EDITED = """# Tests of the rate

## Rationale

It belongs to the shop.

## Test Cases

- `test_rate`: 1

## Action Plan

### `EDIT`

- **File Path:** [tests/test_shop.py](/tests/test_shop.py)

#### FIND:

```python
from shop import price
```

#### REPLACE:

```python
from shop import price, rate
```

#### FIND:

```python
    assert price() == 1
```

#### REPLACE:

```python
    assert price() == 1


def test_rate():
    assert rate() == 2
```
"""


def a_stand(folder: Path, base: dict[str, str] | None = None, file: str = "shop.py", **runs: Any) -> Stand:
    stand = Stand(folder, base=BASE if base is None else base, **runs)
    stand.criteria = ("A rate is shown",)
    stand.team.plan(A, [file])
    stand.team.deliver(A, 1, {file: (SHOP if file == "shop.py" else "") + "\n\ndef rate():\n    return 2\n"})
    return stand


async def run(stand: Stand, folder: Path, answer: Any, **policies: Any) -> Any:
    stand.team.say("jordan", A, "suite", answer)
    return await stand.run(await provider(stand.team, folder), **policies)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(EDITED, id="edits"),
        pytest.param({**suite(A, AFTER, OLD), "test_cases": [{"name": "test_rate", "criterion": 1}]}, id="whole"),
    ],
)
async def test_the_file_that_covers_the_subject_is_added_to(tmp_path: Path, answer: Any) -> None:
    stand = a_stand(tmp_path)
    outcome = await run(stand, tmp_path, answer)
    assert outcome.status is StoryStatus.DONE, outcome.findings
    assert stand.workspace.result[OLD] == AFTER
    shown = stand.step.prompts[-1].text
    assert f"`{OLD}`, which covers this subject" in shown
    assert BEFORE in shown
    assert "HELPS = 1" in shown
    assert "import bank" not in shown
    assert [(case.name, case.criterion) for case in outcome.tests.cases] == [("test_rate", "A rate is shown")]


async def test_tests_alone_for_a_file_that_is_there_get_one_beside_it(tmp_path: Path) -> None:
    stand = a_stand(tmp_path)
    outcome = await run(stand, tmp_path, suite(A, f"from shop import rate\n{ADDED}", OLD))
    assert outcome.status is StoryStatus.DONE, outcome.findings
    assert stand.workspace.result[OLD] == BEFORE
    assert "def test_rate" in stand.workspace.result["tests/test_shop_us_1.py"]


def test_older_tests_with_computed_names_are_known_from_the_run_at_the_base() -> None:
    def ran(*names: str) -> TestReport:
        told = report(passed=names)
        return told.model_copy(update={"cases": tuple(case.model_copy(update={"file": OLD}) for case in told.cases)})

    suite = TestSuite(test_file=OLD, test_content="", expected_names=("test_rate",))
    now, base = ran("test_price[1]", "test_rate"), ran("test_price[1]", "test_rate")
    assert [case.name for case in of_story(suite, now, base).cases] == ["test_rate"]
    assert len(of_story(suite, now).cases) == 2


async def test_no_tests_are_asked_for_while_nothing_is_committed(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    stand.team.plan(A, ["us_1.py"])
    for _ in range(3):
        stand.team.deliver(A, 1, {"us_1.py": "def value(:\n"})
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert outcome.status is StoryStatus.NEEDS_ATTENTION
    assert "story.unfinished" in codes(outcome)
    assert stand.asked == ["breakdown 1", "delivery 1", "delivery 2", "delivery 3"]


def test_rows_of_a_table_show_the_criterion_of_its_title() -> None:
    cases = (TestCase(name="cart > adds %i to $name", criterion="In euros"), TestCase(name="test_b", criterion="B"))
    told = TestSuite(test_file="a.test.js", test_content="", test_cases=cases)
    outcome = context.tests_outcome(told, report(passed=["cart > adds 1 to the cart", "cart > takes 1", "test_b"]))
    assert [case.criterion for case in outcome.cases] == ["In euros", "", "B"]
