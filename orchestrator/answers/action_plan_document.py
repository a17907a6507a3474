"""Markdown → a flat list of blocks with their lines, by a CommonMark parser's tokens.

Left out of CommonMark, because a plan means none of it: setext headings (so that `---` is always a rule), HTML blocks
(so that a tag on a line hides nothing behind it) and link definitions.

The words of an action plan: how verbs, marks, sections and fields are spelled, and how models spell them.

What the bullets of an action say: a key, and a value that is a path, a switch, a time or words.
"""

import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

from orchestrator.core.action_plan import Verb, is_url


class Block(NamedTuple):
    """One block of a document. Lists are no blocks: their items are, one after the other."""

    kind: str
    """heading, rule, fence, code (indented), item, paragraph, quote."""
    line: int
    """1-based."""
    end: int
    """Last line, 1-based."""
    text: str = ""
    """Inline Markdown of a heading, item or paragraph; the content of a fence."""
    level: int = 0
    """Of a heading."""
    depth: int = 0
    """How many lists it stands in; an item counts its own."""
    mark: str = ""
    """The fence's bar, or what stands before an item."""
    info: str = ""
    """What stands behind a fence's bar."""
    closed: bool = True
    """Of a fence."""
    exact: bool = True
    """Whether a fence in a list could be taken out of it without touching a tab."""


MAX_BLOCKS = 20_000
"""Blocks that are read; each costs the parser some microseconds, however short it is."""


class TooManyBlocks(ValueError):
    """The text has more blocks than are read."""


def blocks_of(text: str, first_line: int = 1, most: int = MAX_BLOCKS) -> tuple[Block, ...]:
    """The blocks of a text with LF line ends; `first_line` is the number of its first one. What is quoted is one block.

    Linear in the text. Raises TooManyBlocks for more than `most`.
    """
    source = text if text.endswith("\n") else f"{text}\n"
    tokens = _PARSER.parse(source, {"most": most})
    return tuple(_Walk(source.split("\n"), first_line).blocks(tokens))


