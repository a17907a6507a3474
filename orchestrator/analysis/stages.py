"""The stages of an analysis: which are asked, at what price, in which order, and what the log says of them (pure).

Prompts of analyses as files: the packaged library and a folder of the user's own, plain Markdown as it is.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from orchestrator.code.parsers import parse_yaml
from orchestrator.core.analysis import AnalysisRecord, Packed, StagePrompt, StageResult, StageStatus
from orchestrator.core.errors import ConfigError
from orchestrator.core.event import Event
from orchestrator.core.finding import Where, major
from orchestrator.core.sprint import Tokens
from orchestrator.core.value import Value, suggest
from orchestrator.prompts.analysis import HISTORY_TOKENS
from orchestrator.prompts.budget import tokens
from orchestrator.prompts.render import read_given
from orchestrator.prompts.skills import FRONT_MATTER
from orchestrator.settings import AnalysisSettings, PriceSettings, Settings

ANSWER_TOKENS = 1500
"""Tokens of a usual answer of a stage."""
NAMED = "custom"
"""Called so in the plan when stages are named one by one."""
AskStage = Callable[[StagePrompt, Sequence[StageResult]], Awaitable[StageResult]]
"""(prompt, what earlier stages gave) → what it gives. Raises nothing for what a model or a provider does."""


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
        """Returns all prompts by id; the user's own take precedence."""
        return {**self.packaged, **self.own}


def choose(library: Library, settings: AnalysisSettings, *, profile: str | None, stages: Sequence[str]) -> Chosen:
    """The prompts of `stages`, else of the profile named; with neither, all of the user's own folder where there is
    one, else those of the configured profile.

    Raises ConfigError, naming the nearest, for an unknown profile or prompt, and for a profile without any.
    """
    if stages:
        return Chosen(NAMED, _found(library, stages, "--stages"))
    if profile is None and library.own:
        return Chosen(library.own_name, tuple(library.own.values()))
    name = profile or settings.profile
    if name not in settings.profiles:
        near = suggest(name, settings.profiles)
        raise ConfigError(f"there is no profile {name}{near} ({', '.join(settings.profiles)})")
    prompts = _found(library, settings.profiles[name], f"profile {name}")
    if not prompts:
        raise ConfigError(f"the profile {name} names no prompt")
    return Chosen(name, prompts)


def _found(library: Library, names: Sequence[str], where: str) -> tuple[StagePrompt, ...]:
    known = library.all
    for name in names:
        if name not in known:
            raise ConfigError(f"{where}: there is no prompt {name}{suggest(name, known)}")
    return tuple(known[name] for name in dict.fromkeys(names))


async def run_stages(
    prompts: Sequence[StagePrompt], ask: AskStage, *, at_once: int, stop_after: int
) -> tuple[StageResult, ...]:
    """Returns every stage's result, in the order of `prompts`; those that were not started say why.

    One stage goes ahead: what all prompts begin with is then in the provider's cache. A stage that asks for earlier
    findings waits for all stages before it. After `stop_after` failures in a row (0: never), or one that concerns every
    stage, none is started any more; while there are some, never more than are left are in flight, so that a provider
    that is down is asked no more often than that.
    """
    results: dict[int, StageResult] = {}
    waiting = list(range(len(prompts)))
    running: dict[asyncio.Task[StageResult], int] = {}
    failures, stopped, warm = 0, "", False
    try:
        while True:
            # The first call fills the provider's cache; side by side they would all pay for the repository.
            limit = at_once if warm else 1
            if failures and stop_after:
                limit = min(limit, stop_after - failures)
            ready = [at for at in waiting if not prompts[at].history or all(one in results for one in range(at))]
            for at in [] if stopped else ready[: max(0, limit - len(running))]:
                waiting.remove(at)
                earlier = [results[one] for one in range(at)] if prompts[at].history else []
                running[asyncio.ensure_future(ask(prompts[at], earlier))] = at
            if not running:
                break
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            # In the order of the stages, so that failures in a row are the same in every run.
            for task in sorted(done, key=lambda task: running[task]):
                result = results[running.pop(task)] = task.result()
                warm, failures = True, failures + 1 if result.failed else 0
                if result.stop:
                    stopped = f"{result.id} failed for a reason that concerns every stage"
                elif stop_after and failures >= stop_after:
                    stopped = f"{failures} stages failed in a row (analysis.stop_after_failures)"
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    return tuple(results.get(at) or _not_begun(prompt, stopped) for at, prompt in enumerate(prompts))


