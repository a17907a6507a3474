"""Names of the branches of one sprint in the mirror, and where they stand."""

from pathlib import Path

from orchestrator.adapters.mirror import Mirror, Ref, remove_locks
from orchestrator.domain.backlog_text import id_problem
from orchestrator.errors import WorkspaceError

RESULT = "result"
"""The branch that gathers the merged stories; no story is called so."""


def checked_id(identifier: str) -> str:
    """The id of a sprint or a story as part of a branch's name. Raises WorkspaceError when it cannot be one."""
    problem = id_problem(identifier)
    if problem is not None:
        raise WorkspaceError(f"{identifier!r} cannot name a branch: {problem}")
    return identifier


class SprintRefs:
    """Refs of one sprint: `heads` are its branches, `base` what each of them began at."""

    def __init__(self, mirror: Mirror, sprint: str) -> None:
        self._mirror, self._sprint = mirror, checked_id(sprint)

    def branch(self, name: str) -> str:
        """Name of a branch as people use it."""
        return f"orchestrator/{self._sprint}/{name}"

    def ref(self, kind: str, name: str) -> str:
        """Full name of a ref; `name` may be "" for the folder of all."""
        top = "refs/orchestrator/base" if kind == "base" else "refs/heads/orchestrator"
        return f"{top}/{self._sprint}/{name}"

    async def ends(self, name: str) -> tuple[Ref, Ref]:
        """Base and head of a story's branch, or of the result branch. Raises WorkspaceError when there is none."""
        if name != RESULT:
            checked_id(name)
        base_ref, head_ref = self.ref("base", name), self.ref("heads", name)
        refs = await self._mirror.refs(base_ref, head_ref)
        if len(refs) < 2:
            raise WorkspaceError(f"{name} has no branch in sprint {self._sprint}")
        return refs[base_ref], refs[head_ref]

    async def own_part(self, story_id: str) -> tuple[str, str]:
        """The two commits between which the story's own work lies: head, and the result as it last took it in.

        Only taking in makes merge commits on a story's branch, so nothing has to be recorded beside them: a kill
        leaves either both or none.
        """
        base, head = await self.ends(story_id)
        if base.commit == head.commit:
            return base.commit, head.commit
        walk = ("-1", "--first-parent", "--merges", "--format=%P", f"{base.commit}..{head.commit}")
        parents = (await self._mirror.git("log", *walk)).text.split()
        return (parents[1] if parents else base.commit), head.commit

    def clear_locks(self) -> None:
        """Remove what killed git processes left; the caller holds the sprint's lock."""
        for kind in ("base", "heads"):
            remove_locks(Path(self._mirror.path / self.ref(kind, "")))
