"""Who answers whom: the seats of personas, of stronger and cheap models and of those that stand in, by the settings."""

from collections.abc import Mapping
from typing import NamedTuple, get_args

from orchestrator.core.calls.exchange import EASY_PURPOSES, Prompt
from orchestrator.core.errors import ConfigError
from orchestrator.core.value import suggest
from orchestrator.personas import alex, analyst, jordan, mike
from orchestrator.settings import Policies, RequestSettings, Settings, WireFormat
from orchestrator.settings.model import ModelSettings, PersonaSettings, ProviderName


class Seat(NamedTuple):
    """Who answers a persona; personas with the same seat share connections."""

    provider: str
    model: str | None
    base_url: str | None
    timeout_s: float
    max_output_tokens: int
    request: RequestSettings = RequestSettings()

    def changed(self, own: PersonaSettings | ModelSettings) -> "Seat":
        """Returns this seat with what `own` says; with another provider it keeps neither model nor address."""
        same = own.provider in {None, self.provider}
        return Seat(
            provider=own.provider or self.provider,
            model=own.model or (self.model if same else None),
            base_url=own.base_url or (self.base_url if same else None),
            timeout_s=own.timeout_s or self.timeout_s,
            max_output_tokens=own.max_output_tokens or self.max_output_tokens,
            request=self.request.changed(own, same_service=same),
        )

    def __str__(self) -> str:
        return f"{self.provider} {self.model}" if self.model and self.provider != "scripted" else self.provider


class Seats(NamedTuple):
    """Who answers what."""

    default: Seat
    usual: Mapping[str, Seat]
    """Persona → its seat."""
    stronger: Mapping[str, Seat] = {}
    cheap: Seat | None = None
    strong: Seat | None = None
    """`stronger` of personas that name none."""
    fallback: tuple[Seat, ...] = ()

    @property
    def all(self) -> set[Seat]:
        """Returns every seat once."""
        cheap = () if self.cheap is None else (self.cheap,)
        return {*self.usual.values(), *self.stronger.values(), *cheap, *self.fallback}

    @property
    def scripted(self) -> "Seats":
        """Returns the same, answered by a script."""

        def by_script(seats: Mapping[str, Seat]) -> dict[str, Seat]:
            return {name: seat._replace(provider="scripted") for name, seat in seats.items()}

        default = self.default._replace(provider="scripted")
        return Seats(default, by_script(self.usual), by_script(self.stronger))

    def of(self, prompt: Prompt) -> tuple[Seat, ...]:
        """Returns who is asked, and who is asked in its place while its service is away."""
        persona = prompt.key.persona
        first = usual = self.usual.get(persona, self.default)
        if prompt.stronger:
            first = usual = self.stronger.get(persona, usual)
        elif prompt.key.purpose in EASY_PURPOSES and self.cheap is not None:
            first = self.cheap
        return tuple(dict.fromkeys((first, usual, *self.fallback)))

    def setting_of(self, seat: Seat, persona: str) -> str:
        """Returns where the settings name the model of a seat, up to the last dot."""
        if seat in self.fallback and seat != self.usual.get(persona):
            return f"provider.fallback[{self.fallback.index(seat)}]."
        if seat.model == self.default.model:
            return "provider."
        for name, shared in (("cheap", self.cheap), ("strong", self.strong)):
            if seat == shared:
                return f"models.{name}."
        return f"personas.{persona}.{'' if seat == self.usual.get(persona) else 'stronger.'}"

    def __str__(self) -> str:
        own = [f"{persona}: {seat}" for persona, seat in self.usual.items() if seat != self.default]
        strong = [f"{persona} when stuck: {seat}" for persona, seat in self.stronger.items()]
        cheap = [f"easy requests: {self.cheap}"] if self.cheap is not None else []
        fallback = [f"in an outage: {', '.join(map(str, self.fallback))}"] if self.fallback else []
        return ", ".join([str(self.default), *own, *strong, *cheap, *fallback])


PERSONAS = (mike.NAME, alex.NAME, jordan.NAME)
"""Of a sprint, beside the reviewers, who are named by the settings."""


OTHERS = (analyst.NAME,)
"""Who takes no part in sprints."""


def all_seats(settings: Settings, forced: str | None = None) -> Seats:
    """Returns who answers what; `forced` as in `seats_of`, also for models that answer in place of others.

    Raises ConfigError for an unknown persona or provider.
    """
    default, models = default_seat(settings, forced), settings.models
    usual, stronger = seats_of(settings, forced), stronger_of(settings, forced)
    cheap, strong = (_in_place_of(default, own, forced) for own in (models.cheap, models.strong))
    others = (_in_place_of(default, one, forced) for one in settings.provider.fallback)
    # A script is never away.
    fallback = tuple(seat for seat in others if seat is not None and seat.provider != "scripted")
    return Seats(default, usual, stronger, cheap, strong, fallback)