def _not_begun(prompt: StagePrompt, why: str) -> StageResult:
    message = f"{prompt.id} was not started: {why}"
    fix = "remove the cause; the same command resumes with the missing stages"
    said = major("stage.not_begun", message, where=Where(task=prompt.id), fix=fix)
    return StageResult(id=prompt.id, goal=prompt.goal, status=StageStatus.NOT_BEGUN, findings=(said,))


@dataclass
class Ledger:
    """The events of one analysis."""

    results: dict[str, StageResult] = field(default_factory=dict)
    """Stage → its result in its present generation."""
    calls: int = 0
    """Paid calls, of whatever generation."""
    tokens: Tokens = field(default_factory=Tokens)
    cost_usd: float | None = 0.0
    """None when the price of a call is unknown."""


def fold(record: AnalysisRecord, events: Iterable[Event]) -> Ledger:
    """Returns the ledger; `events` are those of the analysis, in order."""
    ledger = Ledger()
    for event in events:
        data = event.data
        if event.name == "turn_finished" and data.get("paid"):
            ledger.calls += 1
            spent = {name: data[f"{name}_tokens"] + getattr(ledger.tokens, name) for name in Tokens.model_fields}
            ledger.tokens = Tokens(**spent)
            cost = data["cost_usd"]
            ledger.cost_usd = None if cost is None or ledger.cost_usd is None else ledger.cost_usd + cost
        elif event.name == "stage_finished" and event.id.rpartition(":")[0] == record.workflow_id(str(event.story)):
            ledger.results[str(event.story)] = StageResult.model_validate(data["result"])
    return ledger


class CallEstimate(Value):
    """Paid calls."""

    expected: int
    """When every answer is right at once."""
    maximal: int
    """When every loop uses its whole budget."""


class TokenEstimate(Value):
    """Tokens of the expected calls, of about four characters each."""

    shared: int
    """The common start of all prompts: role, PRD and repository. A provider caches it after the first call."""
    input: int
    """All prompts together, the shared part counted with each."""
    output: int


class AnalysisEstimate(Value):
    """The object that `analyse --dry-run --json` prints."""

    profile: str
    stages: tuple[str, ...]
    """Ids, in order."""
    files: int
    shown: int
    cut: tuple[str, ...]
    left_out: tuple[str, ...]
    calls: CallEstimate
    tokens: TokenEstimate
    cost_usd: float | None = None
    """Of the expected calls without a cache; None when the model's price is not configured."""


