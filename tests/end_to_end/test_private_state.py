"""The state folder of a real sprint is nobody else's, whatever the umask; what suites and people get is as ever."""

import os
import stat
from pathlib import Path

from tests.support import PLAIN_TESTS, Team, make_repo, play, write_backlog


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_a_run_leaves_nothing_that_others_can_open(tmp_path: Path) -> None:
    home, repo = tmp_path / "run" / "state", make_repo(tmp_path / "repo")
    home.mkdir(parents=True)
    home.chmod(0o755)
    (home / "engine.sqlite").touch()
    team = Team()
    team.plan("ONE", ["one.py"])
    team.deliver("ONE", 1, {"one.py": "def value():\n    return 1\n"})
    text = "import os\n\nfrom one import value\n\n\ndef test_one():\n    assert value() == 1\n"
    team.suite("ONE", text + "    open('made', 'w').close()\n    assert os.stat('made').st_mode & 0o777 == 0o644\n")
    before = os.umask(0o022)
    try:
        backlog = write_backlog(tmp_path / "b.csv", "ONE")
        played = play(tmp_path / "run", team, backlog, PLAIN_TESTS, repo=repo, push_to="out")
        os.umask(0)
        play(tmp_path / "wide", Team(), write_backlog(tmp_path / "c.csv", "TWO"), repo=make_repo(tmp_path / "other"))
    finally:
        os.umask(before)
    assert played.status("ONE") == "done"
    assert [line for line in played.told if "open to other users (mode 0755)" in line]
    for folder in (home, tmp_path / "wide" / "state"):
        assert mode(folder) == 0o700
    assert mode(repo / ".git" / "refs" / "heads" / "out") == 0o644
