"""A story that takes in what was merged before it: what every `Workspace` must do, and what git alone can show."""

from pathlib import Path

import pytest

from orchestrator.core.delivery import Sides
from orchestrator.core.errors import WorkspaceError
from orchestrator.core.ports import Workspace
from tests.git.git_samples import change, git, note, open_workspace
from tests.git.test_workspace import agree, tree, workspace

__all__ = ["workspace"]
APP = "src/app.py"


async def apart(workspace: Workspace, path: str = APP) -> str:
    """US-1 is merged, US-2 changed the same file; the commit of the result."""
    for story, text in (("US-1", "x = 'one'\n"), ("US-2", "x = 'two'\n")):
        await workspace.open(story)
        changes = [change(path, text), change(f"{story}.txt", story)]
        await workspace.commit(story, changes, note("1", story, f"Work of {story}"))
    return (await workspace.merge("US-1", note("m", subject="Merge US-1: One"), agree)).commit


async def test_a_resolution_brings_both_together_once(workspace: Workspace) -> None:
    onto = await apart(workspace)
    before = await workspace.head("US-2")
    for changes in ([], [change("other.py", "1")]):
        with pytest.raises(WorkspaceError, match=APP):
            await workspace.take_in("US-2", onto, changes, note("t", "US-2"))
    assert await workspace.head("US-2") == before
    both = [change(APP, "x = 'both'\n")]
    made = await workspace.take_in("US-2", onto, both, note("t", "US-2"))
    assert await workspace.take_in("US-2", onto, [change(APP, "again")], note("t", "US-2")) == made
    assert await workspace.head("US-2") == made
    assert await workspace.files("US-2") == ("README.md", "US-1.txt", "US-2.txt", APP)
    # What was merged before is not this story's work.
    assert {(entry.path, entry.status) for entry in await workspace.diff("US-2")} == {("US-2.txt", "A"), (APP, "M")}
    assert await workspace.read_base("US-2", [APP, "US-1.txt", "US-2.txt"]) == {
        APP: "x = 'one'\n", "US-1.txt": "US-1",
    }  # fmt: skip
    # Steps from before it are still found, and a later one comes on top.
    assert await workspace.commit("US-2", [change("a", "b")], note("1", "US-2")) == before
    later = await workspace.take_in("US-2", onto, [change(APP, "x = 3\n")], note("t2", "US-2"))
    assert later != made
    assert await workspace.take_in("US-2", onto, [], note("t3", "US-2")) == later
    await workspace.reset("US-2")
    assert tree(workspace, "US-2")[APP] == "x = 3\n"
    merged = await workspace.merge("US-2", note("m2", "US-2"), agree)
    assert merged.merged
    await workspace.open("after")
    assert await workspace.read("after", [APP, "US-1.txt", "US-2.txt"]) == {
        APP: "x = 3\n", "US-1.txt": "US-1", "US-2.txt": "US-2",
    }  # fmt: skip
    assert {entry.path for entry in await workspace.diff("US-2")} == {"US-2.txt", APP}, "also when it is merged"


async def test_without_a_conflict_the_patches_of_both_are_told(workspace: Workspace) -> None:
    for story in ("US-1", "US-2"):
        await workspace.open(story)
        await workspace.commit(story, [change(f"{story}.txt", f"{story}\n")], note("1", story))
    onto = (await workspace.merge("US-1", note("m"), agree)).commit
    sides = await workspace.sides("US-2", onto)
    assert (sides.conflicts, sides.unreadable) == ((), ())
    assert "+US-1" in sides.result_diff
    assert "US-2" not in sides.result_diff
    assert "+US-2" in sides.story_diff
    assert set(await workspace.files_at(sides.tree)) == {"README.md", APP, "US-1.txt", "US-2.txt"}
    await workspace.take_in("US-2", onto, [], note("t", "US-2"))
    again = await workspace.sides("US-2", onto)
    assert (again.merged, again.result_diff) == ((), "")


async def test_git_merges_lines_and_marks_only_what_differs(tmp_path: Path) -> None:
    lines = [f"line {number}\n" for number in range(40)]
    workspace = await open_workspace(tmp_path, {"long.txt": "".join(lines), "run.sh": "true\n"})
    for story, number in (("US-1", 2), ("US-2", 37)):
        await workspace.open(story)
        mine = {number: f"{story}\n", 20: f"both, says {story}\n"}
        text = "".join(mine.get(at, line) for at, line in enumerate(lines))
        await workspace.commit(story, [change("long.txt", text)], note("1", story))
    onto = (await workspace.merge("US-1", note("m"), agree)).commit
    sides = await workspace.sides("US-2", onto)
    text = (await workspace.read_at(sides.tree, ["long.txt"]))["long.txt"]
    assert (text.count("US-1"), text.count("US-2"), text.count("<<<<<<< "), text.count("line 5\n")) == (2, 2, 1, 1)
    made = await workspace.take_in("US-2", onto, [change("long.txt", text.replace("<", ""))], note("t", "US-2"))
    mirror = tmp_path / "mirror.git"
    parents = git(mirror, "log", "-1", "--format=%P %(trailers:key=Orchestrator-Step,valueonly)", made).split()
    assert parents == [sides.head, onto, "t"]
    workspace.close()


@pytest.mark.parametrize("other", ["bytes", "link", "renamed"])
async def test_what_is_no_text_on_both_sides_is_told_apart(tmp_path: Path, other: str) -> None:
    workspace = await open_workspace(tmp_path, {"thing": "a\nb\nc\nd\n", "x": "1"})
    await workspace.open("US-1")
    await workspace.open("US-2")
    moved = [change("elsewhere", "a\nb\nc\nd\n")] if other == "renamed" else [change("thing", "two\n")]
    await workspace.commit("US-2", moved, note("1", "US-2"), ["thing"] if other == "renamed" else ())
    # What our own commits cannot hold may have come with the user's repository: it is put on the branch by hand.
    work = tmp_path / "by-hand"
    git(tmp_path, "clone", "-q", str(tmp_path / "mirror.git"), str(work))
    git(work, "checkout", "-q", "-b", "US-1", "origin/orchestrator/s1/US-1")
    (work / "thing").unlink()
    if other == "link":
        (work / "thing").symlink_to("x")
    elif other == "bytes":
        (work / "thing").write_bytes(b"\xff\xfe\x00\n")
    else:
        (work / "another").write_text("a\nb\nc\nd\n")
    git(work, "add", "-A")
    git(work, "commit", "-q", "-m", "By hand")
    git(work, "push", "-q", "origin", "US-1:orchestrator/s1/US-1")
    onto = (await workspace.merge("US-1", note("m"), agree)).commit
    refused = await workspace.merge("US-2", note("m2", "US-2"), agree)
    sides: Sides = await workspace.sides("US-2", onto)
    assert sides.conflicts == ()
    assert set(sides.unreadable) == set(refused.conflicts) != set()
    with pytest.raises(WorkspaceError, match="in conflict"):
        await workspace.take_in("US-2", onto, [], note("t", "US-2"))
    workspace.close()
