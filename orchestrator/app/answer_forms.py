"""What each model has managed so far: in which form it gives files, and whether it has copied a prompt's example.

It stands in the reports of the state folder's sprints (`totals.forms`), and is frozen with a story when it begins.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Literal

from orchestrator.core.sprint import FormOutcome
from orchestrator.providers.routing import PERSONAS, model_of
from orchestrator.settings import Policies, Settings
from orchestrator.storage.state_folder import StateFolder

MAX_REPORTS = 20
"""Sprints that are looked at, the newest ones: a model may have learned, and so may its prompts."""
LEAST_MISSED = 3
"""Answers in another form, or unreadable, from which a form counts as not managed; most of all it was asked for in."""


def outcomes(folder: StateFolder) -> tuple[FormOutcome, ...]:
    """Returns what the reports of the newest sprints say, as far as they can be read. Blocks."""
    found: list[tuple[float, tuple[FormOutcome, ...]]] = []
    for path in folder.report("x").parents[1].glob("*/report.json"):
        with suppress(OSError, ValueError, TypeError, AttributeError):
            told = json.loads(path.read_text(encoding="utf-8"))["totals"].get("forms", ())
            found.append((path.stat().st_mtime, tuple(FormOutcome.model_validate(one) for one in told)))
    newest = sorted(found, key=lambda one: one[0], reverse=True)[:MAX_REPORTS]
    return tuple(one for _, held in newest for one in held)


def begins_with(told: Iterable[FormOutcome]) -> Literal["plan", "whole", "json"]:
    """Returns the first form that a model has not missed most of the times that it was asked for."""
    read, missed = Counter[str](), Counter[str]()
    for one in told:
        read[one.form] += one.whole + one.mended
        missed[one.form] += one.unreadable + one.otherwise
    forms: tuple[Literal["plan", "whole"], ...] = ("plan", "whole")
    return next((form for form in forms if missed[form] < LEAST_MISSED or missed[form] <= read[form]), "json")


def with_experience(
    policies: Policies, settings: Settings, told: Iterable[FormOutcome], forced: str | None = None
) -> Policies:
    """Returns the policies with what is known of each persona's model; a script has no model. Raises ConfigError."""
    of_model: dict[str, list[FormOutcome]] = {}
    for one in told:
        of_model.setdefault(one.model, []).append(one)
    begin: dict[str, Any] = {}
    copied: list[str] = []
    for persona in PERSONAS:
        model = model_of(settings, persona, forced)
        mine = _of(of_model, model) if model else []
        if (form := begins_with(mine)) != "plan":
            begin[persona] = form
        if any(one.copied for one in mine):
            copied.append(persona)
    return policies.model_copy(update={"begin_with": begin, "without_examples": tuple(copied)})


def _of(of_model: Mapping[str, list[FormOutcome]], model: str) -> list[FormOutcome]:
    """Returns what is told of a model, also where the vendor adds a date to its name."""
    return [one for name, held in of_model.items() if name == model or name.startswith(f"{model}-") for one in held]
