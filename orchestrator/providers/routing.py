"""Who answers whom: the providers in use, built from the settings, behind the one port."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import NamedTuple, get_args
from urllib.parse import urlsplit

from orchestrator.core.errors import ConfigError, PermanentProviderError, ServiceAway
from orchestrator.core.exchange import Prompt, Purpose, Reply
from orchestrator.core.ports import Clock, Provider
from orchestrator.core.value import suggest
from orchestrator.personas import alex, analyst, jordan, mike
from orchestrator.providers.base import ModelAccess, ModelProvider
from orchestrator.providers.limits import Limiter
from orchestrator.providers.scripted import CallLog, ScriptedProvider, load_script
from orchestrator.settings import Environment, Policies, RequestSettings, Settings, WireFormat, WireStructured
from orchestrator.settings.model import ModelSettings, PersonaSettings, ProviderName
from orchestrator.settings.options import ModelOptions
from orchestrator.settings.prices import find_price
from orchestrator.storage.recordings import TEAM


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


EASY = frozenset({Purpose.REPAIR, Purpose.PLAN_EXTRACT, Purpose.TRIAGE})
"""What the cheap model is asked for: small requests that share no cached beginning with those of other purposes."""


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
        elif prompt.key.purpose in EASY and self.cheap is not None:
            first = self.cheap
        return tuple(dict.fromkeys((first, usual, *self.fallback)))

    def setting_of(self, seat: Seat, persona: str) -> str:
        """Returns where the settings name the model of a seat, up to the last dot."""
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


class RoutedProvider:
    """`ports.Provider` that hands each prompt to the provider of its persona."""

    def __init__(
        self, seats: Seats, providers: Mapping[Seat, Provider], closers: tuple[Callable[[], Awaitable[None]], ...]
    ) -> None:
        self._seats, self._providers, self._closers = seats, providers, closers
        self.name = seats.default.provider

    async def complete(self, prompt: Prompt) -> Reply:
        """See the port. A service that is away is passed over for the next that may answer in its place."""
        away: ServiceAway | None = None
        told: list[str] = []
        seats = self._seats.of(prompt)
        stronger = seats[0] == self._seats.stronger.get(prompt.key.persona) and prompt.stronger
        why = "what it did had failed in the same way before" if stronger else ""
        for seat in seats:
            try:
                reply = await self._complete(prompt, seat)
            except ServiceAway as error:
                away = away or error
                told.append(error.message)
            except PermanentProviderError as error:
                if away is None:
                    raise
                told.append(error.message)  # the one that was meant takes the request once it is back
            else:
                why = f"{seats[0]} is away: {told[0]}" if told else why
                return reply.model_copy(update={"in_place_of": why}) if why else reply
        assert away is not None
        raise ServiceAway.after(away, "; ".join(told), begun=away.begun, until=away.until) from away

    async def _complete(self, prompt: Prompt, seat: Seat) -> Reply:
        persona, provider = prompt.key.persona, self._providers.get(seat)
        if provider is None:
            # A story keeps the reviewers that it began with; the settings may have lost them since.
            told = f"no provider answers for {persona}, with whom the story began: name it in review.reviewers"
            raise PermanentProviderError(told, kind="bad_request", provider_name=self.name)
        try:
            return await provider.complete(prompt)
        except PermanentProviderError as error:
            if not error.concerns_all:
                raise
            told = f"{error.message.rstrip('. ')}; {self._remedy(error, persona, seat)}"
            raise PermanentProviderError(
                told,
                kind=error.kind,
                code=error.code,
                provider_name=error.provider_name,
                original_message=error.original_message,
            ) from error

    def model_of(self, prompt: Prompt) -> str:
        """Returns the model that the prompt usually goes to; "" for a script."""
        seat = self._seats.of(prompt)[0]
        return (seat.model or "") if seat.provider != "scripted" else ""

    def _remedy(self, error: PermanentProviderError, persona: str, seat: Seat) -> str:
        """Returns the one setting or variable that helps when the service refuses a key or a model."""
        if seat.provider not in VENDORS:
            return "correct the script"
        if error.kind == "model":
            place = self._seats.setting_of(seat, persona)
            # A page that names no model may come from another server than the one that was meant.
            also = "" if "model" in error.message.lower() else f" and {place}base_url to its address"
            return f"set {place}model (now {seat.model}) to a model of this service{also}"
        if error.code == "provider.certificate":
            return "name the certificates of this server, or of the proxy before it, in SSL_CERT_FILE"
        variable = VENDORS[seat.provider].key
        if error.code == "provider.quota":
            return f"pay for the account, or put another key into {variable}"
        return f"put a valid key into {variable}"

    async def close(self) -> None:
        """Give all connections back; again: nothing."""
        closers, self._closers = self._closers, ()
        for close in closers:
            await close()

    def __str__(self) -> str:
        return str(self._seats)


PERSONAS = (mike.NAME, alex.NAME, jordan.NAME)
"""Of a sprint, beside the reviewers, who are named by the settings."""
OTHERS = (analyst.NAME,)
"""Who takes no part in sprints."""


class Vendor(NamedTuple):
    """One service of models."""

    provider: str
    """Module and class of its `ModelProvider`: each SDK takes a second to import, and only the one in use may."""
    key: str
    """Environment variable that holds its key."""
    address: str
    """Environment variable that may hold another address."""
    url: str
    """The service's own address."""
    hosts: tuple[str, ...]
    """Ends of host names that want a key in any case; a server of one's own may want none."""


