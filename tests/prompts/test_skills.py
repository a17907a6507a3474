"""What reviewers look for in files of one kind: what a change brings into a prompt, and what a bad file says."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from orchestrator.core.errors import ConfigError
from orchestrator.prompts.feedback import files_of
from orchestrator.prompts.render import PromptLibrary, load_prompts
from orchestrator.prompts.skills import MOST_CHARS, SKILLS, choose_skills
from orchestrator.settings import packaged
from tests.prompts.packaged import packaged_library

PACKAGED = packaged_library().skills
MINE = "---\nname: Lua\nfiles: ['*.lua']\n---\n- Arrays begin at 1.\n"


def diff_of(files: Mapping[str, str]) -> str:
    """New files as git shows them; a `-` before a text's line is one that is taken away."""
    shown = ""
    for path, text in files.items():
        lines = "".join(line if line.startswith("-") else f"+{line}" for line in text.splitlines(keepends=True))
        shown += (
            f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,9 @@\n{lines}"
        )
    return shown


def names(files: Mapping[str, str]) -> list[str]:
    return [skill.name for skill in choose_skills(PACKAGED, files_of(diff_of(files)))]


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"shop/money.py": "RATE = 0.1\n"}, ["Python"]),
        ({"src/List.tsx": "export const List = () => <ul />;\n"}, ["React", "TypeScript and JavaScript"]),
        ({"src/loans.mjs": "export const one = 1;\n"}, ["TypeScript and JavaScript"]),
        ({"cmd/main.go": "package main\n"}, ["Go"]),
        ({"db/001.sql": "create table a (id int);\n"}, ["SQL and migrations"]),
        ({"shop/migrations/0002_name.py": "A = 1\n"}, ["Python", "SQL and migrations"]),
        ({"app/tui.py": "from textual.app import App\n"}, ["Python", "Terminal programs"]),
        ({"tui/main.go": "package tui\n", "bin/run.sh": "ls\n"}, ["Go", "Shell", "Terminal programs"]),
        ({"web/site.css": "a { margin: 0 }\n", "web/a.html": "<p>\n"}, ["HTML and CSS"]),
        ({"deploy/Dockerfile": "FROM scratch\n", "compose.yaml": "services: {}\n"}, ["Containers"]),
        ({".github/workflows/test.yml": "on: push\n"}, ["CI pipelines"]),
        ({"README.md": "Select a book from the list.\n", "data.json": "{}\n"}, []),
    ],
)
def test_a_change_brings_the_skills_for_its_files(files: dict[str, str], told: list[str]) -> None:
    assert names(files) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("- Arrays begin at 1.\n", "does not begin with front matter"),
        (
            "---\nname: Lua\nfiles: [*.lua]\n---\n- x\n",
            'not valid YAML with fields; write name: Python, and in a further line files: ["*.py"]',
        ),
        ("---\nLua\n---\n- x\n", "not valid YAML with fields"),
        ("---\nname: Lua\nfile: ['*.lua']\n---\n- x\n", "files: Field required"),
        ("---\nfiles: ['*.lua']\n---\n- x\n", "name: Field required"),
        ("---\nname: Lua\n---\n- x\n", "files: Field required"),
        ("---\nname: Lua\nfiles: '*.lua'\n---\n- x\n", "files: Input should be a valid tuple"),
        ("---\nname: Lua\nfiles: ['*.lua']\n---\n \n", "text: String should have at least 1 character"),
        (MINE + "x" * MOST_CHARS, f"text: String should have at most {MOST_CHARS} characters"),
        (MINE.replace("Lua", "Python"), "name: reviewer/skills/python.md has it too"),
    ],
)
def test_a_bad_file_is_named_with_its_field(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / SKILLS).mkdir(parents=True)
    (tmp_path / SKILLS / "ruby.md").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        PromptLibrary(load_prompts(packaged("system_prompts"), tmp_path))
    assert caught.value.message.startswith("skill reviewer/skills/ruby.md: ")
    assert told in caught.value.message
