"""The tags of an HTML text, as a browser's tokenizer would cut it: comments, raw text and quoted values are no tags."""

import re
from typing import NamedTuple

from orchestrator.syntax.problem import Problem, place, shown

_START = re.compile(r"<!--|<!\[CDATA\[|<!|<\?|</?[A-Za-z]")
_NAME = re.compile(r"</?([^\s/>]+)")
_ATTRIBUTE = re.compile(
    r"""(?P<skip>[\s/]+)|(?P<end>>)"""
    r"""|(?P<name>=?[^\s/>=]+)(?:\s*=\s*(?:"(?P<double>[^"]*)(?P<d>"?)|'(?P<single>[^']*)(?P<s>'?)|(?P<bare>[^\s>]+)))?|="""
)
_RAW_TEXT = frozenset({"script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"})


class Tag(NamedTuple):
    """One tag."""

    name: str
    """Lower case."""
    closes: bool
    start: int
    end: int
    """Place behind its `>`."""
    attributes: dict[str, str]
    """Lower-case name → value."""
    empty: bool
    """Whether it ends with `/>`."""
    body: tuple[int, int] | None = None
    """Where the raw text of a script, style and their like stands."""


class Tags(NamedTuple):
    """The tags up to the first place that ends the reading."""

    tags: list[Tag]
    problems: list[Problem]


def read_tags(text: str) -> Tags:
    """The tags in order; the one problem that ended the reading early, when there is one."""
    tags: list[Tag] = []
    at = 0
    while found := _START.search(text, at):
        start = found.start()
        until = _special_end(text, found[0], start)
        if until is not None:
            if until < 0:
                what = "comment" if found[0] == "<!--" else f"`{found[0]}`"
                return Tags(tags, [_never_ends(text, start, f"the {what}")])
            at = until
            continue
        tag = _tag(text, start)
        if isinstance(tag, Problem):
            return Tags(tags, [tag])
        if tag.name in _RAW_TEXT and not tag.closes and not tag.empty:
            close = re.compile(rf"</{tag.name}(?=[\s/>])", re.IGNORECASE).search(text, tag.end)
            if close is None:
                return Tags([*tags, tag], [_never_ends(text, start, f"`<{tag.name}>`")])
            tag = tag._replace(body=(tag.end, close.start()))
        tags.append(tag)
        at = tag.body[1] if tag.body else tag.end
    return Tags(tags, [])


def _special_end(text: str, opening: str, start: int) -> int | None:
    """Behind a comment, doctype or instruction; -1 when it never ends, None for a tag."""
    closer = {"<!--": "-->", "<![CDATA[": "]]>", "<!": ">", "<?": ">"}.get(opening)
    if closer is None:
        return None
    if text.startswith(("<!-->", "<!--->"), start):
        return text.index(">", start) + 1
    end = text.find(closer, start + len(opening))
    return end + len(closer) if end >= 0 else -1


def _tag(text: str, start: int) -> Tag | Problem:
    named = _NAME.match(text, start)
    at = named.end() if named else start + 1
    name = named[1].lower() if named else ""
    attributes: dict[str, str] = {}
    while match := _ATTRIBUTE.match(text, at):
        at = match.end()
        if match["end"]:
            return Tag(name, text[start + 1] == "/", start, at, attributes, text[at - 2] == "/")
        if match["name"] is None:
            continue
        if wrong := _wrong(text, match):
            return wrong
        value = next((match[kind] for kind in ("double", "single", "bare") if match[kind] is not None), "")
        attributes.setdefault(match["name"].lower(), value)
    return _never_ends(text, start, f"the tag `{shown(text[start : start + 20])}`")


def _wrong(text: str, match: re.Match[str]) -> Problem | None:
    """A quote that nothing closes, or that closes much later: the text behind it then sticks to it."""
    value = match["double"] if match["double"] is not None else match["single"]
    name = match["name"]
    if value is not None:
        behind = text[match.end() : match.end() + 1]
        cut = not (match["d"] or match["s"])
        if cut or (behind not in {"", " ", "\n", "\t", "\r", "\f", "/", ">"} and re.search(r"[<\n]|=\s*$", value)):
            line, column = place(text, match.start())
            message = f"the value of `{shown(name)}` in line {line} has no closing quote"
            return Problem(line=line, column=column, message=message, fix="Close the quote.")
    elif match["bare"] is not None and match["bare"][0] in "\u201c\u201d\u2018\u2019":
        line, column = place(text, match.start("bare"))
        return Problem(line=line, column=column, message=f"`{match['bare'][0]}` quotes no value", fix='Write ".')
    if "<" in name:
        line, column = place(text, match.start("name"))
        return Problem(line=line, column=column, message=f"a tag begins inside a tag: `{shown(name)}`", fix="Close it.")
    return None


def _never_ends(text: str, start: int, what: str) -> Problem:
    line, column = place(text, start)
    message = f"{what} opened in line {line} is never closed"
    return Problem(line=line, column=column, message=message, fix="Close it, and write the whole file anew.")
