"""No text makes a parser raise, hang or lie to another thread."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.code.check import CHECKED_SUFFIXES, Target, check_syntax, language_of
from tests.code.corpus_files import SOUND, text_of
from tests.effort import examples

NAMES = [f"a{suffix}" for suffix in CHECKED_SUFFIXES]
ONE_EACH = list({language_of(name): name for name in NAMES}.values())
"""A name per language."""
WORDS = """
    { } ( ) [ ] < > </a> <!-- --> /* */ // # " ' ` : ; , = && | $( ${ $(( <<A A then fi do done esac ;; [[ ]] {%
    %} {{ }} <script> </script> <style> return a 1 *x !t [[a]] --- +++ ``` ======= url( @media <?php <![CDATA[ <!
"""
PIECES = [
    *WORDS.split(), "<a b='", "\n", " ", "\t", "\\", "\\n", "if ", "case x in", "def f", "class A", "\0", "\ud800",
    "\ufeff", "\u2028", "é", "😀", "- ", "? ", "&x ", "<<<<<<< ", ">>>>>>> ",
]  # fmt: skip
LARGE = {
    "nested brackets": "(" * 5_000,
    "nested objects": '{"a":' * 2_000,
    "nested lists": "[" * 2_000 + "]" * 2_000,
    "nested elements": "<div>" * 2_000,
    "nested groups": "{ " * 5_000,
    "nested substitutions": "$(" * 5_000,
    "nested doubles": '"$(' * 2000,
    "nested conditions": "if a; then\n" * 2_000,
    "indented": "".join(f"{' ' * depth}a:\n" for depth in range(800)),
    "quotes": "'" * 5_001,
    "one line": "a = 1; " * 10_000,
    "long word": "a" * 300_000,
    "zeros": "\0" * 5_000,
    "surrogates": "\udc80" * 5_000,
    "angle brackets": "<" * 5_000,
    "comments": "/*" * 5_000,
    "templates": "{{" * 5_000 + "{%" * 5_000,
    "here-documents": "cat <<A\n" * 2000,
    "markers": "<<<<<<< \n" * 5_000,
}


@pytest.mark.parametrize("name", ONE_EACH)
@given(pieces=st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=40))
@settings(max_examples=examples(60))
def test_no_text_makes_a_parser_raise(name: str, pieces: list[str]) -> None:
    text = "".join(pieces)
    targets = (Target(python=(3, 9)), Target(python=(3, 30))) if language_of(name) == "Python" else ()
    for target in (Target(), *targets):
        found = check_syntax(name, text, target=target)
        assert len(found) <= 3
        lines = text.count("\n") + text.count("\r") + text.count("\f") + 2
        assert all(one.where.line is None or 1 <= one.where.line <= lines for one in found)
        assert all(one.where.column is None or one.where.column >= 0 for one in found)


@pytest.mark.parametrize("kind", LARGE)
@pytest.mark.timeout(300)
def test_large_texts_end(kind: str) -> None:
    for name in ONE_EACH:
        assert len(check_syntax(name, LARGE[kind])) <= 3


def test_threads_share_no_parser() -> None:
    broken = [(path, text_of(path)[:-30]) for path in SOUND]
    alone = [check_syntax(path.name, text) for path, text in broken]

    def judged(one: tuple[Path, str]) -> object:
        return check_syntax(one[0].name, one[1])

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(judged, broken * 5)) == alone * 5
