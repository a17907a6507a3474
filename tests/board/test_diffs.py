"""Changes as a patch, from real git: what a task changed, hostile texts, limits, colours."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from orchestrator.board.diffs import is_long
from orchestrator.board.templates import render
from orchestrator.core.delivery import CommitNote, FileChange
from orchestrator.core.errors import WorkspaceError
from orchestrator.git.changed_files import (
    Range,
    find_task_range,
    list_commits,
    read_patch,
)
from orchestrator.git.mirror import Mirror, SprintRefs
from orchestrator.git.workspace import GitWorkspace
from tests.git.git_samples import change, git, user_repo

SECRET = "sk-ant-api03-abcdefghijklmnop1"
MARKUP = "</td><script>alert(1)</script>\u202etxt.exe\x1b[31m"
FRAME = {
    "sprint": "S", "story": "US-1", "title": MARKUP, "task": "", "since": "", "until": "", "file": "", "why": "",
    "tasks": [], "versions": [], "comments": [], "base": "", "head": "",
}  # fmt: skip
SERVICE = '''"""Prices."""


def price(cents: int) -> str:
    """In euros."""
    return f"{cents / 100:.2f}"


def total(prices: list[int]) -> int:
    return sum(prices)
'''


class Story:
    """One story of a sprint, whose tasks are committed one by one."""

    def __init__(self, folder: Path, files: dict[str, str]) -> None:
        self.repo = user_repo(folder / "repo", files)
        self._folder = folder
        self.made: list[str] = []

    async def begin(self) -> "Story":
        base = git(self.repo, "rev-parse", "HEAD")
        path, trees = self._folder / "mirror.git", self._folder / "trees"
        self.workspace = GitWorkspace(mirror=path, folder=trees, sprint="S", base=base)
        await self.workspace.prepare(self.repo)
        await self.workspace.open("US-1")
        self.mirror = Mirror(path)
        self.refs = SprintRefs(self.mirror, "S")
        return self

    async def commit(self, task: str, *changes: FileChange, removed: Sequence[str] = ()) -> str:
        note = CommitNote(subject=f"Work on {task}", sprint="S", story="US-1", task=task, step=f"s{len(self.made)}")
        self.made.append(await self.workspace.commit("US-1", changes, note, removed))
        return self.made[-1]

    async def patch(self, task: str = "", **part: str) -> str:
        return await read_patch(self.mirror, await self.between(task, **part))

    async def between(self, task: str = "", **part: str) -> Range:
        if not task:
            return Range(*await self.refs.own_part("US-1"))
        return await find_task_range(self.mirror, await list_commits(self.mirror, self.refs, "US-1"), task, **part)


@pytest.fixture
async def story(tmp_path: Path) -> AsyncIterator[Story]:
    files = {"shop/prices.py": SERVICE, "docs/guide.md": "One\nTwo\nThree\n" * 10, "notes.txt": "a\nb"}
    made = await Story(tmp_path, files).begin()
    yield made
    made.workspace.close()


async def as_html(patch: str) -> str:
    return await asyncio.to_thread(render, "diff.html", {**FRAME, "patch": patch, "is_cut": is_long(patch)})


async def test_a_tasks_changes_are_those_of_its_commits_also_between_two_deliveries(
    story: Story,
) -> None:
    first = await story.commit("T-1", change("shop/prices.py", SERVICE.replace("sum(prices)", "sum(prices, 0)")))
    await story.commit("T-2", change("shop/tax.py", "RATE = 19\n"))
    await story.commit("T-1", change("shop/prices.py", SERVICE.replace("sum(prices)", "max(prices)")))
    assert "-    return sum(prices)\n+    return max(prices)" in await story.patch("T-1")
    assert "+    return sum(prices, 0)" in await story.patch("T-1", until=first)
    between = await story.patch("T-1", since=first, until=story.made[-1])
    assert "-    return sum(prices, 0)\n+    return max(prices)" in between
    assert "shop/tax.py" in await story.patch()
    patch = await read_patch(story.mirror, await story.between("T-2"))
    assert "+RATE = 19" in patch
    assert "prices" not in patch
    for task, part in (("T-9", {}), ("T-1", {"until": story.made[1]}), ("T-1", {"since": "../../x"})):
        with pytest.raises(WorkspaceError):
            await story.between(task, **part)


async def test_hostile_texts_are_shown_as_text_and_hide_nothing(story: Story) -> None:
    key = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n" * 4 + "-----END PRIVATE KEY-----"
    text = f'x = "{MARKUP}"\n# {MARKUP}\nKEY = """{key}"""\nTOKEN = "{SECRET}"\nlast = 1\n'
    await story.commit("T-1", change("a.py", text), change("b.js", f"{'z' * 300_000}\n{MARKUP}\n"))
    page = await as_html(await story.patch("T-1"))
    assert "<script>" not in page.replace('<script type="module" src="/static/', "")
    assert not set("\u202e\x1b") & set(page)
    assert "[U+202E]txt.exe[U+001B][31m" in page
    assert SECRET not in page
    assert "MIIEvQ" not in page


async def test_a_page_stays_small_and_says_what_it_leaves_out(story: Story) -> None:
    long = "".join(f'    "{number:05d}": ["<&>", {number}, None],  # "{number}"\n' for number in range(9_000))
    names = [f"data/part_{number}.py" for number in range(5)]
    await story.commit("T-1", *(change(name, f"TABLE = {{\n{long}}}\n") for name in names))
    page = await as_html(await story.patch("T-1"))
    assert len(page) < 1_000_000
    assert "all of it as text" in page
