"""The packaged prompts stay short and say a thing once."""

import re

from orchestrator.prompts.render import SHARED
from tests.prompts.packaged import packaged_files, packaged_texts, without_examples

TEXTS, FILES = packaged_texts(), packaged_files()
LONGER = ("developer/merge_plan", "architect/breakdown", "architect/breakdown_missing")


RUN = 12
"""Words in a row that no two files share: what is said twice will one day be said differently."""


def runs_of_words(text: str, run: int) -> set[str]:
    found = set()
    for line in without_examples(text).splitlines():
        words = re.sub(r"^\W+", "", line).split()
        found |= {" ".join(words[start : start + run]) for start in range(len(words) - run + 1)}
    return found


def said_twice(files: dict[str, str], run: int = RUN) -> dict[str, list[str]]:
    """Runs of words → the files they stand in, for those in more than one."""
    places: dict[str, list[str]] = {}
    for name, text in files.items():
        for words in runs_of_words(text, run):
            places.setdefault(words, []).append(name)
    return {words: names for words, names in places.items() if len(names) > 1}


def test_nothing_is_described_in_two_files() -> None:
    assert said_twice(FILES) == {}
    assert said_twice({**FILES, "mine": FILES["shared/escapes"]})
    assert all(any(f"include: {name} " in text for text in FILES.values()) for name in FILES if name.startswith(SHARED))


def test_prompt_files_stay_short() -> None:
    def size(text: str) -> int:
        return len(text.encode())

    assert {name: size(text) for name, text in FILES.items() if size(text) > 6700} == {}
    most = dict.fromkeys(TEXTS, 8000) | dict.fromkeys(LONGER, 8500)
    assert {name: size(text) for name, text in TEXTS.items() if size(text) > most[name]} == {}
