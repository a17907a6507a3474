"""Which prompts an analysis asks: a profile's, those named, or all of a folder of the user's own (pure)."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rapidfuzz import process

from orchestrator.domain.analysis import StagePrompt
from orchestrator.errors import ConfigError
from orchestrator.settings import AnalysisSettings

NAMED = "custom"
"""Called so in the plan when stages are named one by one."""


class Chosen(NamedTuple):
    """What is asked, under which name."""

    profile: str
    prompts: tuple[StagePrompt, ...]


class Library(NamedTuple):
    """The packaged prompts and the user's own, each by id in their order."""

    packaged: Mapping[str, StagePrompt]
    own: Mapping[str, StagePrompt]
    own_name: str = ""
    """Name of the user's folder."""

    @property
    def all(self) -> dict[str, StagePrompt]:
        """By id; the user's own goes first."""
        return {**self.packaged, **self.own}


def choose(library: Library, settings: AnalysisSettings, *, profile: str | None, stages: Sequence[str]) -> Chosen:
    """The prompts of `stages`, else of the profile named; with neither, all of the user's own folder where there is
    one, else those of the configured profile.

    Raises ConfigError, naming the nearest, for an unknown profile or prompt, and for a profile without any.
    """
    if stages:
        return Chosen(NAMED, _with_history(_found(library, stages, "--stages"), settings))
    if profile is None and library.own:
        return Chosen(library.own_name, _with_history(tuple(library.own.values()), settings))
    name = profile or settings.profile
    if name not in settings.profiles:
        near = _nearest(name, list(settings.profiles))
        raise ConfigError(f"there is no profile {name}{near} ({', '.join(settings.profiles)})")
    prompts = _found(library, settings.profiles[name], f"profile {name}")
    if not prompts:
        raise ConfigError(f"the profile {name} names no prompt")
    return Chosen(name, _with_history(prompts, settings))


def offered(library: Library, settings: AnalysisSettings) -> tuple[StagePrompt, ...]:
    """Every prompt there is, for triage."""
    return _with_history(tuple(library.all.values()), settings)


def _with_history(prompts: tuple[StagePrompt, ...], settings: AnalysisSettings) -> tuple[StagePrompt, ...]:
    """As `analysis.history` has it."""
    if settings.history == "auto":
        return prompts
    return tuple(prompt.model_copy(update={"history": settings.history == "always"}) for prompt in prompts)


def _found(library: Library, names: Sequence[str], where: str) -> tuple[StagePrompt, ...]:
    known = library.all
    for name in names:
        if name not in known:
            raise ConfigError(f"{where}: there is no prompt {name}{_nearest(name, list(known))}")
    return tuple(known[name] for name in dict.fromkeys(names))


def _nearest(name: str, known: Sequence[str]) -> str:
    found = process.extractOne(name, known)
    return f"; did you mean {found[0]}?" if found else ""
