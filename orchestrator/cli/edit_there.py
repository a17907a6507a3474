"""`edit` through a daemon: it has the project that a plan is judged against, so each look at the plan asks it."""

from collections.abc import Mapping
from typing import Any

from orchestrator.domain.gate import Choice
from orchestrator.domain.sprint import BroughtPlan
from orchestrator.errors import ConfigError
from orchestrator.sprint.answering import expect_choice
from orchestrator.sprint.plan_edit import Edited, read_markdown
from orchestrator.wiring.gates import Asked
from orchestrator.wiring.remote import Remote, asked_of

MARKDOWN = (".md", ".markdown")
"""Names of files that hold a task plan as `run --plan` takes it."""


def asked_there(daemon: Remote, sprint: str | None, story: str, number: int | None) -> Asked:
    """The question that an edit can answer now. Raises ConfigError that says why there is none."""
    asked = asked_of(daemon.story(sprint, story))
    if number is not None and number != asked.gate.number:
        raise ConfigError(f"question {asked.gate.number} of {story} stands now, not {number}")
    expect_choice(story, asked.gate, Choice.EDIT)
    return asked


class There:
    """Hands a plan in as the answer; it is one once the daemon finds nothing against it."""

    def __init__(self, daemon: Remote, asked: Asked, comment: str, by: str, *, file: str | None, force: bool) -> None:
        self.given: Mapping[str, Any] | None = None
        """What counts, once something does."""
        self._daemon, self._asked, self._file = daemon, asked, file
        gate = asked.gate.number
        self._said = {"choice": Choice.EDIT.value, "comment": comment, "gate": gate, "by": by, "force": force}

    def judge(self, text: str) -> Edited:
        """What speaks against the plan, in the daemon's words; accepted when it is answered.

        Raises ConfigError when it cannot be.
        """
        plan: Any = text
        if self._file is not None and self._file.lower().endswith(MARKDOWN):
            read = read_markdown(
                BroughtPlan(path=self._file, text=text), self._asked.story, frozenset(), frozenset(), 0
            )
            if read.plan is None:
                return read._replace(barred=f"nothing was answered: {read.barred}")
            plan = read.plan.model_dump(mode="json")
        place = self._asked.record.sprint, self._asked.story
        try:
            self.given = self._daemon.answer(*place, {**self._said, "plan": plan})
        except ConfigError as error:
            if not error.findings:
                raise
            return Edited(None, tuple(error.findings), error.message)
        return Edited(self._asked.gate.plan, (), "")
