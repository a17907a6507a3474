"""The shapes personas are asked to answer in: source of contracts/*.schema.json and of the extraction contract.

Looser than the values built from them: normalisation and the checks turn these into Breakdown, Delivery, TestSuite."""

from typing import Any, Literal

from pydantic import ConfigDict, Field

from orchestrator.core.breakdown import ArchitecturalConflict
from orchestrator.core.value import AnswerValue


def aliased(*others: str) -> Any:
    """Returns a required field that may also arrive under `others`; the schema says so as `x-aliases`."""
    return Field(json_schema_extra={"x-aliases": list(others)})


OR_PLAN = ConfigDict(json_schema_extra={"x-action-plan": True})
"""Of an answer that may come as an action plan instead; the schema says so."""


class WireValue(AnswerValue):
    """A part of an answer, described by the docstrings below its fields."""

    # Read on import, unlike those of other values: such a schema is made while stories run, where no file may be read.
    model_config = ConfigDict(use_attribute_docstrings=True)


class WireTask(WireValue):
    """A task as the architect writes it."""

    task_id: str = aliased("taskId", "id")
    description: str = aliased("title")
    files_to_create: list[str]
    command_to_run: str | None = None
    dependencies: list[str] = Field(default_factory=list)
    dependency_reason: str | None = ""


class WirePackages(WireValue):
    """Added packages as in package.json."""

    dependencies: dict[str, str] | list[str] = Field(default_factory=dict)
    devDependencies: dict[str, str] | list[str] = Field(default_factory=dict)


class BreakdownAnswer(WireValue):
    """The architect's answer to purpose `breakdown`."""

    story_id: str
    architectural_conflict: ArchitecturalConflict
    tasks: list[WireTask]
    task_count: int | None = None
    dependencies: WirePackages | list[str] | dict[str, str] | None = None
    acceptance_tests: list[Any] | None = None
    tests_to_change: list[Any] | None = None
    database_design: Any = None
    api_design: Any = None
    code_patterns: Any = None
    conventions: Any = None
    tech_stack: Any = None
    todos: Any = None
    technical_notes: Any = None


class BreakdownMissingAnswer(WireValue):
    """The architect's answer to purpose `breakdown_missing`: the tasks that were missing (known ones may repeat)."""

    tasks: list[WireTask]
    story_id: str | None = None
    architectural_conflict: ArchitecturalConflict | None = None
    task_count: int | None = None
    dependencies: WirePackages | list[str] | dict[str, str] | None = None


class AmendmentAnswer(WireValue):
    """The architect's answer to purpose `amendment`: what of the things asked for is allowed; empty grants nothing."""

    files: list[str]
    dependencies: WirePackages | list[str] | dict[str, str] | None
    reason: str
    story_id: str | None = None


class WireFile(WireValue):
    """A delivered file."""

    path: str = aliased("filename", "file")
    content: str


class DeliveryAnswer(WireValue):
    """The developer's answer to purposes `delivery` and `continuation`."""

    model_config = OR_PLAN

    files: list[WireFile] | dict[str, Any] = aliased("created_files", "updated_files")
    story_id: str | None = None
    task_id: str | None = None
    title: str | None = None
    notes: Any = None


class WireTestCase(WireValue):
    """One test as the tester names it."""

    name: str
    criterion: str | int | list[str | int] | None = ""
    """The number of the acceptance criterion that it shows."""


class SuiteAnswer(WireValue):
    """The tester's answer to purpose `suite`."""

    model_config = OR_PLAN

    test_file: str
    test_content: str
    test_cases: list[WireTestCase | str]
    changed_tests: list[WireFile] | None = None
    story_id: str | None = None


class WireInstruction(WireValue):
    """One instruction of a failure analysis."""

    file: str
    issue: str
    fix: str
    function: str | None = ""


class WireReason(WireValue):
    """Why the suite itself is wrong, or what the environment lacks."""

    reason: str


class WireTestToChange(WireValue):
    """An older test file that expects what the story changes on purpose."""

    file: str
    reason: str


class AnalysisAnswer(WireValue):
    """The tester's answer to purpose `analysis`."""

    failure_analysis: list[WireInstruction]
    suite_fault: WireReason | None = None
    environment: WireReason | None = None
    tests_to_change: list[WireTestToChange] | None = None
    story_id: str | None = None


class WireImprovement(WireValue):
    """A task as an analysis writes it."""

    title: str
    description: str
    priority: Literal["critical", "high", "medium", "low"]
    file: str | None = None
    acceptance_criteria: list[str] | None = None
    depends_on: list[str] | None = None


class StageAnswer(WireValue):
    """The analyst's answer to purpose `stage`."""

    summary: str
    recommendations: list[str]
    tasks: list[WireImprovement]


WIRE_SCHEMAS: dict[str, type[AnswerValue]] = {
    "breakdown": BreakdownAnswer,
    "breakdown_missing": BreakdownMissingAnswer,
    "amendment": AmendmentAnswer,
    "delivery": DeliveryAnswer,
    "suite": SuiteAnswer,
    "analysis": AnalysisAnswer,
    "stage": StageAnswer,
}
"""Stem of the file in contracts/ → the type it is generated from."""
