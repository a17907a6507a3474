"""The user's own repository (`--repo`): reads it, and creates or fast-forwards a branch with the result."""

import asyncio
import os
from pathlib import Path

from orchestrator.core.errors import RepositoryError, WorkspaceError
from orchestrator.core.value import Value
from orchestrator.git.command import run_git
from orchestrator.git.mirror import Mirror

_ANYBODYS = "safe.directory=*"
"""The user named this folder, so another user may own it."""
_BARE = "safe.bareRepository=all"
_OURS = ".orchestrator/"


class Repository(Value):
    """The current state of the user's repository."""

    path: Path
    """Top folder of the checkout, or the bare repository itself; absolute, links resolved."""
    git_dir: Path
    bare: bool
    base: str
    """Commit of HEAD; "" when there is none."""
    created: bool = False
    """True when it was just created."""
    warnings: tuple[str, ...] = ()
    """For people: files that will not be part of the sprint."""


async def open_repository(folder: Path) -> Repository:
    """Reads the repository at `folder`; creates one with a branch `main` in an absent or empty folder.

    Raises RepositoryError for any other folder that is not a repository's top folder. The repository's hooks, filters
    and configured programs do not run.
    """
    created = await asyncio.to_thread(_make_folder, folder)
    path = await asyncio.to_thread(folder.resolve)
    if created:
        try:
            await run_git(["init", "--quiet", "--initial-branch=main", "--template=", "--", str(path)], cwd=path)
        except WorkspaceError as error:
            raise RepositoryError(f"no repository could be made at {folder}: {error.message}") from error
    found = await _discover(path)
    warnings = () if found.bare or created else await _uncommitted(found)
    return found.model_copy(update={"created": created, "warnings": warnings})


def is_there(folder: Path) -> bool:
    """Returns whether a folder holds anything: of another one `open_repository` would make a repository. Blocks.

    Raises RepositoryError where it cannot be used.
    """
    try:
        return any(folder.iterdir())
    except FileNotFoundError:
        return False
    except OSError as error:
        raise RepositoryError(f"{folder} cannot be used as a repository: {error.strerror}") from error


def expect_there(folder: Path) -> None:
    """Raises RepositoryError if `open_repository` would create a repository. Blocks."""
    if not is_there(folder):
        raise RepositoryError(f"the repository {folder} is gone: put it back, sprints have begun from it")


def _make_folder(folder: Path) -> bool:
    """Returns whether `folder` is empty and will become a repository; creates it if it is absent."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with os.scandir(folder) as entries:
            return next(entries, None) is None
    except OSError as error:
        raise RepositoryError(f"{folder} cannot be used as a repository: {error.strerror}") from error


async def _discover(path: Path) -> Repository:
    questions = ("--absolute-git-dir", "--is-bare-repository", "--is-inside-git-dir", "--show-object-format")
    try:
        said = await run_git(["rev-parse", *questions, "--show-prefix"], cwd=path, settings=(_ANYBODYS, _BARE))
    except WorkspaceError as error:
        raise RepositoryError(f"{path} is no git repository and not empty ({error.message})") from error
    git_dir, bare, inside, object_format, *prefix = said.text.split("\n")
    repository = Repository(path=path, git_dir=Path(git_dir), bare=bare == "true", base="")
    if object_format != "sha1":
        raise RepositoryError(f"{path} has objects of the format {object_format}: only SHA-1 can be worked on")
    if repository.git_dir != path if repository.bare else inside == "true" or any(prefix):
        raise RepositoryError(f"{path} lies inside the repository of {git_dir}: give its top folder")
    head = await _ask(repository, "rev-parse", "--verify", "--quiet", "HEAD^{commit}", ok=(0, 1))
    return repository.model_copy(update={"base": head})


async def _ask(repository: Repository, *args: str, settings: tuple[str, ...] = (), ok: tuple[int, ...] = (0,)) -> str:
    """Runs a git query on the user's repository. Raises RepositoryError."""
    try:
        output = await run_git(
            args,
            git_dir=repository.git_dir,
            common_dir=await asyncio.to_thread(_common_dir, repository.git_dir),
            work_tree=None if repository.bare else repository.path,
            cwd=repository.path,
            settings=(_ANYBODYS, *settings),
            ok=ok,
        )
    except WorkspaceError as error:
        raise RepositoryError(f"the repository {repository.path} cannot be read: {error.message}") from error
    return output.stdout.decode("utf-8", "backslashreplace").rstrip("\n")


