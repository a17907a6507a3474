"""What is not asked of git twice, and what is looked up each time: objects never change, refs do."""

from pathlib import Path

import pytest

from orchestrator.core.errors import WorkspaceError
from orchestrator.git import commits
from orchestrator.git.command import GitOutput
from orchestrator.git.mirror import Mirror
from tests.git.git_samples import change, git

REF = "refs/heads/orchestrator/S1/US-1"


class Counted(Mirror):
    """A mirror that lists the commands it runs."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.ran: list[str] = []

    async def git(self, *args: str, **more: object) -> GitOutput:
        self.ran.append(args[0])
        return await super().git(*args, **more)  # type: ignore[arg-type]


async def grown(mirror: Mirror, text: str, parents: tuple[str, ...] = ()) -> str:
    """A commit on REF whose file `a.py` holds `text`."""
    start = parents[0] if parents else await commits.empty_tree(mirror)
    tree = await commits.build_tree(mirror, start, [change("a.py", text)], ())
    made = await commits.commit_tree(mirror, tree, parents, f"{text}\n")
    await mirror.update(f"update {REF} {made}")
    return made


@pytest.fixture
async def mirror(tmp_path: Path) -> Counted:
    made = Counted(tmp_path / "mirror.git")
    await made.prepare()
    return made


async def test_objects_are_asked_about_once_and_a_moved_ref_is_seen(mirror: Counted) -> None:
    first = await grown(mirror, "one\n")
    second = await grown(mirror, "two\n", (first,))
    for _ in range(3):
        assert (await mirror.refs(REF))[REF].commit == second
        assert await commits.read_texts(mirror, second, ["a.py", "a.py"], limit=100) == {"a.py": "two\n"}
        assert await commits.read_texts(mirror, first, ["a.py"], limit=100) == {"a.py": "one\n"}
        assert [entry.status for entry in await commits.raw_diff(mirror, first, second)] == ["M"]
        assert [message.strip() for _, message in await commits.log(mirror, first, second)] == ["two"]
        # By its name, a branch is looked up each time.
        assert "a.py" in await commits.tree_entries(mirror, REF)
    asked = mirror.ran[mirror.ran.index("update-ref", mirror.ran.index("update-ref") + 1) + 1 :]
    assert sorted(asked) == ["diff-tree", "log", *["ls-tree"] * 3]

    unaware = Counted(mirror.path)
    for _ in range(2):
        assert await commits.read_texts(unaware, second, ["a.py"], limit=100) == {"a.py": "two\n"}
    assert unaware.ran == ["ls-tree", "cat-file"]

    other = Mirror(mirror.path)  # as another process
    await other.update(f"update {REF} {first} {second}")
    assert (await mirror.refs(REF))[REF].commit == first
    git(mirror.path, "pack-refs", "--all")
    assert (await mirror.refs(REF))[REF] == (await other.refs(REF))[REF]
    await other.update(f"update {REF} {second} {first}")
    assert (await mirror.refs(REF))[REF].commit == second
    await other.update(f"delete {REF}")
    assert await mirror.refs(REF) == {}
    mirror.close()


async def test_an_object_that_is_not_there_is_no_answer(mirror: Counted) -> None:
    head = await grown(mirror, "one\n")
    for _ in range(2):
        with pytest.raises(WorkspaceError, match="ls-tree"):
            await commits.tree_entries(mirror, "1" * 40)
        with pytest.raises(WorkspaceError, match="missing"):
            await commits.blobs(mirror, ["1" * 40])
    assert "a.py" in await commits.tree_entries(mirror, head)
    mirror.close()
