import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.backlogs.files import open_backlog, parse_story
from orchestrator.backlogs.tree import parse_json, parse_yaml, story_rows
from orchestrator.checks.backlog import all_problems, check_backlog
from orchestrator.core.errors import BacklogError
from orchestrator.core.finding import Where, blocking
from orchestrator.core.ports import Backlog
from orchestrator.core.story import BacklogContent, CellUpdate, Priority, Story
from orchestrator.settings import Settings
from orchestrator.storage.state_folder import StateFolder

CSV = """Story_ID,Title,User_Story,Dependencies,Acceptance_Criteria,Priority,Foundation,Closes,Status
US-2,Lend a book,"As a reader, I want ""Dune"": now",US-1; NFR-9 (stack),"1. It is lent; \
2. The slip says: until when",high,,WF-1,Backlog
US-1,Catalogue,,NFR-9,"1. Books, sorted",,,,Backlog
WF-1,Lend a book (page),,,,Low,,,Backlog
NFR-9,Set-up,,None,,,yes,,Backlog
"""
YAML = """# what we want
stories:
  - Story_ID: US-2
    title: Lend a book
    userStory: 'As a reader, I want "Dune": now'
    depends_on: [US-1, NFR-9 (stack)]
    acceptance criteria:
      - 1. It is lent
      - "The slip says: until when"
    Priority: high
    closes: [WF-1]
  - id: US-1
    title: Catalogue
    dependencies: NFR-9
    acceptance_criteria: 1. Books, sorted
  - {id: WF-1, title: Lend a book (page), priority: Low, notes: ~}
  - {id: NFR-9, title: Set-up, dependencies: None, foundation: true}
"""
JSON = [
    {
        "story_id": "US-2",
        "Title": "Lend a book",
        "User_Story": 'As a reader, I want "Dune": now',
        "Dependencies": ["US-1", "NFR-9 (stack)"],
        "acceptanceCriteria": ["It is lent", "The slip says: until when"],
        "priority": "high",
        "closes": "WF-1",
    },
    {"id": "US-1", "title": "Catalogue", "dependencies": ["NFR-9"], "acceptance_criteria": ["Books, sorted"]},
    {"id": "WF-1", "title": "Lend a book (page)", "priority": "Low", "owner": {"name": "Ann"}, "notes": None},
    {"id": "NFR-9", "title": "Set-up", "dependencies": [], "foundation": True},
]
MARKDOWN = {
    "US-2.md": """---
id: US-2
depends_on: [US-1, NFR-9 (stack)]
priority: high
closes: [WF-1]
---
# US-2: Lend a book

## User Story

As a reader, I want "Dune": now

## Acceptance Criteria

- [ ] It is lent
- [x] The slip says:
  until when
""",
    "US-10 catalogue.md": """---\r
id: US-1\r
title: Catalogue\r
---\r
## Dependencies\r
* NFR-9\r
## Acceptance criteria ##\r
1. Books, sorted\r
## Notes\r
```\r
## Title\r
```\r
""",
    "WF-1.md": "---\ntitle: Lend a book (page)\npriority: Low\n...\n",
    "x.md": "---\nid: NFR-9\nfoundation: yes\n---\n# Set-up\n",
    "README.md": "no story",
    "_template.md": "no story",
}
FORMATS = ("csv", "yaml", "json", "folder")


def write(folder: Path, kind: str) -> Path:
    if kind == "folder":
        place = folder / "stories"
        place.mkdir()
        for name, text in MARKDOWN.items():
            (place / name).write_bytes(text.encode())
        return place
    text = {"csv": CSV, "yaml": YAML, "json": json.dumps(JSON, indent=1)}[kind]
    place = folder / f"backlog.{kind}"
    place.write_bytes(b"\xef\xbb\xbf" + text.encode())
    return place


def opened(path: Path, home: Path) -> Backlog:
    return open_backlog(path, Settings(), StateFolder(home))


def content_of(path: Path, data: str | bytes) -> BacklogContent:
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return opened(path, path.parent / "state").read()


