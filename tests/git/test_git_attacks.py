"""What a hostile command does to git from inside a tree, with real git: no program of it runs; all is put back."""

import asyncio
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from orchestrator.core.paths import unsafe_reason
from orchestrator.git.mirror import Mirror
from orchestrator.git.workspace import GitWorkspace
from tests.git.git_samples import change, git, note, snapshot, user_repo
from tests.git.test_git_workspace import booby_trap, canary, make

FILES = {"src/app.py": "x = 1\n", "README.md": "hello\n"}


class Scene(NamedTuple):
    """Where an attack takes place."""

    root: Path
    mirror: Path
    program: Path
    outside: Path


def own_repository(at: Scene) -> None:
    (at.root / ".git").unlink()
    git(at.root, "init", "-q")
    booby_trap(at.root / ".git", at.program)


def redirected(at: Scene) -> None:
    user_repo(at.root / "tools", {"a": "b"})
    shutil.move(at.root / "tools/.git", at.root / "tools/harmless")
    booby_trap(at.root / "tools/harmless", at.program)
    (at.root / ".git").write_text("gitdir: tools/harmless\n")


def any_filter(at: Scene) -> None:
    own_repository(at)
    (at.root / ".gitattributes").write_text("* filter=any-name\n")
    git(at.root, "config", "filter.any-name.clean", str(at.program))
    git(at.root, "config", "filter.any-name.smudge", str(at.program))


def gitlink(at: Scene) -> None:
    user_repo(at.root / "nested", {"a": "b"})
    booby_trap(at.root / "nested/.git", at.program)
    (at.root / ".gitmodules").write_text('[submodule "nested"]\n\tpath = nested\n\turl = ./nested\n')


def global_driver(at: Scene) -> None:
    (at.root / ".gitattributes").write_text("* filter=lfs diff=lfs merge=lfs\n")
    (at.outside / ".gitconfig").write_text(f'[filter "lfs"]\n\tclean = {at.program}\n\tsmudge = {at.program}\n')


def hooks_in_the_tree(at: Scene) -> None:
    git(at.root, "config", "core.hooksPath", ".husky")
    (at.root / ".husky").mkdir()
    for hook in ("pre-commit", "post-checkout", "reference-transaction", "post-index-change"):
        shutil.copy(at.program, at.root / ".husky" / hook)


def common_config(at: Scene) -> None:
    booby_trap(at.mirror, at.program)
    (at.mirror / "info/attributes").write_text("* filter=evil diff=evil merge=evil\n")


def worktree_config(at: Scene) -> None:
    (at.mirror / "config.worktree").write_text(f"[core]\n\tfsmonitor = {at.program}\n")
    git(at.root, "config", "extensions.worktreeConfig", "true")
    git(at.root, "config", "--worktree", "core.fsmonitor", str(at.program))


def commondir(at: Scene) -> None:
    user_repo(at.outside / "evil", {"a": "b"})
    booby_trap(at.outside / "evil/.git", at.program)
    (at.mirror / "commondir").write_text(str(at.outside / "evil/.git"))
    private = Path((at.root / ".git").read_text().removeprefix("gitdir: ").strip())
    (private / "commondir").write_text(str(at.outside / "evil/.git"))


def modules(at: Scene) -> None:
    (at.root / ".gitmodules").write_text(
        f'[submodule "x"]\n\tpath = x\n\turl = ext::{at.program}\n\tupdate = !{at.program}\n'
    )


def link_in_the_way(at: Scene) -> None:
    (at.root / "src/app.py").unlink()
    (at.root / "src/app.py").symlink_to(at.outside / "precious")
    (at.root / "new").symlink_to(at.outside)


def bare_files(at: Scene) -> None:
    git(at.root, "init", "-q", "--bare", "src/bare")
    booby_trap(at.root / "src/bare", at.program)
    (at.root / "src/bare/config").write_text(f"[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = {at.program}\n")


