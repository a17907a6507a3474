"""What an analysis starts from: prompts, PRD, repository, and where results go. Nothing is asked or written."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from orchestrator.adapters.codebase import list_files, read_text
from orchestrator.adapters.stage_prompts import load_stage_prompts
from orchestrator.analysis.backlog import FORMATS
from orchestrator.analysis.stages import Chosen, Library, choose, offered
from orchestrator.analysis.plan_file import is_plan
from orchestrator.domain.analysis import Packed, StagePrompt
from orchestrator.domain.masking import Masks
from orchestrator.errors import ConfigError, RepositoryError
from orchestrator.prompts.codebase import Source, pack
from orchestrator.settings import Environment, Settings, packaged
from orchestrator.wiring.options import AnalyseOptions

PLAN, PLAN_JSON = "mvp_improvement_plan.md", "plan.json"
LIBRARY = "library"
PRD_SHARE = 4
"""A quarter of the budget at most is the PRD's."""
MAX_PRD = 1_000_000
SHOWN_BY = {"context_tokens", "ignore", "response_contract", "triage"}
"""Settings that say what prompts show: who changes one, to keep a folder out or to fit a smaller model, begins anew."""


@dataclass(frozen=True, kw_only=True)
class AnalysisInput:
    """One command's input, checked."""

    repo: Path
    prd: str
    """As it was read: secrets are still in it."""
    prd_file: str
    chosen: Chosen
    """The profile's stages; with triage those that count when it picks none."""
    prompts: tuple[StagePrompt, ...]
    """The stages, or all that triage may pick."""
    asked: str
    """Equal for commands that ask for the same."""


def analysis_input(options: AnalyseOptions, settings: Settings, environment: Environment) -> AnalysisInput:
    """Read and check everything a command names. Raises ConfigError, RepositoryError. Blocks."""
    repo = options.repo.resolve()
    if not repo.is_dir():
        raise RepositoryError(f"there is no folder {options.repo}")
    if all((repo / name).exists() for name in ("HEAD", "objects", "refs")):
        raise RepositoryError(f"{options.repo} is the inside of a repository: name a folder with its files checked out")
    prd_path = _prd_path(options, settings, environment)
    prd = _prd(prd_path) if prd_path is not None else ""
    library, chosen = _choice(options, settings, environment)
    prompts = offered(library, settings.analysis) if settings.analysis.triage else chosen.prompts
    held = settings.analysis.model_dump_json(include=SHOWN_BY)
    said = [str(repo), prd, chosen.profile, held, *(prompt.model_dump_json(exclude={"file"}) for prompt in prompts)]
    return AnalysisInput(
        repo=repo,
        prd=prd,
        prd_file=str(prd_path or ""),
        chosen=chosen,
        prompts=prompts,
        asked=hashlib.sha256("\0".join(said).encode("utf-8", "surrogatepass")).hexdigest(),
    )


def check_choice(options: AnalyseOptions, settings: Settings, environment: Environment) -> str:
    """What `analysis_input` says of all but the repository: the profile, or raises ConfigError. Blocks."""
    prd_path = _prd_path(options, settings, environment)
    if prd_path is not None:
        _prd(prd_path)
    return _choice(options, settings, environment)[1].profile


def _choice(options: AnalyseOptions, settings: Settings, environment: Environment) -> tuple[Library, Chosen]:
    own = _own_folder(options, settings, environment)
    library = Library(
        packaged=_packaged_prompts(settings, environment),
        own=load_stage_prompts(own) if own is not None else {},
        own_name=own.resolve().name if own is not None else "",
    )
    if options.profile is not None and options.stages:
        raise ConfigError("--profile and --stages both say which prompts are asked; give one of them")
    return library, choose(library, settings.analysis, profile=options.profile, stages=options.stages)