def core(story: Story) -> dict[str, object]:
    """What a story says, whatever format said it."""
    told = story.model_dump(exclude={"line", "file", "dependency_note", "notes", "user_story"})
    return {**told, "user_story": story.user_story.strip()}


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_says_the_same(tmp_path: Path, kind: str) -> None:
    content = opened(write(tmp_path, kind), tmp_path / "state").read()
    assert blocking(content.problems) == ()
    assert [f.code for f in check_backlog(content.stories)] == []
    lend, catalogue, page, setup = (content.story(name) for name in ("US-2", "US-1", "WF-1", "NFR-9"))
    assert lend is not None
    assert core(lend) == {
        **core(Story(id="US-2", title="Lend a book", user_story='As a reader, I want "Dune": now')),
        "dependencies": ("US-1", "NFR-9"),
        "closes": ("WF-1",),
        "priority": Priority.HIGH,
        "acceptance_criteria": ("It is lent", "The slip says: until when"),
    }
    assert catalogue is not None
    assert page is not None
    assert setup is not None
    assert core(catalogue) == core(
        Story(id="US-1", title="Catalogue", dependencies=("NFR-9",), acceptance_criteria=("Books, sorted",))
    )
    assert core(page) == core(Story(id="WF-1", title="Lend a book (page)", priority=Priority.LOW))
    assert core(setup) == core(Story(id="NFR-9", title="Set-up", foundation=True))
    lines = {"csv": (2, 3, 4, 5), "yaml": (3, 12, 16, 17), "json": (3, 18, 28, 37), "folder": (2, 2, 1, 2)}[kind]
    assert (lend.line, catalogue.line, page.line, setup.line) == lines
    order = [story.id for story in content.stories]
    assert order == ["US-2", "US-1", "WF-1", "NFR-9"]


@pytest.mark.parametrize("kind", FORMATS[1:])
def test_cells_go_to_the_sidecar_and_come_back_and_the_source_stays(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, kind)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    backlog = opened(path, tmp_path / "state")
    cells = {"Sprint_ID": "SP-001", "Execution_Status": "completed", "Last_Event": "story_finished"}
    assert backlog.write([CellUpdate(story_id="US-1", cells=cells)]) is None
    assert backlog.write([CellUpdate(story_id="WF-1", cells={"Execution_Status": "failed"})]) is None
    for seen in (backlog, opened(path, tmp_path / "state")):
        story = seen.read().story("US-1")
        assert story is not None
        assert (story.completed, story.sprint_id) == (True, "SP-001")
    assert {file: file.read_bytes() for file in before} == before
    assert backlog.write([CellUpdate(story_id="US-1", cells={"Execution_Status": ""})]) is None
    story = backlog.read().story("US-1")
    assert story is not None
    assert not story.completed


def test_a_sidecar_that_cannot_be_written_is_a_warning_and_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    path.write_text('[{"id": "A", "title": "a"}]')
    state = tmp_path / "state"
    state.write_text("in the way")
    backlog = opened(path, state)
    assert "cannot be written" in str(backlog.write([CellUpdate(story_id="A", cells={"Sprint_ID": "SP-7"})]))
    state.unlink()
    assert backlog.write([CellUpdate(story_id="A", cells={"Execution_Status": "failed"})]) is None
    story = backlog.read().stories[0]
    assert (story.sprint_id, story.execution_status) == ("SP-7", "failed")


@pytest.mark.parametrize(
    ("name", "data", "code", "said"),
    [
        ("b.yaml", "", "backlog.empty", "is empty"),
        ("b.yaml", "# nothing\n", "backlog.empty", "is empty"),
        ("b.yaml", "[]", "backlog.no_rows", "no stories"),
        ("b.yaml", "stories:\n  a: 1\n", "backlog.type", "`stories` is a mapping (a) (line 2)"),
        ("b.yaml", "story: 1\n", "backlog.type", "it holds a mapping (story) (line 1)"),
        ("b.yaml", "just words", "backlog.type", "the text 'just words'"),
        ("b.yaml", "- id: A\n\ttitle: x\n", "backlog.syntax", "never with tabs"),
        ("b.yaml", "- id: A\n  title: a: b\n", "backlog.syntax", "b.yaml, line 2: not valid YAML"),
        ("b.yaml", "- id: A\n  title: [open\n", "backlog.syntax", "not valid YAML"),
        ("b.yaml", "- id: A\n---\n- id: B\n", "backlog.syntax", "line 2: not valid YAML (a second document"),
        ("b.yaml", "- id: A\n  title: \x07\n", "backlog.syntax", "a character that YAML does not allow"),
        ("b.yaml", "- &a\n  id: A\n- <<: *a\n", "backlog.syntax", "line 3: not valid YAML (merge keys"),
        ("b.yaml", "- *a\n", "backlog.syntax", "line 1"),
        ("b.yaml", "[" * 5000, "backlog.syntax", "not valid YAML"),
        ("b.yml", "- id: A\n  title: \xe4\n".encode("latin-1"), "backlog.encoding", "byte 0xe4 in line 2"),
        ("b.yml", "- id: A".encode("utf-16"), "backlog.encoding", "not UTF-8"),
        ("b.json", " \n", "backlog.empty", "is empty"),
        ("b.json", "{}", "backlog.type", "no list of stories"),
        ("b.json", '[\n{"id": "A",}\n]', "backlog.syntax", "b.json, line 2: not valid JSON"),
        ("b.json", "[" * 100_000, "backlog.syntax", "nested too deeply"),
        ("b.json", "[" * 20 + "]" * 20, "backlog.syntax", "nested too deeply"),
        ("b.txt", "x", "backlog.format", ".csv, .yaml, .yml or .json, or a folder of Markdown"),
    ],
)
def test_what_is_no_backlog_is_one_error_with_file_and_line(
    tmp_path: Path, name: str, data: str | bytes, code: str, said: str
) -> None:
    with pytest.raises(BacklogError) as caught:
        content_of(tmp_path / name, data)
    assert said in caught.value.message
    assert [finding.code for finding in caught.value.findings] == [code]
    assert caught.value.findings[0].where.file == str(tmp_path / name)


