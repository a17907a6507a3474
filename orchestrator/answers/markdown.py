"""Markdown → a flat list of blocks with their lines, by a CommonMark parser's tokens; and what stands on one line.

Left out of CommonMark, because no answer means it: setext headings (so that `---` is always a rule), HTML blocks (so
that a tag on a line hides nothing behind it) and link definitions.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

from orchestrator.core.action_plan import with_lf
from orchestrator.core.finding import Finding, Where, major, minor


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


def blocks_of(text: str, first_line: int = 1) -> tuple[Block, ...]:
    """The blocks of a text with LF line ends; `first_line` is the number of its first one. What is quoted is one block.

    Linear in the text. Raises TooManyBlocks for more than MAX_BLOCKS.
    """
    source = text if text.endswith("\n") else f"{text}\n"
    tokens = _PARSER.parse(source, {})
    return tuple(_Walk(source.split("\n"), first_line).blocks(tokens))


def _counted(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Counts blocks: a rule of the parser that is asked first at every block, and takes none."""
    state.env["blocks"] = state.env.get("blocks", 0) + 1
    if state.env["blocks"] > MAX_BLOCKS:
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
    """Returns one line of Markdown without code marks, links' targets and bold marks, blanks made one."""
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
        """Yields the blocks of all tokens."""
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
        """Keeps count of the quotes and lists that a token opens and closes."""
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


_PATH = re.compile(r"^[^\s`*?<>|\"]{1,400}$")
_SUFFIX = re.compile(r"[^/.\s]\.[A-Za-z0-9_+~-]{1,16}$")


def looks_like_path(text: str) -> bool:
    """Returns whether a word can be nothing but a path: it has a folder or a suffix, and no blank."""
    return bool(_PATH.match(text)) and ("/" in text.strip("/") or bool(_SUFFIX.search(text)))


class Field(NamedTuple):
    """One `**Key:** value`."""

    key: str
    """As it was written."""
    raw: str
    """The value's inline Markdown."""
    line: int
    bold: bool


MAX_KEY = 40
_WRAPS = ("**", "__", "*", "_", "`")


def field_of(text: str, line: int) -> Field | None:
    """Returns the field that a line of inline Markdown is, None when it has no key."""
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
    return Field(key, value.strip(), line, wrap in {"**", "__"})


def lines_of(block: Block) -> list[tuple[str, int]]:
    """Returns the lines of a paragraph or item with their numbers."""
    return [(line, number) for number, line in enumerate(block.text.split("\n"), start=block.line)]


THOUGHTS = r"(?:think|thinking|reasoning|thoughts?|scratchpad|reflection|analysis|draft)"
"""Tags around what a model thinks before it answers."""
_OPENING_THOUGHTS = re.compile(rf"\s*<({THOUGHTS})>", re.IGNORECASE)


class Source(NamedTuple):
    """A text with LF line ends, and what was reported about it."""

    text: str
    first_line: int = 1
    """Number of its first line in the text as it was given."""
    findings: tuple[Finding, ...] = ()


def source_of(text: str) -> Source:
    """Returns the text without a byte order mark, CRLF and opening thoughts; thoughts without an end are all there is.

    Half a character is a major finding: no file can hold it.
    """
    findings: list[Finding] = []
    try:
        text.encode()
    except UnicodeEncodeError as error:
        where = Where(line=text.count("\n", 0, error.start) + 1)
        message = "the text holds half a character, which no file can hold"
        return Source("", 1, (major("plan.encoding", message, where=where, fix="Write whole Unicode characters."),))
    if text.startswith("\ufeff"):
        text = text[1:]
        message = "the text begins with a byte order mark"
        findings.append(minor("plan.encoding", message, where=Where(line=1), fix="Leave the mark out."))
    if "\r" in text:
        text = with_lf(text)
        message = "line ends other than LF were read as LF; files keep their own"
        findings.append(minor("plan.encoding", message, where=Where(line=1), fix="Write LF line ends."))
    begun = _OPENING_THOUGHTS.match(text)
    if begun is None:
        return Source(text, 1, tuple(findings))
    end = re.compile(rf"(?<!`)</{begun[1]}>(?!`)", re.IGNORECASE).search(text, begun.end())
    if end is None:
        return Source("", 1, tuple(findings))
    return Source(text[end.end() :].lstrip(" \t"), text.count("\n", 0, end.end()) + 1, tuple(findings))