VENDORS: Mapping[str, Vendor] = {
    "anthropic": Vendor(
        "orchestrator.providers.anthropic:AnthropicProvider",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        "https://api.anthropic.com",
        (".anthropic.com",),
    ),
    "openai": Vendor(
        "orchestrator.providers.openai:OpenAIProvider",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "https://api.openai.com/v1",
        (".openai.com", ".azure.com"),
    ),
}
"""Name in `provider.name` → the vendor. A new one is a row here, a class, and its name in `settings.ProviderName`."""
NO_KEY = "none"
"""Sent to a server without keys: the SDKs send no request without one."""


def open_providers(
    options: ModelOptions,
    settings: Settings,
    environment: Environment,
    clock: Clock,
    *,
    alone: str | None = None,
    also: str | None = None,
) -> RoutedProvider:
    """The providers in use: a sprint's, or that of the persona that works `alone`. Blocks, for seconds with a real one.
    `also` is a persona beside the sprint's that has a seat where its key is there (see `require_seat`).

    Raises ConfigError for what would fail at the first call: a missing model, key or script, an unusable address.
    """
    seats = all_seats(settings, options.provider)
    default, usual = seats.default, dict(seats.usual)
    if alone is not None:
        usual = {alone: _seat(settings, alone, default, options.provider)}
        seats = seats._replace(usual=usual, stronger={})
    if options.replay is not None:
        # The policies of stories follow the settings' models as they did when it was recorded: only the calls do not.
        seats = seats.scripted
        default, usual = seats.default, dict(seats.usual)
    used = seats.all
    if also is not None:
        seat = usual[also] = _seat(settings, also, default, options.provider)
        seats = seats._replace(usual=usual)
        script = options.script or settings.provider.script
        if script if seat.provider == "scripted" else not key_problem(seat, environment):
            used.add(seat)
    if options.script is not None and all(seat.provider != "scripted" for seat in used):
        raise ConfigError(f"--script is for the provider scripted, and {default} answers; add --provider scripted")
    log = CallLog(options.call_log, clock) if options.call_log else None
    if log is not None:
        log.check()
    stream, stall_s = settings.provider.stream, settings.provider.stall_s
    called = [seat for seat in used if seat.provider != "scripted"]
    access = {
        seat: replace(
            _access(seat, environment),
            stream=stream,
            stall_s=stall_s,
            structured=partial(_structured, settings, seat.model or ""),
        )
        for seat in called
    }
    providers: dict[Seat, Provider] = {}
    closers: list[Callable[[], Awaitable[None]]] = []
    pauses = partial(Limiter, pause_s=settings.provider.wait_initial_s, longest_s=settings.provider.wait_max_s)
    limiters: defaultdict[tuple[str, str, str], Limiter] = defaultdict(pauses)
    for seat in used:
        if seat.provider == "scripted":
            providers[seat] = _scripted(options, settings, environment, log)
        else:
            own = access[seat]
            real = _real(seat, own, settings, log, limiters[own.base_url, own.api_key, own.model])
            providers[seat] = real
            closers.append(real.close)
    return RoutedProvider(seats, providers, tuple(closers))