def _common_dir(git_dir: Path) -> Path:
    """Returns the folder of the repository's refs and objects, which differs for a linked worktree."""
    try:
        return (git_dir / (git_dir / "commondir").read_text(encoding="utf-8").strip()).resolve()
    except OSError:
        return git_dir


async def _uncommitted(repository: Repository) -> tuple[str, ...]:
    """Returns a warning about files that are not in the base commit, if there are any."""
    listed = await _ask(repository, "config", "--list", "--name-only", "-z")
    filters = [key for key in listed.split("\0") if key.startswith("filter.")]
    # A comparison would run the user's filters; without them a file may at worst wrongly count as changed.
    off = tuple(f"{key}={'false' if key.endswith('.required') else ''}" for key in filters)
    said = await _ask(
        repository, "status", "--porcelain", "-z", "--untracked-files=normal", "--no-renames", settings=off
    )
    lines = [line for line in said.split("\0") if line and not line[3:].startswith(_OURS)]
    unknown = sum(line.startswith("??") for line in lines)
    if not lines:
        return ()
    parts = [f"{len(lines) - unknown} changed"] if len(lines) > unknown else []
    parts += [f"{unknown} untracked"] if unknown else []
    return (f"{repository.path} has uncommitted files ({', '.join(parts)}): the sprint starts without them",)


async def push_target(folder: Path, branch: str) -> str:
    """Returns the commit of `branch` in the repository at `folder`, "" when there is no such branch.

    Raises RepositoryError for an impossible name and for a branch that is checked out in any of its worktrees.
    """
    repository = await _discover(await asyncio.to_thread(folder.resolve))
    ref = f"refs/heads/{branch}"
    if branch.startswith("-") or branch == "HEAD" or await _unfit(repository, ref):
        raise RepositoryError(f"{branch!r} is no name for a branch")
    listed = await _ask(repository, "worktree", "list", "--porcelain", "-z")
    if f"branch {ref}" in listed.split("\0"):
        raise RepositoryError(f"branch {branch} is checked out in {repository.path}: name another one")
    return await _ask(repository, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", ok=(0, 1))


async def _unfit(repository: Repository, ref: str) -> bool:
    try:
        await _ask(repository, "check-ref-format", ref)
    except RepositoryError:
        return True
    return False


async def check_push(mirror: Mirror, result_ref: str, user_repo: Path, branch: str) -> str:
    """Returns the commit of `branch` in the user's repository, "" when it does not exist yet.

    Raises RepositoryError unless the branch can be created at, or fast-forwarded to, `result_ref`.
    """
    tip = await push_target(user_repo, branch)
    if tip:
        # 1 means no, 128 that the mirror has never seen that commit: the branch has diverged.
        answer = await mirror.git("merge-base", "--is-ancestor", tip, result_ref, ok=(0, 1, 128))
        if answer.code:
            raise RepositoryError(
                f"branch {branch} has diverged from the sprint's base: it cannot be fast-forwarded; "
                "name another branch, or delete or rename this one"
            )
    return tip


async def push(mirror: Mirror, result_ref: str, user_repo: Path, branch: str) -> None:
    """Creates or fast-forwards `branch` of the user's repository to `result_ref`.

    Raises RepositoryError as `check_push` does, WorkspaceError when the branch moved meanwhile.
    """
    tip = await check_push(mirror, result_ref, user_repo, branch)
    result = (await mirror.refs(result_ref))[result_ref].commit
    if tip != result:
        await mirror.push(await asyncio.to_thread(user_repo.absolute), result, branch, expected=tip)
