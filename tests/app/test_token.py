"""A real `serve`: its token, the commands of its user, and what it does not do without one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from orchestrator.storage.state_folder import StateFolder
from tests.daemon_server import RealDaemon
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
