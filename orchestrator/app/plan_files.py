"""Reads a project's files outside of a run, and people's plans (`--plan`). Imports no engine."""

import asyncio
import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from orchestrator.checks.backlog import nearest
from orchestrator.checks.breakdown import unwritable_files
from orchestrator.code.packages import dependencies_of
from orchestrator.core.errors import ConfigError, WorkspaceError
from orchestrator.core.history import StoryHistory
from orchestrator.core.paths import (
    folders_of,
    is_manifest,
    no_text,
    obstacle_at,
    parents,
    spelling,
    unsafe_reason,
)
from orchestrator.core.sprint import BroughtPlan, SprintRecord
from orchestrator.core.story import BacklogContent, id_problem
from orchestrator.files.safe_files import read_text
from orchestrator.git.command import run_git
from orchestrator.sandbox.command_runner import scratch_folder
from orchestrator.settings import Settings
from orchestrator.settings.options import RunOptions, default_repository
from orchestrator.sprint.dry_run import JudgedTasks
from orchestrator.story.planning import judge_text

MAX_BYTES = 400_000  # a source that is longer is generated
LEFT_OUT = (
    ".hg", ".svn", ".orchestrator/", "node_modules/", "__pycache__/", ".venv/", "venv/", "site-packages/",
    ".mypy_cache/", ".ruff_cache/", ".pytest_cache/", ".tox/", ".nox/", ".gradle/", ".idea/", ".vscode/", "*.egg-info/",
    ".DS_Store", "Thumbs.db",
)  # fmt: skip
"""Left out of any project unless git has them, in the syntax of .gitignore."""


async def project_files(folder: Path, ignore: Sequence[str] = (), *, tracked: bool = True) -> tuple[str, ...]:
    """Returns the sorted relative paths of the project's files and links.

    They are those that git has, and others that no rule leaves out; of a folder that is no repository all that are not
    LEFT_OUT. Without `tracked` the rules count wherever they stand, also for files that git has, and links stay out.
    `ignore` are more patterns, which count most. Raises ConfigError when the folder cannot be read.
    """
    top, rules = await asyncio.to_thread(_rules_of, folder, tracked)
    rules += [f"--exclude={pattern}" for pattern in ignore]
    rules += ["--exclude-standard"] if top is not None or not tracked else []
    asked = ["ls-files", "-z", "--others", *rules]
    try:
        if top is not None and tracked:
            # The folder may belong to another user: git would not list it without `safe.directory`.
            said = await run_git([*asked, "--cached"], cwd=folder, settings=("safe.directory=*",))
        else:
            async with scratch_folder() as scratch:  # a repository that has no file yet
                await run_git(["init", "--quiet", "--bare", str(scratch)], cwd=scratch)
                said = await run_git(asked, cwd=folder, git_dir=scratch, work_tree=top or Path())
    except WorkspaceError as error:
        raise ConfigError(f"{folder} cannot be read: {error.message}") from error
    names = {name for name in said.stdout.decode("utf-8", "surrogateescape").split("\0") if name}
    for inner in [name for name in names if name.endswith("/")]:
        # Of a repository inside this one git names the folder only.
        names.remove(inner)
        names |= {inner + path for path in await project_files(folder / inner, ignore, tracked=tracked)}
    if not tracked:
        names = await asyncio.to_thread(_plain_ones, folder, names)
    return tuple(sorted(names))


def _rules_of(folder: Path, tracked: bool) -> tuple[Path | None, list[str]]:
    """Returns the top of the repository around the folder, and options with the rules that stand in none of its
    .gitignore files. Raises ConfigError."""
    try:
        os.scandir(folder).close()
    except OSError as error:
        raise ConfigError(f"{folder} cannot be read: {error.strerror}") from error
    place, rules = folder.resolve(), [f"--exclude={pattern}" for pattern in LEFT_OUT]
    around = (place,) if tracked else (place, *place.parents)
    top = next((one for one in around if (one / ".git").exists()), None)
    own = top / ".git" / "info" / "exclude" if top is not None else None
    return top, [*rules, f"--exclude-from={own}"] if own is not None and own.is_file() else rules


def _plain_ones(folder: Path, names: Iterable[str]) -> set[str]:
    found = set[str]()
    for name in names:
        with suppress(OSError):  # it is gone by now
            if name.isprintable() and stat.S_ISREG((folder / name).lstat().st_mode):
                found.add(name)
    return found


def read_texts(folder: Path, paths: Iterable[str], limit: int = MAX_BYTES) -> dict[str, str]:
    """Returns path → text of the regular files among `paths`, in UTF-8 and up to `limit` bytes; follows no link."""
    return {path: text for path in paths if (text := read_text(folder, path, limit)) is not None}


def find_existing(folder: Path, paths: Iterable[str]) -> frozenset[str]:
    """Returns those of `paths` that exist and are not folders; a link counts, wherever it leads."""
    return frozenset(
        path
        for path in paths
        if os.path.lexists(folder / path) and ((folder / path).is_symlink() or not (folder / path).is_dir())
    )


_SUBMODULE = re.compile(r"^[ \t]*path[ \t]*=[ \t]*\"?([^\"\n]+?)\"?[ \t]*$", re.MULTILINE)


