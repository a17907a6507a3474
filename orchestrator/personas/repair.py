"""The one repair request of an answer loop: what is sent, and what is made of the reply.

A text within `context_tokens` is sent whole with the place shown, and the reply is a whole answer. A longer one is not
sent: a model would shorten it, and the short form would pass for the whole. Asking anew costs as much as the first
answer did and breaks as easily, so only the part around the place is sent. Its repaired form is put back where it was,
and only if it says the same letter for letter, and the text it makes goes through `extract` again. A window that
would have to be read on its own is refused: nothing tells a part from a whole.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.answers import Extraction, Status, extract
from orchestrator.answers.locate import Located, locate
from orchestrator.answers.patch import Part, offset_of, part_around, patched
from orchestrator.domain.base import AnswerValue
from orchestrator.domain.exchange import Reply
from orchestrator.domain.findings import Finding
from orchestrator.prompts import context

UNREADABLE = "answer.unreadable"
"""Code of the finding that names the place where an answer breaks."""


@dataclass(frozen=True, kw_only=True)
class RepairRequest:
    """What to send; `part` is set when only a part is."""

    prompt: str
    slots: Mapping[str, str]
    broken: Reply
    answer: type[AnswerValue]
    part: Part | None = None

    def read(self, reply: Reply) -> tuple[Reply, Extraction] | None:
        """The whole text as repaired and what it holds; None when it is no whole answer."""
        text: str | None = reply.text
        if self.part is not None:
            text = patched(self.broken.text, self.part, reply.text)
        if text is None:
            return None
        extraction = extract(text, self.answer)
        if extraction.status not in (Status.OK, Status.REPAIRED):
            return None
        return reply.model_copy(update={"text": text}), extraction


def repair_request(
    broken: Reply, extraction: Extraction, answer: type[AnswerValue], schema: Mapping[str, Any], context_tokens: int
) -> RepairRequest | None:
    """The request for a reply that was refused; None when there is nothing to repair, or too much without a place."""
    if not broken.text.strip():
        return None
    place = next((one for one in extraction.problems if one.code == UNREADABLE and one.where.line), None)
    whole = context.tokens(broken.text) <= context_tokens
    if place is None:
        told = Located(field="", contract=dict(schema))
        return _whole(broken, answer, _problems(extraction, ""), told) if whole else None
    line, column = place.where.line or 1, place.where.column or 1
    offset = offset_of(broken.text, line, column)
    told = locate(broken.text, offset, dict(schema))
    problem = f"{_problems(extraction, told.field)}\n\n{context.render_excerpt(broken.text, line, column)}"
    if whole:
        return _whole(broken, answer, problem, told)
    part = part_around(broken.text, offset)
    slots = {
        "schema": _schema(told),
        "problem": problem,
        "part": context.fence(broken.text[part.start : part.end]),
    }
    return RepairRequest(prompt="repair_part", slots=slots, broken=broken, answer=answer, part=part)


def _whole(broken: Reply, answer: type[AnswerValue], problem: str, told: Located) -> RepairRequest:
    slots = {"schema": _schema(told), "problem": problem, "broken": context.fence(broken.text)}
    return RepairRequest(prompt="repair", slots=slots, broken=broken, answer=answer)


def _problems(extraction: Extraction, field: str) -> str:
    return "\n".join(f"- {_named(problem, field)}" for problem in extraction.problems)


def _named(problem: Finding, field: str) -> Finding:
    """With the field that is being read there, unless the finding names one."""
    if not field or problem.code != UNREADABLE or problem.where.field:
        return problem
    return problem.model_copy(update={"where": problem.where.model_copy(update={"field": field})})


def _schema(told: Located) -> str:
    return context.fence(json.dumps(told.contract, ensure_ascii=False), "json")
