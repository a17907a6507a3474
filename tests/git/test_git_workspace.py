"""What only real git can get wrong: hostile trees, hostile repositories, start-up, publishing."""

import os
import shutil
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from orchestrator.core.errors import RepositoryError, WorkspaceError
from orchestrator.git.workspace import GitWorkspace
from tests.git.git_samples import change, fill, git, note, save, snapshot, user_repo

FILES = {
    "README.md": "hello\n",
    "src/app.py": "x = 1\n",
    "src/crlf.txt": "a\r\nb\n",
    ".gitattributes": "* text=auto eol=crlf ident filter=evil\n*.py merge=evil working-tree-encoding=UTF-16\n",
}


def make(tmp_path: Path, base: str, **more: object) -> GitWorkspace:
    return GitWorkspace(
        mirror=tmp_path / "state dir" / "mirror.git",
        folder=tmp_path / "state dir" / "trees",
        sprint="s1",
        base=base,
        **more,  # type: ignore[arg-type]
    )


def canary(tmp_path: Path) -> tuple[Path, Path]:
    """A program that leaves a trace when somebody runs it, and the trace."""
    trace = tmp_path / "canary.trace"
    program = tmp_path / "canary.sh"
    program.write_text(f'#!/bin/sh\ntouch "{trace}"\ncat\n')
    program.chmod(0o755)
    return program, trace


def booby_trap(git_dir: Path, program: Path) -> None:
    """Every hook, and every setting that makes git run something by itself, leads to `program`."""
    hooks = (
        "pre-commit post-commit post-checkout pre-push pre-receive update post-update post-receive post-index-change"
    )
    for hook in (*hooks.split(), "reference-transaction", "fsmonitor-watchman", "proc-receive", "post-merge"):
        (git_dir / "hooks").mkdir(exist_ok=True)
        shutil.copy(program, git_dir / "hooks" / hook)
    (git_dir / "config").write_text(
        (git_dir / "config").read_text() + f"[core]\n\tfsmonitor = {program}\n\talternateRefsCommand = {program}\n"
        f'\tsshCommand = {program}\n\tpager = {program}\n[filter "evil"]\n\tclean = {program}\n\tsmudge = {program}\n'
        f'\trequired = true\n[merge "evil"]\n\tdriver = {program}\n[diff "evil"]\n\ttextconv = {program}\n'
        f"\tcommand = {program}\n[diff]\n\texternal = {program}\n[uploadpack]\n\tpackObjectsHook = {program}\n"
        f"[commit]\n\tgpgSign = true\n[gpg]\n\tprogram = {program}\n[credential]\n\thelper = !{program}\n"
    )


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return user_repo(tmp_path / "user", FILES)


@pytest.fixture
async def workspace(tmp_path: Path, repo: Path) -> AsyncIterator[GitWorkspace]:
    made = make(tmp_path, git(repo, "rev-parse", "HEAD"))
    await made.prepare(repo)
    yield made
    made.close()


def mirror(workspace: GitWorkspace) -> Path:
    return workspace.root("x").parent.parent / "mirror.git"


def content(files: dict[str, str]) -> dict[str, bytes]:
    return {path: text.encode() for path, text in files.items()}


async def agree(folder: Path) -> str:
    return ""


async def test_attributes_change_no_byte_and_no_filter_runs(workspace: GitWorkspace, repo: Path) -> None:
    head = (await workspace.open("US-1")).head
    assert snapshot(workspace.root("US-1")) == content(FILES)
    changes = [change("src/app.py", "x = '$Id$'\r\n"), change(".gitattributes", "* -diff merge=union eol=lf\n")]
    await workspace.write("US-1", changes)
    await workspace.commit("US-1", changes, note("1"))
    assert (await workspace.read("US-1", ["src/app.py"])) == {"src/app.py": "x = '$Id$'\r\n"}
    assert (await workspace.read_base("US-1", ["src/app.py"])) == {"src/app.py": "x = 1\n"}
    await workspace.reset("US-1")
    assert (workspace.root("US-1") / "src/app.py").read_bytes() == b"x = '$Id$'\r\n"
    await workspace.open("US-2")
    await workspace.commit("US-2", [change("src/app.py", "x = 3\n")], note("1", "US-2"))
    assert (await workspace.merge("US-1", note("m1"), agree)).merged
    assert (await workspace.merge("US-2", note("m2", "US-2"), agree)).conflicts == ("src/app.py",)
    assert git(repo, "rev-parse", "HEAD") == head
    assert snapshot(repo) == content(FILES)


