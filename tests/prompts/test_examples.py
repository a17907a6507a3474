"""The worked examples of prompts: right in form, and refused as answers; what prompts share."""

import re

import pytest

from orchestrator.answers import Status, extract
from orchestrator.answers.action_plan import parse_plan
from orchestrator.answers.whole_files import Wanted, read_whole_files
from orchestrator.checks.action_plan import read_plan_delivery
from orchestrator.checks.action_plan_files import PlanWorld
from orchestrator.checks.breakdown import read_breakdown
from orchestrator.checks.breakdown_rules import check_breakdown
from orchestrator.checks.delivery import read_delivery
from orchestrator.checks.whole_files import own_actions
from orchestrator.core.action_plan import ActionPlan, Create
from orchestrator.core.calls.wire import AnalysisAnswer, BreakdownAnswer, DeliveryAnswer, SuiteAnswer
from orchestrator.core.errors import ConfigError
from orchestrator.core.finding import blocking
from orchestrator.core.paths import unsafe_reason
from orchestrator.prompts.render import PROMPT_SLOTS
from tests.prompts.packaged import examples_in, packaged_files, packaged_library

LIBRARY = packaged_library()
CONTRACTS = {
    "architect/breakdown": BreakdownAnswer,
    "developer/delivery": DeliveryAnswer,
    "tester/suite": SuiteAnswer,
    "tester/analysis": AnalysisAnswer,
}


def example(name: str) -> object:
    (text,) = examples_in(name)
    extraction = extract(text, CONTRACTS[name])
    assert extraction.status is Status.OK
    return extraction.value


def test_the_example_of_a_plan_is_sound_but_for_its_path_and_no_plan() -> None:
    plan, said = read_breakdown(example("architect/breakdown"), "US-1", names=True)
    assert plan is not None
    assert {one.code for one in (*blocking(said), *check_breakdown(plan, frozenset(), frozenset()))} == {
        "breakdown.unsafe_path"
    }


@pytest.mark.parametrize("name", sorted(name for name in PROMPT_SLOTS if examples_in(name)))
def test_no_path_of_an_example_can_be_written(name: str) -> None:
    """What a small model copied from the example was a file that any project could have."""
    text = "\n".join(examples_in(name))
    named = re.findall(r'\[(<?[\w./-]+>?)\]\(|^`([^`\n]+)`$|"(?:path|test_file|file)": "([^"]+)"', text, re.MULTILINE)
    named += [(path,) for held in re.findall(r'"files_to_create": \[([^\]]*)\]', text) for path in held.split(",")]
    paths = {part.strip(' "') for group in named for part in group if part}
    assert all(unsafe_reason(path) for path in paths), paths
    assert re.findall(r"[\w-]+/[\w./-]+\.\w+", text) == []


def test_the_example_of_a_delivery_can_be_read_and_is_no_delivery() -> None:
    value = example("developer/delivery")
    assert isinstance(value, dict)
    assert [f.code for f in read_delivery(value, "US-1", "T-US-1-01")[1] if f.severity.blocks] == [
        "delivery.unsafe_path"
    ]


def plan_of(name: str) -> ActionPlan:
    found = parse_plan(examples_in(name)[0])
    assert found.status is Status.OK
    assert found.plan is not None
    return found.plan


def test_the_example_of_an_action_plan_can_be_read_and_its_files_are_no_delivery() -> None:
    plan = plan_of("developer/delivery_plan")
    delivery, said = read_plan_delivery(plan, PlanWorld(paths=frozenset(), texts={}), "US-1", "T-US-1-01")
    assert delivery is None
    assert {finding.code for finding in blocking(said)} == {"delivery.unsafe_path"}
    own = Create(path="a.py", content="A = 1\n")
    kept, left_out = own_actions(plan.model_copy(update={"actions": (own, *plan.actions)}), ["a.py"], ())
    assert kept.actions == (own,)
    assert len(left_out) == 2


def test_the_example_of_whole_files_can_be_read_and_is_no_delivery() -> None:
    (text,) = examples_in("developer/delivery_whole")
    found = read_whole_files(text, Wanted(("<path>",), lambda _path, _text: False), asked=True)
    assert found is not None
    assert [f.code for f in read_delivery(found.value, "US-1", "T-US-1-01")[1]] == ["delivery.unsafe_path"]
    assert read_whole_files(text, Wanted(("a.py",), lambda _path, _text: False), asked=True) is None


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"repair": "<!-- include: shared/outputs -->\n"}, r"repair\.md: it includes shared/outputs.*mean shared/"),
        ({"shared/output": "<!-- include: shared/output -->\n"}, "include each other"),
        ({"repair": "<!-- inclde: shared/output -->\n"}, r"repair\.md, line 1: a marker is written"),
    ],
)
def test_a_bad_include_is_named(files: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        type(LIBRARY)({**packaged_files(), **files})
