"""Answers: nothing is changed without a word, and what can be read in one way only is read."""

import json

import pytest

from orchestrator.answers import Status, extract
from orchestrator.cli.extract import schema_of
from orchestrator.code.check import stands_for_code
from tests.world.case import Case, table

ANSWER = {"story_id": "S", "task_id": "T", "files": [{"path": "a.py", "content": "A = 1\n"}]}
TEXT = json.dumps(ANSWER)
DRAFT = TEXT.replace("A = 1", "A = 0")
DIFF = "@@ -9 +9 @@\n-a\n+b\n"


def content(raw: str) -> str:
    """An answer whose content stands in it as `raw`, backslashes and all."""
    return TEXT.replace("A = 1\\n", raw)


def read(text: str) -> object:
    """The content that is read from an answer, or `asked again`."""
    found = extract(text, schema_of("delivery"))
    value = found.value
    return value["files"][0]["content"] if isinstance(value, dict) and found.complete else "asked again"


def kept(name: str, raw: str, seen: str) -> Case:
    return Case(name=name, given=content(raw), right=raw, seen=seen)


def doubt(name: str, raw: str, seen: str) -> Case:
    return Case(name=name, given=content(raw), right="asked again", seen=seen)


@table(
    kept("a dollar", r"/^\$\d+$/", "a regular expression in nine languages"),
    kept("a template", r"`\${price}` and \d", "a template of JavaScript, which became an interpolation"),
    kept("an underscore", r"\section{a\_b} \% \|x\|", "TeX"),
    kept("quotes", r"\w+\'\`", "a shell's pattern"),
    kept("edges among others", r"\bfoo\b \w", "a regular expression"),
    doubt("edges", r"re.compile(r'\bfoo\b')", "a regular expression"),
    doubt("a fraction", r"$\frac{a}{b}$", "TeX in Markdown"),
    doubt("a product", r"a \times b", "TeX in Markdown"),
    doubt("a gradient", r"of $\nabla f$", "TeX in Markdown"),
    doubt("a drive", r"dir = C:\new\tmp", "an .ini file for Windows"),
    doubt("a drive among others", r"dir = C:\Users\kim\new\tmp", "an .ini file for Windows"),
    Case(name="a path", given=TEXT.replace("a.py", r"src\new\tool.py"), right="asked again", seen="a path of Windows"),
    Case(name="tabs", given=content(r"if x:\n\treturn 1\nk:\tv\n"), right="if x:\n\treturn 1\nk:\tv\n", seen="Go"),
    Case(name="a label", given=content(r"Plan B:\nfirst\n"), right="Plan B:\nfirst\n", seen="prose"),
    Case(name="a page", given=content(r"x\n\f\ny"), right="x\n\x0c\ny", seen="an old C file"),
    Case(name="doubled", given=content(r"C:\\new\\tmp \\bfoo"), right=r"C:\new\tmp \bfoo", seen="valid JSON"),
    Case(name="a habit", given=content(r"it\'s \$5"), right="it's $5", seen="answers of many models"),
)
def test_a_backslash_is_kept_or_asked_for(case: Case) -> None:
    assert read(case.given) == case.right


LIST = json.dumps(ANSWER["files"])


@table(
    *(
        Case(name=name, given=given, right="A = 1\n", seen=seen)
        for name, given, seen in (
            ("a curly quote behind a path", TEXT.replace('a.py"', "a.py”"), "an answer typed in an editor"),
            ("a curly quote behind a content", TEXT.replace('1\\n"', "1\\n”"), "the same"),
            ("a curly quote behind an id", TEXT.replace('"T"', '"T”'), "the same"),
            ("a list as a string", json.dumps({**ANSWER, "files": LIST}), "tool calls of small models"),
            ("a list as a string, with a slip", json.dumps({**ANSWER, "files": LIST})[:-1] + ",}", "the same"),
            ("an end of thoughts behind", f"{TEXT}\n</think>", "models whose template opens the thoughts"),
            ("an end of thoughts and words", f"<think>hm</think>{TEXT}</think>done", "the same"),
            ("thoughts whose beginning is lost", f"{DRAFT} no.</think>{TEXT}", "the same"),
            (
                "a draft in another channel",
                f"<|channel|>final<|message|>{TEXT}<|end|><|start|>assistant"
                f"<|channel|>analysis<|message|>Not {DRAFT}?<|end|>",
                "open models with channels",
            ),
            ("behind a quoted hunk", f"The change:\n{DIFF}\n{TEXT}", "a tester's analysis that quotes the diff"),
            ("behind two hunks", f"{DIFF}{DIFF.replace('9', '40')}\n```json\n{TEXT}\n```", "the same"),
            ("behind a diff in a fence", f"```diff\n{DIFF}```\n{TEXT}", "the same"),
        )
    )
)
def test_the_answer_is_found(case: Case) -> None:
    assert read(case.given) == case.right


@pytest.mark.parametrize(
    "comment",
    [
        "... other callers may pass None", "...existing users are migrated below", "… the rest is computed lazily",
        "... other threads wait here", "... the same holds for lists", "... existing keys win",
        "... rest is handled by the parser",
    ],
)  # fmt: skip
def test_a_sentence_behind_dots_omits_nothing(comment: str) -> None:
    assert not stands_for_code(comment)
    found = extract(content(f"# {comment}\\nA = 1\\n"), schema_of("delivery"))
    assert (found.status, found.complete) == (Status.OK, True)


@pytest.mark.parametrize(
    "comment",
    [
        "... existing code ...", "... rest of the code", "...rest of the function stays the same", "… other methods",
        "... existing imports", "... remaining routes unchanged", "... rest of component logic", "... the rest",
        "... other handlers as before", "... unchanged ...", "... existing code that loads the page ...",
    ],
)  # fmt: skip
def test_a_noun_behind_dots_stands_for_code(comment: str) -> None:
    assert stands_for_code(comment)
