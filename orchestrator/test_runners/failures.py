"""A failed test's message as a person would tell it: the project's own frames, the error, its values; the rest folded.

Frameworks call a project through dozens of frames of their own, and a long traceback loses its middle to a cap: what
could be mended was often just there.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

MESSAGE_CAP = 4000
"""Characters of one case's failure text."""
_LOOKED_AT = 200_000
"""Characters of it that are looked at: a test may say megabytes."""
_GAP = "\n[...]\n"
LIBRARY = "(library) "
"""Before the path of a file that is none of the project's."""
_SOURCE_LINES = 12
"""Lines of a function's source before the one that failed."""
# Possessive: a megabyte without a space is looked at once.
_WORD = re.compile(r"[^\s\"'()<>=,;\[\]]{12,}+")
_STANDARD = re.compile(r"/lib/python3\.\d+/")
_INNER = re.compile(r"<(?:frozen|sqlalchemy generated|string|attrs generated|decorator-gen)\b|<__array_function__")
# What a sandbox keeps from a test is told by the path itself.
_CLOSED = re.compile(r"Permission denied|Read-only file system|\bEACCES\b|\bEROFS\b")
# pytest: `shop/main.py:10: in create` above its line of source, and `shop/main.py:19: KeyError` below a function's.
_SHORT = re.compile(r"^(\S.*?):\d+: in \S.*$")
_LONG = re.compile(r"^(\S.*?):\d+: ?([A-Za-z_][\w.]*)?$")
_BAR = re.compile(r"^(?:_ ){5,}_? *$")
_ERROR = re.compile(r"^E(?:\s{2,}|$)")
_CHAINED = re.compile(r"^(?:During handling of the above exception|The above exception was the direct cause)")
_MORE = re.compile(r"\[\+\d+ more lines?; full report in element text\]")
# Python's own traceback, as unittest prints it.
_FILE = re.compile(r'^\s*File "([^"]+)", line \d+')
# JavaScript's stack.
_AT = re.compile(r"^\s*at \S")
_OF_NODE = re.compile(r"node_modules/|\bnode:|\(<anonymous>\)|\bnew Promise\b|\binternal/|\[native code\]")
_RULE = re.compile(r"^-{3,}$")


