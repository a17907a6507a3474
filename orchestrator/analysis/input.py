"""Reads the input of an analysis: prompts, requirements and the repository's files. Asks and writes nothing."""

import hashlib
import os
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from pathspec import GitIgnoreSpec

from orchestrator.analysis.stages import Library, choose, load_stage_prompts, offered, stage_prompts
from orchestrator.core.analysis import AnalysisRequest, Packed, StagePrompt
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
SHOWN_BY = {"context_tokens", "ignore", "response_contract", "triage"}
"""Settings that say what prompts show: changing one, to keep a folder out or to fit a smaller model, starts over."""


class AnalysisInput(Value):
    """What a command line or a request gives, checked."""

    prd: str
    """As it was read: secrets are still in it."""
    prd_file: str
    profile: str
    prompts: tuple[StagePrompt, ...]
    """The stages; with triage all that may be picked."""
    fallback: tuple[str, ...]
    """Ids of the profile's stages, which count when triage picks none."""

    def key(self, repo: Path, settings: Settings) -> str:
        """Equal for inputs that ask for the same."""
        held = settings.analysis.model_dump_json(include=SHOWN_BY)
        prompts = (prompt.model_dump_json(exclude={"file"}) for prompt in self.prompts)
        parts = [str(repo), self.prd, self.profile, held, *prompts]
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
    request = AnalysisRequest.model_construct(profile=options.profile, stages=options.stages)
    own = load_stage_prompts(options.prompts) if options.prompts is not None else None
    own_name = options.prompts.resolve().name if options.prompts is not None else ""
    return _input(request, options.prd, own, own_name, settings, environment)


def read_request(request: AnalysisRequest, settings: Settings, environment: Environment) -> AnalysisInput:
    """Checks what a daemon is asked for. Raises ConfigError. Blocks."""
    if request.profile is not None and request.stages:
        raise ConfigError("`profile` and `stages` both say which prompts are asked; give one of them")
    own = stage_prompts({Path(name): text for name, text in request.prompts.items()}) if request.prompts else None
    return _input(request, None, own, "prompts", settings, environment)


