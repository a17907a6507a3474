"""Who answers whom: the providers in use, built from the settings, behind the one port."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import NamedTuple
from urllib.parse import urlsplit

from orchestrator.core.calls.exchange import Prompt, Reply
from orchestrator.core.errors import ConfigError, PermanentProviderError, ProviderIncomplete, ServiceAway
from orchestrator.core.ports import Clock, Provider
from orchestrator.providers.base import ModelAccess, ModelProvider
from orchestrator.providers.limits import Limiter
from orchestrator.providers.proxies import proxy_before
from orchestrator.providers.scripted import CallLog, Script, ScriptedProvider, load_script
from orchestrator.providers.seats import Seat, Seats, all_seats, persona_seat
from orchestrator.settings import Environment, PriceSettings, Settings, WireStructured
from orchestrator.settings.options import AnalyseOptions, ModelOptions
from orchestrator.settings.prices import find_price
from orchestrator.storage.recordings import TEAM


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
        own = ", or correct the credentials of this machine" if VENDORS[seat.provider].is_cloud else ""
        return f"put a valid key into {variable}{own}"

    async def close(self) -> None:
        """Give all connections back; again: nothing."""
        closers, self._closers = self._closers, ()
        for close in closers:
            await close()

    def __str__(self) -> str:
        return str(self._seats)


def open_script(script: Script, name: str) -> RoutedProvider:
    """Returns a provider, called `name`, that answers everybody from a script in memory."""
    seat = Seat(name, None, None, timeout_s=0, max_output_tokens=0)
    return RoutedProvider(Seats(seat, {}), {seat: ScriptedProvider(script)}, ())


class Vendor(NamedTuple):
    """One service of models."""

    provider: str
    """Module and class of its `ModelProvider`: each SDK takes a second to import, and only the one in use may."""
    key: str
    """Environment variable that holds its key."""
    address: str
    """Environment variable that may hold another address."""
    url: str
    """The service's own address; "" where each customer has another."""
    hosts: tuple[str, ...] = ()
    """Ends of host names that want a key in any case; a server of one's own may want none."""
    needs: tuple[str, ...] = ()
    """Further environment variables that must be set."""
    is_cloud: bool = False
    """Whether its client knows the address by the region, and finds this machine's credentials where no key is set."""


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
    "openai-responses": Vendor(
        "orchestrator.providers.openai_responses:OpenAIResponsesProvider",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "https://api.openai.com/v1",
        (".openai.com", ".azure.com"),
    ),
    "azure": Vendor(
        "orchestrator.providers.openai:AzureOpenAIProvider",
        "AZURE_OPENAI_API_KEY",
        "AZURE_OPENAI_ENDPOINT",
        "",
        (".azure.com",),
        needs=("OPENAI_API_VERSION",),
    ),
    "bedrock": Vendor(
        "orchestrator.providers.anthropic_clouds:BedrockProvider",
        "AWS_BEARER_TOKEN_BEDROCK",
        "ANTHROPIC_BEDROCK_BASE_URL",
        "",
        needs=("AWS_REGION",),
        is_cloud=True,
    ),
    "vertex": Vendor(
        "orchestrator.providers.anthropic_clouds:VertexProvider",
        "CLOUDSDK_AUTH_ACCESS_TOKEN",
        "ANTHROPIC_VERTEX_BASE_URL",
        "",
        needs=("CLOUD_ML_REGION", "ANTHROPIC_VERTEX_PROJECT_ID"),
        is_cloud=True,
    ),
}
"""Name in `provider.name` → the vendor. A new one is a row here, a class, and its name in `settings.ProviderName`."""
NO_KEY = "no-key"
"""Sent to a server without keys: the SDKs send no request without one. No word of a server's own: it is redacted."""


def open_providers(
    options: ModelOptions,
    settings: Settings,
    environment: Environment,
    clock: Clock,
    *,
    alone: str | None = None,
) -> RoutedProvider:
    """The providers in use: a sprint's, or that of the persona that works `alone`. Blocks, for seconds with a real one.

    Raises ConfigError for what would fail at the first call: a missing model, key or script, an unusable address; and
    for a budget in money that some model's calls would not count in.
    """
    seats = _seats(options, settings, alone)
    used = seats.all
    _expect_use_of_script(options, seats.default, used)
    _expect_prices(settings, used)
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
            structured=partial(_structured, settings),
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


def check_providers(options: ModelOptions, settings: Settings, environment: Environment) -> None:
    """Raises ConfigError where `open_providers` would refuse a sprint; ProviderIncomplete when only a model, a key or a
    script is missing. Imports no SDK, and writes nothing. Blocks."""
    seats, missing = _seats(options, settings), list[ProviderIncomplete]()
    _expect_use_of_script(options, seats.default, seats.all)
    _expect_prices(settings, seats.all)
    for seat in sorted(seats.all, key=str):
        try:
            if seat.provider == "scripted":
                _scripted(options, settings, environment, None)
            else:
                _access(seat, environment)
        except ProviderIncomplete as error:
            missing.append(error)  # what is wrong with another seat comes before it
    if missing:
        raise missing[0]


