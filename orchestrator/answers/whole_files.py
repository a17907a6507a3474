"""Whole files as models write them unasked: a line with a path and a code block each, or one block for the one file.

Only what can be meant in one way is read. A text with FIND and REPLACE, a diff, an action that is no file, or two
texts for one path is read by nobody here; whether a block is a file or shows a part of one is for who knows the file.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from posixpath import splitext
from typing import Any, NamedTuple

from orchestrator.answers.action_plan import without_thoughts
from orchestrator.answers.action_plan_actions import NUMBER, action_heading, mark_of
from orchestrator.answers.markdown import (
    Block,
    TooManyBlocks,
    blocks_of,
    field_of,
    lines_of,
    looks_like_path,
    pieces_of,
    source_of,
)
from orchestrator.answers.paths import path_in_info, path_of, rooted
from orchestrator.answers.result import Change, Extraction, Status, text_place
from orchestrator.core.action_plan import Verb
from orchestrator.core.finding import blocking, major

LAYER = "whole_files"
"""Layer of an extraction that was read so, and the key of its value that says it."""
_PATH_KEYS = frozenset({"file path", "filepath", "path", "file", "filename", "file name"})
_FILE_VERBS = frozenset({Verb.CREATE, Verb.EDIT})
_EDITED = re.compile(r"^(?:<{5,9} ?(?:SEARCH|ORIGINAL|HEAD)\b|>{5,9} ?(?:REPLACE|UPDATED)\b|@@ -\d)", re.MULTILINE)
_FIRST_COMMENT = re.compile(
    r"\s*(?:#|//|--|/\*|<!--)[ \t]*(?:file(?:name|path)?:[ \t]*)?(\S+?)[ \t]*(?:\*/|-->)?[ \t]*\n", re.I
)
_BAR_LINE = re.compile(r"^ {0,3}(`{3,}+|~{3,}+)", re.MULTILINE)
_MARKDOWN = frozenset({".md", ".mdx", ".markdown"})
_SHELL = frozenset({".sh", ".bash", ""})
_TEXT = frozenset({".txt", ".md", ".rst", ".cfg", ".ini", ".in", ".csv", ".env", ""})
_SUFFIXES = {
    **dict.fromkeys(("python", "py", "python3"), frozenset({".py", ".pyi"})),
    **dict.fromkeys(("javascript", "js", "jsx", "mjs"), frozenset({".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx"})),
    **dict.fromkeys(("typescript", "ts", "tsx"), frozenset({".ts", ".tsx", ".mts", ".cts"})),
    **dict.fromkeys(("bash", "sh", "shell", "zsh", "console", "shell-session", "powershell"), _SHELL),
    **dict.fromkeys(("text", "txt", "plaintext", "output"), _TEXT),
    "json": frozenset({".json", ".jsonc", ".webmanifest"}), "html": frozenset({".html", ".htm", ".j2", ".jinja2"}),
    "css": frozenset({".css"}), "sql": frozenset({".sql"}), "toml": frozenset({".toml"}),
    **dict.fromkeys(("yaml", "yml"), frozenset({".yaml", ".yml"})),
    **dict.fromkeys(("markdown", "md"), _MARKDOWN),
}  # fmt: skip
"""What stands behind a block's bar → suffixes of the files that it may be."""


class Wanted(NamedTuple):
    """The files that are asked for."""

    paths: tuple[str, ...]
    fits: Callable[[str, str], bool]
    """(path, text) → whether a block whose path is only spoken of, or that has none, can be that file as a whole."""


class _Labelled(NamedTuple):
    block: Block
    path: str
    """"" without one."""
    sure: bool
    """Whether the path stands by itself on its line, or behind the bar."""


def read_whole_files(text: str, wanted: Wanted, *, asked: bool = False) -> Extraction | None:
    """Returns the files in a text, None where there are none that could only be meant so. Never raises; linear.

    The value is `{"files": [{"path", "content"}], "whole_files": true}`; truncated when the last block is never closed.
    With `asked`, this is the form that was asked for, and reading it is no repair.
    """
    source = source_of(text)
    if blocking(source.findings) or source.text.lstrip()[:1] == "{":
        return None
    try:
        blocks = without_thoughts(blocks_of(source.text, source.first_line))
    except TooManyBlocks:
        return None
    if any(_changes_parts(block) for block in blocks):
        return None
    found = _labelled(blocks, wanted)
    files = _files(found, wanted) if found is not None else None
    if not files:
        return None
    cut = not blocks[-1].closed if blocks[-1].kind == "fence" else False
    whole = {path: block for path, block in files.items() if block.closed}
    if not whole or any(not one.block.closed and one.block is not blocks[-1] for one in found or ()):
        return None
    starts = list(accumulate(map(len, text.split("\n")), lambda at, length: at + length + 1, initial=0))
    first = starts[min(next(iter(whole.values())).line - 1, len(starts) - 1)]
    value: dict[str, Any] = {"files": [{"path": path, "content": block.text} for path, block in whole.items()]}
    fix = "Send what is missing; what came whole was kept."
    lost = major("answer.truncated", "The last code block is never closed.", where=text_place(text, len(text)), fix=fix)
    return Extraction(
        value={**value, LAYER: True},
        status=Status.TRUNCATED if cut else Status.OK if asked else Status.REPAIRED,
        layer=LAYER,
        repairs=() if asked else (Change(LAYER, first, "", ""),),
        complete=not cut,
        candidates=len(found or ()),
        problems=(lost,) if cut else (),
    )