def _counted(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A rule that is asked first at every block, and takes none."""
    state.env["blocks"] = state.env.get("blocks", 0) + 1
    if state.env["blocks"] > state.env["most"]:
        raise TooManyBlocks
    return False


class Piece(NamedTuple):
    """A piece of one line: `text`, `code`, or `link` with its target."""

    kind: str
    text: str
    target: str = ""


MAX_INLINE = 4000
"""Characters of one field that are looked at as Markdown; the parser's time is not ours to bound beyond that."""


def pieces_of(text: str) -> list[Piece]:
    """Text, code spans and links of one line, neighbouring texts joined; what is too long is one text.

    Emphasis is not read, so that `__init__` stays what it is.
    """
    if len(text) > MAX_INLINE:
        return [Piece("text", text)]
    inline = _INLINE.parseInline(text)
    found: list[Piece] = []
    link: Token | None = None
    inside = ""
    for token in (inline[0].children or []) if inline else []:
        if token.type == "link_open":
            link, inside = token, ""
        elif token.type == "link_close" and link is not None:
            found.append(Piece("link", inside, str(link.attrs.get("href", ""))))
            link = None
        elif link is not None:
            inside += _text_of(token)
        elif token.type == "code_inline":
            found.append(Piece("code", token.content))
        elif found and found[-1].kind == "text":
            found[-1] = Piece("text", found[-1].text + _text_of(token))
        else:
            found.append(Piece("text", _text_of(token)))
    return [piece for piece in found if piece.kind != "text" or piece.text.strip()]


def words(text: str) -> str:
    """One line of Markdown without code marks, links' targets and bold marks, blanks made one."""
    return " ".join("".join(piece.text for piece in pieces_of(text)).replace("**", "").split())


def _text_of(token: Token) -> str:
    return " " if token.type in {"softbreak", "hardbreak"} else token.content


def _parser(*inline: str) -> MarkdownIt:
    parser = MarkdownIt("commonmark")
    parser.block.ruler.disable(["lheading", "html_block", "reference"])
    parser.inline.ruler.enableOnly(["text", *inline])
    parser.inline.ruler2.enableOnly([])
    parser.normalizeLink = lambda url: url  # type: ignore[method-assign]
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    return parser


_PARSER = _parser()
_PARSER.core.ruler.enableOnly(["block"])
_PARSER.block.ruler.before("code", "counted", _counted)
_INLINE = _parser("newline", "escape", "backticks", "link", "autolink")
_INLINE.core.ruler.enableOnly(["block", "inline", "text_join"])


class _Walk:
    """One pass over the tokens."""

    def __init__(self, lines: Sequence[str], first_line: int) -> None:
        self._lines, self._first = lines, first_line
        self._lists: list[str] = []
        self._quotes = 0

    def blocks(self, tokens: Sequence[Token]) -> Iterator[Block]:
        """The blocks of all tokens."""
        begun: Token | None = None
        for token in tokens:
            if token.type == "blockquote_open" and not self._quotes:
                yield self._block("quote", token)
            self._enter(token)
            if self._quotes:
                continue
            if token.type in {"list_item_open", "heading_open"}:
                begun = token
            elif token.type == "list_item_close":  # one that holds nothing
                begun = None
            elif token.type in {"inline", "hr", "fence", "code_block"}:
                yield self._leaf(token, begun)
                begun = None

    def _enter(self, token: Token) -> None:
        """Keep count of the quotes and lists that a token opens and closes."""
        if token.type in {"blockquote_open", "blockquote_close"}:
            self._quotes += token.nesting
        elif self._quotes:
            return
        elif token.type in {"bullet_list_open", "ordered_list_open"}:
            self._lists.append(token.markup)
        elif token.type in {"bullet_list_close", "ordered_list_close"}:
            self._lists.pop()

    def _leaf(self, token: Token, begun: Token | None) -> Block:
        if token.type == "fence":
            return self._fence(token)
        if token.type != "inline":
            return self._block("rule" if token.type == "hr" else "code", token, text=token.content)
        if begun is not None and begun.type == "heading_open" and not self._lists:
            return self._block("heading", token, text=token.content.strip(), level=int(begun.tag[1:]))
        if begun is not None and begun.type == "list_item_open":
            return self._block("item", token, text=token.content, mark=self._lists[-1])
        return self._block("paragraph", token, text=token.content)

    def _block(self, kind: str, token: Token, *, text: str = "", level: int = 0, mark: str = "") -> Block:
        start, end = token.map or [0, 1]
        return Block(
            kind, start + self._first, end + self._first - 1, text, level=level, depth=len(self._lists), mark=mark
        )

    def _fence(self, token: Token) -> Block:
        start, end = token.map or [0, 1]
        content = token.content.split("\n")[:-1] if token.content else []
        closed = len(content) == end - start - 2
        removed = [
            line[: len(line) - len(kept)]
            for number, kept in enumerate(content, start=start + 1)
            if kept and self._lists and (line := self._lines[number])
        ]
        exact = all(not before.strip(" ") for before in removed)
        return Block(
            "fence",
            start + self._first,
            end + self._first - 1,
            token.content,
            depth=len(self._lists),
            mark=token.markup,
            info=token.info.strip(),
            closed=closed,
            exact=exact,
        )


RATIONALE, ACTIONS = "rationale", "action plan"
_NUMBER = re.compile(r"^(?:(?:step|action)\s*)?#?\d{1,3}\s*[.:)\-–—]\s*|^(?:step|action)\s*[:\-–—]\s*", re.IGNORECASE)
_MARKS = " \t:;.,*_`#-–—!→"
"""What stands around a verb and means nothing."""
_LATIN = re.compile(r"[A-Za-z]+")
_PATH = re.compile(r"^[^\s`*?<>|\"]{1,400}$")
_SUFFIX = re.compile(r"[^/.\s]\.[A-Za-z0-9_+~-]{1,16}$")


class Heading(NamedTuple):
    """A heading that names a verb."""

    verb: Verb
    rest: str
    """A path that stands behind it, else ""."""
    exact: bool
    """Whether it is written as the format says: the verb in backticks and nothing else."""


def action_heading(text: str) -> Heading | None:
    """What a heading (its inline Markdown) says when it is an action's: a verb, and at most a path behind it."""
    if text.startswith("`") and text.endswith("`") and text[1:-1] in Verb.__members__:
        return Heading(Verb(text[1:-1]), "", True)
    bare = _NUMBER.sub("", text.strip(" *_"), count=1)
    pieces = pieces_of(bare)
    if not pieces:
        return None
    first, *others = pieces
    spelled = _LATIN.match(first.text.lstrip(_MARKS))
    verb = Verb.__members__.get(spelled[0].upper()) if spelled else None
    if spelled is None or verb is None or (first.kind != "text" and first.text.strip(_MARKS) != spelled[0]):
        return None
    behind = first.text.lstrip(_MARKS)[spelled.end() :]
    if behind[:1].isalnum() or behind[:1] == "_" or (behind[:1] in {"-", "'"} and behind[1:2].isalpha()):
        return None
    rest = [Piece("text", behind)] if behind.strip(_MARKS) else []
    rest += [piece for piece in others if piece.kind != "text" or piece.text.strip(_MARKS)]
    if not rest:
        return Heading(verb, "", False)
    path = rest[0].text.strip(" \t:;,*-–—`") if len(rest) == 1 else ""
    return Heading(verb, path.removeprefix("/"), False) if looks_like_path(path) else None


def looks_like_path(text: str) -> bool:
    """Whether a word can be nothing but a path: it has a folder or a suffix, and no blank."""
    return bool(_PATH.match(text)) and ("/" in text.strip("/") or bool(_SUFFIX.search(text)))


def section(text: str) -> str:
    """The name of a section from its heading: lower case, without numbers and marks."""
    return _NUMBER.sub("", words(text).casefold(), count=1).strip(_MARKS)


class Mark(NamedTuple):
    """FIND or REPLACE before a block."""

    find: bool
    exact: bool


_FOUND = {"find": True, "search": True, "replace": False, "replace with": False, "find block": True}
_COUNTED = re.compile(r"[\s(#]*\d{0,3}[\s):]*$")


def mark_of(text: str) -> Mark | None:
    """What a heading, paragraph or item says when it is nothing but a mark; `exact` leaves its level to the caller."""
    if len(text) > 60:
        return None
    plain = words(text)
    said = _COUNTED.sub("", plain.strip(_MARKS)).strip(_MARKS).casefold()
    if said not in _FOUND:
        return None
    return Mark(_FOUND[said], plain in {"FIND:", "REPLACE:", "FIND", "REPLACE"})


FIELDS = (
    "File Path", "Resource", "Description", "Overwrite", "Expected Outcome", "cwd", "env", "Timeout", "Allow Failure",
    "Target", "Command",
)  # fmt: skip
"""The fields of actions, as the format spells them."""
_SPELLED = {name.casefold(): name for name in FIELDS}
_OTHERS = {
    "path": "File Path", "file": "File Path", "filepath": "File Path", "filename": "File Path",
    "file name": "File Path", "source": "File Path", "source path": "File Path", "from": "File Path",
    "url": "Resource", "resources": "Resource", "desc": "Description", "expected outcomes": "Expected Outcome",
    "expected": "Expected Outcome", "expected result": "Expected Outcome", "expectedoutcome": "Expected Outcome",
    "working directory": "cwd", "workdir": "cwd", "environment": "env", "timeout s": "Timeout",
    "timeout seconds": "Timeout", "allowfailure": "Allow Failure", "destination": "Target", "to": "Target",
    "new path": "Target", "target path": "Target", "new file path": "Target",
}  # fmt: skip


def field_name(key: str) -> str | None:
    """The field that a bullet's key names, however it is spelled; None when it is none of ours."""
    said = " ".join(re.sub(r"[_\-()]", " ", key).split()).casefold()
    return _SPELLED.get(said) or _OTHERS.get(said)


class Field(NamedTuple):
    """One `**Key:** value`."""

    name: str | None
    """One of FIELDS, None for a key that is none of ours."""
    key: str
    """As it was written."""
    raw: str
    """The value's inline Markdown."""
    line: int
    bold: bool


MAX_KEY = 40
_WRAPS = ("**", "__", "*", "_", "`")


def field_of(text: str, line: int) -> Field | None:
    """The field that a line of inline Markdown is, None when it has no key."""
    text = text.strip()
    wrap = next((mark for mark in _WRAPS if text.startswith(mark)), "")
    key, colon, value = text[len(wrap) :].partition(":")
    if wrap and wrap in key:  # **File Path**: value
        key, _, between = key.partition(wrap)
        if between.strip():
            return None
    elif wrap and value.startswith(wrap):  # **File Path:** value
        value = value[len(wrap) :]
    elif wrap:
        return None
    key = key.strip(" *_`")
    if not colon or not key or len(key) > MAX_KEY or "\n" in key:
        return None
    return Field(field_name(key), key, value.strip(), line, wrap in {"**", "__"})


def lines_of(block: Block) -> list[tuple[str, int]]:
    """The lines of a paragraph with their numbers."""
    return [(line, number) for number, line in enumerate(block.text.split("\n"), start=block.line)]


class Path(NamedTuple):
    """A path as it was meant; `problem` says why it cannot be known."""

    path: str = ""
    linked: bool = True
    """Whether it stood in a link or in backticks."""
    problem: str = ""


def path_of(raw: str) -> Path:
    """The path or address in a field: a link, a code span, or plain text. One leading `/` is the root."""
    pieces = pieces_of(raw.replace("\n", " "))
    marked = [piece for piece in pieces if piece.kind != "text"]
    around = "".join(piece.text for piece in pieces if piece.kind == "text").strip(" *_")
    if len(marked) > 1:
        return Path(problem="names more than one path")
    if marked and around and not around.startswith(("(", "–", "—", "-", "←", "#")):
        return Path(problem="holds more than a path")
    if marked:
        return _marked(marked[0])
    return _plain(around if pieces else "")


def _marked(piece: Piece) -> Path:
    shown = _rooted(piece.text)
    if piece.kind == "code":
        return Path(shown) if shown else Path(problem="is empty")
    target = _rooted(piece.target)
    if shown.startswith("**") and shown.endswith("**"):
        shown = _rooted(shown.strip("*"))
    bare = target.partition("#")[0]
    if not shown or not target:
        return Path(shown or target) if shown or target else Path(problem="is empty")
    if shown in {target, bare, unquote(target)}:
        return Path(shown)
    if is_url(target) and not looks_like_path(shown):
        return Path(target)
    if bare.endswith(f"/{shown}") and not is_url(bare):
        return Path(bare)
    return Path(problem=f"names two paths: `{shown[:80]}`, and `{target[:80]}` in its link")


def _plain(text: str) -> Path:
    text = text.strip("\"'`* ")
    if text.startswith("[") and text.endswith(")") and "](" in text:  # a link that blanks have broken
        shown, _, target = text[1:-1].partition("](")
        if _rooted(shown) == _rooted(target):
            return Path(_rooted(shown), linked=False)
        return Path(problem="is a link that cannot be read")
    if text.startswith("[") and text.endswith("]") and looks_like_path(inner := text[1:-1]) and "]" not in inner:
        text = inner
    path = _rooted(text)
    if not path:
        return Path(problem="is empty")
    if text.count("[") != text.count("]") or text.count("(") != text.count(")") or re.search(r'[`*?<>|"]', path):
        return Path(problem="is no path that could be read")
    if re.search(r"[,;]\s|\s(?:and|or|&)\s", path):
        return Path(problem="names more than one path")
    if " " in path and not (re.search(r"\.[A-Za-z0-9_]{1,16}$", path) and path.count(" ") <= 4):
        return Path(problem="holds more than a path")
    return Path(path, linked=False)


def _rooted(path: str) -> str:
    """The path from the root: without `./`, or the one `/` that stands for the root."""
    path = path.strip()
    while path.startswith("./") and len(path) > 2:
        path = path[2:]
    return path[1:] if path.startswith("/") else path


class Known(NamedTuple):
    """A value that is known, or None with `exact` False when it is not."""

    value: bool | float | None
    exact: bool


def switch_of(raw: str) -> Known:
    """true and false; yes, no, on and off are known too."""
    said = _said(raw).casefold()
    if said in {"true", "false"}:
        return Known(said == "true", True)
    known = {"yes": True, "y": True, "on": True, "no": False, "n": False, "off": False}.get(said)
    return Known(known, False)


_TIME = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)\s*(s|sec|secs|seconds?|m|min|mins|minutes?|h|hours?)?", re.IGNORECASE)


