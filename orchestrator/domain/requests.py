"""What people send to a sprint: commands, answers, and how much of the past is kept."""

from typing import Annotated, Any, Literal

from pydantic import Field

from orchestrator.domain.base import Value
from orchestrator.domain.control import Verb
from orchestrator.domain.gate import Choice

MOST_DAYS = 100_000
MOST_CHARS = 10_000
"""Of a comment: it becomes a part of the architect's prompt."""
MARKDOWN = (".md", ".markdown")
"""Ends of files that hold a task plan as `run --plan` takes it."""
Comment = Annotated[str, Field(max_length=MOST_CHARS)]
Who = Annotated[str, Field(max_length=80)]
PersonsChoice = Literal[Choice.APPROVE, Choice.REJECT, Choice.EDIT, Choice.REPLAN, Choice.CANCEL]


class OrderBody(Value):
    """An order to a sprint or a story."""

    verb: Verb
    comment: Comment = ""
    by: Who = ""
    """Who gives it; else it counts as given over HTTP."""


class AnswerBody(Value):
    """A person's answer to a story's question."""

    choice: PersonsChoice
    comment: Comment = ""
    gate: Annotated[int, Field(ge=0, le=2**31)] | None = None
    """Only if this question of the story still stands."""
    plan: str | dict[str, Any] | None = None
    """With `edit`: the plan, as an object, or as a text in YAML or JSON."""
    file: Annotated[str, Field(max_length=400)] = ""
    """With `edit`: name of the file that the text came from; a task plan in Markdown is known by it."""
    force: bool = False
    """With `edit`: also with major findings, if it can be carried out."""
    by: Who = ""


class ReplanBody(Value):
    """What the architect is told of a story that is to be planned anew."""

    comment: Comment = ""
    gate: Annotated[int, Field(ge=0, le=2**31)] | None = None
    by: Who = ""


class PruneBody(Value):
    """How to look at the past; what is left out is as the daemon's settings say."""

    dry_run: bool = False
    """Say what would go and how much it frees."""
    days: Annotated[float, Field(gt=0, le=MOST_DAYS)] | None = None
    """In place of `retention.days`; null: never by age."""
    max_mb: Annotated[int, Field(ge=1)] | None = None
    """In place of `retention.max_mb`; null: no limit."""
