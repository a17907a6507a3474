"""Lock files follow the manifests that a delivery changes, and those of two stories that are brought together."""

from collections.abc import Mapping, Sequence

from orchestrator.domain.delivery import Delivery, FileChange
from orchestrator.domain.findings import Finding, Where, minor
from orchestrator.domain.lock_files import LockFiles, is_read, locks_to_follow
from orchestrator.sprint.context import Stage

_MOST_READ = 500


async def follow_locks(stage: Stage, delivery: Delivery, own: Sequence[str]) -> LockFiles:
    """The lock files of the branch, and those among the task's `own` files, as the delivery's manifests want them."""
    changed: dict[str, str] = {change.path: change.content for change in delivery.files if is_read(change.path)}
    if not changed:
        return LockFiles()

    async def work(_step_id: str) -> LockFiles:
        files = [path for path in await stage.workspace.files(stage.story_id) if is_read(path)][:_MOST_READ]
        before = await stage.workspace.read(stage.story_id, files)
        locks = locks_to_follow(changed, before, {*files, *own} - {*changed})
        large = [lock for lock in locks if lock in files and lock not in before]
        made = await _made(stage, {**before, **changed}, [lock for lock in locks if lock not in large])
        return made.model_copy(update={"told": (*made.told, *(f"`{lock}` is too large to be read" for lock in large))})

    return await stage.step.step("lock", work, LockFiles)


async def merged_locks(
    stage: Stage, tree: str, onto: str, delivered: Mapping[str, str], locks: Sequence[str]
) -> LockFiles:
    """`locks`, which both sides of a merge changed, made of the manifests of `tree` with what was `delivered`."""

    async def work(_step_id: str) -> LockFiles:
        paths = [path for path in await stage.workspace.files_at(tree) if is_read(path)][:_MOST_READ]
        texts = await stage.workspace.read_at(tree, paths)
        texts |= await stage.workspace.read_at(onto, locks)  # in the tree they have git's markers
        made = await _made(stage, {**texts, **delivered}, locks)
        kept = {lock: texts[lock] for lock in locks if lock in texts} | {one.path: one.content for one in made.files}
        files = tuple(FileChange(path=path, content=text) for path, text in kept.items())
        return made.model_copy(update={"files": files})

    return await stage.step.step("lock", work, LockFiles)


async def _made(stage: Stage, texts: Mapping[str, str], locks: Sequence[str]) -> LockFiles:
    return await stage.runner.follow_locks(texts, locks) if locks else LockFiles()


def lock_left(told: str, task: str) -> Finding:
    """A lock file does not say what its manifest asks for now; `told` names it and why."""
    message = f"out of step with its manifest: {told}"
    return minor("delivery.lock_left", message, where=Where(task=task), fix="Make it with its own tool, and commit it.")