def find_obstacles(folder: Path, files: Iterable[str], paths: Iterable[str], limit: int = MAX_BYTES) -> dict[str, str]:
    """Returns those of `paths` where no text can be written, and why; `files` are the project's."""
    wanted = [path for path in dict.fromkeys(paths) if unsafe_reason(path) is None]
    inside = folders_of(files)
    kinds: dict[str, str] = {}
    inner = {*_SUBMODULE.findall(read_text(folder, ".gitmodules", limit) or "")}
    for place in dict.fromkeys(one for path in wanted for one in (*parents(path), path)):
        if kind := "a submodule" if place in inner else _kind_at(folder / place, limit if place in wanted else None):
            kinds[place] = kind
    folders = {spelling(one): one for one in inside}
    folders |= {spelling(one): one for path in wanted for one in parents(path) if one in inside}
    return {path: said for path in wanted if (said := obstacle_at(path, kinds, folders))}


def _kind_at(place: Path, limit: int | None) -> str | None:
    with suppress(OSError):  # nothing is there
        mode = place.lstat().st_mode
        if stat.S_ISLNK(mode):
            return "a link"
        if stat.S_ISREG(mode) and limit is not None:
            return no_text(place.read_bytes()) if place.stat().st_size <= limit else f"larger than {limit} bytes"
    return None


def write_new(files: dict[Path, str]) -> None:
    """Writes new files, all or none. Raises ConfigError naming a file that exists already."""
    written: list[Path] = []
    try:
        for path, text in files.items():
            with path.open("x", encoding="utf-8", newline="") as file:
                written.append(path)
                file.write(text)
    except OSError as error:
        for path in written:
            path.unlink(missing_ok=True)
        why = "is there already" if isinstance(error, FileExistsError) else f"cannot be written: {error.strerror}"
        raise ConfigError(f"{path} {why}; nothing was written") from error


SHOWN = 12
"""Limit on the stories that a message names."""


def read_plans(
    words: Sequence[str], selected: Sequence[str], content: BacklogContent, known: Mapping[str, BroughtPlan]
) -> dict[str, BroughtPlan]:
    """Returns story → plan from `--plan`. A deleted file is fine if `known` has its plan.

    Raises ConfigError for a plan without a story or with two, a story with two plans, or an unreadable file.
    """
    found: dict[str, BroughtPlan] = {}
    for word in words:
        story, path = _named(word, selected, content)
        if story in found:
            raise ConfigError(f"--plan names {story} twice: a story has one plan")
        found[story] = _read(path, known.get(story))
    return found


def _named(word: str, selected: Sequence[str], content: BacklogContent) -> tuple[str, str]:
    name, equals, path = word.partition("=")
    if equals and name in selected:
        if not path:
            raise ConfigError(f"--plan {word} names no file")
        return name, path
    if equals and not id_problem(name) and not Path(word).exists():
        raise ConfigError(f"--plan {word}: {_unknown(name, selected, content)}")
    if len(selected) != 1:
        stories = ", ".join(selected[:SHOWN]) + (", …" if len(selected) > SHOWN else "")
        raise ConfigError(
            f"--plan {word} does not say whose plan it is: write --plan STORY={word} ({stories or 'no story is open'})"
        )
    return selected[0], word


def _unknown(name: str, selected: Sequence[str], content: BacklogContent) -> str:
    row = content.story(name)
    if row is None:
        hint = nearest(name, list(selected))
        return f"there is no story {name}" + (f"; {hint}" if hint else "")
    if row.completed:
        return f"{name} is completed and is not run"
    return f"{name} is not among the stories of this sprint ({', '.join(selected[:SHOWN])})"


def _read(path: str, known: BroughtPlan | None) -> BroughtPlan:
    try:
        # Editors on Windows write a byte order mark.
        return BroughtPlan(path=path, text=Path(path).read_bytes().decode("utf-8-sig"))
    except OSError as error:
        if known is not None:
            return known
        raise ConfigError(f"cannot read the plan {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"the plan {path} is not UTF-8 (byte {error.start}): save it as UTF-8") from error


def add_plans(
    record: SprintRecord,
    found: Mapping[str, BroughtPlan],
    histories: Mapping[str, StoryHistory],
    warn: Callable[[str], None],
) -> SprintRecord:
    """Returns the record with these plans for stories that have not started; others keep their plan."""
    plans = dict(record.plans)
    for story, plan in found.items():
        before = plans.get(story)
        if before is not None and before.text == plan.text:
            continue
        if histories[story].started is None and histories[story].outcome is None:
            plans[story] = plan
        else:
            whose = f"the plan of {before.path} as it was then" if before is not None else "the architect's plan"
            warn(f"{story} has begun with {whose}; {plan.path} counts only once you `reset` it")
    return record.model_copy(update={"plans": plans})


def judge_by_rules(options: RunOptions, plans: Mapping[str, BroughtPlan], settings: Settings) -> dict[str, JudgedTasks]:
    """Returns a dry run's judgement of plans: read without a model, against the repository's files, if any."""
    repo = options.repo or default_repository()
    files, packages = asyncio.run(read_project(repo)) if repo.is_dir() else (frozenset(), frozenset())
    judged = {}
    for story, plan in plans.items():
        least = settings.plan.min_chars
        built, findings = judge_text(plan.text, plan.path, story, files, packages, min_chars=least)
        paths = [path for task in built.tasks for path in task.files_to_create] if built else []
        odd = unwritable_files(built, find_obstacles(repo, files, paths)) if built else ()
        judged[story] = JudgedTasks(count=len(built.tasks) if built else None, findings=(*findings, *odd))
    return judged


async def read_project(folder: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Returns paths of a folder's files, and the packages in its manifests."""
    files = await project_files(folder)
    texts = await asyncio.to_thread(read_texts, folder, [path for path in files if is_manifest(path)])
    return frozenset(files), frozenset(name for path, text in texts.items() for name in dependencies_of(path, text))
