"""One tree of a repository in one file, a git bundle without history, and a repository made of it."""

import asyncio
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from orchestrator.core.errors import WorkspaceError
from orchestrator.git.command import run_git

# Always the same commit of the same tree.
_DATES = {"GIT_AUTHOR_DATE": "2000-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2000-01-01T00:00:00Z"}


async def tree_id(mirror: Path, revision: str) -> str:
    """Returns the id of a revision's tree; "" when there is no such revision."""
    with suppress(WorkspaceError):
        return (await run_git(["rev-parse", "--verify", "--quiet", f"{revision}^{{tree}}"], git_dir=mirror)).text
    return ""


async def bundle_tree(mirror: Path, commit: str) -> bytes:
    """Returns a bundle of one commit with the tree of `commit`; the mirror stays as it is. Raises WorkspaceError."""
    own = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="orchestrator-bundle-"))
    try:
        form = (await run_git(["rev-parse", "--show-object-format"], git_dir=mirror)).text
        made = ["init", "--quiet", "--bare", "--template=", "--initial-branch=main", f"--object-format={form}", "."]
        await run_git(made, cwd=own)
        lent = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": str(mirror / "objects"), **_DATES}
        write = ["commit-tree", f"{commit}^{{tree}}", "-m", "Base"]
        base = (await run_git(write, git_dir=own, variables=lent)).text
        await run_git(["update-ref", "refs/heads/main", base], git_dir=own, variables=lent)
        return (await run_git(["bundle", "create", "-", "HEAD", "main"], git_dir=own, variables=lent)).stdout
    finally:
        await asyncio.to_thread(shutil.rmtree, own, ignore_errors=True)


async def clone_bundle(bundle: Path, repo: Path) -> None:
    """Makes the bare repository `repo` of a bundle; both paths are absolute. Raises WorkspaceError."""
    made = ["clone", "--quiet", "--bare", "--template=", "--", str(bundle), str(repo)]
    await run_git(made, cwd=bundle.parent, protocols="file")
