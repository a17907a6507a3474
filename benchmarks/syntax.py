"""How long the syntax of a story's files takes: files of the corpus, in every language, until there are enough."""

import time
from itertools import chain, cycle, zip_longest

from benchmarks.measure import Figure, Result, median_ms, peak_rss_mb
from orchestrator.code.check import check_syntax
from tests.code.corpus_files import SOUND, broken, text_of

CHARACTERS = 200_000
"""A story of twenty files; here they are smaller and more."""

File = tuple[str, str]


def run(rounds: int = 5) -> Result:
    """Measure stories of CHARACTERS characters: one in all languages, and one per language; broken ones too."""
    sound: dict[str, list[File]] = {}
    for path in SOUND:
        sound.setdefault(path.parent.name, []).append((path.name, text_of(path)))
    worse = [(path.name, text) for language in sound for path, text, _ in broken(language)]
    figures = []
    started = time.perf_counter()
    for files in sound.values():
        check_syntax(*files[0])
    figures.append(Figure(name="first file of every language", value=(time.perf_counter() - started) * 1000, unit="ms"))
    mixed = [file for file in chain.from_iterable(zip_longest(*sound.values())) if file is not None]
    for name, files in {"in all languages": mixed, "all broken": worse, **sound}.items():
        figures.append(Figure(name=f"story {name}", value=_story(files, rounds), unit="ms"))
    figures.append(Figure(name="memory peak", value=peak_rss_mb(), unit="MB"))
    return Result(name="syntax", about=f"files of {CHARACTERS // 1000} kB together", figures=tuple(figures))


def _story(files: list[File], rounds: int) -> float:
    """Milliseconds for as many files as make a story, the middle of some rounds."""
    story: list[File] = []
    left = CHARACTERS
    for path, text in cycle(files):
        if left <= 0:
            break
        story.append((path, text))
        left -= len(text)
    seconds = []
    for _ in range(rounds):
        before = time.perf_counter()
        for path, text in story:
            check_syntax(path, text)
        seconds.append(time.perf_counter() - before)
    return median_ms(seconds)
