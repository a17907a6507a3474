"""The worked examples of prompts: right in form, and refused as answers; what prompts share."""

import json
import re

import pytest

from orchestrator.answers import Status, extract
from orchestrator.answers.action_plan import parse_plan
from orchestrator.answers.task_plan import read_task_plan
from orchestrator.checks.action_plan import read_plan_delivery, suite_value
from orchestrator.checks.action_plan_files import PlanWorld
from orchestrator.checks.breakdown import read_breakdown
from orchestrator.checks.breakdown_rules import check_breakdown
from orchestrator.checks.content import check_content
from orchestrator.checks.delivery import read_delivery
from orchestrator.checks.paths import copied_analysis, copied_delivery, copied_plan, copied_suite
from orchestrator.checks.suite import check_suite, read_analysis, read_suite
from orchestrator.checks.task_plan import read_plan_extract
from orchestrator.core.action_plan import ActionPlan
from orchestrator.core.delivery import FileChange
from orchestrator.core.errors import ConfigError
from orchestrator.core.wire import AnalysisAnswer, BreakdownAnswer, DeliveryAnswer, PlanExtractAnswer, SuiteAnswer
from orchestrator.prompts.render import NOTE_SLOTS, SEGMENT_ORDER, expand
from tests.prompts.packaged import packaged_files, packaged_library, packaged_texts

LIBRARY = packaged_library()
CONTRACTS = {
    "architect/breakdown": BreakdownAnswer,
    "architect/plan_extract": PlanExtractAnswer,
    "developer/delivery": DeliveryAnswer,
    "tester/suite": SuiteAnswer,
    "tester/analysis": AnalysisAnswer,
}


def example(name: str) -> object:
    (text,) = LIBRARY.worked(name)
    extraction = extract(text, CONTRACTS[name])
    assert extraction.status is Status.OK
    return extraction.value


@pytest.mark.parametrize("name", CONTRACTS)
def test_an_example_stands_where_it_never_changes(name: str) -> None:
    text = packaged_texts()[name]
    place = [m[1] for m in re.finditer(r"segment: (\w+)", text[: text.index("```json")])][-1]
    assert SEGMENT_ORDER.index(place) < SEGMENT_ORDER.index("contract")


def test_the_example_of_a_plan_is_sound_and_no_plan() -> None:
    plan, said = read_breakdown(example("architect/breakdown"), "EXAMPLE")
    assert plan is not None
    assert [*said, *check_breakdown(plan, frozenset(), frozenset())] == []
    assert [f.code for f in copied_plan(plan, LIBRARY.worked("architect/breakdown"))] == [
        "breakdown.prompt_example"
    ] * 2
    other = plan.tasks[0].model_copy(update={"description": "Something else.", "files_to_create": ("a.py",)})
    assert copied_plan(plan.model_copy(update={"tasks": (other,)}), LIBRARY.worked("architect/breakdown")) == []


def test_the_example_of_an_extraction_is_sound_and_stands_in_no_other_plan() -> None:
    text = (
        "Goal: Sailors see the next high water\n\nPackages: tzdata>=2024.1\n\n### Task 1: High water\n\n"
        "Files: tides/high_water.py\n\n### Task 2: The command\n\nFiles: tides/__main__.py, docs/usage.md\n"
        "Depends on: Task 1\nCommand: python -m tides.docs\n"
    )
    plan, said = read_plan_extract(example("architect/plan_extract"), read_task_plan(text).plan, text, "US-1")
    assert said == []
    assert plan is not None
    assert plan.key_files == ("tides/high_water.py", "tides/__main__.py", "docs/usage.md")
    other = "Goal: See prices\n\n### Task 1\n\n### Task 2\n"
    _, said = read_plan_extract(example("architect/plan_extract"), read_task_plan(other).plan, other, "US-1")
    assert {"extract.goal", "extract.files", "extract.command", "extract.packages"} == {f.code for f in said}


def test_the_example_of_a_delivery_is_sound_and_no_delivery() -> None:
    delivery, said = read_delivery(example("developer/delivery"), "EXAMPLE", "T-EXAMPLE-01")
    assert delivery is not None
    assert [*said, *check_content(delivery, {})] == []
    worked = LIBRARY.worked("developer/delivery")
    held = delivery.files[1].content.replace("next_high_water", "highest")
    renamed = delivery.model_copy(update={"files": (FileChange(path="shop/a.py", content=f"{held}# mine\n"),)})
    assert [(f.code, f.where.file) for f in copied_delivery(renamed, worked)] == [("delivery.placeholder", "shop/a.py")]
    own = "from datetime import datetime\n\n\ndef due(lent: datetime) -> datetime:\n    return lent\n"
    assert copied_delivery(delivery.model_copy(update={"files": (FileChange(path="a.py", content=own),)}), worked) == []


