"""The settings tree: every name config.yaml, the environment and --set may use, with its type and default."""

import json
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from orchestrator.core.secrets import is_secret_name
from orchestrator.settings.sections import (
    AnalysisSettings,
    EnvironmentSettings,
    RetentionSettings,
    SandboxSettings,
    Section,
    ServeSettings,
    ShutdownSettings,
)

ProviderName = Literal[
    "scripted",
    "anthropic",
    "openai",
    "openai-responses",
    "azure",
    "bedrock",
    "vertex",
]
WireFormat = Literal["auto", "plan", "whole", "json"]
"""How files are asked for: as an action plan, as JSON, or as a plan until one is malformed."""
WireStructured = Literal["auto", "never", "always"]
"""Whether the schema of an answer that is asked for as JSON is sent with the request."""


class ProjectSettings(Section):
    """Texts about the product that personas are given."""

    vision: str | None = None
    """File with the product vision, relative to the configuration file."""
    wireframes: str | None = None
    """Folder in which `Wireframe_Ref` stems are looked up."""


class BacklogSettings(Section):
    """How the backlog is read."""

    foundation: str = "NFR-001"
    """Id of the tech-stack story the others wait for, when the backlog has it and marks no other."""
    closes: dict[str, tuple[str, ...]] = {}
    """Story id → ids of rows that are closed with it, beside what the backlog itself says."""


class ConcurrencySettings(Section):
    """How much happens at once."""

    stories: int = Field(default=4, ge=1)
    turns: int = Field(default=8, ge=1)
    """Model calls in flight."""
    commands: int = Field(default=2, ge=1)
    """Test runs and commands at once."""


class RequestSettings(Section):
    """What requests to a model say beside the prompt; an empty name leaves it to the service.

    Each wire sends what it has a field for; what it has none for, and what a service refuses, is left out and told.
    """

    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    """How much the model reasons and writes."""
    thinking: bool | Annotated[int, Field(ge=1024)] | None = None
    """Whether the model thinks before it answers, or the most tokens that it may think (Anthropic)."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    extra: dict[str, Any] | None = None
    """Further fields of the request's body, merged into it."""

    def __hash__(self) -> int:
        return hash(json.dumps(self.model_dump(mode="json"), sort_keys=True))

    def changed(self, own: "RequestSettings", *, same_service: bool) -> "RequestSettings":
        """Returns these with what `own` says; fields of one service's body are not another's."""
        said = {name: getattr(own, name) for name in RequestSettings.model_fields}
        mine = {name: getattr(self, name) for name in RequestSettings.model_fields if same_service or name != "extra"}
        return RequestSettings(**(mine | {name: one for name, one in said.items() if one is not None}))


class ModelSettings(RequestSettings):
    """A model that answers in place of the usual one."""

    model: str
    provider: ProviderName | None = None
    """Empty: that of the model whose place it takes."""
    base_url: str | None = None
    """Empty: the same as that model's, where the provider is the same."""
    timeout_s: float | None = Field(default=None, gt=0)
    max_output_tokens: int | None = Field(default=None, ge=1)


class ProviderSettings(RequestSettings):
    """Where replies come from, and the transport retry."""

    name: ProviderName = "scripted"
    """Who answers the personas that name no other."""
    script: str | None = None
    """File of the scripted team."""
    model: str | None = None
    """The model's id; a real provider needs one."""
    base_url: str | None = None
    """Address of a server that speaks this provider's protocol; empty: <NAME>_BASE_URL, else the service's own."""
    timeout_s: float = Field(default=600.0, gt=0)
    """Time limit of one call, to the last byte of its answer."""
    max_output_tokens: int = Field(default=16000, ge=1)
    """Longest answer asked for."""
    stream: bool = True
    """Whether answers are asked for piece by piece; a server that takes no such request is asked without."""
    stall_s: float = Field(default=60.0, gt=0)
    """Seconds without a further piece of an answer that has begun, after which the call ends."""
    max_attempts: int = Field(default=5, ge=1)
    """Calls of one turn until a transient error is final, unless its service answers nobody."""
    wait_initial_s: float = Field(default=1.0, ge=0)
    wait_max_s: float = Field(default=60.0, ge=0)
    retry_after_max_s: float = Field(default=300.0, ge=0)
    """A server's Retry-After beyond this pauses the sprint."""
    outage_s: float = Field(default=1800.0, ge=0)
    """Seconds that a call waits for a service that answers nobody, until the sprint pauses."""
    fallback: tuple[ModelSettings, ...] = ()
    """Who answers meanwhile, the first that does; another company then sees the project."""


