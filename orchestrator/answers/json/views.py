"""A text seen without one layer of packaging: entities, an encoding as a string, marks before its lines, a seam."""

import html
import re
from collections.abc import Callable, Iterator

from orchestrator.answers.json import frames
from orchestrator.answers.json.code import PATH_OF
from orchestrator.answers.json.shape import RESUMED, Shape, may_resume, overlap
from orchestrator.answers.result import Change, Decoded, excerpt, pieced

View = Callable[[str, Shape], Decoded | None]
Asked = Callable[[int], bool]
"""Whether what begins at an offset may be decoded: asked before the work is done."""
MIN_OVERLAP = 12
"""Repeated characters, blanks aside, that show where two chunks of an answer belong together."""

_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")
# JSON that was escaped for HTML.
_ENTITY_JSON = re.compile(r"[{\[](?:\s|&nbsp;)*+(?:[{\[]\s*+)?&(?:quot|\#0?34|\#[xX]22);")
_STRING_JSON = re.compile(r'[{\[](?:\s|\\++[nrt])*+(?:[{\[](?:\s|\\++[nrt])*+)?\\++"')  # JSON inside a JSON string
_CODE_BEFORE = re.compile(rf"""["'](?:{"|".join(PATH_OF)})["']\s*:\s*["'][^\n]{{0,400}}$""")
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
# Key and quotes as a CSV cell writes them; possessive, so that a run of quotes is passed in one go.
_DOUBLED = re.compile(r'[{\[]\s*+(?:[{\[]\s*+)?""[\w.$ -]{1,100}""\s*+[:,\]]')
_MARKS = (
    re.compile(r"[ \t]*+(\d{1,6})(?:[ \t]*+[|│→]|[:.)\]](?=[ \t\n]|\Z)|(?=[ \t\n])|\Z)[ \t]?"),
    re.compile(r"\+"),
    re.compile(r"[ \t]*+>[ \t]?"),
    re.compile(r"[ \t]*+(?://|\#|\*|\|)[ \t]?"),
)
"""What may stand before every line of a quoted text: a line number, a diff's plus, a quotation or comment mark."""
_MARKED = tuple(re.compile(rf"\n(?:{marks.pattern})\s*+[{{\[]") for marks in _MARKS)
"""A line whose mark has a bracket behind it: looked for first, because most texts have none."""
_OPENED = re.compile(r"(?<!\[)(?<!\[\s)\{\s*\Z")
"""An object begins right here; as the item of a list it may be looked at by itself."""
_LINE = re.compile(r"[^\n]*+(?:\n|\Z)")
_REOPENED = re.compile(r"\n(?:```|~~~)[^\n]*\n[^{}\[\]`~]{0,400}\n(?:```|~~~)[^\n]*\n")
_SEAM = re.compile(rf"{_REOPENED.pattern}|{RESUMED.pattern}(?:\s*(?:```|~~~)[^\n]*\n)?\n*", re.IGNORECASE)
"""Where an answer was broken off and went on: two fences with words between them, or a line that says so."""


_HUNK = re.compile(r"(?m)^@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@.*\n")
_DIFF_FENCE = re.compile(r"(?m)^(?:```|~~~)diff[ \t]*\n")


def _always(offset: int) -> bool:
    return True


def without_entities(text: str, shape: Shape, asked: Asked = _always) -> Decoded | None:
    """Returns the text with its HTML entities decoded once, when its JSON is written with them; else None."""
    first = _ENTITY_JSON.search(text) if "&quot;" in text or "&#" in text else None
    if first is None or not asked(first.start()):
        return None
    meant = {entity: html.unescape(entity) for entity in set(_ENTITY.findall(text))}
    changed = ((match.start(), match.end(), meant[match.group()]) for match in _ENTITY.finditer(text))
    return _replaced(text, changed, Change("html_entities", first.start(), "&quot;", '"'))


def without_string(text: str, shape: Shape, asked: Asked = _always) -> Decoded | None:
    """Returns the text inside the first string literal that holds JSON, decoded once; None without one."""
    first = _STRING_JSON.search(text) if '\\"' in text else None
    if first is None or _CODE_BEFORE.search(text, max(0, first.start() - 500), first.start()):
        return None
    start = first.start()
    if not asked(start):
        return None
    end = frames.string_end(text, start, '"')
    end = len(text) if end < 0 else end
    pieces: list[tuple[str, int]] = []
    at = start
    for match in _ESCAPE.finditer(text, start, end):
        begin, after = match.span()
        pieces += ((text[at:begin], at), (_meaning(match.group()), begin))
        at = after
    pieces.append((text[at:end], at))
    once = pieced(pieces, Change("double_encoded", start, text[start : start + 20], "JSON"))
    # Three backslashes before the first quote: it was encoded twice.
    twice = without_string(once.text, shape) if first.group().endswith('\\\\\\"') else None
    return once if twice is None else twice._replace(change=once.change, original=_chained(once, twice))


def without_doubled_quotes(text: str, shape: Shape, asked: Asked = _always) -> Decoded | None:
    """Returns the text with each pair of quotes as one, as a cell of a CSV file writes them; None without such JSON."""
    first = _DOUBLED.search(text) if '""' in text else None
    if first is None or not asked(first.start()):
        return None
    changed = ((match.start(), match.end(), '"') for match in re.finditer('""', text))
    return _replaced(text, changed, Change("doubled_quotes", first.start(), '""', '"'))


