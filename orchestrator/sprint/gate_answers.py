"""Checks a person's answer to a story's question: which question is open, and which answers it allows."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from orchestrator.core.command import (
    DONE_AS,
    GATE_ANSWERED,
    GATE_OPENED,
    MOST_CHARS,
    Choice,
    Gate,
    GateAnswer,
    GateKind,
)
from orchestrator.core.errors import ConfigError
from orchestrator.core.history import StoryHistory
from orchestrator.core.secrets import redact
from orchestrator.core.sprint import StoryStatus

_MEANS = {
    Choice.APPROVE: "build it as it is",
    Choice.REJECT: "one more revision by the architect, with your comment",
    Choice.EDIT: "change it; it is built once nothing major is found",
    Choice.REPLAN: "planned from the start, with your comment if you give one",
    Choice.CANCEL: "give the story up",
}
_OF_A_MERGE = {
    Choice.APPROVE: "merge it without the tests that ran before; they are named above",
    Choice.REJECT: "the developer is asked once more, with your comment",
    Choice.CANCEL: "leave it unmerged on its branch",
}


def explain_choice(gate: Gate, choice: Choice) -> str:
    """Returns what an answer does, for people."""
    if choice is Choice.APPROVE and any(one.code == "contract.ci" for one in gate.issues):
        return "merge it with what is named above"
    if gate.kind is GateKind.MERGE:
        return _OF_A_MERGE.get(choice, _MEANS[choice])
    if gate.conflict.detected and choice is Choice.APPROVE:
        return "override it: planned again with the conflict as settled"
    if gate.mended and choice is Choice.APPROVE:
        return "build its mended form"
    return _MEANS[choice]


class Question(NamedTuple):
    """One question of a story, with its answer."""

    gate: Gate
    answer: GateAnswer | None
    """None while it is unanswered."""
    answered_at: datetime | None


def questions(history: StoryHistory) -> tuple[Question, ...]:
    """Returns all questions of the story's current generation, oldest first."""
    given = {
        answer.number: (answer, event.time)
        for event in history.select({GATE_ANSWERED})
        for answer in [GateAnswer.model_validate(event.data["answer"])]
    }
    asked = [Gate.model_validate(event.data["gate"]) for event in history.select({GATE_OPENED})]
    return tuple(Question(gate, *given.get(gate.number, (None, None))) for gate in asked)


def open_gate(story: str, history: StoryHistory, number: int | None, now: datetime) -> Gate:
    """Returns the open question; with a `number` only that one. Raises ConfigError when there is none."""
    asked, gate = questions(history), history.waits_for
    if number is not None and (gate is None or gate.number != number):
        raise ConfigError(_other_number(story, asked, gate, number))
    if gate is None:
        raise ConfigError(_waits_for_nobody(story, history, asked))
    over = time_over(gate, now)
    if over:
        raise ConfigError(f"question {gate.number} of {story}: {over}")
    return gate


def time_over(gate: Gate, now: datetime) -> str:
    """Returns the message for a question past its deadline, "" while it can be answered."""
    if gate.deadline is None or now < gate.deadline:
        return ""
    return (
        f"the time to answer ended at {_at(gate.deadline)}; "
        "the story continues as gate.on_timeout says, with the next start if it is not running now"
    )


def expect_choice(story: str, gate: Gate, choice: Choice) -> None:
    """Raises ConfigError, with the alternatives, when `choice` does not answer the question."""
    if choice in gate.choices:
        return
    if choice is Choice.APPROVE and gate.barred:
        what = "" if gate.kind is GateKind.MERGE else "the plan cannot be carried out as it is: "
        why = f"{what}{gate.barred}"
    elif gate.kind is GateKind.MERGE:
        why = f"its plan is built; cancel leaves it on {gate.branch}, and replan builds it again after that"
    elif choice is Choice.EDIT and gate.kind is GateKind.CONFLICT:
        why = "a conflict is not settled in the plan: approve overrides it, reject has the architect look again"
    elif choice is Choice.REJECT and gate.plan_file:
        why = f"it is a person's plan ({gate.plan_file}), which the architect does not rewrite: edit it, or replan"
    else:
        why = "that is no answer to it"
    offered = ", ".join(one.value for one in gate.choices)
    raise ConfigError(f"{choice.value} does not answer question {gate.number} of {story}: {why}; it takes {offered}")


def kept_comment(comment: str) -> str:
    """Returns a person's comment without secrets, for the record and the architect.

    Raises ConfigError when it is not valid text or too long for a prompt.
    """
    try:
        comment.encode()
    except UnicodeEncodeError as error:
        raise ConfigError("the comment is not UTF-8") from error
    if len(comment) > MOST_CHARS:
        raise ConfigError(f"the comment has more than {MOST_CHARS} characters: say it shorter, or edit the plan")
    return redact(comment.strip())


def settled(gate: Gate, answer: GateAnswer) -> str:
    """Returns the answer in one line."""
    if answer.choice is Choice.TIME_OUT:
        return "nobody answered in time"
    comment = " ".join(answer.comment.split())
    overridden = gate.kind is GateKind.CONFLICT and answer.choice is Choice.APPROVE
    done = "overridden" if overridden else DONE_AS[answer.choice]
    return f"the {gate.kind.value} is {done} by {answer.by}" + (f": {comment}" if comment else "")


def answered_first(story: str, gate: Gate, answer: GateAnswer, at: datetime) -> str:
    """Returns the reason for refusing a second answer."""
    if answer.choice is Choice.TIME_OUT:
        ended = _at(gate.deadline or at)
        return f"question {gate.number} of {story} was not answered in time, which ended at {ended}"
    return f"question {gate.number} of {story} was answered already, at {_at(at)}: {settled(gate, answer)}"


def _other_number(story: str, asked: Sequence[Question], gate: Gate | None, number: int) -> str:
    known = next((one for one in asked if one.gate.number == number), None)
    if known is None:
        stands = f"question {gate.number} is open" if gate is not None else "no question is open"
        return f"{story} has no question {number}: {stands}; see `orchestrator show {story}`"
    now = f"question {gate.number} stands now" if gate is not None else "nothing is asked now"
    return f"{_answered(story, known)}; {now}: look at it again with `orchestrator show {story}`"


def _waits_for_nobody(story: str, history: StoryHistory, asked: Sequence[Question]) -> str:
    last = f"; {_answered(story, asked[-1])}" if asked and asked[-1].answer is not None else ""
    return f"{story} waits for no answer: {_standing(story, history)}{last}"


def _standing(story: str, history: StoryHistory) -> str:
    status = history.status
    if status is StoryStatus.PENDING:
        return "it has not started"
    if status is StoryStatus.EXECUTING:
        return "it is at work"
    if status is StoryStatus.DONE:
        return "it is done"
    if status is StoryStatus.BLOCKED and history.outcome is not None:
        return f"it is blocked by {', '.join(history.outcome.blocked_by)}"
    return f"it ended as {status}; `orchestrator replan {story} --comment TEXT` has it planned again"


def _answered(story: str, question: Question) -> str:
    if question.answer is None or question.answered_at is None:
        return f"question {question.gate.number} of {story} was never answered"
    return answered_first(story, question.gate, question.answer, question.answered_at)


def _at(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"
