"""Remote repositories by file, smart HTTP and ssh: followed, pushed to, let in by secrets that are seen nowhere."""

import asyncio
import os
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.core.errors import RepositoryError, RepositoryUnreachable
from orchestrator.git.remote_access import RemoteAddress, remote_address, remove_keys
from orchestrator.git.remote_repository import ATTEMPTS, RemoteRepositories
from orchestrator.git.repository import open_repository
from tests.deploy.git_server import GitServer, git_server
from tests.git.git_samples import fill, git, save, snapshot, user_repo

TOKEN = "ghs_" + "k3Rq9Zt7" * 4


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """A bare repository with one commit, as a forge holds it."""
    work = user_repo(tmp_path / "work", {"README.md": "hello\n"})
    bare = tmp_path / "forge/project.git"
    git(tmp_path, "clone", "-q", "--bare", str(work), str(bare))
    git(work, "remote", "add", "origin", str(bare))
    return bare


@pytest.fixture
def server(origin: Path) -> Iterator[GitServer]:
    with git_server(origin.parent, secret=TOKEN) as running:
        yield running


def further(tmp_path: Path, name: str, branch: str = "main") -> str:
    """Somebody pushes one more commit; returns it."""
    fill(tmp_path / "work", {name: f"{name}\n"})
    commit = save(tmp_path / "work", name)
    git(tmp_path / "work", "push", "-q", "origin", f"HEAD:refs/heads/{branch}")
    return commit


def remotes(tmp_path: Path, **variables: str) -> RemoteRepositories:
    return RemoteRepositories(tmp_path / "home of ours/repositories", variables, wait_s=0)


def by_file(origin: Path, branch: str = "") -> RemoteAddress:
    return remote_address(f"file://{origin}{'#' if branch else ''}{branch}")


