"""What we write into a repository is what git writes, to the byte of every id."""

import random
import subprocess
from pathlib import Path

import pytest

from orchestrator.core.errors import WorkspaceError
from orchestrator.git import commits
from orchestrator.git.command import GitOutput
from orchestrator.git.mirror import Mirror
from orchestrator.git.objects import KeptAnswers, name_of
from tests.git.git_samples import ENV, change, git

NAMES = ["a", "a-b", "a.b", "a0", "bé", "lib"]
"""Names that sort differently as files and as folders."""


def fed(where: Path, lines: list[str], *args: str) -> str:
    env = ENV | {"GIT_INDEX_FILE": str(where.parent / "index")}
    stdin = "".join(f"{line}\n" for line in lines)
    done = subprocess.run(["git", *args], cwd=where, env=env, input=stdin, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def tree_by_git(mirror: Path, tree: str, files: dict[str, str], removed: list[str]) -> str:
    """The tree that git's own index makes."""
    (mirror.parent / "index").unlink(missing_ok=True)
    lines = git(mirror, "-c", "core.quotePath=false", "ls-tree", "-r", tree).splitlines()
    lines += [f"0 {'0' * len(tree)}\t{path}" for path in removed]
    for path, text in files.items():
        (mirror.parent / "content").write_text(text, encoding="utf-8")
        lines.append(f"100644 {git(mirror, 'hash-object', '-w', str(mirror.parent / 'content'))}\t{path}")
    fed(mirror, lines, "update-index", "--index-info")
    return fed(mirror, [], "write-tree", "--missing-ok")


async def test_trees_are_those_of_git(tmp_path: Path) -> None:
    mirror, ours = Mirror(tmp_path / "git.git"), Mirror(tmp_path / "ours.git")
    for one in (mirror, ours):
        await one.prepare()
        blob = git(one.path, "hash-object", "-w", "/dev/null")
        odd = [f"120000 blob {blob}\tlink", f"160000 commit {'1' * len(blob)}\tmodule"]
        folder = fed(one.path, odd, "mktree", "--missing")
        # A mode of old histories, which git's index changes, as we do where a folder has a change.
        old = [f"040000 tree {folder}\tlib-old", f"100755 blob {blob}\trun", f"100664 blob {blob}\told.py"]
        tree = fed(one.path, old, "mktree")
    await commits.tree_entries(ours, tree, sizes=True)
    chance, paths = random.Random(3), set[str]()
    for turn in range(25):
        path = "/".join([*chance.choices(NAMES, k=chance.randint(1, 4)), f"{turn}.py"])
        files = {path: f"é{turn}\n" * chance.randint(0, 3)}
        removed = chance.sample(sorted(paths), k=min(len(paths), chance.randint(0, 2)))
        expected = tree_by_git(mirror.path, tree, files, removed)
        tree = await commits.build_tree(ours, tree, [change(*file) for file in files.items()], removed)
        assert tree == expected
        paths = (paths | {path}) - {*removed}
        # What is kept is what git would list.
        kept = await commits.tree_entries(ours, tree, sizes=True)
        assert list(kept.items()) == list((await commits.tree_entries(Mirror(ours.path), tree, sizes=True)).items())
    start = await commits.commit_tree(ours, await commits.empty_tree(ours), (), "Start\n")
    commit = await commits.commit_tree(ours, tree, (start, start), "Two lines:\n\né \ud800\n")
    assert git(ours.path, "log", "--format=%T %P %an <%ae> %cn%n%B", "-1", commit).splitlines() == [
        f"{tree} {start} Sprint Orchestrator <orchestrator@localhost> Sprint Orchestrator",
        *("Two lines:", "", "é ?"),
    ]
    git(ours.path, "update-ref", "refs/heads/all", commit)
    git(ours.path, "fsck", "--strict", "--no-dangling")
    assert not [*ours.path.rglob("tmp_*")]
    for one in (mirror, ours):
        one.close()


async def test_an_object_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "mirror.git")
    await mirror.prepare()
    tree = await commits.empty_tree(mirror)
    oid = name_of("blob", b"one\n")
    (mirror.path / "objects" / oid[:2]).write_text("no folder")
    with pytest.raises(WorkspaceError, match="could not be written"):
        await commits.build_tree(mirror, tree, [change("a.py", "one\n")], ())
    assert not [*mirror.path.rglob("tmp_*")]
    mirror.close()


def test_what_is_kept_is_limited_and_the_latest() -> None:
    kept = KeptAnswers()
    kept.put(("large",), GitOutput(0, b"x" * 1_200_000))
    assert kept.get(("large",)) is None
    for number in range(50):
        kept.put(("blob", str(number)), GitOutput(0, b"x" * 800_000))
        assert kept.get(("blob", "0")) is not None  # in use
    assert [number for number in range(50) if kept.get(("blob", str(number)))] == [0, *range(31, 50)]