def seconds_of(raw: str) -> Known:
    """A positive number of seconds, also with `s`, `min` or `h` behind it."""
    match = _TIME.fullmatch(_said(raw))
    if match is None:
        return Known(None, False)
    unit = (match[2] or "s")[0].lower()
    value = float(match[1]) * {"s": 1, "m": 60, "h": 3600}[unit]
    return Known(value if value > 0 and math.isfinite(value) else None, match[2] is None)


_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:=|\s*:\s|\s*=\s)(.*)", re.DOTALL)


def variable_of(raw: str) -> tuple[str, str] | None:
    """`NAME=value`, alone or in a code span; None when it is none."""
    pieces = pieces_of(raw.strip())
    text = pieces[0].text if len(pieces) == 1 and pieces[0].kind == "code" else raw.strip()
    match = _VARIABLE.fullmatch(text)
    if match is None:
        return None
    value = match[2] if pieces and pieces[0].kind == "code" else match[2].strip("`* ")
    return match[1], value.replace("\0", "")


def variables_of(raw: str) -> list[tuple[str, str] | None]:
    """Variables on the field's own line: one, or several in code spans."""
    pieces = pieces_of(raw)
    spans = [piece.text for piece in pieces if piece.kind == "code"]
    if spans and all(piece.kind == "code" or not piece.text.strip(" ,;") for piece in pieces):
        matches = [_VARIABLE.fullmatch(span) for span in spans]
        return [(match[1], match[2].replace("\0", "")) if match else None for match in matches]
    return [variable_of(raw)] if raw.strip() else []


def _said(raw: str) -> str:
    return "".join(piece.text for piece in pieces_of(raw)).strip(" *_.`\"'")
