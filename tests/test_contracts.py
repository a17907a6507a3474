"""The schemas are the types' own, and the examples show what each accepts and refuses."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from orchestrator.app.judge import KINDS, Surroundings, judge
from orchestrator.checks.analysis import read_stage
from orchestrator.checks.breakdown import merge_missing
from orchestrator.checks.suite import read_analysis
from orchestrator.core.breakdown import ArchitecturalConflict, Breakdown
from orchestrator.core.finding import Finding, blocking
from tests.contracts_tool import FOLDER, TYPES, schema_text
from tests.example_project import FILES, STORY, task_files

ACCEPTED = sorted((FOLDER / "examples" / "accepted").glob("*.json"))
REFUSED = sorted((FOLDER / "examples" / "refused").glob("*.json"))


@cache
def validator(path: Path) -> Draft202012Validator:
    return Draft202012Validator(json.loads(schema_text(path.name.split(".")[0])))


def said(path: Path, value: Any) -> list[Finding]:
    """Everything the readers and checks of its kind say about an example."""
    stem = path.name.split(".")[0]
    if stem == "breakdown_missing":
        empty = Breakdown(
            story_id="US-007", architectural_conflict=ArchitecturalConflict(detected=False), task_count=0, tasks=()
        )
        return merge_missing(empty, value)[1]
    if stem in KINDS:
        around = Surroundings(
            story=STORY,
            files=tuple(FILES),
            texts=FILES,
            task_files=task_files(path) or None,
            read=lambda paths: {name: FILES[name] for name in paths},
        )
        return list(judge(stem, json.dumps(value), around).findings)
    if stem == "stage":
        return read_stage(value, "security")[1]
    return list(read_analysis(value)[1]) if stem == "analysis" else []


def test_the_committed_schemas_are_generated_from_the_types() -> None:
    written = {stem: (FOLDER / f"{stem}.schema.json").read_text(encoding="utf-8") for stem in sorted(TYPES)}
    assert [stem for stem in written if written[stem] != schema_text(stem)] == [], "run: make contracts"
    for text in written.values():
        Draft202012Validator.check_schema(json.loads(text))


def test_every_schema_has_examples_of_both_kinds() -> None:
    for examples in (ACCEPTED, REFUSED):
        assert {path.name.split(".")[0] for path in examples} == set(TYPES)
    assert {path.name.split(".")[0] for path in FOLDER.glob("*.schema.json")} == set(TYPES)


def test_accepted_examples_are_valid_and_nothing_blocks_them() -> None:
    values = {path: json.loads(path.read_text(encoding="utf-8")) for path in ACCEPTED}
    refused = {path.stem: said(path, value) for path, value in values.items() if blocking(said(path, value))}
    assert refused == {}
    assert [path.stem for path, value in values.items() if not validator(path).is_valid(value)] == []


def test_refused_examples_are_refused_by_schema_or_check() -> None:
    values = {path: json.loads(path.read_text(encoding="utf-8")) for path in REFUSED}
    valid = {path: value for path, value in values.items() if validator(path).is_valid(value)}
    assert [path.stem for path, value in valid.items() if not blocking(said(path, value))] == []
