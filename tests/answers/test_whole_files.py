"""Whole files as models write them unasked: what can be meant in one way is read, and never a part or a sample."""

import re
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.answers import Status
from orchestrator.answers.whole_files import LAYER, Wanted, read_whole_files
from orchestrator.checks.whole_files import fits, missing_parts
from tests.effort import examples

ABOUT = "A function count_words(text) that returns the number of words in a text.\nwords"
CODE = 'def count_words(text):\n    """How many words."""\n    return len(text.split())\n'
OTHER = "from words import count_words\n\nprint(count_words('a b'))\n"
ONE = ("words.py",)


def read(text: str, *paths: str, about: str = ABOUT) -> dict[str, str] | None:
    found = read_whole_files(text, Wanted(paths or ONE, partial(fits, about=about)))
    if found is None:
        return None
    assert found.layer == LAYER
    assert isinstance(found.value, dict)
    return {file["path"]: file["content"] for file in found.value["files"]}


def block(text: str, info: str = "python") -> str:
    return f"```{info}\n{text}```\n"


NATURAL = [
    block(CODE),
    f"Here is the function that was asked for:\n\n{block(CODE)}\nIt splits the text at blanks.",
    block(CODE, ""),
    f"words.py\n{block(CODE)}",
    f"`words.py`\n\n{block(CODE)}",
    f"**words.py**\n\n{block(CODE)}",
    f"#### words.py\n\n{block(CODE)}",
    f"### 1. `words.py` (new)\n\n{block(CODE)}",
    f"- **File Path:** [words.py](/words.py)\n\n{block(CODE)}",
    f"**File:** words.py\n\n{block(CODE)}",
    f"- **File Path:** [words.py](/words.py)\n- **Description:** Counts words.\n\n{block(CODE)}",
    f"## Action\n\n#### CREATE words.py\n\n{block(CODE)}",
    f"# Words\n\nThe code in `words.py` is:\n\n{block(CODE)}",
    block(CODE, "python words.py"),
    block(CODE, "python:words.py"),
    f"{block(CODE)}\nUse it so:\n\n{block(OTHER)}",
    f"words.py\n{block(CODE)}\nRun it:\n\n{block('python words.py' + chr(10), 'bash')}",
    f"<think>words.py, I guess\n\n{block(OTHER)}</think>\n\n{block(CODE)}",
    f"{block(CODE)}\nAgain, whole:\n\n{block(CODE)}",
    f"/words.py\n{block(CODE)}",
]


@pytest.mark.parametrize("text", NATURAL)
def test_the_one_file_is_read_as_models_write_it(text: str) -> None:
    assert read(text) == {"words.py": CODE}


def test_a_comment_on_the_first_line_names_one_of_several_files() -> None:
    two = f"{block(f'# words.py{chr(10)}{CODE}')}\n{block('# shop/words.py' + chr(10) + CODE)}"
    assert read(two, "words.py", "shop/words.py") == {
        "words.py": f"# words.py\n{CODE}",
        "shop/words.py": f"# shop/words.py\n{CODE}",
    }


def test_several_files_come_by_their_paths_and_others_are_told_too() -> None:
    files = {"app/a.py": "A = 1\n", "static/b.css": "b {}\n", "notes.txt": "C\n"}
    text = "\n".join(f"**`{path}`**\n\n{block(held, '')}" for path, held in files.items())
    assert read(text, "app/a.py", "static/b.css") == files
    assert read(f"app/a.py\n{block(files['app/a.py'])}", "app/a.py", "b.py") == {"app/a.py": "A = 1\n"}


GREET, EXAMPLE = "def greet(name):\n    return name\n", "def example():\n    pass\n"
NONE = {
    "nothing": "",
    "prose": "The file words.py counts words.",
    "a sample of its use": f"It is used so:\n\n{block(OTHER)}",
    "a sample without an import": block("print(count_words('a b c'))\n"),
    "a sample of another thing": f"For example:\n\n{block(GREET)}",
    "a sample named example": f"I need more information. For example:\n\n{block(EXAMPLE)}",
    "a command": block("python -c 'import words'\n", "bash"),
    "two drafts": f"{block(CODE)}\nBetter:\n\n{block(CODE.replace('split()', 'split(None)'))}",
    "two texts for one path": f"words.py\n{block(CODE)}\nwords.py\n{block(CODE + 'X = 1' + chr(10))}",
    "find and replace": f"words.py\n\n#### FIND:\n\n{block('a')}\n#### REPLACE:\n\n{block('b')}",
    "search marks": f"words.py\n{block('<<<<<<< SEARCH' + chr(10) + 'a' + chr(10) + '=======' + chr(10))}",
    "a diff": f"words.py\n{block('@@ -1 +1 @@' + chr(10) + '-a' + chr(10), 'diff')}",
    "a file to delete": f"### DELETE\n\n- **File Path:** [words.py](/words.py)\n\n### CREATE words.py\n\n{block(CODE)}",
    "never closed": f"words.py\n```python\n{CODE}",
    "what is said far above": f"words.py\n\nIt is used so:\n\n{block(OTHER)}",
    "json": '{"files": "words.py"}\n```python\nx = 1\n```',
}