def _input(
    request: AnalysisRequest,
    prd_path: Path | None,
    own: Mapping[str, StagePrompt] | None,
    own_name: str,
    settings: Settings,
    environment: Environment,
) -> AnalysisInput:
    base, configured = environment.base_dir, settings.analysis.prompts
    if own is None and configured:
        own, own_name = load_stage_prompts(base / configured), (base / configured).resolve().name
    if request.prd is not None:
        prd, prd_file = _checked_prd(request.prd, "that was sent"), "PRD.md"
    else:
        if prd_path is None and settings.project.vision:
            prd_path = base / settings.project.vision
        prd, prd_file = (_read_prd(prd_path), str(prd_path)) if prd_path is not None else ("", "")
    library = Library(_packaged_prompts(settings, environment), own or {}, own_name if own else "")
    chosen = choose(library, settings.analysis, profile=request.profile, stages=request.stages)
    return AnalysisInput(
        prd=prd,
        prd_file=prd_file,
        profile=chosen.profile,
        prompts=offered(library, settings.analysis) if settings.analysis.triage else chosen.prompts,
        fallback=tuple(prompt.id for prompt in chosen.prompts),
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
    is_checkout = home in repo.parents  # which the daemon has made to be read
    sources = [
        Source(*seen)
        for seen in list_files(repo, settings.analysis.ignore)
        if (path := repo / seen.path) not in own and (is_checkout or home not in path.parents)
    ]
    if not sources:
        raise ConfigError(f"{repo} holds no file that an analysis could read")
    budget = settings.analysis.context_tokens
    left = max(budget - min(len(prd) // 4, budget // PRD_SHARE), 500)
    return pack(sources, partial(read_file, repo), lambda text: masks.masked(text).text, budget_tokens=left, prd=prd)


def _read_prd(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read the PRD {path}: {error.strerror}") from error
    if len(data) > MAX_PRD:
        raise ConfigError(f"the PRD {path} is longer than {MAX_PRD} bytes")
    try:
        return _checked_prd(data.decode("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        raise ConfigError(f"the PRD {path} is not UTF-8 (byte {error.start}): save it as UTF-8") from error


def _checked_prd(text: str, which: str) -> str:
    if not text.strip():
        raise ConfigError(f"the PRD {which} is empty")
    return text


MAX_FILES = 50_000  # a larger folder is not a source tree
MAX_DEPTH = 60
"""Folders within folders."""
MAX_BYTES = 400_000
"""A longer file is not read at all."""
ALWAYS = (
    ".git", ".hg", ".svn", ".orchestrator/", "node_modules/", "__pycache__/", ".venv/", "venv/", "site-packages/",
    ".mypy_cache/", ".ruff_cache/", ".pytest_cache/", ".tox/", ".nox/", ".gradle/", ".idea/", ".vscode/", "*.egg-info/",
    ".DS_Store", "Thumbs.db",
)  # fmt: skip
"""Left out of any project, in the syntax of .gitignore; a project's own rules may take them in again."""
_IGNORE_FILE = ".gitignore"


class Seen(NamedTuple):
    """A file of the folder."""

    path: str
    """Relative, with `/`."""
    size: int


class _Rules(NamedTuple):
    """One ignore file: its patterns, and how a path below the folder reads from where the file stands."""

    strip: str
    add: str
    spec: GitIgnoreSpec

    def say(self, path: str) -> bool | None:
        """Returns whether it leaves `path` out; None when it does not speak of it."""
        return self.spec.check_file(self.add + path.removeprefix(self.strip)).include


def list_files(folder: Path, ignore: Sequence[str] = ()) -> tuple[Seen, ...]:
    """Regular files below `folder` that no rule leaves out, sorted; at most MAX_FILES.

    Rules are those of ALWAYS, of .git/info/exclude, of every .gitignore from the repository's top down, and `ignore`,
    which counts most; no link is followed. Raises ConfigError when the folder cannot be read, or `ignore` holds what is
    no pattern.
    """
    try:
        own = GitIgnoreSpec.from_lines(ignore)
    except ValueError as error:
        raise ConfigError(f"configuration analysis.ignore: {error}") from error
    try:
        os.scandir(folder).close()
    except OSError as error:
        raise ConfigError(f"{folder} cannot be read: {error.strerror}") from error
    rules = [_Rules("", "", GitIgnoreSpec.from_lines(ALWAYS)), *_from_above(folder.resolve())]
    return tuple(sorted(islice(_walk(folder, "", rules, _Rules("", "", own)), MAX_FILES)))


def _from_above(folder: Path) -> Iterator[_Rules]:
    """Rules that the repository around the folder has for it, from its top down."""
    top = next((place for place in (folder, *folder.parents) if (place / ".git").exists()), None)
    if top is None:
        return
    way = folder.relative_to(top).parts
    below = "/".join((*way, ""))
    yield _Rules("", below, GitIgnoreSpec.from_lines(_lines(top / ".git" / "info" / "exclude")))
    for depth in range(len(way)):
        lines = _lines(top.joinpath(*way[:depth]) / _IGNORE_FILE)
        yield _Rules("", "/".join((*way[depth:], "")), GitIgnoreSpec.from_lines(lines))


def _walk(folder: Path, at: str, rules: list[_Rules], own: _Rules) -> Iterator[Seen]:
    here = folder / at if at else folder
    lines = _lines(here / _IGNORE_FILE)
    if lines:
        rules = [*rules, _Rules(f"{at}/" if at else "", "", GitIgnoreSpec.from_lines(lines))]
    try:
        with os.scandir(here) as scanned:
            entries = sorted(scanned, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        path = f"{at}/{entry.name}" if at else entry.name
        inner = entry.is_dir(follow_symlinks=False)
        if not path.isprintable() or _ignored(f"{path}/" if inner else path, rules, own):
            continue
        if inner and path.count("/") < MAX_DEPTH:
            yield from _walk(folder, path, rules, own)
        elif entry.is_file(follow_symlinks=False):
            with suppress(OSError):  # it is gone by now
                yield Seen(path, entry.stat(follow_symlinks=False).st_size)


def _ignored(path: str, rules: Sequence[_Rules], own: _Rules) -> bool:
    """Returns the last rule that speaks of the path decides, as in git: deeper files go first, `own` before all."""
    return bool(next((said for one in (own, *reversed(rules)) if (said := one.say(path)) is not None), False))


def _lines(path: Path) -> list[str]:
    """Patterns of an ignore file that can be read as such; a link to elsewhere is none."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return []
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # a missing .gitignore ignores nothing
        return []
    kept = []
    for line in lines:
        try:
            GitIgnoreSpec.from_lines([line])
            kept.append(line)
        except ValueError:  # git passes over what is no pattern, too
            continue
    return kept


def read_file(folder: Path, path: str) -> str | None:
    """Returns the text of a regular file of at most MAX_BYTES; None for one that is no text, is longer, or is gone."""
    text = read_text(folder, path, MAX_BYTES)
    return None if text is None or "\0" in text else text.removeprefix("\ufeff")