def everywhere(folder: Path) -> bytes:
    """All that is written below a folder, names included."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return b"\n".join([*(str(path).encode() for path in files), *(path.read_bytes() for path in files)])


async def test_head_follows_the_default_branch_also_when_it_is_another_one_or_was_rewritten(
    origin: Path, tmp_path: Path
) -> None:
    ours = remotes(tmp_path)
    copy = await ours.refresh(by_file(origin))
    assert (await open_repository(copy)).base == git(origin, "rev-parse", "main")
    second = further(tmp_path, "second")
    assert (await open_repository(await ours.refresh(by_file(origin)))).base == second
    git(tmp_path / "work", "commit", "-q", "--amend", "-m", "Rewritten")
    git(tmp_path / "work", "push", "-q", "-f", "origin", "main")
    assert (await open_repository(await ours.refresh(by_file(origin)))).base == git(origin, "rev-parse", "main")
    git(origin, "branch", "-m", "main", "main/next")  # no ref can be beside its own folder
    assert await ours.refresh(by_file(origin)) == copy
    assert git(copy, "symbolic-ref", "HEAD") == "refs/heads/main/next"
    git(origin, "update-ref", "--no-deref", "HEAD", second)
    assert (await open_repository(await ours.refresh(by_file(origin)))).base == second
    assert len(git(copy, "for-each-ref").splitlines()) == 1
    assert not snapshot(copy / "hooks")


async def test_a_branch_that_is_named_and_a_head_that_names_none(origin: Path, tmp_path: Path) -> None:
    ours, commit = remotes(tmp_path), further(tmp_path, "more", "release/1.x")
    copy = await ours.refresh(by_file(origin, "release/1.x"))
    assert git(copy, "rev-parse", "HEAD") == commit
    with pytest.raises(RepositoryError, match="there is no branch release/2; name one"):
        await ours.refresh(by_file(origin, "release/2"))
    git(origin, "symbolic-ref", "HEAD", "refs/heads/trunk")
    with pytest.raises(RepositoryError, match="its HEAD is no branch that exists; name one"):
        await ours.refresh(by_file(origin))


async def test_what_has_no_commit_is_not_begun_from(server: GitServer, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "-b", "trunk", "empty.git")
    with pytest.raises(RepositoryError, match="there is no commit in it; push a first one"):
        await remotes(tmp_path).refresh(by_file(tmp_path / "empty.git"))
    server.page = "<html>Please log in</html>"  # to git that is a repository without branches
    with pytest.raises(RepositoryError, match="there is no commit in it"):
        await remotes(tmp_path, GIT_TOKEN=TOKEN).refresh(remote_address(f"{server.url}/project.git"))
    said = f"ERR \x1b[2Jno\x07 for {TOKEN}"
    server.page = f"001e# service=git-upload-pack\n0000{len(said) + 4:04x}{said}"
    with pytest.raises(RepositoryError, match="remote error") as told:
        await remotes(tmp_path, GIT_TOKEN=TOKEN).refresh(remote_address(f"{server.url}/project.git"))
    assert told.value.message.isprintable()
    assert TOKEN not in told.value.message


async def test_a_damaged_copy_is_made_anew_and_an_unreachable_remote_leaves_it(origin: Path, tmp_path: Path) -> None:
    ours = remotes(tmp_path)
    copy = await ours.refresh(by_file(origin))
    for path in (copy / "objects").rglob("*"):
        if path.is_file():
            path.chmod(0o600)
            path.write_bytes(b"")
    commit = further(tmp_path, "second")
    assert (await open_repository(await ours.refresh(by_file(origin)))).base == commit
    origin.rename(origin.with_name("gone.git"))
    with pytest.raises(RepositoryError, match="does not appear to be a git repository"):
        await ours.refresh(by_file(origin))
    assert git(copy, "rev-parse", "HEAD") == commit


async def test_pushed_is_what_can_be_fast_forwarded_and_nothing_else(origin: Path, tmp_path: Path) -> None:
    ours, address = remotes(tmp_path), by_file(origin)
    copy = await ours.refresh(address)
    first, second = git(copy, "rev-parse", "HEAD"), further(tmp_path, "second", "next")
    await ours.check_push(address, copy, first, "new/one")
    assert "new/one" not in git(origin, "for-each-ref")
    with pytest.raises(RepositoryError, match=r"branch next of .* has gone its own way \(fetch first\)"):
        await ours.check_push(address, copy, first, "next")
    await ours.check_push(address, copy, first, "next", begun=True)
    await ours.push(address, copy, first, "next")  # holds it already: somebody went on from there
    copy = await ours.refresh(by_file(origin, "next"))
    await ours.push(address, copy, second, "main")
    await ours.push(address, copy, second, "main")
    assert git(origin, "rev-parse", "main") == second
    git(tmp_path / "work", "reset", "-q", "--hard", first)
    theirs = further(tmp_path, "theirs", "apart")
    with pytest.raises(RepositoryError) as told:
        await ours.push(address, copy, second, "apart")
    assert "has gone its own way" in told.value.message
    assert git(origin, "rev-parse", "apart") == theirs
    command = told.value.message.partition("get the result with: ")[2]
    git(tmp_path, *shlex.split(command)[1:])
    assert git(origin, "rev-parse", "apart-2") == second
    for name in ("-x", "a..b", "a b", ""):
        with pytest.raises(RepositoryError, match="is no name for a branch"):
            await ours.push(address, copy, second, name)


async def test_a_token_lets_us_in_and_is_seen_nowhere(server: GitServer, tmp_path: Path) -> None:
    ours, address = remotes(tmp_path, GIT_TOKEN=f"{TOKEN}\n"), remote_address(f"{server.url}/project.git")
    copy = await ours.refresh(address)
    commit = git(copy, "rev-parse", "HEAD")
    await ours.check_push(address, copy, commit, "result")
    await ours.push(address, copy, commit, "result")
    assert git(server.root / "project.git", "rev-parse", "result") == commit
    assert server.users == {"x-access-token"}
    assert server.told == []
    assert TOKEN.encode() not in everywhere(tmp_path / "home of ours")
    await ours.refresh(remote_address(f"{server.url.replace('//', '//anna@')}/project.git"))
    assert server.users == {"x-access-token", "anna"}


@pytest.mark.parametrize(
    ("token", "told"), [("", "GIT_TOKEN has to be set"), (f"{TOKEN}x", "is not let in"), ("a\nb", "a blank or a line")]
)
async def test_who_is_not_let_in_is_told_what_to_set(server: GitServer, tmp_path: Path, token: str, told: str) -> None:
    with pytest.raises(RepositoryError, match=told) as refused:
        await remotes(tmp_path, GIT_TOKEN=token).refresh(remote_address(f"{server.url}/project.git"))
    assert not isinstance(refused.value, RepositoryUnreachable)
    assert not token or token not in refused.value.message
    assert len(server.asked) <= 2


async def test_a_connection_that_fails_is_tried_again_and_no_refusal_is(server: GitServer, tmp_path: Path) -> None:
    ours, address = remotes(tmp_path, GIT_TOKEN=TOKEN), remote_address(f"{server.url}/project.git")
    server.fails = [503, 429]
    await ours.refresh(address)
    server.asked.clear()
    server.fails = [502] * 9
    with pytest.raises(RepositoryUnreachable, match="502"):
        await ours.refresh(address)
    assert len(server.asked) == ATTEMPTS
    server.asked.clear()
    server.fails = [403] * 9
    with pytest.raises(RepositoryError, match="not let in") as refused:
        await ours.refresh(address)
    assert not isinstance(refused.value, RepositoryUnreachable)
    assert len(server.asked) == 1
    server.close()
    with pytest.raises(RepositoryUnreachable, match="cannot be reached"):
        await ours.refresh(address)


async def test_a_remote_that_never_ends_is_given_up(origin: Path, tmp_path: Path) -> None:
    with pytest.raises(RepositoryError, match=r"took longer than 1e-05 s"):
        await RemoteRepositories(tmp_path / "home", {}, limit_s=0.00001).refresh(by_file(origin))


SSH = """#!/bin/sh
# Notes what it was given, and does what the other side would.
for last; do :; done
printf '%s\\n' "$@" >> {notes}
stat -c %a "$(printf '%s\\n' "$@" | sed -n 's/^IdentityFile="\\(.*\\)"$/\\1/p')" >> {notes} 2>/dev/null
[ -e {closed} ] && {{ echo 'git@host: Permission denied (publickey).' >&2; exit 255; }}
exec sh -c "$last"
"""


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands for ssh; returns the file with what it was given."""
    program, notes = tmp_path / "bin/ssh", tmp_path / "notes"
    program.parent.mkdir()
    program.write_text(SSH.format(notes=notes, closed=tmp_path / "closed"))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return notes