def _in_place_of(usual: Seat, own: ModelSettings | None, forced: str | None) -> Seat | None:
    """Returns the seat of a model that answers in place of a usual one; None where there is none."""
    if own is None or (forced is not None and own.provider not in {None, usual.provider}):
        return None
    return usual.changed(own)


def seats_of(settings: Settings, forced: str | None = None) -> dict[str, Seat]:
    """Persona → its seat. `forced` (--provider) answers everybody: what a persona says for another one is left out.

    Reviewers have one only while review is on. Raises ConfigError for an unknown persona or provider, and for a
    reviewer who is called like another persona, and for iterations of a persona that has none.
    """
    for name in settings.review.reviewers:
        if name in (*PERSONAS, *OTHERS):
            raise ConfigError(
                f"configuration review.reviewers: {name} is another persona; give the reviewer its own name"
            )
    known = (*PERSONAS, *OTHERS, *settings.review.reviewers)
    for name in settings.personas:
        if name not in known:
            raise ConfigError(f"configuration personas.{name}: there is no such persona{suggest(name, known)}")
        counted = (mike.NAME, *settings.review.reviewers)
        if settings.personas[name].max_iterations is not None and name not in counted:
            raise ConfigError(
                f"configuration personas.{name}.max_iterations: only {' and '.join(counted)} have iterations of their "
                "own; deliveries are counted by build.max_attempts, test runs by test.max_attempts"
            )
    default = default_seat(settings, forced)
    return {
        persona: persona_seat(settings, persona, default, forced) for persona in (*PERSONAS, *settings.review.names)
    }


def stronger_of(settings: Settings, forced: str | None = None) -> dict[str, Seat]:
    """Persona → the seat of its stronger model, for personas that have one; `forced` leaves out another provider's.

    Raises ConfigError for an unknown persona or provider.
    """
    default, found = default_seat(settings, forced), dict[str, Seat]()
    for persona, usual in seats_of(settings, forced).items():
        own = settings.personas[persona].stronger if persona in settings.personas else None
        # What is said for all of them goes by the provider of all of them.
        place, said = (usual, own) if own is not None else (default, settings.models.strong)
        seat = _in_place_of(place, said, forced)
        if seat is not None and seat != usual:
            found[persona] = seat
    return found


def formats_of(settings: Settings, forced: str | None = None) -> dict[str, WireFormat]:
    """Persona, reviewers apart → the form its files are asked for in: its own, else everybody's.

    `forced` as in `seats_of`. Raises ConfigError for an unknown persona or provider.
    """
    seats = [persona for persona in seats_of(settings, forced) if persona in PERSONAS]
    own = {persona: settings.personas[persona].format for persona in seats if persona in settings.personas}
    return {persona: own.get(persona) or settings.wire.format for persona in seats}


def policies_of(settings: Settings, forced: str | None = None) -> Policies:
    """Returns what a story of a run with these settings keeps to; `forced` as in `seats_of`. Raises ConfigError."""
    return Policies.of(settings, formats_of(settings, forced), [*stronger_of(settings, forced)])


def model_of(settings: Settings, persona: str, forced: str | None = None) -> str | None:
    """Returns the model that answers a persona; None for a script. Raises ConfigError for an unknown provider."""
    seat = persona_seat(settings, persona, default_seat(settings, forced), forced)
    return seat.model if seat.provider != "scripted" else None


def default_seat(settings: Settings, forced: str | None) -> Seat:
    """Returns the seat of personas that name nothing. Raises ConfigError for an unknown provider."""
    policy, known = settings.provider, get_args(ProviderName)
    name = forced or policy.name
    if name not in known:
        raise ConfigError(f"unknown provider {name}{suggest(name, known)} ({', '.join(known)})")
    request = RequestSettings().changed(policy, same_service=name == policy.name)
    return Seat(name, policy.model, policy.base_url, policy.timeout_s, policy.max_output_tokens, request)


def persona_seat(settings: Settings, persona: str, default: Seat, forced: str | None) -> Seat:
    """Returns a persona's seat; `forced` as in `seats_of`."""
    own = settings.personas.get(persona)
    if own is None:
        return default
    if forced is not None and own.provider not in {None, default.provider}:
        # What the persona says of its model and address is meant for the other provider.
        own = own.model_copy(update={"provider": None, "model": None, "base_url": None, "extra": None})
    return default.changed(own)
