"""The user's own repository (`--repo`): looked at, and given the result as a branch, created or fast-forwarded."""

import asyncio
import os
from pathlib import Path

from orchestrator.core.errors import RepositoryError, WorkspaceError
from orchestrator.core.value import Value
from orchestrator.git.command import run_git
from orchestrator.git.mirror import Mirror

_ANYBODYS = "safe.directory=*"
"""The user named this folder, so it may belong to somebody else."""
_BARE = "safe.bareRepository=all"
_OURS = ".orchestrator/"


class Repository(Value):
    """The user's repository as it stands."""

    path: Path
    """Top folder of the checkout, or the bare repository itself; absolute, links resolved."""
    git_dir: Path
    bare: bool
    base: str
    """Commit of HEAD; "" when there is none yet."""
    object_format: str
    """sha1 or sha256."""
    created: bool = False
    """Whether it was made just now."""
    warnings: tuple[str, ...] = ()
    """For people: what is there and will not be part of the sprint."""


async def open_repository(folder: Path) -> Repository:
    """Looks at the repository at `folder`; an absent or empty folder is made one, with a first branch `main`.

    Raises RepositoryError for every other folder that is no repository's top folder. Nothing of the repository's own
    (hooks, filters, configured programs) runs.
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


def expect_there(folder: Path) -> None:
    """Raises RepositoryError where `open_repository` would make a new one. Blocks."""
    try:
        there = any(folder.iterdir())
    except FileNotFoundError:
        there = False
    except OSError as error:
        raise RepositoryError(f"{folder} cannot be used as a repository: {error.strerror}") from error
    if not there:
        raise RepositoryError(f"the repository {folder} is gone: put it back, sprints have begun from it")


def _make_folder(folder: Path) -> bool:
    """Returns whether `folder` is empty and shall become a repository; makes it when it is absent."""
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
    repository = Repository(path=path, git_dir=Path(git_dir), bare=bare == "true", base="", object_format=object_format)
    within = "/".join(prefix).strip("/")
    if repository.bare:
        if repository.git_dir != path:
            raise RepositoryError(f"{path} lies inside a bare repository; give that one: {git_dir}")
    elif inside == "true":
        raise RepositoryError(f"{path} is the inside of a repository: give its top folder")
    elif within:
        top = path.parents[len(within.split("/")) - 1]
        raise RepositoryError(f"{path} is a folder inside a repository; give that one: {top}")
    head = await _ask(repository, "rev-parse", "--verify", "--quiet", "HEAD^{commit}", ok=(0, 1))
    return repository.model_copy(update={"base": head})


async def _ask(repository: Repository, *args: str, settings: tuple[str, ...] = (), ok: tuple[int, ...] = (0,)) -> str:
    """Asks git something about the user's repository. Raises RepositoryError."""
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
    """Returns where refs and objects of the repository are: elsewhere when it is a linked worktree."""
    try:
        return (git_dir / (git_dir / "commondir").read_text(encoding="utf-8").strip()).resolve()
    except OSError:
        return git_dir


async def _uncommitted(repository: Repository) -> tuple[str, ...]:
    """Returns a warning about files that are not in the base commit, if there are any."""
    listed = await _ask(repository, "config", "--list", "--name-only", "-z")
    filters = [key for key in listed.split("\0") if key.startswith("filter.")]
    # A filter of the user's would be run to compare files; without it such a file counts as changed at worst. One
    # that cannot be switched off (`=` in its name) means that nothing can be said.
    off = tuple(f"{key}={'false' if key.endswith('.required') else ''}" for key in filters if "=" not in key)
    if len(off) < len(filters):
        return ()
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
    """Returns the commit `branch` of the repository at `folder` stands at, "" when there is no such branch.

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
    """Returns the commit `branch` of the user's repository stands at, "" when it does not exist yet.

    Raises RepositoryError unless `result_ref` can be put there by creating or fast-forwarding it.
    """
    tip = await push_target(user_repo, branch)
    if tip:
        # 1 says no, 128 that the mirror has never seen that commit: the branch has gone its own way.
        answer = await mirror.git("merge-base", "--is-ancestor", tip, result_ref, ok=(0, 1, 128))
        if answer.code:
            raise RepositoryError(
                f"branch {branch} has diverged from the sprint's base: it cannot be fast-forwarded; "
                "name another branch, or delete or rename this one"
            )
    return tip


async def push(mirror: Mirror, result_ref: str, user_repo: Path, branch: str) -> None:
    """Creates or fast-forwards `branch` of the user's repository to `result_ref`.

    Raises RepositoryError as `check_push` does, WorkspaceError when the branch moved at that very moment.
    """
    tip = await check_push(mirror, result_ref, user_repo, branch)
    result = (await mirror.refs(result_ref))[result_ref].commit
    if tip != result:
        await mirror.push(await asyncio.to_thread(user_repo.absolute), result, branch, expected=tip)
