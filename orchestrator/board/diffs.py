"""Changes of a story, or of one of its tasks, as side-by-side rows with syntax colours."""

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from posixpath import basename
from typing import Any, NamedTuple

from markupsafe import Markup, escape
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Name, Number, String, Token
from rapidfuzz.distance import LCSseq

from orchestrator.core.secrets import REDACTED, redact, secrets_in
from orchestrator.core.value import counted, draw_controls
from orchestrator.git.changed_files import ChangedFile, Hunk

LARGEST = 512 * 1024
"""Bytes of a text that is shown; of a larger file there is the patch."""
MOST_FILES = 300
"""Files of a page: more are counted."""
PAGE_COST, FILE_COST = 750_000, 300_000
"""Characters of HTML, about, that the rows of a page take, and those of one file among several."""
_ROW_COST, _PIECE_COST = 150, 30
MOST_CHARS = 400
"""Of a line."""
CONTEXT = 3
"""Unchanged lines that are shown around a change."""
_BINARY_HEAD = 8000  # as git looks for a NUL byte

Comments = Mapping[str, Sequence[Mapping[str, Any]]]
"""File → the comments on it, each with its `line`, or None."""


def build_files(changed: Sequence[ChangedFile], comments: Comments, *, alone: bool = False) -> list[dict[str, Any]]:
    """Returns the files with their rows, as far as they fit into a page. Blocks.

    `alone`: one file was asked for, and is shown with all its lines.
    """
    left, colours = PAGE_COST, Colours()
    files = []
    for number, one in enumerate(changed[:MOST_FILES], start=1):
        most = left if alone else min(left, FILE_COST)
        file = _File(one, comments.get(one.path, ()), colours)
        rows, cost = file.rows(most, whole=alone)
        left -= cost
        files.append({"anchor": f"file-{number}", **file.summary, "rows": rows, "left_out": file.left_out})
    return files


class _File:
    """One changed file on its way into a page."""

    def __init__(self, changed: ChangedFile, comments: Sequence[Mapping[str, Any]], colours: "Colours") -> None:
        self._changed, self._colours = changed, colours
        self._why = _why_not_shown(changed)
        self._old, self._new = ([], []) if self._why else (_split(changed.old), _split(changed.new))
        last = len(self._new)
        self._comments: dict[int, list[Mapping[str, Any]]] = {}
        for one in comments:
            line = one.get("line")
            self._comments.setdefault(line if line and line <= last else 0, []).append(one)
        self.left_out = 0
        """Rows that did not fit."""

    @property
    def summary(self) -> dict[str, Any]:
        """Returns what stands above the rows."""
        changed = self._changed
        return {
            "path": changed.path,
            "old_path": changed.old_path if changed.old_path != changed.path else "",
            "kind": changed.kind,
            "notes": [*_notes(changed)],
            "added": sum(hunk.new_count for hunk in changed.hunks),
            "removed": sum(hunk.old_count for hunk in changed.hunks),
            "why": self._why,
            "comments": [dict(one) for one in self._comments.get(0, ())],
        }

    def rows(self, most: int, *, whole: bool) -> tuple[list[dict[str, Any]], int]:
        """Returns the rows and about what they cost, at most `most`; `whole`: also what is far from any change."""
        if self._why:
            return [], 0
        pairs = [*_pair(self._changed.hunks, len(self._old), len(self._new))]
        near = self._near(pairs, whole=whole)
        rows: list[dict[str, Any]] = []
        cost = hidden = 0
        for number, pair in enumerate(pairs):
            if not near[number]:
                hidden += 1
                continue
            if cost > most:
                self.left_out += 1
                continue
            if hidden:
                rows.append({"kind": "gap", "text": f"{counted(hidden, 'line')} not changed"})
                hidden = 0
            made = self._row(pair)
            cost += _cost(made)
            rows += [made, *self._comment_rows(pair.new)]
        if hidden and not self.left_out:
            rows.append({"kind": "gap", "text": f"{counted(hidden, 'line')} not changed"})
        return rows, cost

    def _near(self, pairs: Sequence["_Pair"], *, whole: bool) -> list[bool]:
        """Returns which rows are shown: those near a change or a comment."""
        near = [whole] * len(pairs)
        for number, pair in enumerate(pairs):
            if pair.differs or (pair.new is not None and pair.new + 1 in self._comments):
                first = max(0, number - CONTEXT)
                near[first : number + CONTEXT + 1] = [True] * (min(len(pairs), number + CONTEXT + 1) - first)
        return near

    def _row(self, pair: "_Pair") -> dict[str, Any]:
        old = self._old[pair.old] if pair.old is not None else None
        new = self._new[pair.new] if pair.new is not None else None
        kind = "same" if not pair.differs else "changed" if None not in (old, new) else "new" if old is None else "gone"
        words = _changed_words(old, new) if kind == "changed" and old is not None and new is not None else ((), ())
        return {
            "kind": kind,
            "old": _cell(pair.old, old, self._old_pieces, words[0]),
            "new": _cell(pair.new, new, self._new_pieces, words[1]),
        }

    @cached_property
    def _old_pieces(self) -> Sequence["Pieces"]:
        return self._colours.read(self._old, self._changed.old_path)

    @cached_property
    def _new_pieces(self) -> Sequence["Pieces"]:
        return self._colours.read(self._new, self._changed.path)

    def _comment_rows(self, new: int | None) -> Iterator[dict[str, Any]]:
        for number, one in enumerate(self._comments.get(-1 if new is None else new + 1, ())):
            yield {**one, "kind": "comment", "is_first": not number}


