"""The pages of a story, from the state folder of a real run: what they tell, hostile texts, HTTP."""

import asyncio
import html
import json
import re
from pathlib import Path
from typing import Any

import pytest

from orchestrator.board.changes_page import Asked, StoryChanges
from orchestrator.board.story_page import StoryPage
from orchestrator.board.templates import render
from orchestrator.core.secrets import redacted
from orchestrator.records.sprint_reader import Reader
from orchestrator.settings import Environment, load
from tests.server.stand import TOKEN, Stand, running
from tests.support import (
    Played,
    Team,
    breakdown,
    copy_state,
    delivery,
    plain_environment,
    play,
    reviewed,
    suite_text,
    task,
    write_backlog,
)

MARKUP = "</pre></td><script>alert(1)</script><img src=x onerror=alert(1)> \"' {{ 7 * 7 }}"
HOSTILE = f"\u202etxt.exe\x1b[31mred\x1b]8;;http://evil.example\x07 {MARKUP}"
LINE = "x" * 1_000_000
SECRET = "sk-ant-api03-abcdefghijklmnop1"
WRONG, RIGHT = "def value():\n    return 2\n", "def value():\n    return 1\n"
REMARK = reviewed("Yes", "[good.py:2] Say why one", severity="Minor (Nice to Have)")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """GOOD is done after a healed plan, a refused file, a review that sends back and a red suite; HOSTILE fails, and
    LATER is blocked by it."""
    folder, team = tmp_path_factory.mktemp("story"), Team()
    plan = json.dumps(breakdown("GOOD", ["good.py"], task("GOOD", 2, ["more.py"], dependencies=["T-GOOD-01"])))
    team.say("mike", "GOOD", "breakdown", f"Here it is:\n```json\n{plan[:-1]},}}\n```")
    team.deliver("GOOD", 1, {"good.py": "def value():\n    return 3\n", "extra.py": "x = 1\n"})
    team.say("mike", "GOOD", "amendment", {"granted": False, "reason": "It is not needed."})
    team.deliver("GOOD", 1, {"good.py": "def value():\n    return 3\n"})
    team.review("GOOD", 1, reviewed("With fixes 1", "[good.py:2] Three is wrong"))
    team.deliver("GOOD", 1, {"good.py": WRONG})
    team.review("GOOD", 1, REMARK)
    team.deliver("GOOD", 2, {"more.py": "MORE = 1\n"})
    team.review("GOOD", 2, reviewed("Yes"))
    team.suite("GOOD", suite_text("GOOD"))
    team.analyse("GOOD", ("good.py", "it returns 2"))
    team.deliver("GOOD", 1, {"good.py": RIGHT})
    team.review("GOOD", 1, reviewed("Yes"))
    words = f"{HOSTILE} {LINE}"
    team.plan("HOSTILE", task("HOSTILE", 1, ["hostile.py"], description=words), technical_notes=words)
    module = json.dumps(delivery("HOSTILE", 1, {"hostile.py": f"# {MARKUP}\n{WRONG}"}))
    team.say("alex", "HOSTILE", "delivery", f"{words}\n{module}", task=1)
    team.review("HOSTILE", 1, reviewed("Yes", f"[hostile.py:1] {HOSTILE} {SECRET}", severity="Minor (Nice to Have)"))
    prints = f"    print({HOSTILE!r}, 'y' * 200_000)\n    assert value() == 1, {HOSTILE!r}\n"
    team.suite("HOSTILE", f"from hostile import value\n\n\ndef test_hostile():\n{prints}")
    rows = [
        {"Story_ID": "GOOD", "Title": "Good", "Acceptance_Criteria": "1. it works; 2. it is fast"},
        {"Story_ID": "HOSTILE", "Title": f"Hostile {HOSTILE}", "Acceptance_Criteria": f"1. {HOSTILE}"},
        {"Story_ID": "LATER", "Title": "Later", "Dependencies": "HOSTILE"},
    ]
    backlog = write_backlog(folder / "b.csv", *rows)
    return play(folder, team, backlog, "test.max_attempts=2", "review.max_iterations=3")


def environment_of(folder: Path) -> Environment:
    return load(None, (), plain_environment(ORCHESTRATOR_HOME=str(folder)), folder)[1]


