"""environment.setup and environment.build, in a real sandbox, on a real base commit."""

from pathlib import Path

from tests.package_index import registry
from tests.support import PLAIN_TESTS, Played, Team, make_repo, play, write_backlog

SETUP = """import pathlib, urllib.request
where = pathlib.Path("data/fetched.txt")
where.parent.mkdir(exist_ok=True)
where.write_text(urllib.request.urlopen("http://HOST/words.txt").read().decode())
(where.parent / "times.txt").write_text("once")
"""
BUILD = """import pathlib
text = pathlib.Path("grammar.txt").read_text() + pathlib.Path("data/fetched.txt").read_text()
pathlib.Path("made.py").write_text(f"WORDS = {text!r}\\n")
"""
SUITE = "from made import WORDS\n\n\ndef test_words():\n    assert WORDS.endswith('fetched words')\n"


def files(host: str) -> dict[str, str]:
    told = {"setup.txt": SETUP.replace("HOST", host), "make_words.txt": BUILD, "grammar.txt": "grammar of "}
    return {**told, ".gitignore": "made.py\ndata/\n", "tests/test_words.py": SUITE}


def sprint(folder: Path, host: str, *settings: str) -> Played:
    team, repo = Team(), make_repo(folder / "repo", files(host))
    team.plan("US-1", ["us_1.py", "grammar.txt"])
    team.deliver("US-1", 1, {"us_1.py": "def value():\n    return 1\n", "grammar.txt": "another grammar of "})
    suite = "from made import WORDS\nfrom us_1 import value\n\n\ndef test_us_1():\n"
    team.suite("US-1", f"{suite}    assert value() == 1\n    assert WORDS == 'another grammar of fetched words'\n")
    return play(folder, team, write_backlog(folder / "b.csv", "US-1"), PLAIN_TESTS, *settings, repo=repo)


SETTINGS = ('environment.setup=["python setup.txt"]', 'environment.build=["python make_words.txt"]')


def test_what_setup_and_build_make_is_in_every_tree_and_in_no_commit(tmp_path: Path) -> None:
    with registry({"/words.txt": b"fetched words"}) as server:
        played = sprint(tmp_path, server.place, *SETTINGS, f'environment.hosts=["{server.place}"]')
    assert played.status("US-1") == "done", played.story("US-1").findings
    assert [path for path, _ in server.asked] == ["/words.txt"], "once, for the base and every tree of the story"
    assert next(event.message for event in played.events if event.name == "base_tried").startswith("base: 1 passed")
    there = set(played.tree("result"))
    assert there >= {"us_1.py", "grammar.txt"}
    assert not there & {"made.py", "data/fetched.txt"}