def _why_not_shown(changed: ChangedFile) -> str:
    """Returns why the file has no rows; "" when it has some."""
    size = f"{max(1, changed.size // 1024):,} kB"
    if "160000" in {changed.old_mode, changed.new_mode}:
        return "another repository (a submodule)"
    if changed.old is None or changed.new is None:
        return f"too large to be shown here: {size}"
    if any(b"\0" in text[:_BINARY_HEAD] for text in (changed.old, changed.new)):
        return f"binary, {size}"
    if not changed.hunks:
        return "its text is the same" if changed.size else "empty"
    return ""


def _notes(changed: ChangedFile) -> Iterator[str]:
    modes = (changed.old_mode, changed.new_mode)
    if modes[0] != modes[1] and "000000" not in modes:
        yield f"mode {modes[0]} → {modes[1]}"
    texts = (changed.old, changed.new)
    if all(texts) and len({text.endswith(b"\n") for text in texts if text}) == 2:
        yield "a line break at the end was " + ("removed" if changed.old and changed.old.endswith(b"\n") else "added")


def _split(text: bytes | None) -> list[str]:
    """Returns the lines without secrets, with `[U+202E]` in place of what would steer a browser, and `␍` where a line
    ends with a carriage return too."""
    whole = _without_secrets((text or b"").decode("utf-8", "backslashreplace"))
    # One by one: draw_controls leaves a carriage return alone that stands before the end of a line.
    lines = draw_controls(whole.replace("\r\n", "␍\n")).split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def _without_secrets(text: str) -> str:
    """Returns the text with each secret redacted; each line stays where it is."""
    pieces, at = [], 0
    for one in secrets_in(text):
        pieces += [text[at : one.start], REDACTED, "\n" * text.count("\n", one.start, one.end)]
        at = one.end
    whole = "".join((*pieces, text[at:]))
    return "\n".join(redact(line) for line in whole.split("\n"))


class _Pair(NamedTuple):
    """A row: which old line stands beside which new one, counted from 0."""

    old: int | None
    new: int | None
    differs: bool


def _pair(hunks: Iterable[Hunk], old_count: int, new_count: int) -> Iterator[_Pair]:
    old = new = 0
    for hunk in (*hunks, Hunk(old_count, 0, new_count, 0)):
        while old < hunk.old:
            yield _Pair(old, new, False)
            old, new = old + 1, new + 1
        old, new = hunk.old, hunk.new
        for number in range(max(hunk.old_count, hunk.new_count)):
            gone = old + number if number < hunk.old_count else None
            come = new + number if number < hunk.new_count else None
            yield _Pair(gone, come, True)
        old, new = old + hunk.old_count, new + hunk.new_count


def _cell(
    number: int | None, text: str | None, pieces: Sequence["Pieces"], words: Sequence[tuple[int, int]]
) -> dict[str, Any]:
    if number is None or text is None:
        return {}
    shown = text[:MOST_CHARS]
    marks = _join_marks(len(shown), pieces[number] if number < len(pieces) else (), words)
    return {"number": number + 1, "text": shown, "marks": marks, "more": len(text) - len(shown)}


def _cost(row: Mapping[str, Any]) -> int:
    cells = (row["old"], row["new"])
    costs = (len(one["text"]) + _PIECE_COST * (one["marks"].count(" ") + 1) for one in cells if one)
    return _ROW_COST + int(sum(costs))


# A word, or one other sign: what a person sees as changed.
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
_LIKE = 0.4
"""Likeness from which two lines count as one that was changed."""