def plan_of(name: str) -> ActionPlan:
    found = parse_plan(LIBRARY.worked(name)[0])
    assert found.status is Status.OK
    assert found.plan is not None
    return found.plan


def test_the_example_of_an_action_plan_is_sound_and_its_files_are_no_delivery() -> None:
    package = {"tides/__init__.py": '__all__ = ["readings"]\n'}
    world = PlanWorld(paths=frozenset(package), texts=package, context=frozenset(package))
    plan = plan_of("developer/delivery_plan")
    delivery, said = read_plan_delivery(plan, world, "EXAMPLE", "T-EXAMPLE-01")
    assert delivery is not None
    assert [*said, *check_content(delivery, package)] == []
    copied = copied_delivery(delivery, LIBRARY.worked("developer/delivery"))
    assert {finding.code for finding in copied} == {"delivery.placeholder"}


def test_the_example_of_a_suites_plan_says_what_its_json_says() -> None:
    value, said = suite_value(plan_of("tester/suite_plan"))
    as_json = example("tester/suite")
    assert said == ()
    assert isinstance(as_json, dict)
    assert value == {name: held for name, held in as_json.items() if name != "story_id"}
    suite, _ = read_suite(value, "US-1")
    assert suite is not None
    assert [f.code for f in copied_suite(suite, LIBRARY.worked("tester/suite_plan"))] == ["suite.prompt_example"]


def test_the_example_of_a_suite_is_sound_and_no_suite() -> None:
    suite, said = read_suite(example("tester/suite"), "EXAMPLE")
    assert suite is not None
    assert [*said, *check_suite(suite, required_criteria=2)] == []
    examples = LIBRARY.worked("tester/suite")
    assert [f.code for f in copied_suite(suite, examples)] == ["suite.prompt_example"]
    renamed = suite.model_copy(update={"test_content": suite.test_content.replace("tides.", "shop.") + "\n# mine\n"})
    assert [f.code for f in copied_suite(renamed, examples)] == ["suite.prompt_example"]
    own = suite.model_copy(
        update={"test_content": "from shop import price\n\n\ndef test_a():\n    assert price(1) == 2\n"}
    )
    assert copied_suite(own, examples) == []


def test_the_example_of_an_analysis_is_sound_and_no_analysis() -> None:
    instructions, said = read_analysis(example("tester/analysis"))
    assert said == []
    found = copied_analysis(instructions, LIBRARY.worked("tester/analysis"))
    assert [f.code for f in found] == ["analysis.prompt_example"]


def test_examples_do_what_they_say() -> None:
    """The suite of the example passes against the delivery of the example."""
    delivery, suite = example("developer/delivery"), example("tester/suite")
    assert isinstance(delivery, dict)
    assert isinstance(suite, dict)
    space: dict[str, object] = {"__name__": "tides.high_water"}
    exec(delivery["files"][1]["content"], space)
    tests = suite["test_content"].replace("from tides.high_water import next_high_water", "")
    exec(tests, space)
    for case in suite["test_cases"]:
        space[case["name"]]()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {"repair": "<!-- include: shared/outputs -->\n"},
            r"repair\.md: it includes shared/outputs.*mean shared/",
        ),
        ({"shared/output": "<!-- include: shared/output -->\n"}, "include each other"),
        ({"repair": "<!-- inclde: shared/output -->\n"}, r"repair\.md, line 1: a marker is written"),
    ],
)
def test_a_bad_include_is_named(files: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        type(LIBRARY)({**packaged_files(), **files})


def test_a_shared_text_that_is_replaced_is_replaced_everywhere() -> None:
    changed = {**packaged_files(), "shared/output": "Answer in JSON."}
    for name, text in expand(changed).items():
        elsewhere = name.endswith(("_plan", "/review", "/stage")) or name in NOTE_SLOTS
        assert ("Answer in JSON." in text) is ("/" in name and not elsewhere)
    assert type(LIBRARY)(changed).version("tester/suite") != LIBRARY.version("tester/suite")


def test_what_is_no_json_is_no_example_of_a_value() -> None:
    plan, _ = read_breakdown(json.loads(LIBRARY.worked("architect/breakdown")[0]), "EXAMPLE")
    assert plan is not None
    assert copied_plan(plan, ["## Action Plan\n", "[]"]) == []
