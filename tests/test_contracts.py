"""The schemas are the types' own, and the examples show what each accepts and refuses."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from orchestrator.checks.breakdown import check_breakdown, merge_missing, read_breakdown
from orchestrator.checks.delivery import check_content, read_delivery
from orchestrator.checks.suite import check_suite, read_analysis, read_suite
from orchestrator.domain.breakdown import ArchitecturalConflict, Breakdown
from orchestrator.domain.findings import Finding, blocking
from tests.contracts_tool import FOLDER, TYPES, schema_text

ACCEPTED = sorted((FOLDER / "examples" / "accepted").glob("*.json"))
REFUSED = sorted((FOLDER / "examples" / "refused").glob("*.json"))


def validator(path: Path) -> Draft202012Validator:
    return Draft202012Validator(json.loads(schema_text(path.name.split(".")[0])))


def said(stem: str, value: Any) -> list[Finding]:
    """Everything the readers and checks of this stem say about a value."""
    if stem == "breakdown":
        plan, findings = read_breakdown(value, "US-007")
        return [*findings, *(check_breakdown(plan, frozenset()) if plan else [])]
    if stem == "breakdown_missing":
        empty = Breakdown(
            story_id="US-007", architectural_conflict=ArchitecturalConflict(detected=False), task_count=0, tasks=()
        )
        return merge_missing(empty, value)[1]
    if stem == "delivery":
        delivery, findings = read_delivery(value, "US-007", "T-US-007-01")
        return [*findings, *(check_content(delivery, {}) if delivery else [])]
    if stem == "suite":
        suite, findings = read_suite(value, "US-007")
        return [*findings, *(check_suite(suite, required_criteria=None) if suite else [])]
    return list(read_analysis(value)[1]) if stem == "analysis" else []


@pytest.mark.parametrize("stem", sorted(TYPES))
def test_the_committed_schema_is_generated_from_the_type(stem: str) -> None:
    text = schema_text(stem)
    assert (FOLDER / f"{stem}.schema.json").read_text(encoding="utf-8") == text, "run: python -m tests.contracts_tool"
    Draft202012Validator.check_schema(json.loads(text))


def test_every_schema_has_examples_of_both_kinds() -> None:
    for examples in (ACCEPTED, REFUSED):
        assert {path.name.split(".")[0] for path in examples} == set(TYPES)
    assert {path.name.split(".")[0] for path in FOLDER.glob("*.schema.json")} == set(TYPES)


@pytest.mark.parametrize("path", ACCEPTED, ids=lambda path: path.stem)
def test_an_accepted_example_is_valid_and_nothing_blocks_it(path: Path) -> None:
    value = json.loads(path.read_text(encoding="utf-8"))
    validator(path).validate(value)
    assert blocking(said(path.name.split(".")[0], value)) == ()


@pytest.mark.parametrize("path", REFUSED, ids=lambda path: path.stem)
def test_a_refused_example_is_refused_by_schema_or_check(path: Path) -> None:
    value = json.loads(path.read_text(encoding="utf-8"))
    assert not validator(path).is_valid(value) or blocking(said(path.name.split(".")[0], value))
