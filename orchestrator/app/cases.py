"""`answers export` and `answers replay`: kept replies as cases, and the installed version run over them."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from orchestrator.answers import Extraction, Status
from orchestrator.answers.cases import Replayed, exported, replay
from orchestrator.core.calls.exchange import Reply
from orchestrator.core.calls.wire import WIRE_SCHEMAS
from orchestrator.core.case import Case, CaseSource, CaseWritten
from orchestrator.core.errors import ConfigError, UnknownName
from orchestrator.core.secrets import redact, secrets_of
from orchestrator.core.sprint import PLAN_READING
from orchestrator.core.value import suggest
from orchestrator.settings import Environment, packaged
from orchestrator.storage.case_files import read_cases, write_case
from orchestrator.storage.reply_journal import JournalEntry, ReplyJournal
from orchestrator.storage.state_folder import StateFolder

LONGEST_NAME = 200  # file systems take 255 bytes


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Selection of replies; None selects all."""

    sprint: str | None = None
    story: str | None = None
    fine_too: bool = False
    """Also answers that were whole and valid."""


@dataclass
class Exported:
    """Result of an export."""

    written: dict[CaseWritten, list[str]] = field(default_factory=dict)
    statuses: Counter[Status] = field(default_factory=Counter)
    left_out: int = 0
    """Replies that were to be no answer of their own, or that a version kept that did not note their contract."""
    altered: list[str] = field(default_factory=list)
    """Cases that are read otherwise than their replies because secrets were taken out."""

    def names(self, what: CaseWritten) -> list[str]:
        """Cases that this became of, in order."""
        return self.written.get(what, [])


def export(folder: Path, choice: Choice, environment: Environment, *, replace: bool = False) -> Exported:
    """Keeps every wanted reply that was repaired, cut off or refused as a case. Raises ConfigError. Blocks."""
    secrets = secrets_of(environment.variables)
    done = Exported()
    for sprint, story, entry in _replies(StateFolder.of(environment), choice):
        # Without a contract of its own, as a repair has none, a reply cannot be replayed alone.
        if entry.schema_name not in WIRE_SCHEMAS or entry.reply is None:
            done.left_out += 1
            continue
        case, extraction = _case(sprint, story, entry, secrets)
        if extraction.status is Status.OK and not choice.fine_too:
            continue
        became = write_case(folder, case, _dump(extraction), replace=replace)
        done.written.setdefault(became, []).append(case.name)
        done.statuses[extraction.status] += 1
        if case.source.redaction_changed:
            done.altered.append(case.name)
    return done


def reasonings(choice: Choice, environment: Environment) -> Iterator[tuple[str, str, Reply]]:
    """Yields (sprint, story, reply without secrets) of replies that tell their model's thoughts. Raises ConfigError."""
    secrets = secrets_of(environment.variables)
    for sprint, story, entry in _replies(StateFolder.of(environment), choice):
        if entry.reply is not None and entry.reply.reasoning:
            thoughts = redact(entry.reply.reasoning, known=secrets)
            yield sprint, story, entry.reply.model_copy(update={"reasoning": thoughts})


def replay_all(folder: Path) -> list[Replayed]:
    """Returns the installed version over every case. Raises ConfigError naming a damaged file. Blocks."""
    return [replay(case) for case in read_cases(folder)]


def _replies(state: StateFolder, choice: Choice) -> Iterator[tuple[str, str, JournalEntry]]:
    journal = ReplyJournal(state.replies, state.shared)
    workflows = journal.stories()
    if not workflows:
        raise ConfigError(f"no reply is kept in {state.home}; a sprint leaves some")
    _expect("sprint", choice.sprint, {sprint for sprint, _ in workflows})
    mine = [(sprint, story) for sprint, story in workflows if choice.sprint in (None, sprint)]
    _expect("story", choice.story, {_story(workflow) for _, workflow in mine})
    for sprint, story in mine:
        if choice.story in (None, story, _story(story)):
            # The placeholder for a missing script entry is not an answer.
            entries = (
                entry for entry in journal.entries(sprint, story) if entry.reply is not None and entry.reply.paid
            )
            yield from ((sprint, story, entry) for entry in entries)


def _story(workflow: str) -> str:
    """Returns the story that a workflow belongs to, whichever of its generations or plans it is about."""
    return workflow.partition(PLAN_READING)[0].partition("@")[0]


def _expect(what: str, name: str | None, known: set[str]) -> None:
    if name is not None and name not in known:
        raise ConfigError(f"no reply of a {what} {name} is kept{suggest(name, known)}")


def _case(sprint: str, story: str, entry: JournalEntry, secrets: Sequence[str]) -> tuple[Case, Extraction]:
    reply, key, contract = entry.reply, entry.key, entry.schema_name
    assert reply is not None
    assert contract is not None
    source = CaseSource(
        sprint=sprint,
        story=story,
        task=key.task,
        persona=key.persona,
        purpose=key.purpose,
        turn=entry.turn,
        model=reply.model,
        provider=reply.provider,
        stop_reason=reply.stop_reason,
        prompt=entry.prompt,
        prompt_version=entry.prompt_version,
        contract=contract,
    )
    schema: dict[str, Any] = WIRE_SCHEMAS[contract].model_json_schema()
    return exported(_name(source), reply.text, schema, source, partial(redact, known=secrets))


def _name(source: CaseSource) -> str:
    """Returns one folder name per reply: no id holds a `+`."""
    parts = (source.sprint, source.story, source.persona, source.purpose, source.task, str(source.turn))
    name = "+".join(re.sub(r"[^\w.@-]", "_", part) for part in parts if part)
    # The hash keeps two long names apart.
    return name if len(name) <= LONGEST_NAME else f"{name[:180]}+{hashlib.sha256(name.encode()).hexdigest()[:10]}"


def _dump(extraction: Extraction) -> dict[str, Any]:
    return {"value": extraction.value} | extraction.model_dump(mode="json", exclude={"value"})


SUFFIX = ".schema.json"


def schema_of(name: str) -> dict[str, Any]:
    """Returns what an answer of this contract must fit. Raises UnknownName naming the nearest. Blocks."""
    folder = packaged("contracts")
    known = sorted(path.name.removesuffix(SUFFIX) for path in folder.glob(f"*{SUFFIX}"))
    if name not in known:
        raise UnknownName(f"unknown contract {name}{suggest(name, known)}")
    schema: dict[str, Any] = json.loads((folder / f"{name}{SUFFIX}").read_text(encoding="utf-8"))
    return schema