class PersonaSettings(RequestSettings):
    """What one persona does otherwise; an empty name takes `provider.*`.

    A persona with another provider than `provider.name` takes neither its model nor its address.
    """

    provider: ProviderName | None = None
    model: str | None = None
    base_url: str | None = None
    timeout_s: float | None = Field(default=None, gt=0)
    max_output_tokens: int | None = Field(default=None, ge=1)
    format: WireFormat | None = None
    """How its files are asked for, whatever its model; empty: as `wire` says."""
    structured: WireStructured | None = None
    """Whether schemas are sent, whatever its model; empty: as `wire` says."""
    max_iterations: int | None = Field(default=None, ge=1)
    """The architect's plans or a reviewer's reviews; empty: `plan.max_iterations`, `review.max_iterations`."""
    stronger: ModelSettings | None = None
    """Who answers instead after the same answer or faults twice, and of deliveries when tests failed as before;
    empty: `models.strong`."""


class ModelsSettings(Section):
    """Models for all personas, beside the usual one."""

    cheap: ModelSettings | None = None
    """For what is easy: to repair an answer's form, to read a person's plan."""
    strong: ModelSettings | None = None
    """`stronger` of personas that name none."""


class WireSettings(Section):
    """The forms in which answers are asked for; every form is accepted from anybody."""

    format: WireFormat = "auto"
    """How the developer and the tester are asked for files."""
    structured: WireStructured = "auto"
    """auto: schemas are sent where they cost no share of a prompt cache; always: with every request for JSON."""


class PriceSettings(Section):
    """What a model costs, in US dollars per million tokens."""

    input: float = Field(ge=0, allow_inf_nan=False)
    cached: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Input read from the provider's cache; empty: as `input`."""
    cache_write: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Input written to the provider's cache; empty: as `input`."""
    output: float = Field(ge=0, allow_inf_nan=False)


class AnswerSettings(Section):
    """The answer loop: replies that could not be extracted or lack structure."""

    max_attempts: int = Field(default=2, ge=0)
    """Re-asks after the first reply."""
    repair_requests: Literal[0, 1] = 1
    """Requests to repair text that could not be extracted, per answer."""


class LookSettings(Section):
    """Replies that only ask to be shown files."""

    max_per_turn: int = Field(default=3, ge=1)
    """Such replies per answer, of any persona, that cost no attempt; each is a call."""


class PlanSettings(Section):
    """The plan loop."""

    max_iterations: int = Field(default=3, ge=1)
    """Plans judged: a first one and max_iterations - 1 revisions."""
    min_chars: int = Field(default=200, ge=0)
    """Characters that a person's task plan has at least."""


LONGEST_WAIT_S = 10 * 366 * 24 * 3600
"""Ten years: a deadline is a date, and dates end."""


class GateSettings(Section):
    """When a person is asked about a plan, and how long is waited for the answer."""

    mode: Literal["auto", "escalations", "always"] = "auto"
    """auto: nobody is asked; escalations: about conflicts and plans that stay invalid; always: about each plan."""
    timeout_s: float | None = Field(default=None, gt=0, le=LONGEST_WAIT_S)
    """Seconds until an unanswered question is settled by `on_timeout`; empty: it waits."""
    on_timeout: Literal["needs_attention", "approve", "cancel"] = "needs_attention"
    """What an unanswered plan comes to; `approve` for a valid one only. An unanswered conflict stays one."""


