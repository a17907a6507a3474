"""The base of all values, and the small texts that they are made of: counts, titles, acceptance criteria."""

import ast
import html
import inspect
import json
import re
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from functools import wraps
from itertools import pairwise
from textwrap import dedent
from threading import Lock
from typing import Any, ParamSpec, TypeVar

from pydantic import BaseModel, ConfigDict
from rapidfuzz import fuzz, process

P = ParamSpec("P")
T = TypeVar("T")


class Value(BaseModel):
    """A frozen value: built by keyword, compared by content, safe to log, store and replay."""

    # A validator is built when it is used first: short commands import many models and use few.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> dict[str, Any]:
        """Describes the fields by the docstrings below them.

        These are read when a schema is made: pydantic's `use_attribute_docstrings` reads and parses the source of every
        class on import, which was a third of the time of a short command.
        """
        schema: dict[str, Any] = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for model in cls.__mro__[: cls.__mro__.index(Value)]:
            for name, text in _field_docstrings(model).items():
                if name in properties:
                    properties[name].setdefault("description", text)
        return schema


def _field_docstrings(model: type) -> dict[str, str]:
    """Returns field → the docstring below it in the source of the class."""
    body = ast.parse(dedent(inspect.getsource(model))).body[0].body  # type: ignore[attr-defined]  # the class
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


class AnswerValue(BaseModel):
    """A value that a persona writes: unknown extra keys are tolerated (they stay in the kept reply)."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


def counted(count: int, thing: str, things: str = "") -> str:
    """`1 task`, `2 tasks`; `things` for a plural that is not made with an s."""
    return f"{count} {thing if count == 1 else things or f'{thing}s'}"


def told_calls(calls: int, looks: int) -> str:
    """`1 call`, `12 calls, 2 of them looks`."""
    return counted(calls, "call") + (f", {looks} of them {'a look' if looks == 1 else 'looks'}" if looks else "")


def listed(names: Collection[str], most: int) -> str:
    """Returns the first `most` names for people, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join([*names][:most]) + more


