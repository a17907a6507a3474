"""What every implementation of the `Workspace` port must do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from orchestrator.core.errors import WorkspaceError
from orchestrator.core.event import listening
from orchestrator.core.ports import Workspace
from orchestrator.git.workspace import GitWorkspace
from tests.git.git_samples import change, fill, note, open_workspace, snapshot
from tests.memory_workspace import MemoryWorkspace

FILES = {"README.md": "hello\n", "src/app.py": "x = 1\n"}


@pytest.fixture(params=["git", "memory"])
async def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Workspace]:
    if request.param == "memory":
        yield MemoryWorkspace(sprint="s1", base_files=FILES, folder=tmp_path / "trees")
        return
    made = await open_workspace(tmp_path, FILES)
    yield made
    made.close()


async def agree(folder: Path) -> str:
    return ""


def tree(workspace: Workspace, story: str = "US-1") -> dict[str, str]:
    return {path: content.decode() for path, content in snapshot(workspace.root(story)).items()}


async def test_open_is_idempotent_and_starts_at_the_result(workspace: Workspace) -> None:
    branch = await workspace.open("US-1")
    assert branch.name == "orchestrator/s1/US-1"
    assert branch.base == branch.head
    assert await workspace.open("US-1") == branch
    assert tree(workspace) == FILES
    assert await workspace.files("US-1") == ("README.md", "src/app.py")


async def test_a_commit_holds_the_given_contents_and_nothing_else(workspace: Workspace) -> None:
    branch = await workspace.open("US-1")
    changes = [change("src/app.py", "x = 2\r\n"), change("src/new/ü b.py", "")]
    await workspace.write("US-1", changes)
    fill(workspace.root("US-1"), {"src/app.py": "spoilt", "junk.txt": "left by a command"})
    head = await workspace.commit("US-1", changes, note("step-1"))
    assert head != branch.head
    assert await workspace.open("US-1") == branch.model_copy(update={"head": head})
    assert tree(workspace) == {**FILES, "src/app.py": "x = 2\r\n", "src/new/ü b.py": ""}
    found = {(entry.path, entry.status, entry.old_mode, entry.new_mode) for entry in await workspace.diff("US-1")}
    assert found == {("src/app.py", "M", "100644", "100644"), ("src/new/ü b.py", "A", "000000", "100644")}
    assert "src/app.py" in await workspace.diff_stat("US-1")


async def test_a_repeated_step_finds_its_commit_and_no_change_makes_none(workspace: Workspace) -> None:
    branch = await workspace.open("US-1")
    assert await workspace.commit("US-1", [change("README.md", "hello\n")], note("step-0")) == branch.head
    assert await workspace.commit("US-1", [], note("step-0")) == branch.head
    first = await workspace.commit("US-1", [change("a.txt", "1")], note("step-1"))
    second = await workspace.commit("US-1", [change("a.txt", "2")], note("step-2"))
    assert await workspace.commit("US-1", [change("a.txt", "1")], note("step-1")) == first
    assert await workspace.commit("US-1", [change("a.txt", "2")], note("step-2")) == second
    assert (await workspace.open("US-1")).head == second


async def test_write_starts_from_the_branch_and_is_all_or_nothing(workspace: Workspace) -> None:
    await workspace.open("US-1")
    await workspace.write("US-1", [change("a.txt", "one")])
    await workspace.write("US-1", [change("b.txt", "two")])
    assert tree(workspace) == {**FILES, "b.txt": "two"}
    with pytest.raises(WorkspaceError):
        await workspace.write("US-1", [change("c.txt", "three"), change("README.md/x", "below a file")])
    with pytest.raises(WorkspaceError):
        await workspace.commit("US-1", [change("README.md/x", "below a file")], note("step-1"))
    with pytest.raises(WorkspaceError):
        await workspace.commit("US-1", [change("src", "in place of a folder")], note("step-2"))
    assert "c.txt" not in tree(workspace)


async def test_files_are_taken_away_with_what_comes_or_not_at_all(workspace: Workspace) -> None:
    branch = await workspace.open("US-1")
    moved = [change("lib/app.py", "x = 1\n")]
    await workspace.write("US-1", moved, ["src/app.py"])
    assert tree(workspace) == {"README.md": "hello\n", "lib/app.py": "x = 1\n"}
    head = await workspace.commit("US-1", moved, note("step-1"), ["src/app.py"])
    assert head != branch.head
    assert await workspace.commit("US-1", moved, note("step-1"), ["src/app.py"]) == head
    assert await workspace.files("US-1") == ("README.md", "lib/app.py")
    assert {(entry.path, entry.status) for entry in await workspace.diff("US-1")} == {
        ("src/app.py", "D"), ("lib/app.py", "A"),
    }  # fmt: skip
    for absent in ("src/app.py", "lib", "../x"):
        with pytest.raises(WorkspaceError):
            await workspace.write("US-1", [change("a.txt", "1")], [absent])
        with pytest.raises(WorkspaceError):
            await workspace.commit("US-1", [change("a.txt", "1")], note("step-2"), [absent])
    assert (await workspace.open("US-1")).head == head
    assert "a.txt" not in tree(workspace)
    await workspace.commit("US-1", [], note("step-3"), ["README.md"])
    assert (await workspace.merge("US-1", note("m"), agree)).merged
    await workspace.open("after")
    assert await workspace.files("after") == ("lib/app.py",)


PATCH = """diff --git a/.gitattributes b/.gitattributes
new file mode 100644
--- /dev/null
+++ b/.gitattributes
@@ -0,0 +1 @@
+* -diff
diff --git a/README.md b/README.md
deleted file mode 100644
--- a/README.md
+++ /dev/null
@@ -1 +0,0 @@
-hello
diff --git a/ü b.md b/ü b.md
new file mode 100644
--- /dev/null
+++ b/ü b.md\t
@@ -0,0 +1,3 @@
+index 1..2
+++ x\r
+hellö
\\ No newline at end of file
diff --git a/empty b/empty
new file mode 100644
diff --git a/moved.md b/moved.md
new file mode 100644
--- /dev/null
+++ b/moved.md
@@ -0,0 +1 @@
+hello
diff --git a/hidden.sh b/hidden.sh
new file mode 100644
Binary files /dev/null and b/hidden.sh differ
diff --git a/src/app.py b/src/app.py
--- a/src/app.py
+++ b/src/app.py
@@ -1 +1,2 @@
 x = 1