def is_whole_files(value: object) -> bool:
    """Returns whether an extracted value was read so."""
    return isinstance(value, dict) and LAYER in value


def _changes_parts(block: Block) -> bool:
    """Returns whether a block belongs to a form that changes parts of files, or does something else with them."""
    if block.kind == "fence":
        return block.info.split(" ")[0].casefold() in {"diff", "patch", "udiff"} or bool(_EDITED.search(block.text))
    if block.kind in {"heading", "paragraph", "item"} and mark_of(block.text) is not None:
        return True
    heading = action_heading(block.text) if block.kind == "heading" else None
    return heading is not None and heading.verb not in _FILE_VERBS | {Verb.READ, Verb.PRUNE}


def _labelled(blocks: Sequence[Block], wanted: Wanted) -> list[_Labelled] | None:
    """Returns every code block with the path that belongs to it; None when a Markdown file may end too early."""
    found: list[_Labelled] = []
    before: list[Block] = []
    for at, block in enumerate(blocks):
        if block.kind != "fence":
            before.append(block)
            continue
        bars = (bar[1] for bar in _BAR_LINE.finditer(block.text) if bar[1][0] == block.mark[0])
        if not block.exact or any(len(bar) >= len(block.mark) for bar in bars):
            return None  # it may end where it was not meant to
        path, sure = _label(before, block, wanted.paths)
        if path and not _may_hold(block, path):
            path, sure = "", False
        if splitext(path)[1].lower() in _MARKDOWN and len(block.mark) < 4 and at + 1 < len(blocks):
            return None  # a bar inside may have closed it
        found.append(_Labelled(block, path, sure))
        before = []
    return found


def _may_hold(block: Block, path: str) -> bool:
    suffixes = _SUFFIXES.get(block.info.split(" ")[0].split(":")[0].casefold())
    return suffixes is None or splitext(path)[1].lower() in suffixes


def _label(before: Sequence[Block], block: Block, wanted: Sequence[str]) -> tuple[str, bool]:
    """Returns the path of a block, and whether it can be no other file's."""
    inside = path_in_info(block)
    if inside and re.search(r"[A-Za-z]", splitext(inside)[1] or inside):
        return inside, True
    for one in reversed(before):
        if one.kind == "rule":
            continue
        path, sure = _path_line(one, wanted)
        if path:
            return path, sure
        if one.kind == "heading" and action_heading(one.text) is not None:
            break
        if one.kind != "item" or field_of(one.text, one.line) is None:  # a bullet of an action says more of it
            break
    comment = _FIRST_COMMENT.match(block.text)
    path = rooted(comment[1]) if comment is not None else ""
    return (path, False) if path in wanted else ("", False)


def _path_line(block: Block, wanted: Sequence[str]) -> tuple[str, bool]:
    if block.kind not in {"heading", "paragraph", "item"}:
        return "", False
    for text, line in reversed(lines_of(block)):
        field = field_of(text, line)
        is_path = field is not None and " ".join(field.key.split()).casefold() in _PATH_KEYS
        path = _alone(field.raw if field is not None and is_path else text, wanted)
        if path:
            return path, True
    heading = action_heading(block.text) if block.kind == "heading" else None
    if heading is not None and heading.rest:
        return heading.rest, True
    spoken = set(_spoken(block.text)) & set(wanted)
    return (spoken.pop(), False) if len(spoken) == 1 else ("", False)


def _alone(text: str, wanted: Sequence[str]) -> str:
    """Returns the path that is all a line says, "" for any other line."""
    said = NUMBER.sub("", text.strip().strip("#").strip(" *_"), count=1).rstrip(" :*_#").strip()
    said = re.sub(r"\s*\((?:new|new file|created?|updated?|modified)\)$", "", said, flags=re.IGNORECASE)
    found = path_of(said) if said else None
    if found is None or found.problem or not found.path or " " in found.path:
        return ""
    known = found.path in wanted
    return found.path if known or (looks_like_path(found.path) and not found.path[-1].isdigit()) else ""


def _spoken(text: str) -> Iterator[str]:
    """Yields the words of a sentence that may be paths."""
    for piece in pieces_of(text.replace("\n", " ")):
        for word in piece.text.split():
            yield rooted(word.strip("\"'`*_,;:()[]!?").rstrip("."))


def _files(found: Sequence[_Labelled], wanted: Wanted) -> dict[str, Block] | None:
    """Returns path → block; None where two texts are given for one path, or several blocks could be the one file."""
    files: dict[str, Block] = {}
    for one in found:
        if not one.path or not one.block.text.strip() or not (one.sure or wanted.fits(one.path, one.block.text)):
            continue
        if files.setdefault(one.path, one.block).text != one.block.text:
            return None
    if len(wanted.paths) != 1 or wanted.paths[0] in files:
        return files
    (path,) = wanted.paths
    fitting = {
        one.block.text: one.block
        for one in found
        if not one.path and _may_hold(one.block, path) and wanted.fits(path, one.block.text)
    }
    if len(fitting) > 1:
        return None
    only = next(iter(fitting.values()), None)
    return files if only is None else {**files, path: only}