def estimate(
    profile: str,
    prompts: Sequence[StagePrompt],
    packed: Packed,
    texts: tuple[str, str],
    settings: Settings,
    price: PriceSettings | None,
) -> AnalysisEstimate:
    """`texts`: the PRD as it is shown, and what each prompt of a stage holds besides."""
    prd, besides = texts
    shared = packed.tokens + tokens(prd)
    own = sum(tokens(prompt.text + besides) + HISTORY_TOKENS // 2 * prompt.history for prompt in prompts)
    calls = len(prompts)
    answers = ANSWER_TOKENS * calls
    used = TokenEstimate(shared=shared, input=shared * calls + own, output=answers)
    cost = None if price is None else (used.input * price.input + used.output * price.output) / 1_000_000
    return AnalysisEstimate(
        profile=profile,
        stages=tuple(prompt.id for prompt in prompts),
        files=len(packed.paths),
        shown=len(packed.shown),
        cut=tuple(one.path for one in packed.cut),
        left_out=tuple(one.path for one in packed.left_out),
        calls=CallEstimate(expected=calls, maximal=calls * stage_calls(settings)),
        tokens=used,
        cost_usd=cost,
    )


def stage_calls(settings: Settings) -> int:
    """The most calls of one stage: its replies and repairs times `provider.max_attempts`, within the story's budget."""
    answer = 1 + settings.answer.repair_requests + settings.answer.max_attempts
    return min(answer * settings.provider.max_attempts, settings.budget.calls_per_story)


_NO_PROMPTS = frozenset({"readme", "index", "contributing", "changelog", "license"})

_KEYS = frozenset({"id", "goal", "category", "history"})
# Phrases by which a prompt refers to other stages' findings.
_ASKS_HISTORY = re.compile(
    r"\b(previous|earlier|prior|preceding)\s+(analys[ei]s|stages?|findings|results|reviews?|steps)\b", re.IGNORECASE
)
MAX_CHARS = 200_000  # of one prompt


def load_stage_prompts(folder: Path) -> dict[str, StagePrompt]:
    """Returns `stage_prompts` of the Markdown files below `folder`. Raises ConfigError for what cannot be read, too."""
    if not folder.is_dir():
        raise ConfigError(f"the prompt folder {folder} does not exist")
    texts: dict[Path, str] = {}
    for path in folder.rglob("*"):
        if path.suffix.lower() not in {".md", ".markdown"} or not path.is_file() or _is_aside(path.relative_to(folder)):
            continue
        texts[path] = read_given(path)
    if not texts:
        raise ConfigError(f"the prompt folder {folder} holds no prompts (*.md)")
    return stage_prompts(texts, folder)


def stage_prompts(texts: Mapping[Path, str], folder: Path = Path()) -> dict[str, StagePrompt]:
    """Returns id → prompt, for every text that is no README or the like, in the order of the paths, 2 before 10.

    Without front matter a file's id is its name, and it gets earlier findings where it speaks of them. Raises
    ConfigError for an empty prompt, a name of which no letter fits an id, and an id that stands twice.
    """
    found: dict[str, StagePrompt] = {}
    for path in sorted(texts, key=_natural):
        relative = path.relative_to(folder)
        if _is_aside(relative):
            continue
        prompt = _prompt(texts[path], path, relative)
        if prompt.id in found:
            raise ConfigError(f"{path} and {found[prompt.id].file} are both the prompt {prompt.id}; rename one")
        found[prompt.id] = prompt
    return found


def _is_aside(relative: Path) -> bool:
    return any(part.startswith((".", "_")) for part in relative.parts) or relative.stem.lower() in _NO_PROMPTS


def _prompt(text: str, path: Path, relative: Path) -> StagePrompt:
    front, body = _split(text.replace("\r\n", "\n"), path)
    if not body.strip():
        raise ConfigError(f"the prompt {path} is empty")
    if len(body) > MAX_CHARS:
        raise ConfigError(f"the prompt {path} is longer than {MAX_CHARS} characters")
    told = {key: " ".join(str(front.get(key) or "").split()) for key in ("id", "goal", "category")}
    name = told["id"] or "-".join(relative.with_suffix("").parts)
    known = _id(name, path)
    history = front.get("history")
    return StagePrompt(
        **{**told, "id": known},
        history=history if isinstance(history, bool) else bool(_ASKS_HISTORY.search(body)),
        text=body.strip("\n"),
        file=str(path),
    )


def _split(text: str, path: Path) -> tuple[dict[str, object], str]:
    """Returns front matter and body. What stands between rules and names none of our fields belongs to the text."""
    match = FRONT_MATTER.match(text)
    if match is None:
        return {}, text
    try:
        front = parse_yaml(match["front"])
    except ValueError:
        front = None
    if isinstance(front, dict) and not _KEYS.isdisjoint(front):
        return front, text[match.end() :]
    if re.search(r"^(id|goal|category)[ \t]*:", match["front"], re.MULTILINE):
        raise ConfigError(f"the prompt {path}: its front matter is no valid YAML; put quotes around texts with `: `")
    return {}, text


def _id(name: str, path: Path) -> str:
    """Returns the name as an id, which names folders too: without separators, dots in a row and `.lock`."""
    found = re.sub(r"\.{2,}", ".", re.sub(r"[^A-Za-z0-9._-]+", "-", name.strip())).strip(".-")[:64].strip(".-")
    found = found.removesuffix(".lock")
    if not found:
        raise ConfigError(f"the prompt {path}: its name has no letter or digit of ASCII; give it an `id:`")
    return found


def _natural(path: Path) -> tuple[list[list[tuple[bool, int, str]]], Path]:
    """Sorts names as people number them, numbers first."""
    parts = [re.findall(r"(\d+)|(\D+)", part) for part in path.parts]
    return [[(not digits, int(digits or 0), text) for digits, text in part] for part in parts], path