+y = 2
"""


async def test_a_patch_tells_what_files_became_since_a_commit(workspace: Workspace) -> None:
    branch = await workspace.open("US-1")
    changes = {
        ".gitattributes": "* -diff\n", "moved.md": "hello\n", "ü b.md": "index 1..2\n++ x\r\nhellö", "empty": "",
        "hidden.sh": "echo\0", "src/app.py": "x = 1\ny = 2\n",
    }  # fmt: skip
    first = await workspace.commit(
        "US-1", [change(path, text) for path, text in changes.items()], note("1"), ["README.md"]
    )
    await workspace.commit("US-1", [change("src/app.py", "x = 1\ny = 3\n"), change("other.py", "")], note("2"))
    await workspace.commit("US-1", [change("src/app.py", "x = 1\ny = 2\n")], note("3"))
    paths = [*changes, "README.md", "absent.py", "empty"]
    parts = (await workspace.patch("US-1", branch.head, paths)).split("diff --git")
    assert sorted(parts) == sorted(PATCH.split("diff --git"))
    assert await workspace.patch("US-1", first, paths) == ""
    assert await workspace.patch("US-1", branch.head, []) == ""
    assert await workspace.patch("US-1", branch.head, ["*.py", ":(top)README.md"]) == ""
    with pytest.raises(WorkspaceError):
        await workspace.patch("US-1", "0" * 40, paths)


async def test_stories_merge_in_parallel_and_only_once(workspace: Workspace) -> None:
    stories = [f"US-{number}" for number in range(1, 4)]
    seen: list[dict[str, bytes]] = []

    async def look(folder: Path) -> str:
        seen.append(snapshot(folder))
        await asyncio.sleep(0.01)
        fill(folder, {"left by a test.txt": "x"})
        return ""

    async def deliver(story: str) -> None:
        await workspace.open(story)
        await workspace.write(story, [change(f"{story}.txt", story)])
        await workspace.commit(story, [change(f"{story}.txt", story)], note("1", story))

    async def merge(story: str) -> str:
        merged = await workspace.merge(story, note(f"{story}:merge", story), look)
        assert merged.merged
        return merged.commit

    await asyncio.gather(*map(deliver, stories))
    commits = await asyncio.gather(*map(merge, stories))
    assert [len(files) for files in seen] == [3, 4, 5]
    assert await asyncio.gather(*map(merge, stories)) == commits
    assert len(seen) == 3
    await workspace.open("after")
    assert set(await workspace.files("after")) == {*FILES, *(f"{story}.txt" for story in stories)}


@pytest.mark.parametrize("workspace", ["git"], indirect=True)
async def test_a_merge_tells_that_it_waits_for_another_one(workspace: Workspace) -> None:
    at_work, told = asyncio.Event(), list[str]()

    @asynccontextmanager
    async def listener(what: str) -> AsyncIterator[None]:
        told.append(what)
        if len(told) == 2:
            at_work.set()  # the second one waits: the first may end
        yield

    async def check(_folder: Path) -> str:
        await at_work.wait()
        return ""

    for story in ("US-1", "US-2"):
        await workspace.open(story)
        await workspace.write(story, [change(f"{story}.txt", story)])
        await workspace.commit(story, [change(f"{story}.txt", story)], note("1", story))
    with listening(listener):
        await asyncio.gather(*(workspace.merge(story, note("m", story), check) for story in ("US-1", "US-2")))
    assert told[:2] == ["waiting for the merges of stories before it"] * 2


async def test_conflicts_and_red_merges_move_nothing(workspace: Workspace) -> None:
    for story in ("US-1", "US-2"):
        await workspace.open(story)
        await workspace.commit(story, [change("src/app.py", f"x = '{story}'\n")], note("1", story))

    async def red(folder: Path) -> str:
        assert (folder / "src/app.py").read_text() == "x = 'US-1'\n"
        return "tests fail"

    turned_down = await workspace.merge("US-1", note("m1"), red)
    assert (turned_down.merged, turned_down.red) == (False, "tests fail")
    assert (await workspace.merge("US-1", note("m2"), agree)).merged
    conflict = await workspace.merge("US-2", note("m3", "US-2"), agree)
    assert (conflict.merged, conflict.conflicts) == (False, ("src/app.py",))
    assert (await workspace.merge("US-2", note("m4", "US-2"), agree)).conflicts == ("src/app.py",)
    assert await workspace.read("US-2", ["src/app.py"]) == {"src/app.py": "x = 'US-2'\n"}


async def test_the_base_tree_is_the_sprints_start_and_goes_away(workspace: Workspace) -> None:
    await workspace.open("US-1")
    await workspace.commit("US-1", [change("a.txt", "1")], note("1"))
    await workspace.merge("US-1", note("m"), agree)
    places = []

    async def look(folder: Path) -> int:
        places.append(folder)
        fill(folder, {"made/by/a test.txt": "x"})
        return len(snapshot(folder))

    assert await asyncio.gather(workspace.base_tree(look), workspace.base_tree(look)) == [3, 3]
    assert await workspace.result_tree(look) == 4
    assert not any(place.exists() for place in places)


async def test_the_trees_of_a_story_are_its_start_and_its_branch_with_other_texts(workspace: Workspace) -> None:
    await workspace.open("US-1")
    await workspace.commit("US-1", [change("a.txt", "1"), change("b.txt", "1")], note("1"))

    async def look(folder: Path) -> dict[str, bytes]:
        return {name: text for name, text in snapshot(folder).items() if name in {"a.txt", "b.txt"}}

    assert await workspace.start_tree("US-1", [change("a.txt", "2")], look) == {"a.txt": b"2"}
    assert await workspace.story_tree("US-1", [change("a.txt", "2")], look) == {"a.txt": b"2", "b.txt": b"1"}
    assert await workspace.read("US-1", ["a.txt"]) == {"a.txt": "1"}


async def test_reset_and_unknown_stories(workspace: Workspace) -> None:
    await workspace.open("US-1")
    root = workspace.root("US-1")
    (root / "README.md").unlink()
    fill(root, {"src/app.py": "y = 9\n", "node_modules/.git/config": "x", "deep/" * 30 + "f": "x"})
    await workspace.reset("US-1")
    assert tree(workspace) == FILES
    with pytest.raises(WorkspaceError):
        await workspace.reset("US-9")
    for bad in ("result", "../x", ".hidden", "a/b"):
        with pytest.raises(WorkspaceError):
            await workspace.open(bad)


async def test_removed_stories_start_afresh(workspace: Workspace) -> None:
    assert isinstance(workspace, GitWorkspace | MemoryWorkspace)
    await workspace.open("US-1")
    await workspace.open("US-2")
    await workspace.commit("US-1", [change("a.txt", "1")], note("1"))
    await workspace.commit("US-2", [change("b.txt", "1")], note("1", "US-2"))
    await workspace.merge("US-2", note("m", "US-2"), agree)
    await workspace.remove("US-1")
    await workspace.remove("US-1")
    assert not workspace.root("US-1").exists()
    branch = await workspace.open("US-1")
    assert branch.base == branch.head == await workspace.head("US-1")
    assert tree(workspace) == {**FILES, "b.txt": "1"}