def _packaged_prompts(settings: Settings, environment: Environment) -> dict[str, StagePrompt]:
    """The library, with what stands in `library/` of `prompts.dir` in place of single prompts, or beside them."""
    found = load_stage_prompts(packaged("system_prompts") / LIBRARY)
    override = environment.base_dir / settings.prompts.dir / LIBRARY if settings.prompts.dir else None
    return found | (load_stage_prompts(override) if override is not None and override.is_dir() else {})


def packed_repository(
    given: AnalysisInput, options: AnalyseOptions, settings: Settings, environment: Environment, masks: Masks
) -> Packed:
    """The repository within the budget that the PRD leaves, without secrets. Raises ConfigError. Blocks."""
    ours = {options.out.resolve() / PLAN, options.out.resolve() / PLAN_JSON}
    ours |= {path.resolve() for path in (options.to_backlog, options.script, options.call_log) if path is not None}
    home = environment.home.resolve()
    apart = home not in given.repo.parents  # else it is a checkout that the daemon has made there to be read
    sources = [
        Source(*seen)
        for seen in list_files(given.repo, settings.analysis.ignore)
        if (given.repo / seen.path) not in ours and not (apart and home in (given.repo / seen.path).parents)
    ]
    if not sources:
        raise ConfigError(f"{given.repo} holds no file that an analysis could read")
    budget = settings.analysis.context_tokens
    room = max(budget - min(len(given.prd) // 4, budget // PRD_SHARE), 500)
    read = partial(read_text, given.repo)
    return pack(sources, read, lambda text: masks.masked(text).text, budget_tokens=room, prd=given.prd)


def content_hash(data: bytes) -> str:
    """Of a file."""
    return hashlib.sha256(data).hexdigest()


def check_outputs(options: AnalyseOptions, wrote: Mapping[str, str] | None = None) -> None:
    """Raises ConfigError for what could not be written in the end, or would be written over.

    `wrote`: what the same analysis has written already, by path, with its hash.
    """
    if options.out.exists() and not options.out.is_dir():
        raise ConfigError(f"--out {options.out} is no folder")
    for path, is_ours in ((options.out / PLAN, is_plan), (options.out / PLAN_JSON, _is_plan_json)):
        if path.exists() and not is_ours(_there(path)):
            raise ConfigError(f"{path} is there and is no improvement plan; move it, or name another folder with --out")
    backlog = options.to_backlog
    if backlog is None:
        return
    if backlog.suffix.lower() not in FORMATS:
        raise ConfigError(f"--to-backlog {backlog}: its name ends with .csv, .yaml or .yml")
    if not backlog.absolute().parent.is_dir():
        raise ConfigError(f"--to-backlog {backlog}: there is no folder {backlog.parent}")
    ours = (wrote or {}).get(str(backlog.absolute()))
    if backlog.exists() and not options.replace and _hash_of(backlog) != ours:
        raise ConfigError(f"the backlog {backlog} is there already; add --replace to write over it")


def _hash_of(path: Path) -> str:
    try:
        return content_hash(path.read_bytes())
    except OSError:
        return ""


def _there(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return ""


def _is_plan_json(text: str) -> bool:
    try:
        held = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(held, dict) and {"analysis", "profile", "tasks"} <= held.keys()


def _prd_path(options: AnalyseOptions, settings: Settings, environment: Environment) -> Path | None:
    if options.prd is not None:
        return options.prd
    return environment.base_dir / settings.project.vision if settings.project.vision else None


def _prd(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read the PRD {path}: {error.strerror}") from error
    if len(data) > MAX_PRD:
        raise ConfigError(f"the PRD {path} is longer than {MAX_PRD} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"the PRD {path} is not UTF-8 (byte {error.start}): save it as UTF-8") from error
    if not text.strip():
        raise ConfigError(f"the PRD {path} is empty")
    return text


def _own_folder(options: AnalyseOptions, settings: Settings, environment: Environment) -> Path | None:
    if options.prompts is not None:
        return options.prompts
    return environment.base_dir / settings.analysis.prompts if settings.analysis.prompts else None