def each_once(values: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the different ones of these JSON objects, in order."""
    return [*{json.dumps(one, sort_keys=True): one for one in reversed([*values])}.values()][::-1]


LIKE = 60
"""Per cent of likeness below which nobody can have meant the other name."""


def suggest(name: str, known: Iterable[str]) -> str:
    """Returns `; did you mean X?` for the most similar of the known names, "" when none is similar."""
    found = process.extractOne(name, sorted(known), scorer=fuzz.ratio, processor=str.casefold, score_cutoff=LIKE)
    return f"; did you mean {found[0]}?" if found else ""


def shortened(text: str, most: int = 80) -> str:
    """Returns the text on one line of at most `most` characters and an ellipsis."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most]}…"


def cut_at_word(text: str, most: int) -> str:
    """Returns the text on one line, and of a longer one what fits up to the end of a word, with an ellipsis."""
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    head, blank, _ = line[:most].rpartition(" ")
    return f"{head.rstrip(' ,;:') if blank else line[: most - 1]} …"


def squeezed(text: str) -> str:
    """Returns the text without any blanks: equal ones differ in their layout only."""
    return "".join(text.split())


CACHED_CHARS = 32_000_000
"""Characters of texts that one cache holds: the sources of a few projects."""


def remembered(most: int, chars: int = CACHED_CHARS) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Returns a cache for functions of texts: at most `most` results, for texts of at most `chars` characters in all.

    Those used last stay. A text that is longer than a quarter of that is not kept: it would take the place of all.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        held: OrderedDict[tuple[object, ...], tuple[T, int]] = OrderedDict()
        lock, room = Lock(), [chars]

        @wraps(function)
        def cached(*args: P.args, **kwargs: P.kwargs) -> T:
            key = (*args, *kwargs.items())
            with lock:
                if key in held:
                    held.move_to_end(key)
                    return held[key][0]
            result = function(*args, **kwargs)
            size = sum(len(one) for one in key if isinstance(one, str))
            if size <= chars // 4:
                with lock:
                    if key not in held:
                        held[key] = (result, size)
                        room[0] -= size
                    while room[0] < 0 or len(held) > most:
                        room[0] += held.popitem(last=False)[1][1]
            return result

        return cached

    return decorate


ENDLESS = 16_000
"""Characters at the end of a text that are one piece over and over where it is taken to have no end.

Of 41,900 files of programs and data that would fit into an answer, none has more than 12,922.
"""
_LONGEST_PIECE = ENDLESS // 4
_SAMPLE = 256
"""Characters whose last place before the end says how long the piece may be."""


def repeated_end(text: str) -> str | None:
    """Returns the piece that the end of a text repeats without end, to the letter; None where it does not."""
    size = len(text)
    if size < ENDLESS:
        return None
    before = text.rfind(text[-_SAMPLE:], size - _SAMPLE - _LONGEST_PIECE, size - 1)
    piece = size - _SAMPLE - before
    return text[-piece:] if before >= 0 and text[-ENDLESS:-piece] == text[piece - ENDLESS :] else None


def printable(text: str, *, keep: str = "\n\t") -> str:
    """Returns the text, as long as before, with a blank for each character that a terminal would take as an order."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in keep else " " for letter in text)


_STEERS = "\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff"
"""Characters beyond ASCII that end a line, steer a terminal, or turn the direction of a text around."""
_CONTROLS = re.compile(rf"[\x00-\x08\x0b\x0c\x0e-\x1f{_STEERS}]|\r(?!\n)")
_UNESCAPED = re.compile(rf"[{_STEERS}\ud800-\udfff]")
# No marks of direction, which texts between quotes may need, and no form feed, which old sources part pages with.
_HIDING = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]|\r(?!\n)")


def hidden_characters(line: str) -> tuple[str, ...]:
    """Returns `U+202E` for each character of a source by which it reads otherwise than it runs, in order."""
    return tuple(f"U+{ord(one):04X}" for one in _HIDING.findall(line))


def draw_controls(text: str) -> str:
    """Returns the text with `[U+202E]` in place of each character that a terminal or an editor would obey."""
    return text if text.isascii() and text.isprintable() else _CONTROLS.sub(lambda one: f"[U+{ord(one[0]):04X}]", text)


def escape_json(text: str) -> str:
    """Returns a JSON text with the escape of each such character, and of what has no encoding."""
    return _UNESCAPED.sub(lambda one: f"\\u{ord(one[0]):04x}", text)


MAX_TITLE = 300  # characters
_BETWEEN = re.compile(r"(?:[^\w+#]|_|(?<![\w+#])[+#])+")
"""What stands between words; `+` and `#` behind a word belong to it: C++ is not C#."""


def one_line(text: str) -> str:
    """Returns the text on one line, without what no terminal and no file takes; storable as UTF-8."""
    sound = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return " ".join(printable(sound, keep="").split())


def same_title(title: str) -> str:
    """What titles that mean the same have in common: letters and digits, without case, layout and punctuation.

    A title of nothing but other signs is compared by these.
    """
    plain = unicodedata.normalize("NFKC", title).casefold()
    return _BETWEEN.sub(" ", plain).strip() or " ".join(plain.split())


_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_BREAK_TAG = re.compile(r"<br\s*/?>", re.IGNORECASE)
_CLOSING_TAG = re.compile(r"</(?:li|ul|ol|p|div)\s*>", re.IGNORECASE)
_ITEM_TAG = re.compile(r"<li\b[^<>]*>", re.IGNORECASE)
_BLOCK_TAG = re.compile(r"</?(?:li|ul|ol|p|div|table|tr)\b[^<>]*>", re.IGNORECASE)
_INLINE_TAG = re.compile(r"</?(?:b|i|u|em|strong|span|font|a|code)\b[^<>]*>", re.IGNORECASE)
# A semicolon in these separates nothing.
_QUOTED = re.compile(r"`[^`\n]{0,300}`|(?<!\w)\"[^\"\n]{0,300}\"(?!\w)|\u201c[^\u201d\n]{0,300}\u201d")
_KEPT_SEMICOLON = "\ue000"
# `1.`, `2)`, `(3)`, `AC 4:`; a digit behind the dot is a decimal, `1.5 s`.
_MARK = r"(?:AC[ -]?)?\(?(\d{1,3})(?:\.\)|[.):])(?:\s+|(?=[^\s\d.]))"
_AT_SEPARATOR = re.compile(rf"(?:\A|[;\n])[ \t]*(?:[-*\u2022][ \t]+)?{_MARK}", re.IGNORECASE)
_IN_SENTENCE = re.compile(rf"(?:\A|\s){_MARK}", re.IGNORECASE)
# `# x` is an item of a numbered list in Jira; `#1` behind a box is a number of Backlog.md.
_BULLET = re.compile(
    r"\s*(?:[-*+#\u2013\u2014]\s+|[\u2022\u25aa\u25e6\u25cf\u2023]\s*)(?:\[[^\w\s\]]?\s?[xX]?\]\s*)?(?:#\d{1,3}\s+)?"
)
_INLINE_BULLET = re.compile("[\u2022\u25aa\u25e6\u25cf\u2023]")
_GIVEN = re.compile(r"[\s*_]*given\b", re.IGNORECASE)
_GIVEN_GOES_ON = re.compile(r"[\s*_]*(when|then|and|but|or)\b", re.IGNORECASE)
_SCENARIO = re.compile(r"[\s*_#]*(?:scenario(?: outline| template)?|example)\b[^:\n]{0,40}:", re.IGNORECASE)
_AROUND_SCENARIOS = re.compile(r"\s*(?:feature|rule)\s*:|\s*@\w", re.IGNORECASE)
_TABLE_RULE = re.compile(r"\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*")
_HEADING = re.compile(r"\s{0,3}#{2,6}\s")
_MAX_HEADING = 200
_CRITERIA_HEADING = re.compile(
    r"(?P<level>#{0,6})(?:[^\w\n(]|_)*(?:\d+(?:\.\d+)*[.)]?\s+)?[^\w\n(]*"
    r"(?:acceptance[ _-]?criteri(?:a|on|ums)|criteria|acceptance|acceptance tests|ACs?|A/C)"
    r"(?:\s*\([^()\n]{0,40}\))?[\W_]*",
    re.IGNORECASE,
)
# `## Notes`, `**Notes**`, `Notes:` on a line of its own end what a heading has begun.
_ENDS_CRITERIA = re.compile(r"\s{0,3}\*\*[^*\n]{1,60}\*\*:?\s*|[A-Z][\w /-]{0,40}:\s*")


def is_criteria_heading(line: str) -> bool:
    """Returns whether a line only says that criteria follow: `## 3. Acceptance Criteria (ACs)`, `**AC:**`."""
    return _criteria_heading(line) is not None


def _criteria_heading(line: str) -> re.Match[str] | None:
    return _CRITERIA_HEADING.fullmatch(line.strip()) if len(line) <= _MAX_HEADING else None


def criteria_below(text: str) -> tuple[str, ...]:
    """Returns the criteria below a heading of a text, up to the next heading; () without such a heading."""
    below: list[str] | None = None
    level, fenced = 0, False
    for line in text.replace("\r\n", "\n").split("\n"):
        fenced ^= line.lstrip().startswith(("```", "~~~"))
        if below is None:
            if not fenced and (begun := _criteria_heading(line)):
                below, level = [], len(begun["level"])
            continue
        marks = len(line) - len(line.lstrip("#")) if line.startswith("#") and not fenced else 0
        is_heading = marks and line[marks : marks + 1].isspace() and (marks > 1 or level > 0)
        if is_heading and (marks <= level or not level):
            break
        if not level and not fenced and _ENDS_CRITERIA.fullmatch(line) and any(one.strip() for one in below):
            break
        below.append(line)
    return parse_criteria("\n".join(below)) if below is not None else ()


def parse_criteria(text: str) -> tuple[str, ...]:
    """Split a cell into criteria without their numbers or bullets, white space folded; () for a blank cell.

    Understood: `1. …; 2. …` (also `1)`, `(1)`, `AC1:`, on one line or many), bullets, one per line, items and
    paragraphs of HTML, rows of a table, Given/When/Then blocks, scenarios with their steps, and `…; …`. No words are
    dropped, except a heading in front of number 1 that ends with a colon, heads of tables and comments.
    """
    plain = _without_html(without_comments(text)).replace("\r\n", "\n").replace("\r", "\n").strip()
    plain = _QUOTED.sub(lambda quoted: quoted[0].replace(";", _KEPT_SEMICOLON), _without_tables(plain))
    pieces = _scenarios(plain) or _numbered(plain) or _by_line(plain)
    folded = (" ".join(piece.split()).strip(" ;").replace(_KEPT_SEMICOLON, ";") for piece in pieces)
    return tuple(piece for piece in folded if piece)


def without_comments(text: str) -> str:
    """Returns the text without comments of HTML; one that is never closed is none."""
    head, end, rest = text.rpartition("-->")
    return _COMMENT.sub("", head + end) + rest


def _without_html(text: str) -> str:
    """Returns the text with a line for each item and paragraph of HTML."""
    text = _BREAK_TAG.sub("\n", text)
    if not _CLOSING_TAG.search(re.sub(r"`[^`\n]*`", "", text)):
        return text
    return html.unescape(_INLINE_TAG.sub("", _BLOCK_TAG.sub("\n", _ITEM_TAG.sub("\n\u2022 ", text))))


def _without_tables(text: str) -> str:
    """Returns the text with the rows of a table as items, without its head, and without lines that are only a rule."""
    lines: list[str] = []
    for line in text.split("\n"):
        if _TABLE_RULE.fullmatch(line) or (line.strip() and not line.strip("-=*_ \t|")):
            if "|" in line and lines:
                lines.pop()
        elif line.lstrip().startswith("||"):  # a table's head in Jira
            continue
        elif line.lstrip().startswith("|") and line.rstrip().endswith("|") and line.count("|") > 1:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            told = [cell for cell in cells if re.search(r"[^\W\d_]{2}", re.sub(r"(?i)^AC[ -]?\d+$", "", cell))]
            lines.append(f"- {' | '.join(told or cells)}")
        else:
            lines.append(line)
    return "\n".join(lines)


def _scenarios(text: str) -> list[str]:
    """Returns each scenario with its steps as a piece, [] of a text without any."""
    pieces: list[str] = []
    before: list[str] = []
    for line in text.split("\n"):
        mark = _BULLET.match(line)
        body = line[mark.end() :] if mark else line
        if _SCENARIO.match(line.lstrip("- ")):
            pieces.append(line.replace("**", "").lstrip("-#* \t"))
        elif pieces:
            pieces[-1] += f" {body}"
        elif not _AROUND_SCENARIOS.match(line):
            before.append(line)
    return _by_line("\n".join(before)) + pieces if pieces else []


def _numbered(text: str) -> list[str]:
    """Pieces between number marks, [] when the text is not numbered."""
    marks = list(_AT_SEPARATOR.finditer(text))
    if len(marks) < 2:
        marks = _rising(list(_IN_SENTENCE.finditer(text)))
    if not marks:
        return []
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    before = text[: marks[0].start()].strip()
    heading = [] if before.endswith(":") else [before]
    return heading + [text[mark.end() : end] for mark, end in zip(marks, ends, strict=True)]


def _rising(marks: list[re.Match[str]]) -> list[re.Match[str]]:
    """Marks inside a line count only from its start or a colon, and as 1, 2, 3: `2. ` may also end a sentence."""
    chain: list[re.Match[str]] = []
    for mark in marks:
        if int(mark[1]) == len(chain) + 1 and (chain or mark.string[: mark.start()].rstrip()[-1:] in {"", ":"}):
            chain.append(mark)
    return chain


def _by_line(text: str) -> list[str]:
    """Pieces of a text without numbers: bullets or lines, else parts between semicolons."""
    if _INLINE_BULLET.search(text):
        text = _INLINE_BULLET.sub("\n\u2022 ", text)
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) > 1:
        lines = [line for line in lines if not _HEADING.match(line)] or lines
    if len(lines) < 2:
        return [_BULLET.sub("", part, count=1) if _BULLET.match(part) else part for part in text.split(";")]
    bulleted = any(_BULLET.match(line) for line in lines)
    given = any(_GIVEN.match(line) for line in lines)
    pieces: list[str] = []
    inside = False
    for line in lines:
        mark = _BULLET.match(line)
        body = line[mark.end() :] if mark else line
        # An indented line below a bullet, or When/Then below Given, goes on with the criterion before.
        continues = (bulleted and inside and not mark and line[0].isspace()) or (given and _GIVEN_GOES_ON.match(body))
        if continues and pieces:
            pieces[-1] += f" {body}"
        else:
            pieces.append(body)
        inside = inside or mark is not None
    return pieces