async def test_a_key_is_a_file_of_ours_while_ssh_runs(origin: Path, tmp_path: Path, ssh: Path) -> None:
    body = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW"
    key = f"-----BEGIN OPENSSH PRIVATE KEY-----\\n{body}\\n-----END OPENSSH PRIVATE KEY-----"  # as a form of one line
    ours, address = remotes(tmp_path, GIT_SSH_KEY=key), remote_address(f"git@host:{origin}")
    copy = await ours.refresh(address)
    await ours.push(address, copy, "HEAD", "result")
    assert git(origin, "rev-parse", "result")
    given = ssh.read_text()
    assert "StrictHostKeyChecking=accept-new" in given
    assert f'UserKnownHostsFile="{ours.folder}/known_hosts"' in given
    assert "600" in given.splitlines()
    assert body not in given
    assert body.encode() not in everywhere(tmp_path / "home of ours")
    (tmp_path / "closed").touch()
    with pytest.raises(RepositoryError, match="the key in GIT_SSH_KEY is not let in"):
        await ours.refresh(address)
    with pytest.raises(RepositoryError, match="set GIT_SSH_KEY"):
        await remotes(tmp_path).refresh(address)
    with pytest.raises(RepositoryError, match="holds no private key"):
        await remotes(tmp_path, GIT_SSH_KEY="ssh-ed25519 AAAA").refresh(address)


async def test_a_cancelled_call_leaves_no_key(tmp_path: Path, ssh: Path, origin: Path) -> None:
    ours = remotes(tmp_path, GIT_SSH_KEY="-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\n")
    (tmp_path / "bin/ssh").write_text(f"#!/bin/sh\necho here > {tmp_path}/begun\nexec sleep 60\n")
    going = asyncio.ensure_future(ours.refresh(remote_address(f"git@host:{origin}")))
    while not (tmp_path / "begun").exists():
        await asyncio.sleep(0.01)
    [left] = ours.folder.glob("key-*")
    assert stat.S_IMODE(left.stat().st_mode) == 0o600
    await asyncio.to_thread(remove_keys, ours.folder)
    assert left.exists()  # in use
    going.cancel()
    await asyncio.wait({going})
    assert not list(ours.folder.glob("key-*"))
    left.write_text("left by a kill")
    await asyncio.to_thread(remove_keys, ours.folder)
    assert not left.exists()