def test_wrong_kinds_and_doubled_names_are_findings_with_lines(tmp_path: Path) -> None:
    yaml = """- id: A
  title: [x]
  acceptance_criteria:
    - fine
    - Title: is shown
  notes: {a: b}
  id: B
- just text
- title: without id
  dependancies: A
- id: 007
  title: yes
"""
    content = content_of(tmp_path / "b.yaml", yaml)
    told = [(f.code, f.where.line, f.where.story) for f in content.problems]
    assert told == [
        ("backlog.type", 2, "A"),
        ("backlog.type", 5, "A"),
        ("backlog.type", 6, "A"),
        ("backlog.field_twice", 7, "A"),
        ("backlog.type", 8, None),
        ("backlog.missing_id", 9, None),
        ("backlog.field", 10, None),
    ]
    assert [(s.id, s.title, s.acceptance_criteria) for s in content.stories] == [
        ("A", "", ("fine",)),
        ("007", "yes", ()),
    ]
    assert "did you mean dependencies?" in content.problems[-1].fix
    doubled = content_of(tmp_path / "b.json", '[{"id": "A",\n "title": "t",\n "Title": "u"}]')
    assert [(f.code, f.where.line, f.severity) for f in doubled.problems] == [("backlog.field_twice", 3, "critical")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("b.yaml", "- {id: A, title: T, story: I want it, description: It is red, functional_requirements: It rolls}"),
        ("b.csv", "Story_ID,Title,Description,Story,Functional_Requirements\nA,T,It is red,I want it,It rolls\n"),
        (
            "A.md",
            "---\nid: A\ntitle: T\n---\n## Story\nI want it\n"
            "## Description\nIt is red\n## Functional Requirements\nIt rolls\n",
        ),
    ],
)
def test_story_and_description_are_read_as_other_tools_name_them(tmp_path: Path, name: str, text: str) -> None:
    """People write these names; a story without its text is another story."""
    (tmp_path / "in").mkdir()
    source = tmp_path / "in" / name
    source.write_text(text)
    story = opened(source.parent if name == "A.md" else source, tmp_path / "state").read().stories[0]
    told = [*story.user_story.split(), "/", *story.functional_requirements.split()]
    assert " ".join(told) == "I want it / It rolls It is red"


def test_what_no_file_can_hold_is_replaced(tmp_path: Path) -> None:
    content = content_of(
        tmp_path / "b.json", r'[{"id": "A", "title": "a\u0000\ud800b", "acceptance_criteria": ["\udfff c"]}]'
    )
    assert content.stories[0].title == "a\ufffd\ufffdb"
    assert content.stories[0].acceptance_criteria == ("\ufffd c",)
    assert content_of(tmp_path / "b.yaml", r'[{id: A, title: "a\0b"}]').stories[0].title == "a\ufffdb"
    content.model_dump_json()


@given(
    st.sampled_from(["b.yaml", "b.json", "x.md"]),
    st.lists(st.tuples(st.integers(0, 900), st.text(max_size=3)), max_size=5),
)
def test_a_damaged_text_is_a_backlog_or_one_clear_error(name: str, damage: list[tuple[int, str]]) -> None:
    text = {"b.yaml": YAML, "b.json": json.dumps(JSON, indent=1), "x.md": MARKDOWN["US-2.md"]}[name]
    for place, put in damage:
        text = text[:place] + put + text[place + 1 :]
    where = Where(file=name, line=1)
    try:
        if name == "x.md":
            parse_story(text, "folder", name, 0)
        else:
            story_rows((parse_yaml if name == "b.yaml" else parse_json)(text, name), name)
    except BacklogError as error:
        where = error.findings[0].where
    assert where.line
    assert name in (where.file or "")