class Pages:
    """The pages of a sprint as they are answered, but for HTTP."""

    def __init__(self, state: Path, sprint: str) -> None:
        self.reader, self.sprint = Reader(environment_of(state)), sprint
        self._followed = self.reader.follow(sprint)

    def values(self, story: str) -> dict[str, Any]:
        return StoryPage(self.reader, self._followed.look(), story).values(1)

    def story(self, story: str) -> str:
        return render("story.html", redacted(self.values(story)))

    def call(self, story: str, name: str) -> str:
        return render("call.html", redacted(StoryPage(self.reader, self._followed.look(), story).call(name)))

    def diff(self, story: str, **part: str) -> tuple[dict[str, Any], str]:
        changes = StoryChanges(self.reader, asyncio.to_thread, Asked(sprint=self.sprint, story=story, **part))
        values = redacted(asyncio.run(changes.values()))
        return values, render("diff.html", redacted(values))  # as the route does


@pytest.fixture(scope="module")
def pages(played: Played) -> Pages:
    return Pages(played.mirror.parents[1], played.result.report.sprint)


def words(page: str) -> str:
    """What a person reads."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


def test_a_story_tells_how_it_went(pages: Pages, played: Played) -> None:
    assert played.status("GOOD") == "done"
    told = pages.values("GOOD")
    steps = [(step["sign"], step["text"]) for step in told["path"]["steps"]]
    assert steps[0] == ("○", "begins")
    assert steps[-1] == ("✓", "GOOD is done; 1 of 2 criteria have no test: 'it is fast'")
    assert any(sign == "↻" and step["inner"] for (sign, _), step in zip(steps, told["path"]["steps"], strict=True))
    assert [(one["id"], one["status"], len(one["commits"])) for one in told["tasks"]] == [
        ("T-GOOD-01", "done", 3),
        ("T-GOOD-02", "done", 1),
    ]
    assert [one["path"] for one in told["plan"]["tasks"][0]["files"]] == ["good.py"]
    assert told["plan"]["tasks"][1]["after"] == ["T-GOOD-01"]
    contract = told["contract"]
    assert {row["id"]: [file["path"] for file in row["files"]] for row in contract["tasks"]}["T-GOOD-02"] == ["more.py"]
    assert any("extra.py" in one["message"] for one in contract["refused"])
    assert any("It is not needed." in one for one in contract["denied"])
    assert [(one["task"][-2:], one["number"], one["verdict"]) for one in told["reviews"]] == [
        ("01", 1, "sent back"),
        ("01", 2, "approved"),
        ("02", 1, "approved"),
        ("01", 3, "approved"),
    ]
    comments = [(one["file"], one["line"], one["severity"]) for review in told["reviews"] for one in review["comments"]]
    assert comments == [("good.py", 2, "major"), ("good.py", 2, "minor")]  # the remark of who approves, too
    rows = told["tests"]["criteria"]
    assert [(row["criterion"], [one["result"] for one in row["tests"]]) for row in rows] == [
        ("it works", ["passed"]),
        ("it is fast", []),
    ]
    assert [(run["attempt"], run["green"]) for run in told["tests"]["runs"]] == [(1, False), (2, True)]
    assert "assert 2 == 1" in told["tests"]["runs"][0]["output"]
    assert told["tests"]["analyses"][0]["instructions"][0]["file"] == "good.py"
    assert [one["verb"] for one in told["orders"]] == ["reset"]


def test_the_costs_of_the_stages_and_of_the_calls_are_those_of_the_story(pages: Pages) -> None:
    told = pages.values("GOOD")
    spent = [one for row in told["stages"] for one in row["personas"]]
    ended = [one for one in told["calls"] if one["verdict"] != "failed"]  # the script has no second suite
    assert sum(one["calls"] for one in spent) == told["head"]["calls"] == len(ended)
    for name in ("input", "output"):
        assert sum(one[name] for one in spent) == told["head"]["tokens"][name]
        assert sum(one[name] for one in told["calls"]) == told["head"]["tokens"][name]
    first = told["calls"][0]
    assert (first["persona"], first["verdict"]) == ("mike", "accepted")
    assert first["repairs"]
    sent_back = next(one for one in told["calls"] if one["verdict"] == "sent back")
    assert any("extra.py" in one["message"] for one in sent_back["findings"])
    page = words(pages.call("GOOD", first["id"]))
    assert "Here it is:" in page
    assert "You are" in page  # the prompt
    for address in re.findall(r'href="(/sprints/[^"?#]*/calls/[^"]*)"', pages.story("GOOD")):
        assert pages.call("GOOD", address.rpartition("/")[2])


def test_comments_stand_above_the_changes_that_were_read(pages: Pages) -> None:
    story = pages.story("GOOD")
    address = html.unescape(re.findall(r'href="([^"]*/diff[?]task=[^"]*&amp;until=[^"]*)"', story)[0])
    asked = dict(re.findall(r"(task|until|file)=([^&#]*)", address))
    values, page = pages.diff("GOOD", **asked)
    assert "+    return 3" in html.unescape(re.sub("<[^>]*>", "", page))
    assert '<span class="gi">+    return 3' in page
    assert [(one["file"], one["line"]) for one in values["comments"]] == [("good.py", 2)]
    assert "good.py:2" in page
    assert [one["reviewed"] for one in values["versions"]] == ["sent back", "approved", "approved"]
    values, _ = pages.diff("GOOD", task="T-GOOD-01")
    assert "return 1" in values["patch"]
    values, _ = pages.diff("GOOD")
    assert [name in values["patch"] for name in ("good.py", "more.py", "tests/test_good.py")] == [True] * 3
    values, page = pages.diff("LATER")
    assert values["patch"] == ""
    assert "no branch" in page


@pytest.mark.parametrize("part", ["story", "diff", "calls"])
def test_hostile_texts_are_harmless_and_pages_stay_small(pages: Pages, part: str) -> None:
    assert pages.values("HOSTILE")["head"]["state"] == "failed"
    shown = {
        "story": lambda: [pages.story("HOSTILE")],
        "diff": lambda: [pages.diff("HOSTILE")[1], pages.diff("HOSTILE", task="T-HOSTILE-01")[1]],
        "calls": lambda: [pages.call("HOSTILE", one["id"]) for one in pages.values("HOSTILE")["calls"]],
    }[part]()
    assert part == "diff" or any("[U+202E]txt.exe[U+001B][31mred" in page for page in shown)
    for page in shown:
        assert len(page) <= 1_000_000
        assert not set("\u202e\x1b\x07") & set(page)
        assert "<script>" not in page
        assert "<img" not in page
        assert "x" * 200_000 not in page
        assert SECRET not in page
        assert "{{ 7 * 7 }}" in page or "hostile.py" in page


def test_what_waits_says_for_what_and_offers_what_can_be_ordered(pages: Pages) -> None:
    told = pages.values("LATER")
    assert told["head"]["state"] == "blocked"
    assert words(pages.story("LATER")).count("none so far") >= 4
    assert [one["verb"] for one in told["orders"]] == ["reset"]


async def test_pages_are_answered_over_http_also_for_what_is_not_there(played: Played, tmp_path: Path) -> None:
    state, sprint = played.mirror.parents[1], played.result.report.sprint
    await asyncio.to_thread(copy_state, state, tmp_path / "state")
    base = f"/sprints/{sprint}/stories/GOOD"
    stand = await asyncio.to_thread(Stand, tmp_path / "state", ORCHESTRATOR_TOKEN=TOKEN)
    async with running(stand) as daemon:
        page = await daemon.client.get(base)
        assert page.status_code == 200
        call = re.findall(rf'href="({base}/calls/[^"]*)"', page.text)[0]
        for path, part in {
            call: "What was repaired",
            f"{call}/answer.txt": "Here it is:",
            f"{call}/prompt.txt": "You are",
            f"{base}/diff": "tests/test_good.py",
            f"{base}/diff?task=T-GOOD-02": "more.py",
            f"{base}/diff.txt?file=more.py": "+MORE = 1",
        }.items():
            answer = await daemon.client.get(path)
            assert (answer.status_code, part in answer.text) == (200, True), path
            assert "script-src 'self'" in answer.headers["content-security-policy"]
        unknown = ("/calls/99-1", "/calls/99-1/answer.txt", "/diff?file=no.py", "/diff.txt?file=no.py", "X", "X/diff")
        for path in (f"{base}{end}" for end in unknown):
            assert (await daemon.client.get(path)).status_code == 404, path
        gone = await daemon.client.get(f"{base}/diff?task=T-9")
        assert (gone.status_code, "no commit" in gone.text) == (200, True)
        assert (await daemon.client.get(f"{base}/diff.txt?task=T-9")).status_code == 404
