"""Trees of texts, as the workspace without git keeps them: changed, merged, compared."""

import difflib
import hashlib
from collections.abc import Mapping, Sequence

from orchestrator.domain.delivery import FileChange
from orchestrator.errors import WorkspaceError

Tree = Mapping[str, str]
"""Path → text."""


def changed(tree: Tree, changes: Sequence[FileChange], removed: Sequence[str]) -> dict[str, str]:
    """The tree with the changes applied.

    Raises WorkspaceError when a file would also have to be a folder, or one to be removed is not there.
    """
    gone = next((path for path in removed if path not in tree), None)
    if gone is not None:
        raise WorkspaceError(f"{gone} cannot be removed: it is not on the branch")
    made: dict[str, str] = {**tree, **{change.path: change.content for change in changes}}
    made = {path: text for path, text in made.items() if path not in removed}
    for path in made:
        parts = path.split("/")
        blocked = next((above for n in range(1, len(parts)) if (above := "/".join(parts[:n])) in made), None)
        if blocked is not None:
            raise WorkspaceError(f"{path} cannot be written: {blocked} is no folder on the branch")
    return made


def merged(base: Tree, ours: Tree, theirs: Tree) -> tuple[Tree, tuple[str, ...]]:
    """Ours with what theirs changed, and the paths that both changed in different ways."""
    differing = sorted(path for path in {*base, *theirs} if base.get(path) != theirs.get(path))
    both = dict(ours)
    for path in differing:
        both.pop(path, None)
        if path in theirs:
            both[path] = theirs[path]
    return both, tuple(path for path in differing if ours.get(path) not in {base.get(path), theirs.get(path)})


def marked(ours: str, mine: str, theirs: str, other: str) -> str:
    """A file in conflict as git leaves it: the version of commit `ours`, that of commit `theirs`."""
    return f"<<<<<<< {ours}\n{mine}=======\n{other}>>>>>>> {theirs}\n"


def patch(old: Tree, new: Tree) -> str:
    """The difference as a unified patch."""
    lines: list[str] = []
    for path in sorted(path for path in {*old, *new} if old.get(path) != new.get(path)):
        before, after = (tree.get(path, "").splitlines(keepends=True) for tree in (old, new))
        lines += difflib.unified_diff(before, after, f"a/{path}", f"b/{path}")
    return "".join(lines)


def digest(parent: str, tree: Tree, message: str) -> str:
    """A name for a commit, or for a tree of its own."""
    content = "\0".join([parent, message, *(f"{path}\0{tree[path]}" for path in sorted(tree))])
    return hashlib.sha1(content.encode(), usedforsecurity=False).hexdigest()