class AmendmentSettings(Section):
    """Requests to the architect for a file, a package or an older test to change that the plan forgot."""

    max_per_story: int = Field(default=3, ge=0)
    """Times that the architect is asked."""


class BuildSettings(Section):
    """Deliveries."""

    max_attempts: int = Field(default=3, ge=1)
    """Replies per delivery asked for."""


class ReviewSettings(Section):
    """The review loop."""

    enabled: bool = True
    """Whether each task's change must be approved before its story is merged."""
    max_iterations: int = Field(default=5, ge=1)
    """Reviews of one task, over its whole story."""
    reviewers: tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")], ...] = Field(
        default=("reviewer",), min_length=1
    )
    """Names of the reviewers; each reads every change, and all must approve."""

    @property
    def names(self) -> tuple[str, ...]:
        """The reviewers that are asked; none when review is off."""
        return self.reviewers if self.enabled else ()

    @field_validator("reviewers")
    @classmethod
    def _once_each(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(names)) < len(names):
            raise ValueError("each reviewer is named once")
        return names


class CustomTests(Section):
    """People's own command for the tests of any language."""

    command: str = Field(min_length=1)
    """A shell command, run in the root folder, that runs all tests."""
    junit: tuple[str, ...] = Field(min_length=1)
    """The JUnit files that it writes, below the root; `*` stands for anything."""

    @field_validator("junit")
    @classmethod
    def _inside(cls, paths: tuple[str, ...]) -> tuple[str, ...]:
        for path in paths:
            if path.startswith("/") or ".." in path.split("/"):
                raise ValueError(f"{path} is not below the project's root")
        return paths


class TestSettings(Section):
    """Suites and how they run."""

    __test__ = False

    max_attempts: int = Field(default=3, ge=1)
    """Story attempts: runs of the story's suite."""
    mode: Literal["auto", "acceptance", "smoke"] = "auto"
    """acceptance: one test per criterion; smoke: one or two; auto: acceptance when the architect gave tests."""
    command: str | None = None
    """The one runner to be used: pytest, unittest, django or node. Empty: chosen by the manifests and the suite."""
    custom: CustomTests | None = None
    """In place of every runner."""
    timeout_s: float = Field(default=300, gt=0)


class BudgetSettings(Section):
    """Caps on calls, tokens (input and output together) and US dollars; empty: no limit."""

    calls_per_story: int = Field(default=200, ge=1)
    """Requests to models that ended, with a reply or an error, after which a story is failed; over all restarts. So for
    the next two."""
    tokens_per_story: int | None = Field(default=None, ge=1)
    usd_per_story: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    calls_per_sprint: int | None = Field(default=None, ge=0)
    """Paid calls after which a sprint pauses until this is raised. So for the next two."""
    tokens_per_sprint: int | None = Field(default=None, ge=0)
    usd_per_sprint: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    calls_per_day: int | None = Field(default=None, ge=0)
    """Paid calls of all sprints and analyses of a state folder, or of the database of many, since midnight UTC, after
    which they pause until the next. So for the next two."""
    tokens_per_day: int | None = Field(default=None, ge=0)
    usd_per_day: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class SprintSettings(Section):
    """The sprint as a whole."""

    stop_after_failures: int = Field(default=3, ge=0)
    """Stories that fail in a row, over all restarts, until the sprint pauses; 0 never."""


