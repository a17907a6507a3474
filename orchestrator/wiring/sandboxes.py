"""The sandbox that a command line's commands run in, and how it is told."""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from orchestrator.adapters.sandbox.choose import open_sandbox
from orchestrator.adapters.sandbox.places import is_system
from orchestrator.adapters.sandbox.tier import Sandbox
from orchestrator.domain.events import Event, Level
from orchestrator.domain.sandbox import SANDBOX_CHOSEN, SandboxFacts, Tier
from orchestrator.settings import Environment, Settings
from orchestrator.wiring.runners import command_path
from orchestrator.wiring.sprints import Chosen, begun_event


async def sandbox_for(settings: Settings, environment: Environment) -> Sandbox:
    """The tier that the settings ask for and this machine has. Raises ConfigError."""
    sandbox = settings.sandbox.model_copy(update={"readable": _readable(settings, environment)})
    return await open_sandbox(sandbox, command_path(environment), (environment.home, environment.base_dir))


def _readable(settings: Settings, environment: Environment) -> tuple[str, ...]:
    python = Path(settings.environment.python or "").expanduser()
    prefixes = [python.parent.parent, python.resolve().parent.parent] if python.is_absolute() else []
    named = [environment.base_dir / Path(name).expanduser() for name in settings.sandbox.readable]
    return tuple(str(path) for path in (*named, *(one for one in prefixes if not is_system(one))))


def sandbox_told(events: Iterable[Event]) -> SandboxFacts | None:
    """The tier of the latest run, as the sprint's events tell it; None where none does."""
    told = [event.data["sandbox"] for event in events if event.name == SANDBOX_CHOSEN]
    return SandboxFacts.model_validate(told[-1]) if told else None


def begun_events(chosen: Chosen, provider: str, facts: SandboxFacts, now: datetime) -> tuple[Event, Event]:
    """That a sprint starts or goes on, and in which tier the commands of this run are."""
    sprint = chosen.record.sprint
    told = Event(
        id=f"{sprint}:{SANDBOX_CHOSEN}:{now.isoformat()}",
        time=now,
        name=SANDBOX_CHOSEN,
        message=str(facts),
        sprint=sprint,
        level=Level.WARN if facts.tier is Tier.PLAIN else Level.INFO,
        data={"sandbox": facts.model_dump(mode="json")},
    )
    return begun_event(chosen, provider, now), told
