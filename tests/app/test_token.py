"""A real `serve`: its token, the commands of its user, and what it does not do without one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from orchestrator.core.suite import Tier
from orchestrator.storage.state_folder import StateFolder
from tests.daemon_server import RealDaemon
from tests.sandboxes import sandbox
from tests.support import Team, plain_environment, run_cli

WORDS = ["serve", "--repo", "repo", "--provider", "scripted", "--script", "team.jsonl"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder to serve in."""
    Team().write(tmp_path / "team.jsonl")
    return tmp_path


@contextmanager
def serving(place: Path, *words: str) -> Iterator[str]:
    """The daemon's address."""
    daemon = RealDaemon(place, *WORDS[1:], *words).start()
    try:
        yield daemon.url
    finally:
        daemon.end()


def asked(url: str, **headers: str) -> int:
    return httpx2.get(f"{url}/api/v1/daemon", headers=headers, trust_env=False, verify=False).status_code


def test_a_daemon_makes_its_token_which_commands_of_its_user_find(place: Path) -> None:
    folder = StateFolder(place / ".orchestrator")
    folder.make()
    folder.home.chmod(0o755)
    with serving(place) as url:
        assert "state_folder_closed" in (place / "serve.log").read_text()
        token = folder.token()
        assert [asked(url), asked(url, authorization=f"Bearer {token}")] == [401, 200]
        for words in (["prune"], ["prune", "--url", url]):
            assert run_cli(words, place, plain_environment()).returncode == 0, words
        stranger = plain_environment(ORCHESTRATOR_HOME=str(place / "else"))
        refused = run_cli(["prune", "--url", url], place, stranger)
        assert (refused.returncode, "wants a token: set ORCHESTRATOR_TOKEN" in refused.stderr) == (2, True)
    assert (folder.daemon_token.stat().st_mode & 0o777, folder.token()) == (0o600, token)
    assert token is not None
    assert token not in (place / "serve.log").read_text()


def test_with_no_auth_it_warns(place: Path) -> None:
    sandbox(Tier.LANDLOCK)
    with serving(place, "--no-auth") as url:
        assert [asked(url), asked(url, via="1.1 proxy")] == [200, 403]
    assert '"event": "daemon_unguarded"' in (place / "serve.log").read_text()
    assert StateFolder(place / ".orchestrator").token() is None


@pytest.mark.parametrize(
    ("words", "variables", "why"),
    [
        ([], {"ORCHESTRATOR_TOKEN": "a-rather-long-token"}, "contradict each other"),
        ([], {"PORT": "0"}, "would listen on 0.0.0.0, where others reach it"),
        (["--set", "sandbox.mode=plain"], {}, "the sandbox is plain"),
        (["--set", "sandbox.loopback=shared"], {}, "sandbox.loopback is shared"),
    ],
)
def test_no_auth_is_refused_where_others_reach_it(
    place: Path, words: list[str], variables: dict[str, str], why: str
) -> None:
    port = [] if "PORT" in variables else ["--port", "0"]
    done = run_cli([*WORDS, *port, "--no-auth", *words], place, plain_environment(**variables))
    assert (done.returncode, why in done.stderr) == (2, True), done.stderr
    assert '"daemon_listens"' not in done.stdout