def hunks(text: str) -> list[re.Match[str]]:
    """Returns what opens each hunk of a diff in which the answer stands; empty when no diff is around it."""
    found = list(_HUNK.finditer(text)) if "\n@@ -" in f"\n{text}" else []
    found = found or (list(_DIFF_FENCE.finditer(text)) if "diff" in text else [])
    return [] if not found or "{" in text[: found[0].start()] or text[found[0].end() :][:1] not in "+- " else found


def new_side(text: str, hunk: re.Match[str]) -> Decoded:
    """Returns the text as a diff leaves it: without the lines its hunk takes away, and without its marks."""
    cuts: list[tuple[int, int, str]] = []
    for line in _LINE.finditer(text, hunk.end()):
        start, end = line.span()
        if text[start:end].strip() and text[start] not in "+- \\":
            break
        cuts.append((start, end if text[start : start + 1] in "-\\" else min(start + 1, end), ""))
    return _replaced(text, iter(cuts), Change("diff_marks", hunk.start(), excerpt(hunk.group().strip()), ""))


def without_marks(text: str, shape: Shape) -> Decoded | None:
    """The text without the marks before consecutive lines, where these lines hold a bracket; None without such."""
    behind_end = f"\n{text}"
    for marks, marked in zip(_MARKS, _MARKED, strict=True):
        if marked.search(behind_end) is None:
            continue
        cuts = [cut for run in _runs(_LINE.finditer(text), marks) for cut in run]
        if cuts:
            start, end, _ = cuts[0]
            return _replaced(text, iter(cuts), Change("line_marks", start, text[start:end], ""))
    return None


def overlapping_chunks(text: str, shape: Shape) -> Decoded | None:
    """The text with its chunks put together, when each later one repeats words of an earlier one's end; else None."""
    return _joined(text, ())


def joined_chunks(text: str, shape: Shape) -> Decoded | None:
    """Returns the text with its chunks put together: what a later one repeats of an earlier one's end counts once.

    None without a seam, and where nothing is repeated although the cut may lie inside a string.
    """
    return _joined(text, ("}", ",", "[", "]", "{"))


def _joined(text: str, safe: tuple[str, ...]) -> Decoded | None:
    """See joined_chunks; `safe` are ends of a chunk at which no string is cut."""
    resumed = may_resume(text)
    if not resumed and "\n```" not in text and "\n~~~" not in text:
        return None
    pieces: list[tuple[str, int]] = []
    at, first = 0, None
    for seam in (_SEAM if resumed else _REOPENED).finditer(text):
        chunk = re.sub(r"\n(?:(?:```|~~~)\s*)?\Z", "", text[at : seam.start()].rstrip("\n"))
        repeated = overlap(chunk, text[seam.end() : seam.end() + 4000])
        told = len("".join(text[seam.end() : seam.end() + repeated].split()))
        # A word may repeat by chance, a dozen characters do not.
        if told < MIN_OVERLAP and not (safe and chunk.rstrip().endswith(safe)):
            continue
        pieces.append((chunk, at))
        at = seam.end() + repeated
        first = first or seam
    if first is None:
        return None
    pieces.append((text[at:], at))
    return pieced(pieces, Change("joined_chunks", first.start(), excerpt(first.group()), ""))


def with_opener(text: str, shape: Shape) -> Decoded | None:
    """The text with a brace before the first key that the contract requires, when its object was never opened."""
    names = "|".join(re.escape(name) for name in sorted(shape.required_names))
    first = re.search(rf"(?m)^[ \t]*[\"'](?:{names})[\"']\s*:", text) if names else None
    if first is None or _OPENED.search(text, max(0, first.start() - 400), first.start()):
        return None
    at = first.start()
    change = Change("missing_opener", at, "", "{")
    return pieced([(text[:at], 0), ("{", at), (text[at:], at)], change)


ENCODINGS = (without_entities, without_string, without_doubled_quotes)
"""Views in which an answer appears that was written in another encoding, in the order they are tried."""
LAYOUTS: tuple[View, ...] = (without_marks, joined_chunks, with_opener)
"""Views that put an answer together whose lines or pieces stand apart, in the order they are tried."""


def _replaced(text: str, changed: Iterator[tuple[int, int, str]], change: Change) -> Decoded:
    """Returns the text with each `(start, end, meant)` replaced."""
    pieces: list[tuple[str, int]] = []
    at = 0
    for start, end, meant in changed:
        pieces += [(text[at:start], at), (meant, start)]
        at = end
    pieces.append((text[at:], at))
    return pieced(pieces, change)


def _chained(outer: Decoded, inner: Decoded) -> Callable[[int], int]:
    return lambda offset: outer.original(inner.original(offset))


def _runs(lines: Iterator[re.Match[str]], marks: re.Pattern[str]) -> Iterator[list[tuple[int, int, str]]]:
    """Yields what to cut from each run of two or more marked lines that holds a bracket; numbers must count up."""
    run: list[tuple[int, int, str]] = []
    bracket, number = False, -1
    for line in lines:
        mark = marks.match(line.string, line.start(), line.end())
        counted = int(mark[1]) if mark is not None and mark.re.groups else -1
        # Line numbers that do not count up are data.
        if mark is None or (run and number >= 0 and counted != number + 1):
            if len(run) > 1 and bracket:
                yield run
            run, bracket = [], False
        if mark is not None:
            run.append((line.start(), mark.end(), ""))
            bracket = bracket or line.string[mark.end() : mark.end() + 40].lstrip()[:1] in ("{", "[")
            number = counted
    if len(run) > 1 and bracket:
        yield run


def _meaning(escape: str) -> str:
    if len(escape) > 2:
        return chr(int(escape[2:], 16))
    return _LETTERS.get(escape[1], escape[1])
