"""A program whose functions return nothing: a test that passes there shows nothing about them."""

from collections.abc import Mapping
from posixpath import basename, splitext

from orchestrator.domain.base import Value
from orchestrator.syntax.javascript_hollow import hollow_javascript, javascript_mentions
from orchestrator.syntax.javascript_tree import SUFFIXES
from orchestrator.syntax.python_hollow import hollow_python, python_mentions


class Hollow(Value):
    """The files that could be hollowed, and names of what could not."""

    texts: dict[str, str]
    """By path, of the files in which a function became empty; none when there is nothing to run."""
    left: frozenset[str]
    """Constants, classes with fields, functions that an import calls, and stems of files of other kinds.

    A test that speaks of one of them may pass and show something all the same.
    """


def hollow(texts: Mapping[str, str]) -> Hollow:
    """The files with empty functions. A file that does not parse, or of another language, is left as a whole."""
    python = {path: text for path, text in texts.items() if path.endswith(".py")}
    javascript = {path: text for path, text in texts.items() if path.endswith(SUFFIXES)}
    done, left = hollow_python(python)
    more, names = hollow_javascript(javascript)
    others = {splitext(basename(path))[0] for path in texts if path not in python and path not in javascript}
    return Hollow(texts={**done, **more}, left=frozenset(left | names | others))


def mentions(path: str, text: str) -> dict[str, frozenset[str]]:
    """By test as a report names it: the names and words in it, and in what of its file it uses."""
    return python_mentions(text) if path.endswith(".py") else javascript_mentions(path, text)