def _changed_words(old: str, new: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Returns where two lines differ, as ranges of characters; nothing where they have little in common."""
    ours, theirs = _WORDS.findall(old[:MOST_CHARS]), _WORDS.findall(new[:MOST_CHARS])
    if LCSseq.normalized_similarity(ours, theirs) < _LIKE:
        return [], []
    at_old, at_new = ([0, *accumulate(map(len, words))] for words in (ours, theirs))
    gone, come = list[tuple[int, int]](), list[tuple[int, int]]()
    for step in LCSseq.opcodes(ours, theirs):
        if step.tag != "equal":
            gone.append((at_old[step.src_start], at_old[step.src_end]))
            come.append((at_new[step.dest_start], at_new[step.dest_end]))
    return [one for one in gone if one[0] < one[1]], [one for one in come if one[0] < one[1]]


Pieces = Sequence[tuple[str, int]]
"""A line's parts in order: the letter of a colour ("" for none), and how many characters."""


def _join_marks(length: int, pieces: Pieces, words: Sequence[tuple[int, int]]) -> str:
    """Returns colours and changed words as one text, `k6 4 f7+`: a letter, characters, `+` for a changed word.

    One text for a line takes a tenth of the time of a value for each piece, where secrets are looked for in all.
    """
    ends = {min(length, end) for _, end in (*_spans(pieces), *words)} | {min(length, start) for start, _ in words}
    bounds = sorted({0, length, *ends})
    colour_at = [(end, letter) for (letter, _), (_, end) in zip(pieces, _spans(pieces), strict=True)]
    marks, number = [], 0
    for start, end in pairwise(bounds):
        while number < len(colour_at) and colour_at[number][0] <= start:
            number += 1
        letter = colour_at[number][1] if number < len(colour_at) else ""
        changed = any(first <= start < last for first, last in words)
        marks.append(f"{letter}{end - start}{'+' if changed else ''}")
    return " ".join(marks)


def _spans(pieces: Pieces) -> list[tuple[int, int]]:
    ends = [*accumulate(length for _, length in pieces)]
    return [*zip([0, *ends[:-1]], ends, strict=True)] if ends else []


_MARK = re.compile(r"([a-z]?)(\d+)(\+?)")


def mark_code(text: str, marks: str) -> Markup:
    """Returns a line as HTML, escaped, with its colours and changed words; the filter `code` of the templates."""
    parts, at = [], 0
    for letter, length, changed in _MARK.findall(marks):
        piece = escape(text[at : at + int(length)])
        at += int(length)
        inner = Markup('<i class="{}">{}</i>').format(letter, piece) if letter else piece
        parts.append(Markup("<mark>{}</mark>").format(inner) if changed else inner)
    return Markup("").join([*parts, escape(text[at:])])


LETTERS: Mapping[str, Sequence[Any]] = {
    "c": (Comment,),
    "s": (String,),
    "n": (Number,),
    "k": (Keyword, Token.Operator.Word),
    "t": (Name.Tag, Name.Attribute, Name.Decorator),
    "b": (Name.Builtin, Name.Constant, Name.Exception, Token.Literal),
    "f": (Name.Function, Name.Class, Token.Generic.Heading),
}
"""The letter of a colour, a class in code.css → the tokens that have it."""
# Well-kept lexers alone: a hostile file chooses its name.
_LEXERS = {
    "py": "python", "pyi": "python", "js": "javascript", "mjs": "javascript", "cjs": "javascript", "jsx": "javascript",
    "ts": "typescript", "tsx": "typescript", "mts": "typescript", "cts": "typescript", "json": "json", "html": "html",
    "htm": "html", "css": "css", "scss": "scss", "md": "markdown", "yaml": "yaml", "yml": "yaml", "toml": "toml",
    "ini": "ini", "cfg": "ini", "sh": "bash", "bash": "bash", "sql": "sql", "go": "go", "rs": "rust", "java": "java",
    "c": "c", "h": "c", "cc": "cpp", "cpp": "cpp", "hpp": "cpp", "rb": "ruby", "php": "php", "xml": "xml", "svg": "xml",
    "kt": "kotlin", "cs": "csharp", "dockerfile": "docker", "makefile": "make",
}  # fmt: skip
_MOST_COLOURED = 150_000
"""Characters of a text that is coloured."""
_LONGEST_COLOURED = 2_000
"""Characters of a line in such a text: longer ones are data, or made to take long."""
_COLOURS_S = 1.0
"""Time that colours of a page may take: the others go without."""


class Colours:
    """The colours of the texts of one page."""

    def __init__(self, seconds: float = _COLOURS_S) -> None:
        self._until = time.monotonic() + seconds

    def read(self, lines: Sequence[str], path: str) -> list[Pieces]:
        """Returns the pieces of each line of a text; of fewer lines, or of none, where it is not coloured."""
        lexer = _LEXERS.get(basename(path).lower().rpartition(".")[2])
        text = "\n".join(lines)
        if lexer is None or len(text) > _MOST_COLOURED or max(map(len, lines), default=0) > _LONGEST_COLOURED:
            return []
        found: list[list[tuple[str, int]]] = [[]]
        # Lazy, so that what takes too long is cut short between two tokens.
        for _, kind, value in get_lexer_by_name(lexer).get_tokens_unprocessed(text):
            if time.monotonic() > self._until:
                break
            for number, part in enumerate(value.split("\n")):
                if number:
                    found.append([])
                if part:
                    _add(found[-1], _letter(kind), len(part))
        return [*found]


def _add(pieces: list[tuple[str, int]], letter: str, length: int) -> None:
    if pieces and pieces[-1][0] == letter:
        length += pieces.pop()[1]
    pieces.append((letter, length))


@lru_cache
def _letter(kind: Any) -> str:
    return next((letter for letter, kinds in LETTERS.items() if any(kind in one for one in kinds)), "")
