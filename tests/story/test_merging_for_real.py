"""Stories that do not go together, with real git and real runs of tests, one after the other: in a known order."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from orchestrator.app.runners import project_runner
from orchestrator.app.team import story_body, story_payload
from orchestrator.core.calls.exchange import StoryBrief
from orchestrator.core.ports import SuiteRunner
from orchestrator.core.sprint import StoryOutcome, StoryStatus
from orchestrator.core.story import Story
from orchestrator.git.workspace import GitWorkspace
from orchestrator.settings import Policies, load
from tests.sandboxes import TIERS, sandbox
from tests.simulated import MemorySink, SimulatedStep
from tests.story.test_story import LIBRARY, codes, provider
from tests.support import PLAIN_TESTS, Team, delivery, git, make_repo, plain_environment

RATES = "RATE = 1\n\n\ndef total(count):\n    return count * RATE\n"
INVOICE = "from rates import RATE\n\n\ndef invoice():\n    return RATE * 3\n"
FIXED = "def invoice():\n    return 3\n"


class Noted:
    """A runner whose runs of tests are noted."""

    def __init__(self, runner: SuiteRunner, calls: list[str]) -> None:
        self._runner, self._calls = runner, calls

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runner, name)

    async def run(self, root: Path, *, files: Any = None, **how: Any) -> Any:
        self._calls.append("whole" if files is None else "own")
        return await self._runner.run(root, files=files, **how)


class Sprint:
    """A sprint over one repository; every story begins at its base."""

    def __init__(self, folder: Path, files: Mapping[str, str], *stories: str) -> None:
        self.repo = make_repo(folder / "repo", files)
        self.folder, self.stories, self.team, self.sink = folder, stories, Team(), MemorySink()
        self.prompts: list[str] = []
        self.runs: dict[str, list[str]] = {}

    def deliver(
        self, story: str, files: Mapping[str, str], test: str, merge: Any = None, *, file: str | None = None
    ) -> None:
        self.team.plan(story, sorted(files))
        self.team.deliver(story, 1, files)
        self.team.suite(story, test, file or f"tests/test_{story.lower()}.py")
        if merge is not None:
            self.team.say("alex", story, "merge", delivery(story, 1, merge), task=1)

    def run(self, *overrides: str) -> list[StoryOutcome]:
        home = plain_environment(ORCHESTRATOR_HOME=str(self.folder))
        settings, environment = load(None, overrides, home, self.folder)
        runner = project_runner(settings, environment, self.folder / "environments", sandbox(TIERS[0]))
        return asyncio.run(self._run(runner, git(self.repo, "rev-parse", "HEAD")))

    async def _run(self, runner: SuiteRunner, base: str) -> list[StoryOutcome]:
        workspace = GitWorkspace(
            mirror=self.folder / "mirror.git", folder=self.folder / "trees", sprint="s1", base=base
        )
        await workspace.prepare(self.repo)
        calls = list[str]()
        body = story_body(LIBRARY, workspace, Noted(runner, calls))
        for story in self.stories:
            await workspace.open(story)
        replies, outcomes = await provider(self.team, self.folder), []
        for story in self.stories:
            step = SimulatedStep(replies, self.sink, sprint="s1", story=story)
            brief = StoryBrief(story=Story(id=story, title=f"Story {story}"), sprint="s1")
            outcomes.append(await body(step, story_payload(brief, Policies())))
            self.runs[story] = [*calls]
            calls.clear()
            self.prompts += [prompt.text for prompt in step.prompts if prompt.key.purpose == "merge"]
        workspace.close()
        return outcomes

    def result(self, path: str) -> str:
        return git(self.folder / "mirror.git", "show", f"orchestrator/s1/result:{path}")


THREE = "from invoice import invoice\n\n\ndef test_invoice():\n    assert invoice() == 3\n"


def test_a_mend_that_undoes_what_was_merged_or_breaks_the_storys_own_test_is_not_merged(tmp_path: Path) -> None:
    """US-2 and US-3 count on what US-1 changes: no line in conflict, each green, and red together."""
    sprint = Sprint(tmp_path, {"rates.py": RATES}, "US-1", "US-2", "US-3")
    doubled = "from rates import total\n\n\ndef test_total():\n    assert total(2) == 4\n"
    sprint.deliver("US-1", {"rates.py": RATES.replace("1", "2")}, doubled)
    sprint.deliver("US-2", {"invoice.py": INVOICE}, THREE, merge={"rates.py": RATES})
    sprint.deliver("US-3", {"invoice.py": INVOICE}, THREE, merge={"invoice.py": FIXED.replace("3", "4")})
    first, undoes, breaks = sprint.run(PLAIN_TESTS)
    assert first.status is StoryStatus.DONE
    assert undoes.status is breaks.status is StoryStatus.NEEDS_ATTENTION
    assert "merge.red" in codes(undoes)
    assert "RATE = 2" in sprint.result("rates.py")
    (red,) = [finding for finding in breaks.findings if finding.code == "merge.red"]
    assert "test_invoice: AssertionError" in red.message
    assert breaks.tests.failed == 1, "the report tells the last run"


SHOP = "tests/test_shop.py"
SHOP_TESTS = "from one import one\n\n\ndef test_one():\n    assert one() == 1\n"


@pytest.mark.parametrize("there", [True, pytest.param(False, marks=pytest.mark.soak)])
def test_two_stories_that_add_to_the_same_test_file_are_joined_without_anybody_being_asked(
    tmp_path: Path, there: bool
) -> None:
    files = {"one.py": "def one():\n    return 1\n"} | ({SHOP: SHOP_TESTS} if there else {})
    sprint = Sprint(tmp_path, files, "US-1", "US-2")
    for story, name in (("US-1", "two"), ("US-2", "three")):
        own = f"\n\ndef test_{name}():\n    assert {name}() == 1\n"
        text = f"from {name} import {name}\n" + (SHOP_TESTS if there else "from one import one\n") + own
        sprint.deliver(story, {f"{name}.py": f"def {name}():\n    return 1\n"}, text, file=SHOP)
    first, second = sprint.run(PLAIN_TESTS)
    assert [one.status for one in (first, second)] == [StoryStatus.DONE] * 2, second.findings
    assert [case.name for case in second.tests.cases] == ["test_three"]
    assert sprint.prompts == []
    merged = sprint.result(SHOP)
    assert [f"def test_{name}" in merged for name in ("one", "two", "three")] == [there, True, True]
    assert merged.count("from one import one") == 1
