"""A story's question and its answers, as lines for people (`show`, `status`, the live table)."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from orchestrator.cli.logline import cut
from orchestrator.domain.findings import Finding
from orchestrator.domain.gate import Choice, Gate, GateKind
from orchestrator.sprint.answering import time_over

WAITING = "waiting"
"""The word that stands for the status of a story that waits for a person."""
MEANS = {
    Choice.APPROVE: "build it as it is",
    Choice.REJECT: "one more revision by the architect, with your comment",
    Choice.EDIT: "change it in your editor; built once nothing major is found (--file FILE: without an editor)",
    Choice.REPLAN: "planned from the start, with --comment if you like",
    Choice.CANCEL: "give the story up",
}
OF_A_MERGE = {
    Choice.APPROVE: "merge it without the tests that ran before; they are named above",
    Choice.REJECT: "the developer is asked once more, with your comment",
    Choice.CANCEL: "leave it unmerged on its branch",
}
OVERRIDES = "override it: planned anew with the conflict as settled"


def to_type(story: str, gate: Gate) -> str:
    """How a waiting story is answered, short enough for a table; or that it is too late for that."""
    return typed(story, [choice.value for choice in gate.choices], over=bool(time_over(gate, datetime.now(UTC))))


def typed(story: str, choices: Sequence[str], *, over: bool) -> str:
    """The same where only the words are known."""
    return "the time to answer is over" if over else f"orchestrator show {story}, then {' | '.join(choices)}"


def question_lines(shown: Mapping[str, Any]) -> Iterator[str]:
    """What is asked and how to answer, then what was asked before; from `question_json`."""
    if shown["question"]:
        yield from _open_lines(shown["question"])
    if shown["answers"]:
        yield from ("", "Questions answered:")
    for one in shown["answers"]:
        yield f"  {one['number']}, {_at(one['answered_at'])}: {cut(one['said'], 300)} ({cut(one['reason'])})"


def _open_lines(raw: Mapping[str, Any]) -> Iterator[str]:
    gate = Gate.model_validate({name: value for name, value in raw.items() if name != "commands"})
    until = f", until {_at(raw['deadline'])}" if raw["deadline"] else ""
    yield from (
        "",
        f"Waits for a person since {_at(raw['opened_at'])}{until}: question {gate.number}, about the {gate.kind.value}",
    )
    yield f"  why: {cut(gate.reason, 300)}"
    if gate.branch:
        yield f"  its work is on {gate.branch}"
    if gate.plan_file:
        yield f"  the plan is a person's: {gate.plan_file}"
    for issue in (*gate.issues, *gate.notes):
        yield from finding_lines(issue)
    if gate.conflict.detected:
        for name, text in gate.conflict.model_dump(exclude={"detected"}).items():
            yield f"  {name.replace('_', ' ')}: {text}"
    over = time_over(gate, datetime.now(UTC))
    if over:
        yield f"  {over}"
        return
    if gate.barred:
        yield f"  it cannot be approved: {cut(gate.barred, 300)}"
    yield "  answer with one of"
    for choice, command in raw["commands"].items():
        yield f"    {command}"
        yield f"        {_means(gate, Choice(choice))}"


def _means(gate: Gate, choice: Choice) -> str:
    if gate.kind is GateKind.MERGE:
        return OF_A_MERGE.get(choice, MEANS[choice])
    return OVERRIDES if gate.conflict.detected and choice is Choice.APPROVE else MEANS[choice]


def finding_lines(finding: Finding) -> list[str]:
    """A finding with what to do about it."""
    return [f"  {finding}", *([f"      to do: {finding.fix}"] if finding.fix else [])]


def _at(iso: str | None) -> str:
    return f"{datetime.fromisoformat(iso):%Y-%m-%d %H:%M:%S} UTC" if iso else "?"
