"""Changes side by side, from real git: what a task changed, each kind of file, hostile texts, limits, colours."""

import asyncio
import html
import re
from collections.abc import AsyncIterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from orchestrator.board.diffs import LARGEST, LETTERS, build_files, mark_code
from orchestrator.board.templates import read_static, render
from orchestrator.core.delivery import CommitNote, FileChange
from orchestrator.core.errors import WorkspaceError
from orchestrator.git.changed_files import (
    ChangedFile,
    Hunk,
    Range,
    find_task_range,
    list_commits,
    read_changed_files,
    read_patch,
)
from orchestrator.git.mirror import Mirror, SprintRefs
from orchestrator.git.workspace import GitWorkspace
from tests.git.git_samples import change, fill, git, save, user_repo

SECRET = "sk-ant-api03-abcdefghijklmnop1"
MARKUP = "</td><script>alert(1)</script>\u202etxt.exe\x1b[31m"
FRAME = {
    "sprint": "S", "story": "US-1", "title": MARKUP, "task": "", "since": "", "until": "", "file": "", "why": "",
    "tasks": [], "versions": [], "comments": [], "more_files": 0, "base": "", "head": "",
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

    async def files(
        self, task: str = "", comments: Any = None, *, alone: str = "", **part: str
    ) -> list[dict[str, Any]]:
        between = await self.between(task, **part)
        changed = await read_changed_files(self.mirror, between, limit=LARGEST, path=alone)
        return await asyncio.to_thread(build_files, changed, comments or {}, alone=bool(alone))

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


def shown(file: dict[str, Any]) -> list[str]:
    """A line per row: its sign, both numbers, both texts."""
    lines = []
    for row in file["rows"]:
        if row["kind"] in {"gap", "comment"}:
            lines.append(f"{row['kind']}: {row.get('text') or row['message']}")
            continue
        old, new = row["old"], row["new"]
        numbers, texts = ("|".join(str(one.get(part, "")) for one in (old, new)) for part in ("number", "text"))
        lines.append(f"{row['kind']} {numbers} {texts}")
    return lines


async def as_html(files: list[dict[str, Any]], **more: Any) -> str:
    return await asyncio.to_thread(render, "diff.html", {**FRAME, "files": files, **more})


async def test_a_tasks_changes_are_those_of_its_commits_also_between_two_deliveries(
    story: Story,
) -> None:
    first = await story.commit("T-1", change("shop/prices.py", SERVICE.replace("sum(prices)", "sum(prices, 0)")))
    await story.commit("T-2", change("shop/tax.py", "RATE = 19\n"))
    await story.commit("T-1", change("shop/prices.py", SERVICE.replace("sum(prices)", "max(prices)")))
    (file,) = await story.files("T-1")
    assert (file["path"], file["kind"], file["added"], file["removed"]) == ("shop/prices.py", "changed", 1, 1)
    assert shown(file) == [
        "gap: 6 lines not changed",
        "same 7|7 |",
        "same 8|8 |",
        "same 9|9 def total(prices: list[int]) -> int:|def total(prices: list[int]) -> int:",
        "changed 10|10     return sum(prices)|    return max(prices)",
    ]
    row = file["rows"][-1]
    assert str(mark_code(row["old"]["text"], row["old"]["marks"])) == (
        '    <i class="k">return</i> <mark><i class="b">sum</i></mark>(prices)'
    )
    then = await story.files("T-1", until=first)
    assert shown(then[0])[-1] == "changed 10|10     return sum(prices)|    return sum(prices, 0)"
    between = await story.files("T-1", since=first, until=story.made[-1])
    assert shown(between[0])[-1] == "changed 10|10     return sum(prices, 0)|    return max(prices)"
    assert [one["path"] for one in await story.files()] == ["shop/prices.py", "shop/tax.py"]
    patch = await read_patch(story.mirror, await story.between("T-2"))
    assert "+RATE = 19" in patch
    assert "prices" not in patch
    for task, part in (("T-9", {}), ("T-1", {"until": story.made[1]}), ("T-1", {"since": "../../x"})):
        with pytest.raises(WorkspaceError):
            await story.between(task, **part)


async def test_each_kind_of_change_says_what_it_is(tmp_path: Path) -> None:
    made = Story(tmp_path, {"old/name.py": SERVICE, "gone.txt": "x\ny\n", "crlf.txt": "a\r\nb\n", "end.txt": "a\nb"})
    (made.repo / "picture.bin").write_bytes(b"\x89PNG\0\1")
    (made.repo / "run.sh").write_text("echo 1\n")
    fill(made.repo, {"data.txt": "0123456\n" * 80_000})
    save(made.repo, "More")
    story = await made.begin()
    await story.commit(
        "T-1", change("new/name.py", SERVICE.replace("euros", "euro")), change("crlf.txt", "a\nb\n"),
        change("end.txt", "a\nb\n"), change("data.txt", "0123456\n" * 80_001), change("empty.py", ""),
        removed=["old/name.py", "gone.txt", "picture.bin"],
    )  # fmt: skip
    files = {one["path"]: one for one in await story.files("T-1")}
    kinds = {path: (one["kind"], one["why"], one["added"], one["removed"]) for path, one in files.items()}
    assert kinds == {
        "crlf.txt": ("changed", "", 1, 1),
        "data.txt": ("changed", "too large to be shown here: 625 kB", 0, 0),
        "empty.py": ("new", "empty", 0, 0),
        "end.txt": ("changed", "", 1, 1),
        "gone.txt": ("deleted", "", 0, 2),
        "new/name.py": ("renamed", "", 1, 1),
        "picture.bin": ("deleted", "binary, 1 kB", 0, 1),
    }
    assert files["new/name.py"]["old_path"] == "old/name.py"
    assert shown(files["crlf.txt"])[0] == "changed 1|1 a␍|a"
    assert files["end.txt"]["notes"] == ["a line break at the end was added"]
    assert shown(files["gone.txt"]) == ["gone 1| x|", "gone 2| y|"]
    page = await as_html([*files.values()])
    assert "diff.txt?file=picture.bin" in page
    story.workspace.close()


async def test_a_comment_stands_below_its_line_also_far_from_any_change(story: Story) -> None:
    await story.commit("T-1", change("docs/guide.md", "One\nTwo\nThree\n" * 10 + "Four\n"))
    comments = [
        {"line": 4, "message": "far", "severity": "major", "fix": "", "review": 1, "task": "T-1"},
        {"line": 31, "message": "near", "severity": "minor", "fix": "do", "review": 1, "task": "T-1"},
        {"line": 99, "message": "no such line", "severity": "minor", "fix": "", "review": 1, "task": "T-1"},
    ]
    (file,) = await story.files("T-1", {"docs/guide.md": comments})
    lines = shown(file)
    assert lines[lines.index("same 4|4 One|One") + 1] == "comment: far"
    assert lines[-2:] == ["new |31 |Four", "comment: near"]
    assert [one["message"] for one in file["comments"]] == ["no such line"]
    assert 'id="line-docs/guide.md-4"' in await as_html([file])


async def test_hostile_texts_are_shown_as_text_and_hide_nothing(story: Story) -> None:
    key = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n" * 4 + "-----END PRIVATE KEY-----"
    text = f'x = "{MARKUP}"\n# {MARKUP}\nKEY = """{key}"""\nTOKEN = "{SECRET}"\nlast = 1\n'
    await story.commit("T-1", change("a.py", text), change("b.js", f"{'z' * 300_000}\n{MARKUP}\n"))
    files = await story.files("T-1")
    page = await as_html(files)
    assert "<script>" not in page.replace('<script type="module" src="/static/', "")
    assert not set("\u202e\x1b") & set(page)
    assert "[U+202E]txt.exe[U+001B][31m" in page
    assert SECRET not in page
    assert "MIIEvQ" not in page
    assert [row["new"]["number"] for row in files[0]["rows"] if row["new"]["text"] == "last = 1"] == [10]
    assert "… 299,600 more" in page
    assert len(page) < 100_000


async def test_a_page_stays_small_and_says_what_it_leaves_out(story: Story) -> None:
    long = "".join(f'    "{number:05d}": ["<&>", {number}, None],  # "{number}"\n' for number in range(9_000))
    names = [f"data/part_{number}.py" for number in range(5)]
    await story.commit("T-1", *(change(name, f"TABLE = {{\n{long}}}\n") for name in names))
    files = await story.files("T-1")
    assert len(await as_html(files)) < 1_000_000
    assert [one["path"] for one in files] == names
    assert all(one["left_out"] for one in files)
    assert files[0]["rows"]
    assert not files[-1]["rows"]
    (alone,) = await story.files("T-1", alone=names[-1])
    assert len(alone["rows"]) > len(files[0]["rows"])
    assert len(await as_html([alone], file=names[-1])) < 1_000_000
    whole = await as_html(files)
    assert f"diff?file={names[-1]}" in whole
    assert f"diff.txt?file={names[-1]}" in whole


TEXTS = [
    ("a.py", 'def f(x):\n    """Two\n    lines."""\n    return {"a": x, \'b\': 0x1F}  # end\n'),
    ("b.ts", "const x: string = `a ${1 + 1} b`; /* two\nlines */ class A {}\n"),
    ("c.html", "<p class='x'>&amp;</p><!-- two\nlines --><script>let a = '</script>'</script>\n"),
    ("Dockerfile", 'FROM python\nRUN echo "a" \\\n && true\n'),
    ("unknown.zzz", "plain \u00e9\ud7ff text\n"),
]


@pytest.mark.parametrize(("path", "text"), TEXTS)
def test_colours_change_no_letter(path: str, text: str) -> None:
    before, after = text.encode(), text.replace("a", "bb").replace("\n", "\n\n", 1).encode()
    changed = ChangedFile(
        path=path, old_path=path, old_mode="100644", new_mode="100644", size=9, old=before, new=after,
        hunks=(Hunk(0, before.count(b"\n"), 0, after.count(b"\n")),),
    )  # fmt: skip
    rows = build_files([changed], {})[0]["rows"]
    for side, source in (("old", before), ("new", after)):
        cells = [row[side] for row in rows if row[side]]
        assert [one["text"] for one in cells] == source.decode().splitlines()
        plain = [
            html.unescape(re.sub(r"</?(?:i|mark)[^>]*>", "", str(mark_code(c["text"], c["marks"])))) for c in cells
        ]
        assert plain == [one["text"] for one in cells]
        assert path == "unknown.zzz" or any(re.search("[a-z]", one["marks"]) for one in cells)


def test_colours_can_be_read_on_every_background_in_light_and_dark() -> None:
    sheet = (read_static("code.css") or b"").decode()
    light, dark = re.findall(r":root \{(.*?)\}", sheet, re.DOTALL)
    used = set(re.findall(r"\.diff \.([a-z]) \{", sheet))
    assert used == {*LETTERS}
    for scheme in (light, dark):
        colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", scheme))
        texts = [name for name in colours if name.startswith("code-") and name != "code-back"]
        backs = ["code-back", "new-back", "new-mark", "gone-back", "gone-mark"]
        low = {(a, b): round(contrast(colours[a], colours[b]), 2) for a, b in product(texts, backs)}
        assert {pair: ratio for pair, ratio in low.items() if ratio < 4.5} == {}


def contrast(one: str, other: str) -> float:
    """Of WCAG: 1 for the same colour, 21 for black on white."""
    first, second = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (first + 0.05) / (second + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
