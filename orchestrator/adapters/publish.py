"""Handing the result to the user's repository: a branch there is created or fast-forwarded, and nothing else."""

import asyncio
from pathlib import Path

from orchestrator.adapters.mirror import Mirror
from orchestrator.adapters.repository import push_target
from orchestrator.errors import RepositoryError


async def check_push(mirror: Mirror, result_ref: str, user_repo: Path, branch: str) -> str:
    """The commit `branch` of the user's repository stands at, "" when it does not exist yet.

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
    """Create or fast-forward `branch` of the user's repository to `result_ref`.

    Raises RepositoryError as `check_push` does, WorkspaceError when the branch moved at that very moment.
    """
    tip = await check_push(mirror, result_ref, user_repo, branch)
    result = (await mirror.refs(result_ref))[result_ref].commit
    if tip != result:
        await mirror.push(await asyncio.to_thread(user_repo.absolute), result, branch, expected=tip)
