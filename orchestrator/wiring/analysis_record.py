"""Which analysis a command is about: one that is not finished, or a new one."""

from pathlib import Path

from orchestrator.adapters.event_store import EventReader
from orchestrator.adapters.state_folder import StateFolder
from orchestrator.domain.analysis import AnalysisRecord
from orchestrator.domain.backlog_text import id_problem
from orchestrator.domain.masking import Masks
from orchestrator.errors import ConfigError
from orchestrator.ports import Clock
from orchestrator.settings import Environment, Settings
from orchestrator.wiring.analysis_input import AnalysisInput
from orchestrator.wiring.sprints import event_url

MAX_TRIED = 100_000


def chosen_record(folder: StateFolder, name: str | None, asked: str) -> AnalysisRecord | None:
    """The unfinished analysis that asks for the same, or None for a new one.

    Raises ConfigError for a `name` that belongs to an analysis of something else, or to a finished one.
    """
    records = folder.analyses()
    if name is None:
        return next((one for one in reversed(records) if one.asked == asked and not one.finished), None)
    known = next((one for one in records if one.analysis == name), None)
    if known is not None and known.asked != asked:
        raise ConfigError(
            f"analysis {name} was begun with another repository, PRD, profile, prompts or analysis settings; give it "
            "another id"
        )
    if known is not None and known.finished:
        raise ConfigError(f"analysis {name} is finished; leave --id out to begin another one")
    return known


def new_record(
    folder: StateFolder,
    environment: Environment,
    name: str | None,
    given: AnalysisInput,
    settings: Settings,
    clock: Clock,
    masks: Masks,
) -> AnalysisRecord:
    """The record of an analysis that begins now, under `name` or the next free id. Raises ConfigError."""
    return AnalysisRecord(
        analysis=claim(folder, environment, name),
        repo=str(given.repo),
        prd_file=given.prd_file,
        prd=masks.masked(given.prd).text,
        profile=given.chosen.profile,
        prompts=given.prompts,
        triage=settings.analysis.triage,
        fallback=tuple(prompt.id for prompt in given.chosen.prompts),
        contract=settings.analysis.response_contract,
        asked=given.asked,
        started_at=clock.now(),
    )


def claim(folder: StateFolder, environment: Environment, name: str | None) -> str:
    """`name`, or the next free id, which belongs to the caller from now on. Raises ConfigError."""
    if name is not None and (problem := id_problem(name)):
        raise ConfigError(f"--id {name}: {problem}")
    taken = _taken(folder, environment)
    if name in taken:
        raise ConfigError(f"{name} is the id of a sprint or of another state folder's analysis; give it another one")
    return _claimed(folder, name, taken)


def _claimed(folder: StateFolder, name: str | None, taken: frozenset[str]) -> str:
    """An id whose folder is ours from now on: of two commands at once each gets its own."""
    names = [name] if name is not None else (f"AN-{number:03d}" for number in range(1, MAX_TRIED))
    for one in names:
        place: Path = folder.analysis(one)
        if one in taken or (name is None and place.exists()):
            continue
        try:
            place.mkdir(parents=True, exist_ok=name is not None)
        except FileExistsError:
            continue
        return one
    raise ConfigError(f"no id is free in {folder.home}; name one with --id")


def _taken(folder: StateFolder, environment: Environment) -> frozenset[str]:
    """Sprints, and whatever else the log knows."""
    sprints = frozenset(record.sprint for record in folder.records())
    if environment.database_url is None and not folder.event_database.exists():
        return sprints
    reader = EventReader(event_url(environment, folder))
    try:
        return sprints | reader.sprints()
    finally:
        reader.close()