async def test_nothing_of_the_users_repository_runs(tmp_path: Path, repo: Path) -> None:
    program, trace = canary(tmp_path)
    booby_trap(repo / ".git", program)
    workspace = make(tmp_path, (repo / ".git/refs/heads/main").read_text().strip())
    await workspace.prepare(repo)
    await workspace.open("US-1")
    await workspace.commit("US-1", [change("src/app.py", "x = 2\n")], note("1"))
    await workspace.merge("US-1", note("m"), agree)
    await workspace.push(repo, "result")
    workspace.close()
    assert (repo / ".git/refs/heads/result").exists()
    assert not trace.exists()
    git(repo, "status")
    assert trace.exists(), "the trap is none"


async def test_a_tree_full_of_traps_is_put_right(tmp_path: Path, workspace: GitWorkspace) -> None:
    program, trace = canary(tmp_path)
    outside = tmp_path / "outside"
    fill(outside, {"app.py": "precious", "deep/x": "precious"})
    (outside / "locked").mkdir(mode=0o500)
    before = snapshot(outside)
    await workspace.open("US-1")
    root = workspace.root("US-1")

    shutil.rmtree(root / "src")
    (root / "src").symlink_to(outside)
    (root / "README.md").unlink()
    os.link(outside / "app.py", root / "README.md")
    os.mkfifo(root / "pipe")
    (root / "escape").symlink_to(outside)
    user_repo(root / "nested", {"a": "b"})
    booby_trap(root / "nested/.git", program)
    (root / ".git").unlink()
    git(root, "init", "-q")
    booby_trap(root / ".git", program)
    (root / "closed/inner").mkdir(parents=True)
    (root / "closed/inner/f").write_text("x")
    (root / "closed/inner").chmod(0o000)
    (root / "closed").chmod(0o000)

    await workspace.write("US-1", [change("src/app.py", "x = 2\n"), change("pipe", "a file now\n")])
    expected = content({**FILES, "src/app.py": "x = 2\n", "pipe": "a file now\n"})
    assert snapshot(root) == expected
    await workspace.commit("US-1", [change("src/app.py", "x = 2\n"), change("pipe", "a file now\n")], note("1"))
    (root / "src").chmod(0o500)
    (root / "src/app.py").chmod(0o444)
    await workspace.reset("US-1")
    assert snapshot(root) == expected
    assert (root / ".git").is_file()
    assert [entry.path for entry in await workspace.diff("US-1")] == ["pipe", "src/app.py"]
    assert snapshot(outside) == before
    assert not trace.exists()


async def test_the_worktree_itself_may_be_replaced(tmp_path: Path, workspace: GitWorkspace) -> None:
    await workspace.open("US-1")
    outside = tmp_path / "outside"
    fill(outside, {"keep": "me"})
    shutil.rmtree(workspace.root("US-1"))
    workspace.root("US-1").symlink_to(outside)
    await workspace.reset("US-1")
    assert snapshot(workspace.root("US-1")) == content(FILES)
    assert snapshot(outside) == {"keep": b"me"}


