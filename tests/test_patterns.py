"""No regular expression of ours takes more time with each further character that it might be about."""

import importlib
import pkgutil
import re
import signal
from collections.abc import Iterator
from typing import Any

import orchestrator

UNITS = (
    *(
        "a",
        "1",
        "1.",
        "a.",
        "a-",
        "a_",
        "a/",
        "../",
        "@a/",
        "a,",
        "a, ",
        "a=b ",
        "a:b ",
        "-a ",
        "--a=b ",
        "x(y)",
        "://",
    ),
    *("a ", "a\t", "a\n", "\n", " ", "(", "( ", "[", "[a]", "{}", "<a ", "<!--", "+", "#", "\\", '"', '"a" ', "'a'"),
    *("`", "`a` ", "**", "**a** ", "- ", "task 1-", "T1, ", "python ", "npm run ", "and ", "\u00a0"),
)
TIMES = 30
"""Steps double with each of them where a pattern can split the same text in two ways."""
ALLOWED_S = 2.0
"""Of the processor; microseconds are what is needed."""


def patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    """Every pattern of text that stands in a module, alone or in a table, once."""
    known: set[str] = set()
    for module in pkgutil.walk_packages(orchestrator.__path__, "orchestrator."):
        if not module.name.endswith("__main__"):
            for name, value in vars(importlib.import_module(module.name)).items():
                for one in _in(value):
                    if isinstance(one.pattern, str) and one.pattern not in known:
                        known.add(one.pattern)
                        yield f"{module.name}.{name}", one


def _in(value: Any) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _in(one)


class TooLong(Exception):
    """The time is up."""


def test_no_pattern_takes_twice_the_time_for_one_repetition_more() -> None:
    def end(*_: object) -> None:
        raise TooLong

    found, slow = [*patterns()], list[str]()  # imported before the clock runs
    before = signal.signal(signal.SIGVTALRM, end)
    try:
        for name, pattern in found:
            for unit in UNITS:
                try:
                    signal.setitimer(signal.ITIMER_VIRTUAL, ALLOWED_S)
                    pattern.match(f"{unit * TIMES}!")
                    pattern.search(f"{unit * TIMES}\x00")
                    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
                except TooLong:
                    slow.append(f"{name} on {unit!r}")
                    break
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    assert len(found) > 500
    assert slow == []
