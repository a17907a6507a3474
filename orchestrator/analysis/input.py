"""Reads the input of an analysis: prompts, requirements and the repository's files. Asks and writes nothing."""

import asyncio
import hashlib
from collections.abc import Collection
from contextlib import suppress
from functools import partial
from pathlib import Path

from orchestrator.analysis.stages import Library, choose, load_stage_prompts
from orchestrator.app.plan_files import project_files
from orchestrator.core.analysis import Packed, StagePrompt
from orchestrator.core.errors import ConfigError, RepositoryError
from orchestrator.core.secrets import Masks
from orchestrator.core.value import Value
from orchestrator.files.safe_files import read_text
from orchestrator.prompts.analysis import Source, pack
from orchestrator.settings import Environment, Settings, packaged
from orchestrator.settings.options import AnalyseOptions

LIBRARY = "library"
PRD_SHARE = 4
"""The PRD gets at most a quarter of the budget."""
MAX_PRD = 1_000_000  # bytes
SHOWN_BY = {"context_tokens", "ignore"}
"""Settings that say what prompts show: changing one, to keep a folder out or to fit a smaller model, starts over."""


class AnalysisInput(Value):
    """What a command line or a request gives, checked."""

    prd: str
    """As it was read: secrets are still in it."""
    prd_file: str
    profile: str
    prompts: tuple[StagePrompt, ...]
    """The stages."""
    mock: bool = False
    """Whether stand-ins answer: a model resumes none of their analyses, and they none of a model's."""

    def key(self, settings: Settings) -> str:
        """Equal for inputs that ask for the same, of whatever repository."""
        held = settings.analysis.model_dump_json(include=SHOWN_BY)
        prompts = (prompt.model_dump_json(exclude={"file"}) for prompt in self.prompts)
        parts = [self.prd, self.profile, held, *prompts, *(["mock"] if self.mock else [])]
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def read_options(options: AnalyseOptions, settings: Settings, environment: Environment) -> AnalysisInput:
    """Reads and check what a command names. Raises ConfigError, RepositoryError. Blocks."""
    repo = options.repo
    if not repo.is_dir():
        raise RepositoryError(f"there is no folder {repo}")
    if all((repo / name).exists() for name in ("HEAD", "objects", "refs")):
        raise RepositoryError(f"{repo} is the inside of a repository: name a folder with its files checked out")
    if options.profile is not None and options.stages:
        raise ConfigError("--profile and --stages both say which prompts are asked; give one of them")
    base, configured = environment.base_dir, settings.analysis.prompts
    own_folder = options.prompts or (base / configured if configured else None)
    own = load_stage_prompts(own_folder) if own_folder is not None else {}
    prd_path = options.prd or (base / settings.project.vision if settings.project.vision else None)
    prd, prd_file = (_read_prd(prd_path), str(prd_path)) if prd_path is not None else ("", "")
    own_name = own_folder.resolve().name if own_folder is not None and own else ""
    library = Library(_packaged_prompts(settings, environment), own, own_name)
    chosen = choose(library, settings.analysis, profile=options.profile, stages=options.stages)
    return AnalysisInput(
        prd=prd,
        prd_file=prd_file,
        profile=chosen.profile,
        prompts=chosen.prompts,
        mock=options.mock,
    )


def _packaged_prompts(settings: Settings, environment: Environment) -> dict[str, StagePrompt]:
    """The library, with what stands in `library/` of `prompts.dir` in place of single prompts, or beside them."""
    found = load_stage_prompts(packaged("system_prompts") / LIBRARY)
    override = environment.base_dir / settings.prompts.dir / LIBRARY if settings.prompts.dir else None
    return found | (load_stage_prompts(override) if override is not None and override.is_dir() else {})


def packed_repository(
    repo: Path, prd: str, settings: Settings, environment: Environment, masks: Masks, excluded: Collection[Path] = ()
) -> Packed:
    """Its files, without secrets and `excluded`, in the budget that the PRD leaves. Blocks. Raises ConfigError."""
    repo, home = repo.resolve(), environment.home.resolve()
    own = {path.resolve() for path in excluded}
    sources = []
    for path in asyncio.run(project_files(repo, settings.analysis.ignore, tracked=False)):
        place = repo / path
        if place not in own and home not in place.parents:
            with suppress(OSError):  # it is gone by now
                sources.append(Source(path, place.lstat().st_size))
    if not sources:
        raise ConfigError(f"{repo} holds no file that an analysis could read")
    budget = settings.analysis.context_tokens
    left = max(budget - min(len(prd) // 4, budget // PRD_SHARE), 500)
    return pack(sources, partial(read_file, repo), masks.masked, budget_tokens=left, prd=prd)


def _read_prd(path: Path) -> str:
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


MAX_BYTES = 400_000
"""A longer file is not read at all."""


def read_file(folder: Path, path: str) -> str | None:
    """Returns the text of a regular file of at most MAX_BYTES; None for one that is no text, is longer, or is gone."""
    text = read_text(folder, path, MAX_BYTES)
    return None if text is None or "\0" in text else text.removeprefix("\ufeff")