def all_seats(settings: Settings, forced: str | None = None) -> Seats:
    """Returns who answers what; `forced` as in `seats_of`, also for models that answer in place of others.

    Raises ConfigError for an unknown persona or provider.
    """
    default, models = _default_seat(settings, forced), settings.models
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
    reviewer who is called like another persona.
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
    default = _default_seat(settings, forced)
    return {persona: _seat(settings, persona, default, forced) for persona in (*PERSONAS, *settings.review.names)}


def stronger_of(settings: Settings, forced: str | None = None) -> dict[str, Seat]:
    """Persona → the seat of its stronger model, for personas that have one; `forced` leaves out another provider's.

    Raises ConfigError for an unknown persona or provider.
    """
    default, found = _default_seat(settings, forced), dict[str, Seat]()
    for persona, usual in seats_of(settings, forced).items():
        own = settings.personas[persona].stronger if persona in settings.personas else None
        # What is said for all of them goes by the provider of all of them.
        place, said = (usual, own) if own is not None else (default, settings.models.strong)
        seat = _in_place_of(place, said, forced)
        if seat is not None and seat != usual:
            found[persona] = seat
    return found


def formats_of(settings: Settings, forced: str | None = None) -> dict[str, WireFormat]:
    """Persona, reviewers apart → the form its files are asked for in: its own, else its model's, else everybody's.

    `forced` as in `seats_of`. Raises ConfigError for an unknown persona or provider.
    """
    seats = {persona: seat for persona, seat in seats_of(settings, forced).items() if persona in PERSONAS}
    own = {persona: settings.personas[persona].format for persona in seats if persona in settings.personas}
    return {
        persona: own.get(persona) or settings.wire.models.get(seat.model or "", settings.wire.format)
        for persona, seat in seats.items()
    }


def _structured(settings: Settings, model: str, persona: str) -> WireStructured:
    """Returns whether schemas are sent: as the persona says, else the model, else everybody."""
    own = settings.personas[persona].structured if persona in settings.personas else None
    return own or settings.wire.structured_models.get(model, settings.wire.structured)


def policies_of(settings: Settings, forced: str | None = None) -> Policies:
    """Returns what a story of a run with these settings keeps to; `forced` as in `seats_of`. Raises ConfigError."""
    return Policies.of(settings, formats_of(settings, forced), [*stronger_of(settings, forced)])


def model_of(settings: Settings, persona: str, forced: str | None = None) -> str | None:
    """Returns the model that answers a persona; None for a script. Raises ConfigError for an unknown provider."""
    seat = _seat(settings, persona, _default_seat(settings, forced), forced)
    return seat.model if seat.provider != "scripted" else None


def _default_seat(settings: Settings, forced: str | None) -> Seat:
    policy, known = settings.provider, get_args(ProviderName)
    name = forced or policy.name
    if name not in known:
        raise ConfigError(f"unknown provider {name}{suggest(name, known)} ({', '.join(known)})")
    request = RequestSettings().changed(policy, same_service=name == policy.name)
    return Seat(name, policy.model, policy.base_url, policy.timeout_s, policy.max_output_tokens, request)


