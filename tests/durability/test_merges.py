"""Stories that change one file, side by side: resolved, tested again and merged, also with `kill -9` in between."""

from pathlib import Path

import pytest

from tests.durability.driver import Bench
from tests.durability.team import UnhurriedTeam
from tests.support import delivery, make_repo

pytestmark = pytest.mark.timeout(300)

PAIR = ("US-001", "US-002")
BASE = "def base():\n    return 0\n"
TOGETHER = "together.txt"
"""Appears in a worktree while the suite of a story runs on what was brought together."""


def function(story: str) -> str:
    name = story.lower().replace("-", "_")
    return f"\n\ndef {name}():\n    return 1\n"


def suite_of(story: str, stories: tuple[str, ...]) -> str:
    """Wants the story's own function; slow, and seen, once there is another one."""
    name = story.lower().replace("-", "_")
    others = [other.lower().replace("-", "_") for other in stories if other != story]
    return (
        f"import pathlib\nimport time\n\nimport shared\n\n\ndef test_{name}():\n    assert shared.{name}() == 1\n"
        f"    if any(hasattr(shared, name) for name in {others}):\n"
        f"        pathlib.Path('{TOGETHER}').write_text('now')\n        time.sleep(0.4)\n"
    )


def bench_in(folder: Path, stories: tuple[str, ...]) -> Bench:
    """All begin at the base; whoever is second and third answers with the functions of all."""
    script = UnhurriedTeam(60)
    both = BASE + "".join(map(function, stories))
    for number, story in enumerate(stories):
        script.plan(story, ["shared.py"])
        script.deliver(story, 1, {"shared.py": BASE + function(story)})
        script.suite(story, suite_of(story, stories))
        script._lines[-1]["latency_ms"] = 60 + 1500 * number
        script.say("alex", story, "merge", delivery(story, 1, {"shared.py": both}), task=1)
    bench = Bench(folder, dict.fromkeys(stories, "None"), script=script)
    make_repo(folder / "repo", {"shared.py": BASE})
    return bench


def expect_all_merged(bench: Bench, stories: tuple[str, ...], merges: int) -> None:
    ended = bench.finish()
    assert ended.code == 0, ended.stdout
    left = bench.aftermath(ended.code)
    shared = bench.git("show", "orchestrator/S1/result:shared.py")
    assert all(f"def {story.lower().replace('-', '_')}()" in shared for story in stories)
    assert "<<<<" not in shared
    assert len([call for call in left.calls if " merge " in call]) == merges
    report = (bench.state / "reports" / "S1" / "report.md").read_text()
    assert report.count("alex brought shared.py together with what US-") == len(stories) - 1
    told = bench.told("merge_resolved")
    assert sum(told.values()) == len(stories) - 1
    for story in told:
        last = bench.git("log", "-1", "--merges", "--format=%P", f"orchestrator/S1/{story}").split()
        assert len(last) == 2, "the branch has the result that its resolution was made for"


def paid(bench: Bench, purpose: str) -> int:
    return len([call for call in bench.calls() if f" {purpose} " in call])


@pytest.mark.soak
def test_two_stories_killed_at_each_step_of_their_merge(tmp_path: Path) -> None:
    bench = bench_in(tmp_path, PAIR)
    # the first is merged, its step is not checkpointed
    bench.kill_when(bench.ref_moves("result"))
    # the answer is paid and nothing is made of it yet
    bench.kill_when(lambda: paid(bench, "merge") == 1)
    # both sides are in the branch, its step is not checkpointed
    (second,) = {call.split()[1] for call in bench.calls() if " merge " in call}
    if not bench.told("merge_resolved"):
        bench.kill_when(bench.ref_moves(second))
    # the story is tested again
    bench.kill_when(bench.appears(f"{second}/{TOGETHER}"))
    # it is merged, and its step is not checkpointed
    bench.kill_when(bench.ref_moves("result"))
    expect_all_merged(bench, PAIR, merges=1)