@pytest.mark.parametrize("name", NONE)
def test_what_could_be_meant_otherwise_is_no_file(name: str) -> None:
    assert not read(NONE[name])


def test_a_markdown_file_that_a_bar_inside_may_have_closed_is_not_read() -> None:
    inside = "# Guide\n\n```bash\nrun\n```\n\nThe end.\n"
    assert read(f"guide.md\n```markdown\n{inside}```\n", "guide.md", about="guide") is None
    assert read(f"guide.md\n````markdown\n{inside}````\n", "guide.md", about="guide") == {"guide.md": inside}


def test_what_was_cut_off_keeps_the_files_that_are_whole() -> None:
    found = read_whole_files(
        f"a.py\n{block('A = 1' + chr(10))}\nb.py\n```python\nB = ", Wanted(("a.py", "b.py"), lambda *_: True)
    )
    assert found is not None
    assert found.status is Status.TRUNCATED
    assert found.value["files"] == [{"path": "a.py", "content": "A = 1\n"}]  # type: ignore[index,call-overload]


NAMES = st.from_regex(r"[a-z]{3,8}", fullmatch=True)
LINES = st.lists(
    st.sampled_from(["x = 1", "", "    return 2", "# words", "'''", "~~~", "`b`", "- c", "## d", "e: f"]), max_size=8
)


@settings(max_examples=examples(200))
@given(NAMES, LINES, st.sampled_from(["{path}\n", "`{path}`\n\n", "**{path}**:\n", "#### {path}\n", "File: {path}\n"]))
def test_a_named_block_comes_back_as_it_was_written(name: str, lines: list[str], form: str) -> None:
    text = "".join(f"{line}\n" for line in (*lines, "end"))
    path = f"{name}/{name}.py"
    assert read(form.format(path=path) + block(text), path) == {path: text}


@settings(max_examples=examples(200))
@given(st.lists(st.sampled_from([*NATURAL, *NONE.values(), "words.py", "```", "# T", "Say."]), min_size=1, max_size=4))
def test_whatever_comes_together_never_gives_another_text(parts: list[str]) -> None:
    """A sample, a command or half a block is never taken for the file."""
    found = read("\n\n".join(parts)) or {}
    allowed = {CODE, CODE + "X = 1\n", CODE.replace("split()", "split(None)")}
    assert found.get("words.py", CODE) in allowed


OLD = """import re

LIMIT = 3


def _clean(text):
    return re.sub(r"\\s+", " ", text)


def count_words(text):
    return len(_clean(text).split())


class Book:
    def pages(self):
        return 1

    def words(self):
        return LIMIT
"""
SCRIPT = """import { clean } from './clean.js';

const limit = 3;

export function countWords(text) {
  return clean(text).split(' ').length;
}

export function pages() {
  return limit;
}
"""
STYLE = "".join(f".c{number} {{\n  color: red;\n}}\n" for number in range(5))


@pytest.mark.parametrize(
    ("path", "old", "new", "missing"),
    [
        ("w.py", OLD, "def count_words(text):\n    return len(_clean(text).split(None))\n", "Book"),
        ("w.py", OLD, OLD.replace("import re\n", "").replace("split()", "split(None)"), "re"),
        ("w.py", OLD, OLD[: OLD.index("    def words")], "Book.words"),
        ("w.js", SCRIPT, SCRIPT[SCRIPT.index("export") : SCRIPT.index("export function pages")], "pages"),
        ("w.js", SCRIPT, SCRIPT[SCRIPT.index("export") :], "clean"),
        ("w.css", STYLE, ".c1 {\n  color: blue;\n}\n", "12 of 15 lines"),
    ],
)
def test_an_excerpt_of_a_longer_file_is_not_whole(path: str, old: str, new: str, missing: str) -> None:
    found = missing_parts(path, old, new, "Make count_words and words faster.")
    assert any(missing in one for one in found), found


@settings(max_examples=examples(200))
@given(st.integers(0, len(OLD.split("\n")) - 2), st.integers(1, len(OLD.split("\n"))))
def test_no_part_of_a_file_passes_for_it(first: int, count: int) -> None:
    lines = OLD.rstrip("\n").split("\n")
    part = "\n".join(lines[first : first + count]) + "\n"
    whole = re.sub(r"\s+", " ", part).strip() == re.sub(r"\s+", " ", OLD).strip()
    names = {"LIMIT", "_clean", "count_words", "Book", "pages", "words"}
    if not whole and any(name not in part for name in names - {"_clean"}):
        try:
            compile(part, "w.py", "exec")
        except SyntaxError:
            return  # refused for itself
        assert missing_parts("w.py", OLD, part, "Count the text.")
