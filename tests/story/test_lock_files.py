"""Lock files follow the manifests of stories, and are made again where two stories' are in conflict."""

import json
from pathlib import Path

from orchestrator.core.sprint import StoryStatus
from tests.story.test_story import Stand, codes, good, provider
from tests.support import suite_text

BASE = {
    "package.json": '{"workspaces": ["api", "web"]}\n',
    "api/package.json": '{"name": "api"}\n',
    "web/package.json": '{"name": "web"}\n',
    "package-lock.json": '{"lockfileVersion": 3}\n',
}


def adds(stand: Stand, story: str, module: str, manifest: str, package: str) -> None:
    packages = {"dependencies": {package: "^1.0.0"}, "devDependencies": {}}
    stand.team.plan(story, [manifest, f"{module}.py"], dependencies=packages)
    told = json.loads(BASE[manifest]) | {"dependencies": {package: "^1.0.0"}}
    stand.team.deliver(story, 1, {manifest: json.dumps(told), **good(module)})
    stand.team.suite(story, suite_text(story))


async def test_locks_follow_and_those_of_two_stories_are_brought_together_without_a_call(tmp_path: Path) -> None:
    stand = Stand(tmp_path, base=BASE)
    adds(stand, "US-1", "us_1", "web/package.json", "left")
    adds(stand, "US-2", "us_2", "api/package.json", "right")
    replies = await provider(stand.team, tmp_path)
    await stand.workspace.open("US-2")
    first = await stand.run(replies, "US-1")
    assert first.status is StoryStatus.DONE, first.findings
    assert '"left"' in stand.workspace.result["package-lock.json"]
    second = await stand.run(replies, "US-2")
    assert second.status is StoryStatus.DONE, second.findings
    assert stand.asked == ["breakdown 1", "delivery 1", "suite 1"], "the developer is not asked about the lock file"
    lock = stand.workspace.result["package-lock.json"]
    assert ['"left"' in lock, '"right"' in lock, "<<<<" in lock] == [True, True, False]
    assert "delivery.lock_left" not in codes(second)