def _seat(settings: Settings, persona: str, default: Seat, forced: str | None) -> Seat:
    own = settings.personas.get(persona)
    if own is None:
        return default
    if forced is not None and own.provider not in {None, default.provider}:
        # What the persona says of its model and address is meant for the other provider.
        own = own.model_copy(update={"provider": None, "model": None, "base_url": None, "extra": None})
    return default.changed(own)


def keys_there(variables: Mapping[str, str]) -> dict[str, str]:
    """Provider → the variable that holds a key for it, of those that are set; never what is in one."""
    return {name: one.key for name, one in VENDORS.items() if variables.get(one.key, "").strip()}


def require_seat(settings: Settings, environment: Environment, persona: str, forced: str | None) -> None:
    """Raises ConfigError when the provider of `persona` lacks a model, a key or a usable address."""
    seat = _seat(settings, persona, _default_seat(settings, forced), forced)
    if seat.provider != "scripted" and (problem := key_problem(seat, environment)):
        raise ConfigError(problem)


def key_problem(seat: Seat, environment: Environment) -> str:
    """Returns why a seat of a real model cannot be taken: no model, no key, no usable address; "" when it can."""
    try:
        _access(seat, environment)
    except ConfigError as error:
        return error.message
    return ""


def _access(seat: Seat, environment: Environment) -> ModelAccess:
    name, vendor = seat.provider, VENDORS[seat.provider]
    if not seat.model:
        raise ConfigError(
            f"the provider {name} needs a model: --set provider.model=ID, or provider.model in config.yaml"
        )
    base_url = (seat.base_url or environment.variables.get(vendor.address, "")).strip() or vendor.url
    host = _host(base_url, f"the address of the provider {name}")
    key = environment.variables.get(vendor.key, "").strip()
    if not key:
        if f".{host}".endswith(vendor.hosts):
            raise ConfigError(f"the provider {name} needs a key: put it into the environment variable {vendor.key}")
        key = NO_KEY
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ConfigError(f"{vendor.key} holds something that is no key: blanks, line breaks or letters beyond ASCII")
    return ModelAccess(
        model=seat.model,
        api_key=key,
        base_url=base_url,
        timeout_s=seat.timeout_s,
        max_output_tokens=seat.max_output_tokens,
        request=seat.request,
    )


def _host(base_url: str, what: str) -> str:
    if "@" in base_url:
        raise ConfigError(f"{what} holds a name or password; keys come from the environment")
    try:
        parts = urlsplit(base_url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if host is None or parts.scheme not in {"http", "https"} or not base_url.isprintable() or " " in base_url:
        raise ConfigError(f"{what} is no http(s) address: {base_url!r}")
    return host


def _real(seat: Seat, access: ModelAccess, settings: Settings, log: CallLog | None, limiter: Limiter) -> ModelProvider:
    module, _, name = VENDORS[seat.provider].provider.partition(":")
    try:
        kind: type[ModelProvider] = getattr(import_module(module), name)
        on_paid = log.write if log is not None else None
        return kind(access, price=partial(find_price, settings.prices), on_paid=on_paid, limiter=limiter)
    except (ValueError, ImportError) as error:  # a proxy in the environment that cannot be used, for one
        raise ConfigError(f"the provider {seat.provider} cannot be set up: {error}") from error


def _scripted(
    options: ModelOptions, settings: Settings, environment: Environment, log: CallLog | None
) -> ScriptedProvider:
    configured = settings.provider.script
    script = options.script or (environment.base_dir / configured if configured else None)
    if options.replay is not None:
        script = options.replay / TEAM
    if script is None:
        raise ConfigError(
            "the provider `scripted` needs --script FILE or provider.script in the configuration; "
            "for a real model name another: --provider anthropic or openai, and --set provider.model=ID"
        )
    return ScriptedProvider(load_script(script), log)