def _seats(options: ModelOptions, settings: Settings, alone: str | None = None) -> Seats:
    seats = all_seats(settings, options.provider)
    if alone is not None:
        own = persona_seat(settings, alone, seats.default, options.provider)
        seats = seats._replace(usual={alone: own}, stronger={})
    # The policies of stories follow the settings' models as they did when it was recorded: only the calls do not.
    return seats if options.replay is None else seats.scripted


def _expect_use_of_script(options: ModelOptions, default: Seat, used: Iterable[Seat]) -> None:
    if options.script is not None and all(seat.provider != "scripted" for seat in used):
        raise ConfigError(f"--script is for the provider scripted, and {default} answers; add --provider scripted")


def _expect_prices(settings: Settings, used: Iterable[Seat]) -> None:
    """Raises ConfigError where a budget in money would never end: of a model whose price nobody knows."""
    limits = [name for name, most in settings.budget if name.startswith("usd_") and most is not None]
    models = {seat.model for seat in used if seat.provider != "scripted" and seat.model}
    unknown = sorted(model for model in models if find_price(settings.prices, model) is None)
    if limits and unknown:
        name = f"prices.{unknown[0]}"
        raise ConfigError(
            f"budget.{limits[0]} is in US dollars, and the price of {', '.join(unknown)} is not known: name it for a "
            f"million tokens, as --set {name}.input=3 --set {name}.output=15 (0 where calls cost nothing), "
            "or limit tokens in place of money"
        )


def _structured(settings: Settings, persona: str) -> WireStructured:
    """Returns whether schemas are sent: as the persona says, else everybody."""
    own = settings.personas[persona].structured if persona in settings.personas else None
    return own or settings.wire.structured


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
        raise ProviderIncomplete(
            f"the provider {name} needs a model: --set provider.model=ID, or provider.model in config.yaml"
        )
    base_url = (seat.base_url or environment.variables.get(vendor.address, "")).strip() or vendor.url
    lacking = [one for one in vendor.needs if not environment.variables.get(one, "").strip()]
    lacking += [] if base_url or vendor.is_cloud else [vendor.address]
    if lacking:
        raise ProviderIncomplete(f"the provider {name} needs {' and '.join(lacking)} in the environment")
    host = _host(base_url, f"the address of the provider {name}") if base_url else ""
    key = environment.variables.get(vendor.key, "").strip()
    if not key and not vendor.is_cloud:
        if f".{host}".endswith(vendor.hosts):
            told = f"the provider {name} needs a key: put it into the environment variable {vendor.key}"
            raise ProviderIncomplete(told)
        key = NO_KEY
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ConfigError(f"{vendor.key} holds something that is no key: blanks, line breaks or letters beyond ASCII")
    return ModelAccess(
        model=seat.model,
        api_key=key,
        base_url=base_url,
        timeout_s=seat.timeout_s,
        max_output_tokens=seat.max_output_tokens,
        variables=environment.variables,
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
    from httpx2 import AsyncClient, InvalidURL  # takes a second, as the SDKs do

    module, _, name = VENDORS[seat.provider].provider.partition(":")
    try:
        if not access.base_url or proxy_before(access.base_url):
            AsyncClient()  # fails as the SDK's own client would, which prints a traceback when it is not made whole
        kind: type[ModelProvider] = getattr(import_module(module), name)
        on_paid = log.write if log is not None else None

        def price(told: str) -> PriceSettings | None:
            return find_price(settings.prices, told, access.model)

        return kind(access, price=price, on_paid=on_paid, limiter=limiter)
    except ModuleNotFoundError as error:
        get = f"pip install 'anthropic[{seat.provider}]'"  # what our extras of the same names hold
        raise ConfigError(f"the provider {seat.provider} needs further packages ({error}): {get}") from error
    except (ValueError, ImportError, OSError, InvalidURL) as error:  # SDKs read proxies and certificates themselves
        hint = "look at HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE"
        raise ConfigError(f"the provider {seat.provider} cannot be set up: {error}; {hint}") from error


def _scripted(
    options: ModelOptions, settings: Settings, environment: Environment, log: CallLog | None
) -> ScriptedProvider:
    configured = settings.provider.script
    script = options.script or (environment.base_dir / configured if configured else None)
    if options.replay is not None:
        script = options.replay / TEAM
    if script is None:
        trial = "; --mock tries `analyse` without a model" if isinstance(options, AnalyseOptions) else ""
        raise ProviderIncomplete(
            "the provider `scripted` needs --script FILE or provider.script in the configuration; "
            f"for a real model name another: --provider anthropic or openai, and --set provider.model=ID{trial}"
        )
    return ScriptedProvider(load_script(script), log)