def other_spellings(at: Scene) -> None:
    for name in (".GIT", ".git.", "git~1"):
        user_repo(at.root / "deep" / name / "x", {"a": "b"})
    booby_trap(at.root / "deep/.GIT/x/.git", at.program)


ATTACKS = (
    *(own_repository, redirected, any_filter, gitlink, global_driver, hooks_in_the_tree, common_config),
    *(worktree_config, commondir, modules, link_in_the_way, bare_files, other_spellings),
)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
async def test_nothing_runs_nothing_leaves_and_all_is_put_back(
    attack: Callable[[Scene], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = user_repo(tmp_path / "user", FILES)
    program, trace = canary(tmp_path)
    workspace = make(tmp_path, git(repo, "rev-parse", "HEAD"))
    await workspace.prepare(repo)
    await workspace.open("US-1")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("precious")
    monkeypatch.setenv("HOME", str(outside))
    root = workspace.root("US-1")
    mark = await asyncio.to_thread((root / ".git").read_bytes)
    attack(Scene(root, root.parent.parent / "mirror.git", program, outside))
    trace.unlink(missing_ok=True)  # setting the trap up may have sprung it
    before = snapshot(outside)

    await _everything(workspace, repo)
    assert not trace.exists()
    assert snapshot(outside) == before
    assert await asyncio.to_thread((root / ".git").read_bytes) == mark
    workspace.close()


async def _everything(workspace: GitWorkspace, repo: Path) -> None:
    """All that the orchestrator does with git in a story."""
    delivered = [change("src/app.py", "x = 2\n"), change("new/file.py", "y = 1\n")]
    await workspace.write("US-1", delivered)
    assert await workspace.commit("US-1", delivered, note("1"))
    assert [entry.path for entry in await workspace.diff("US-1")] == ["new/file.py", "src/app.py"]
    assert "x = 2" in await workspace.patch("US-1", workspace.base, ["src/app.py"])
    assert "src/app.py" in await workspace.diff_stat("US-1")
    assert (await workspace.read("US-1", ["src/app.py"])) == {"src/app.py": "x = 2\n"}
    await workspace.reset("US-1")

    async def green(folder: Path) -> str:
        assert await asyncio.to_thread((folder / "src/app.py").read_text) == "x = 2\n"
        return ""

    assert (await workspace.merge("US-1", note("m"), green)).merged
    await workspace.push(repo, "result")


def test_the_traps_are_traps(tmp_path: Path) -> None:
    """Plain git in the tree runs what ours does not."""
    sprung = []
    for attack in (own_repository, redirected, any_filter):
        at = tmp_path / attack.__name__
        at.mkdir()
        program, trace = canary(at)
        root = user_repo(at / "tree", FILES)
        shutil.move(root / ".git", at / "real")
        (root / ".git").write_text(f"gitdir: {at / 'real'}\n")
        attack(Scene(root, at, program, at))
        trace.unlink(missing_ok=True)
        subprocess.run(["git", "add", "-A"], cwd=root, capture_output=True, check=False)
        sprung.append(trace.exists())
    assert sprung == [True, True, True]


async def test_programs_of_the_mirror_are_gone_after_the_next_look(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "mirror.git")
    await mirror.prepare()
    program, _ = canary(tmp_path)
    booby_trap(mirror.path, program)
    (mirror.path / "commondir").write_text("/nowhere")
    (mirror.path / "objects/info/alternates").write_text("/nowhere\n")
    await mirror.mend()
    left = sorted(path.name for path in mirror.path.iterdir())
    assert not {"hooks", "commondir", "config.worktree"} & set(left)
    assert not (mirror.path / "objects/info/alternates").exists()
    assert str(program) not in (mirror.path / "config").read_text()
    mirror.close()


@pytest.mark.parametrize(
    "name",
    [".git", ".GIT", ".Git", ".git.", ".git . .", "git~1", "GIT~2", ".g\u200cit", ".git:x", ".git::$INDEX_ALLOCATION"],
)
def test_no_file_is_written_into_any_spelling_of_it(name: str) -> None:
    assert unsafe_reason(f"a/{name}/config") is not None