class CommandSettings(Section):
    """Limits of commands and tests (per process tree)."""

    timeout_s: float = Field(default=300, gt=0)
    memory_mb: int = Field(default=2048, ge=64)
    """Shared memory and files in memory count too."""
    processes: int = Field(default=256, ge=4)
    output_killed_kb: int = Field(default=16384, ge=1)
    """Printed text beyond this ends the command; of less its head and tail are kept."""
    install_timeout_s: float = Field(default=1800, gt=0)
    install_env: tuple[str, ...] = (
        # Addresses, certificates and proxies; tokens belong into pip's and npm's own files.
        *("PIP_INDEX_URL", "PIP_CONFIG_FILE", "PIP_CERT", "SSL_CERT_FILE", "HTTPS_PROXY"),
        *("NPM_CONFIG_REGISTRY", "NPM_CONFIG_USERCONFIG", "NPM_CONFIG_CAFILE", "NODE_EXTRA_CA_CERTS"),
    )
    """Variables handed to installation of dependencies and `environment.setup`, to nothing else; none of secrets."""
    disk_mb: int = Field(default=4096, ge=16)
    """What the worktree and the scratch folder may hold together while a command runs."""

    @field_validator("install_env")
    @classmethod
    def _no_secrets(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if is_secret_name(name):
                raise ValueError(
                    f"{name} holds a secret, which no command may see; put it into a file of pip's or npm's"
                )
        return names


class PromptSettings(Section):
    """Prompts."""

    dir: str | None = None
    """Folder whose files override single prompt files."""
    context_tokens: int = Field(default=24000, ge=1000)
    """Budget of the project part of a prompt, in tokens of about four characters."""


class LogSettings(Section):
    """Console output."""

    format: Literal["auto", "plain", "json"] = "auto"
    level: Literal["debug", "info", "warn", "error"] = "info"
    text_cap: int = Field(default=2000, ge=100)
    """Characters of model text in one log line."""


class Settings(Section):
    """Everything configurable, validated once, passed around as a value."""

    project: ProjectSettings = ProjectSettings()
    backlog: BacklogSettings = BacklogSettings()
    concurrency: ConcurrencySettings = ConcurrencySettings()
    provider: ProviderSettings = ProviderSettings()
    personas: dict[str, PersonaSettings] = Field(default_factory=dict)
    """Persona → what it does otherwise; which names exist is wiring's to check."""
    models: ModelsSettings = ModelsSettings()
    prices: dict[str, PriceSettings] = Field(default_factory=dict)
    """Model id → its price, in place of the list price; the cost of a model that has neither is unknown."""
    wire: WireSettings = WireSettings()
    answer: AnswerSettings = AnswerSettings()
    look: LookSettings = LookSettings()
    plan: PlanSettings = PlanSettings()
    gate: GateSettings = GateSettings()
    build: BuildSettings = BuildSettings()
    amendment: AmendmentSettings = AmendmentSettings()
    review: ReviewSettings = ReviewSettings()
    test: TestSettings = TestSettings()
    budget: BudgetSettings = BudgetSettings()
    sprint: SprintSettings = SprintSettings()
    environment: EnvironmentSettings = EnvironmentSettings()
    commands: CommandSettings = CommandSettings()
    sandbox: SandboxSettings = SandboxSettings()
    prompts: PromptSettings = PromptSettings()
    analysis: AnalysisSettings = AnalysisSettings()
    log: LogSettings = LogSettings()
    serve: ServeSettings = ServeSettings()
    shutdown: ShutdownSettings = ShutdownSettings()
    retention: RetentionSettings = RetentionSettings()

    @property
    def _own_iterations(self) -> dict[str, int]:
        return {name: own.max_iterations for name, own in self.personas.items() if own.max_iterations is not None}

    @property
    def most_plans(self) -> int:
        """Returns how many plans of a story are judged."""
        # Besides reviewers the architect alone may have a number of its own: `providers.seats` refuses any other.
        own = [most for name, most in self._own_iterations.items() if name not in self.review.reviewers]
        return own[0] if own else self.plan.max_iterations

    @property
    def own_reviews(self) -> dict[str, int]:
        """Returns reviewer → reviews of one task, for those that have a number of their own."""
        return {name: most for name, most in self._own_iterations.items() if name in self.review.names}