def folder_of(tmp_path: Path, files: dict[str, str | bytes]) -> Backlog:
    place = tmp_path / "stories"
    place.mkdir()
    for name, text in files.items():
        (place / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return opened(place, tmp_path / "state")


def test_every_broken_story_file_is_told_at_once_by_name_and_line(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "a.md": "# no front matter\n",
        "b.md": "---\nid: B\n",
        "c.md": "---\nid: C\ntitle: a: b\n---\n",
        "d.md": b"---\nid: D\n---\n\xff\n",
        "e.md": "---\n- x\n---\n",
        "f.md": "---\n---\n",
        "g.md": "",
        "good.md": "---\nid: A\ntitle: a\n---\n",
    }
    with pytest.raises(BacklogError) as caught:
        folder_of(tmp_path, files).read()
    places = [(Path(f.where.file or "").name, f.where.line, f.code) for f in caught.value.findings]
    assert places == [
        ("a.md", 1, "backlog.front_matter"),
        ("b.md", 1, "backlog.front_matter"),
        ("c.md", 3, "backlog.syntax"),
        ("d.md", 4, "backlog.encoding"),
        ("e.md", 2, "backlog.front_matter"),
        ("f.md", 2, "backlog.front_matter"),
        ("g.md", 1, "backlog.front_matter"),
    ]
    assert all(f"{name}.md" in caught.value.message for name in "abcdefg")


def test_a_link_out_of_the_folder_is_refused_and_one_inside_is_read(tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("---\ntitle: secret\n---\n")
    backlog = folder_of(tmp_path, {"a.md": "---\ntitle: a\n---\n"})
    place = next(tmp_path.glob("*/a.md")).parent
    (place / "b.md").symlink_to("a.md")
    assert [story.title for story in backlog.read().stories] == ["a", "a"]
    (place / "c.md").symlink_to(tmp_path / "secret.md")
    with pytest.raises(BacklogError, match=r"c\.md is a link to a file outside of the folder") as caught:
        backlog.read()
    assert [finding.code for finding in caught.value.findings] == ["backlog.link"]


def test_a_folder_without_stories_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BacklogError, match="holds no story files"):
        folder_of(tmp_path, {"README.md": "x", "notes.txt": "y"}).read()


def test_every_word_of_a_markdown_story_is_told(tmp_path: Path) -> None:
    text = "\n# US-1: Lend a book\nPeople ask.\n\nOften.\n## Why\n- money\n"
    text += "# Acceptance Criteria\n- due\n## Notes\nold\n## Out\nfines\n"
    story, notes = folder_of(
        tmp_path,
        {"a.md": f"---\nid: US-1\n---\n<!-- x -->\nFirst.{text}", "b.md": "---\nid: US-2\n---\n# Notes\nA note.\n"},
    ).read().stories  # fmt: skip
    assert (notes.title, notes.functional_requirements) == ("Notes", "A note.")
    assert story.title == "Lend a book"
    assert story.functional_requirements == "First.\n\nPeople ask.\n\nOften."
    assert story.notes == "old\n\nWhy:\n- money\n\nOut:\nfines"
    assert story.acceptance_criteria == ("due",)


def test_findings_on_markdown_stories_name_their_files(tmp_path: Path) -> None:
    backlog = folder_of(
        tmp_path,
        {
            "one.md": "---\nid: US-1\ntitle: One\nnotes: a\n---\n## Notes\nb\n",
            "two.md": "---\nid: US-1\n---\n",
            "three.md": "---\nid: US-3\ntitle: T\ndependencies: [US-4]\n---\n",
        },
    )
    content = backlog.read()
    problems = all_problems(content)
    assert [(Path(f.where.file or "").name, f.where.line, f.code) for f in problems] == [
        ("one.md", 6, "backlog.field_twice"),
        ("three.md", 2, "backlog.unknown_dependency"),
        ("two.md", 2, "backlog.duplicate_id"),
        ("two.md", 2, "backlog.missing_title"),
    ]
    duplicate = next(f for f in problems if f.code == "backlog.duplicate_id")
    assert duplicate.message == "the id of US-1 (two.md:2) is taken by US-1 (one.md:2)"


def test_only_regular_files_are_stories(tmp_path: Path) -> None:
    backlog = folder_of(tmp_path, {"a.md": "---\ntitle: a\n---\n"})
    os.mkfifo(tmp_path / "stories" / "b.md")
    (tmp_path / "stories" / "c.md").mkdir()
    assert [story.id for story in backlog.read().stories] == ["a"]
