"""A failed test's message as personas read it: without the frames of libraries, every path from the tree's root."""

import re
from pathlib import Path

MESSAGE_CAP = 4000
"""Characters of one case's failure text."""
_LOOKED_AT = 200_000
"""Characters of it that are looked at: a test may say megabytes."""
_GAP = "\n[...]\n"
# A frame of Python's or of a package, with its source, that another one follows: the last says where it was raised.
_LIBRARY = r"(?:(?:site|dist)-packages|/lib/python3\.\d+)/"
_PYTHON = re.compile(
    # pytest, with --tb=short: `/…/site-packages/x/y.py:12: in run`
    rf"^(?:\S{{0,500}}{_LIBRARY}\S{{0,500}}:\d+: in .*\n(?: {{4}}.*\n)*+(?=\S{{1,500}}:\d+: in )"
    # A traceback: `  File "/…/json/decoder.py", line 3, in f`
    rf"|  File \"[^\"\n]*{_LIBRARY}[^\"\n]*\", line .*\n(?: {{4}}.*\n)*+(?=  File ))",
    re.MULTILINE,
)
_NODE = re.compile(r"^ *at [^\n]*(?:node_modules/|\bnode:|<anonymous>\)$)[^\n{]*\n?", re.MULTILINE)


def mendable(text: str, root: Path | None = None) -> str:
    """Returns a test's message without frames of packages, with paths from `root`; head and tail of a long one."""
    if len(text) > _LOOKED_AT:
        text = text[: _LOOKED_AT // 2] + _GAP + text[-_LOOKED_AT // 2 :]
    text = _NODE.sub("", _PYTHON.sub("", from_root(text, root))).strip()
    if len(text) <= MESSAGE_CAP:
        return text
    # The first lines say what failed, the last ones where.
    half = (MESSAGE_CAP - len(_GAP)) // 2
    return text[:half] + _GAP + text[-half:]


def from_root(text: str, root: Path | None) -> str:
    """Returns `text` with the paths of files below `root` told from there."""
    if root is None or len(root.parts) < 2:
        return text
    text = text.replace(f"file://{root}/", "").replace(f"{root}/", "")
    return re.sub(rf"{re.escape(str(root))}(?![\w.-])", ".", text)