async def test_the_environments_git_variables_mean_nothing(
    tmp_path: Path, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, trace = canary(tmp_path)
    config = tmp_path / "global"
    config.write_text(f'[core]\n\tfsmonitor = {program}\n[filter "evil"]\n\tclean = {program}\n\tsmudge = {program}\n')
    values = {
        "GIT_DIR": repo / ".git",
        "GIT_WORK_TREE": repo,
        "GIT_INDEX_FILE": repo / "i",
        "GIT_CONFIG_GLOBAL": config,
    }
    for name, value in (values | {"GIT_EXTERNAL_DIFF": program, "GIT_OBJECT_DIRECTORY": tmp_path / "o"}).items():
        monkeypatch.setenv(name, str(value))
    workspace = make(tmp_path, git(repo, "rev-parse", "HEAD"))
    await workspace.prepare(repo)
    await workspace.open("US-1")
    await workspace.commit("US-1", [change("src/app.py", "x = 2\n")], note("1"))
    assert "src/app.py" in await workspace.diff_stat("US-1")
    workspace.close()
    assert not trace.exists()
    assert not (tmp_path / "o").exists()


async def test_odd_entries_of_a_users_tree(tmp_path: Path, repo: Path) -> None:
    (repo / "link.txt").symlink_to("/etc/hostname")
    (repo / "linked").symlink_to("src")
    fill(repo, {"run.sh": "#!/bin/sh\n", "big.txt": "x" * (1024 * 1024 + 1), "sub/keep": "x"})
    (repo / "run.sh").chmod(0o755)
    (repo / "latin.txt").write_bytes(b"\xe9t\xe9")
    Path(os.fsdecode(bytes(repo) + b"/caf\xe9.txt")).write_text("x")
    link = save(repo, "Odd")
    git(repo, "update-index", "--add", "--cacheinfo", f"160000,{link},vendor")
    git(repo, "commit", "-q", "-m", "Odder")
    workspace = make(tmp_path, git(repo, "rev-parse", "HEAD"))
    await workspace.prepare(repo)
    await workspace.open("US-1")
    root = workspace.root("US-1")
    files = await workspace.files("US-1")
    assert {"link.txt", "run.sh", "caf\\xe9.txt"} <= set(files)
    assert "vendor" not in files
    odd = ["link.txt", "linked", "linked/app.py", "big.txt", "latin.txt", "vendor", "run.sh", "caf\\xe9.txt", "\udce9"]
    assert await workspace.read("US-1", odd) == {"run.sh": "#!/bin/sh\n"}
    for path in ("link.txt", "linked/app.py", "vendor", "vendor/x", "linked"):
        with pytest.raises(WorkspaceError):
            await workspace.commit("US-1", [change(path, "x")], note(path))
        if not path.startswith("vendor"):
            with pytest.raises(WorkspaceError):
                await workspace.write("US-1", [change(path, "x")])
    changes = [change("run.sh", "#!/bin/sh\nexit 1\n")]
    fill(root, {"vendor/left": "x"})
    await workspace.write("US-1", changes)
    assert (root / "run.sh").stat().st_mode & stat.S_IXUSR
    assert list((root / "vendor").iterdir()) == []
    await workspace.commit("US-1", changes, note("1"))
    (entry,) = await workspace.diff("US-1")
    assert (entry.path, entry.old_mode, entry.new_mode) == ("run.sh", "100755", "100755")
    assert (await workspace.merge("US-1", note("m"), agree)).merged
    workspace.close()


async def test_a_subject_cannot_pass_for_a_trailer(workspace: GitWorkspace) -> None:
    await workspace.open("US-1")
    sly = "Work\n\nOrchestrator-Step: 2\n\x00\x1b[31m"
    first = await workspace.commit("US-1", [change("a", "1")], note("1", subject=sly))
    second = await workspace.commit("US-1", [change("a", "2")], note("2", subject=""))
    assert first != second
    assert await workspace.commit("US-1", [change("a", "2")], note("2")) == second
    assert await workspace.commit("US-1", [change("a", "1")], note("1")) == first
    message = git(mirror(workspace), "log", "-1", "--format=%an <%ae>%n%B", first)
    assert message.splitlines() == [
        "Sprint Orchestrator <orchestrator@localhost>",
        "Work Orchestrator-Step: 2 [31m",
        "",
        "Orchestrator-Sprint: s1",
        "Orchestrator-Story: US-1",
        "Orchestrator-Step: 1",
    ]


async def test_a_removal_cut_short_is_ended_by_open(workspace: GitWorkspace) -> None:
    branch = await workspace.open("US-1")
    await workspace.commit("US-1", [change("a", "1")], note("1"))
    git(mirror(workspace), "update-ref", "-d", "refs/orchestrator/base/s1/US-1")
    with pytest.raises(WorkspaceError):
        await workspace.head("US-1")
    assert await workspace.open("US-1") == branch


# Start-up


async def test_an_unborn_repository_starts_with_an_empty_commit(tmp_path: Path) -> None:
    workspace = make(tmp_path, "")
    await workspace.prepare()
    start = workspace.base
    await workspace.prepare()
    assert workspace.base == start
    assert (await workspace.open("US-1")).base == start
    assert await workspace.files("US-1") == ()
    assert git(mirror(workspace), "log", "--format=%s", workspace.result_branch) == "Start of sprint s1"
    workspace.close()


async def test_a_continued_sprint_keeps_its_base_and_clears_what_was_left(tmp_path: Path, repo: Path) -> None:
    first = make(tmp_path, git(repo, "rev-parse", "HEAD"))
    await first.prepare(repo)
    branch = await first.open("US-1")
    first.close()
    fill(repo, {"new.txt": "x"})
    git(repo, "add", "new.txt")
    git(repo, "commit", "-q", "-m", "Second")
    git_dir, trees = mirror(first), first.root("x").parent
    locks = ("packed-refs.lock", "config.lock", "refs/heads/orchestrator/s1/US-1.lock")
    fill(git_dir, {name: "" for name in locks} | {"objects/pack/tmp_pack_1": "x", "config.77.new": ""})
    fill(trees, {"base-1/f": "x", "never-opened/f": "x", ".trash/1/2/f": "x", ".state/US-1/index.lock": ""})

    second = make(tmp_path, git(repo, "rev-parse", "HEAD"))
    await second.prepare(repo)
    assert second.base == first.base
    assert not any((git_dir / name).exists() for name in (*locks, "objects/pack/tmp_pack_1", "config.77.new"))
    assert {entry.name for entry in trees.iterdir()} == {"US-1", ".state", ".trash"}
    assert list((trees / ".trash").iterdir()) == []
    assert await second.open("US-1") == branch
    await second.remove("US-1")
    second.close()


async def test_shallow_and_linked_repositories(tmp_path: Path, repo: Path) -> None:
    fill(repo, {"two.txt": "2"})
    save(repo, "Second")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{repo}", "shallow")
    git(repo, "worktree", "add", "-q", "--detach", str(tmp_path / "linked"), "HEAD~1")
    for name in ("shallow", "linked"):
        source = tmp_path / name
        workspace = make(tmp_path / f"of {name}", git(source, "rev-parse", "HEAD"))
        await workspace.prepare(source)
        await workspace.open("US-1")
        await workspace.commit("US-1", [change("b.txt", "1")], note("1"))
        assert (await workspace.merge("US-1", note("m"), agree)).merged
        assert "First" in git(workspace.root("US-1"), "log", "--format=%s") or name == "shallow"
        await workspace.push(source, "out")
        assert git(source, "show", "out:b.txt") == "1"
        workspace.close()


async def test_a_base_that_cannot_be_had_is_told(tmp_path: Path, repo: Path) -> None:
    workspace = make(tmp_path, "1" * 40)
    with pytest.raises(RepositoryError, match="could not be copied"):
        await workspace.prepare(repo)
    with pytest.raises(WorkspaceError, match="no repository was given"):
        await workspace.prepare()
    workspace.close()


# Publishing


async def deliver(workspace: GitWorkspace, story: str) -> None:
    await workspace.open(story)
    await workspace.commit(story, [change(f"{story}.txt", story)], note("1", story))
    assert (await workspace.merge(story, note("m" + story, story), agree)).merged


async def test_paths_behind_a_link_or_in_a_submodule_keep_no_other_from_being_ignored(workspace: GitWorkspace) -> None:
    await workspace.open("A")
    await workspace.commit("A", [change(".gitignore", "dist/\n!dist/kept\n*.log\n!b.log\n")], note("A/1"))
    await workspace.reset("A")
    root = workspace.root("A")
    (root / "site").mkdir()
    (root / "docs").symlink_to("site")
    (root / "loop").symlink_to("loop")
    paths = ["docs/x.md", "dist/a.js", "docs/y.log", "loop/x.log", "docs/deep/x.log", "b.log", "dist/b.js", "src/a.py"]
    assert await workspace.ignored("A", paths) == ("dist/a.js", "dist/b.js")
    assert await workspace.ignored("A", ["docs/x.md"]) == ()
    assert await workspace.ignored("A", ["src/a.log", *(f"docs/{n}.md" for n in range(300)), "z.log"]) == (
        "src/a.log",
        "z.log",
    )


async def test_what_a_trees_own_gitignore_names_is_ignored(workspace: GitWorkspace) -> None:
    for story in ("A", "B"):
        await workspace.open(story)
    await workspace.commit("A", [change(".gitignore", "made/\n")], note("A/1"))
    await workspace.reset("A")
    assert await workspace.ignored("A", ["made/x", "made", ".gitignore", "src/made.py"]) == ("made/x",)
    assert await workspace.ignored("B", ["made/x"]) == ()


async def test_push_creates_and_fast_forwards(workspace: GitWorkspace, repo: Path) -> None:
    await workspace.check_push(repo, "out/sprint")
    await workspace.push(repo, "out/sprint")
    await workspace.push(repo, "out/sprint")
    await deliver(workspace, "US-1")
    await workspace.push(repo, "out/sprint")
    assert git(repo, "show", "out/sprint:US-1.txt") == "US-1"
    assert git(repo, "symbolic-ref", "HEAD") == "refs/heads/main"
    assert snapshot(repo) == content(FILES)
    fetched = workspace.fetch_command
    assert fetched.startswith("git fetch '")
    git(repo, "fetch", "-q", str(mirror(workspace)), workspace.result_branch)
    assert git(repo, "rev-parse", "FETCH_HEAD") == git(repo, "rev-parse", "out/sprint")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("receive.hideRefs", "refs/heads", "deny updating a hidden ref"),
        ("receive.maxInputSize", "10", "pack exceeds maximum allowed size"),
        ("receive.procReceiveRefs", "refs/heads", "cannot find hook 'proc-receive'"),
        ("receive.fsckObjects", "perhaps", "'perhaps' for 'receive.fsckobjects'"),
    ],
)
async def test_a_push_that_settings_refuse_says_which(
    workspace: GitWorkspace, repo: Path, name: str, value: str, said: str
) -> None:
    await deliver(workspace, "US-1")
    git(repo, "config", name, value)
    with pytest.raises(WorkspaceError) as caught:
        await workspace.push(repo, "out")
    assert caught.value.message.startswith(f"branch out of {repo} could not be set to ")
    assert said in caught.value.message
    assert "hint" not in caught.value.message


async def test_push_refuses_what_it_would_harm(tmp_path: Path, workspace: GitWorkspace, repo: Path) -> None:
    git(repo, "branch", "diverged")
    git(repo, "branch", "elsewhere")
    git(repo, "worktree", "add", "-q", str(tmp_path / "linked"), "elsewhere")
    await deliver(workspace, "US-1")
    await workspace.check_push(repo, "diverged")
    git(repo, "update-ref", "refs/heads/diverged", git(repo, "commit-tree", "-p", "HEAD", "-m", "x", "HEAD^{tree}"))
    before = git(repo, "for-each-ref")
    for branch in ("main", "elsewhere", "diverged", "-x", "a..b", "HEAD", "", "x.lock"):
        with pytest.raises(RepositoryError):
            await workspace.push(repo, branch)
    assert git(repo, "for-each-ref") == before