def mendable(text: str, root: Path | None = None) -> str:
    """Returns a test's message with the project's frames, each once, libraries' folded, and every path from `root`.

    What an error says stays whole as far as the cap allows. The same failure gives the same text in every folder.
    """
    if len(text) > _LOOKED_AT:
        text = text[: _LOOKED_AT // 2] + _GAP + text[-_LOOKED_AT // 2 :]
    lines = _relative(text, root).strip("\n").split("\n")
    if any(_AT.match(line) for line in lines):
        told = _stack(lines)
    elif any(_FILE.match(line) for line in lines):
        told = _traceback(lines)
    elif any(_LONG.match(line) or _SHORT.match(line) for line in lines):
        told = _by_pytest(lines)
    else:
        told = lines
    return shortened("\n".join(told).strip())


def shortened(text: str) -> str:
    """Head and tail: the first lines say what failed, the last ones where."""
    if len(text) <= MESSAGE_CAP:
        return text
    half = (MESSAGE_CAP - len(_GAP)) // 2
    return text[:half] + _GAP + text[-half:]


def is_own(path: str) -> bool:
    """Returns whether a frame's path is one of the project's."""
    outside = path.startswith((LIBRARY, "/", "../", "<")) or _INNER.match(path)
    return not outside and "node_modules/" not in path


def from_root(text: str, root: Path | None) -> str:
    """Returns `text` with the paths of files below `root` told from there."""
    if root is None or len(root.parts) < 2:
        return text
    text = text.replace(f"file://{root}/", "").replace(f"{root}/", "")
    return re.sub(rf"{re.escape(str(root))}(?![\w.-])", ".", text)


def _relative(text: str, root: Path | None) -> str:
    lines = from_root(text, root).split("\n")
    return "\n".join(line if _CLOSED.search(line) else _WORD.sub(lambda word: _path(word[0]), line) for line in lines)


def _path(word: str) -> str:
    """Returns a library's path from the folder that holds libraries; any other word as it is."""
    for folder in ("site-packages/", "dist-packages/"):
        if folder in word:
            return LIBRARY + word.rpartition(folder)[2]
    if (standard := _STANDARD.search(word)) is not None:
        return LIBRARY + word[standard.end() :]
    absolute = word.startswith(("/", "file:")) and "/node_modules/" in word
    return word[word.index("node_modules/") :] if absolute else word


class _Frame(NamedTuple):
    """One entry of a traceback."""

    path: str
    lines: Sequence[str]
    errors: Sequence[str] = ()
    """Lines that say what was raised."""
    end: str = ""
    """The line that names the place, below the function's source."""


def _frames(lines: Sequence[str]) -> Iterator[_Frame | str]:
    """Yields pytest's entries in order; lines between them as text."""
    held, entry, at = list[str](), False, 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if _BAR.match(line) or _CHAINED.match(line):
            yield from held
            held, entry = [], False
        elif (short := _SHORT.match(line)) is not None:
            yield from held
            held, entry, own = [], False, [line]
            while at < len(lines) and lines[at].startswith("    "):
                own.append(lines[at])
                at += 1
            yield _Frame(short[1], own)
        elif (long := _LONG.match(line)) is not None and entry:
            errors = [one for one in held if _ERROR.match(one)]
            yield _Frame(long[1], [one for one in held if not _ERROR.match(one)], errors, line)
            held, entry = [], False
        else:
            held.append(line)
            entry = entry or line.startswith(">") or _ERROR.match(line) is not None
    yield from held


def _by_pytest(lines: Sequence[str]) -> list[str]:
    """The words before, own frames, one line for the others, and at last what was raised in them."""
    said = {_bare(line) for line in lines if _ERROR.match(line)} - {""}
    # pytest repeats in an attribute what the error's lines say, or their beginning.
    start = next((at for at, line in enumerate(lines) if not _is_said(line.strip(), said)), 0)
    own, before, errors, folded = dict[str, None](), list[str](), list[str](), dict[str, None]()
    for one in _frames(lines[start:]):
        if isinstance(one, str):
            (errors if _ERROR.match(one) else before).append(one)
        elif is_own(one.path):
            own["\n".join([*_function(one.lines), *one.errors, *([one.end] if one.end else [])])] = None
        else:
            folded[_package(one.path)] = None
            errors += [*one.errors, *([one.end] if one.errors else [])]
    between = [_folded([*folded])] if folded else []
    # An error that another one wraps repeats it.
    return [*(line for line in before if line.strip()), *own, *between, *dict.fromkeys(errors)]


def _is_said(line: str, said: Collection[str]) -> bool:
    begins = line.endswith("...") and any(one.startswith(line[:-3]) for one in said)
    return not line or line in said or begins or _MORE.fullmatch(line) is not None


def _bare(line: str) -> str:
    return _ERROR.sub("", line).strip()


def _function(lines: Sequence[str]) -> list[str]:
    """The arguments, and of the source the lines before the one that failed."""
    if not lines or _SHORT.match(lines[0]):
        return list(lines)
    failed = next((at for at, line in enumerate(lines) if line.startswith(">")), len(lines))
    start = next((at for at, line in enumerate(lines) if re.match(r"\s*(?:async )?def |\s*@", line)), failed)
    cut = max(start + 1, failed - _SOURCE_LINES)
    gap = ["    [...]"] if cut > start + 1 else []
    return [line for line in (*lines[: start + 1], *gap, *lines[cut:]) if line.strip()]


def _package(path: str) -> str:
    return path.removeprefix(LIBRARY).partition("/")[0].removesuffix(".py").lstrip("<").split(" ")[0] or path


def _folded(named: Sequence[str]) -> str:
    return f"[frames inside {', '.join(named[:6])}{' and others' if len(named) > 6 else ''}]"


def _traceback(lines: Sequence[str]) -> list[str]:
    """Python's own traceback without the frames of libraries."""
    told, folding, folded = list[str](), False, False
    for line in lines:
        if (found := _FILE.match(line)) is not None:
            folding = not is_own(found[1])
        elif folding and not line.startswith("    "):
            folding = False
        if not folding:
            told.append(line)
        elif not folded:
            folded = True
            told.append("  [frames of libraries]")
    return told


def _stack(lines: Sequence[str]) -> list[str]:
    """JavaScript's error without the frames of packages and of Node, as long as any of the project's is there."""
    frames = [line for line in lines if _AT.match(line)]
    own = {line for line in frames if not _OF_NODE.search(line)}
    if not own:
        # Where nothing of the project's was called, the first ones say what was tried.
        kept = set(frames[:2])
        return [line for line in lines if not _AT.match(line) or line in kept]
    told = list[str]()
    for line in lines:
        if not _AT.match(line):
            told += [] if _RULE.match(line) else [line]
        elif line in own:
            own.remove(line)
            told.append(line)
        elif line.endswith(" {"):  # the last frame opens the error's fields
            told.append("    {")
    return told
