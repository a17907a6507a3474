"""Are HTML, CSS, SCSS and Less texts well-formed, or components of Vue, Svelte and Astro?

HTML by its elements, cut as a browser's tokenizer would; what the standard lets be left out may be left out, and what a
template puts in may be anything. CSS by the token rules of CSS Syntax Level 3: the standard lets a browser go on after
anything, so "well-formed" is what its tokenizer names an error, or what it throws away.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from orchestrator.code import data
from orchestrator.code.grammar import (
    CLOSER_OF,
    MOST,
    Problem,
    Token,
    never_closed,
    place,
    problem_at,
    shown,
    unbalanced,
)
from orchestrator.code.javascript import tree
from orchestrator.code.templates import blank, has_template, is_steered, masked, open_blocks

# What the HTML standard's tokenizer leaves text for; `< ` and `<3` are text.
_START = re.compile(r"<!--|<!\[CDATA\[|<!|<\?|</?[A-Za-z]")
_NAME = re.compile(r"</?([^\s/>]+)")
# A quote group that is empty tells that the closing quote is missing.
_ATTRIBUTE = re.compile(
    r"""(?P<skip>[\s/]+)|(?P<end>>)"""
    r"""|(?P<name>=?[^\s/>=]+)(?:\s*=\s*(?:"(?P<double>[^"]*)(?P<d>"?)|'(?P<single>[^']*)(?P<s>'?)|(?P<bare>[^\s>]+)))?|="""
)
_WHOLE = "Close it, and write the whole file again."
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
    """Returns the tags in order; the one problem that ended the reading early, when there is one."""
    tags: list[Tag] = []
    at = 0
    while found := _START.search(text, at):
        start = found.start()
        until = _special_end(text, found[0], start)
        if until is not None:
            if until < 0:
                what = "comment" if found[0] == "<!--" else f"`{found[0]}`"
                return Tags(tags, [never_closed(text, start, f"the {what}", _WHOLE)])
            at = until
            continue
        tag = _tag(text, start)
        if isinstance(tag, Problem):
            return Tags(tags, [tag])
        if tag.name in _RAW_TEXT and not tag.closes and not tag.empty:
            close = re.compile(rf"</{tag.name}(?=[\s/>])", re.IGNORECASE).search(text, tag.end)
            if close is None:
                return Tags([*tags, tag], [never_closed(text, start, f"`<{tag.name}>`", _WHOLE)])
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
    return never_closed(text, start, f"the tag `{shown(text[start : start + 20])}`", _WHOLE)


def _wrong(text: str, match: re.Match[str]) -> Problem | None:
    """Returns a quote that nothing closes, or that closes much later: the text behind it then sticks to it."""
    value = match["double"] if match["double"] is not None else match["single"]
    name = match["name"]
    if value is not None:
        behind = text[match.end() : match.end() + 1]
        cut = not (match["d"] or match["s"])
        if cut or (behind not in {"", " ", "\n", "\t", "\r", "\f", "/", ">"} and re.search(r"[<\n]|=\s*$", value)):
            line = place(text, match.start())[0]
            message = f"the value of `{shown(name)}` in line {line} has no closing quote"
            return problem_at(text, match.start(), message, "Close the quote.")
    elif match["bare"] is not None and match["bare"][0] in "\u201c\u201d\u2018\u2019":
        return problem_at(text, match.start("bare"), f"`{match['bare'][0]}` quotes no value", 'Write ".')
    if "<" in name:
        return problem_at(text, match.start("name"), f"a tag begins inside a tag: `{shown(name)}`", "Close it.")
    return None


# Comments, unquoted url(), strings, escapes, Sass and Less interpolation, punctuation; an opening alone never closes.
_PIECE = re.compile(
    r"""/\*.*?\*/|/\*"""
    r"""|url\(\s*(?!["'\s])(?:[^()\\\n"']|\\.)*\)"""
    r"""|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|["']"""
    r"""|\\.|\#\{|@\{|[(){}\[\];]""",
    re.DOTALL | re.IGNORECASE,
)
_LINE_COMMENT = re.compile(r"//[^\n]*")
_PIECE_OR_LINE = re.compile(f"{_LINE_COMMENT.pattern}|{_PIECE.pattern}", re.DOTALL | re.IGNORECASE)
# `*` and `_` are hacks for old browsers, `$` and `@` are Sass and Less.
_DECLARATION = re.compile(r"[*_]?-{0,2}[$\w\\.-]+\s*:", re.ASCII)
# A second `property:` on a line of its own in one value; `::` is a pseudo-element.
_NEXT = re.compile(r"\n\s*(-{0,2}[a-z][\w-]*)\s*:(?!:)")
_SMART = re.compile(r"[:,\s]([\u201c\u201d\u2018\u2019])")
_AROUND = re.compile(r"<!--|-->")
_TEMPLATE = re.compile(r"\{\{|\{%|<%|\$\{|<\?|^\s*\{\w+\}\s*$", re.MULTILINE)
"""Where a program puts in what it makes: what the file will be cannot be known here."""


def css_problems(text: str, language: str = "CSS") -> list[Problem]:
    """At most three, the first place first; [] when it is well-formed, or when a template makes it. Never raises.

    SCSS and Less are judged by their tokens alone: strings, comments, brackets.
    """
    reading = _Reading(text.removeprefix("\ufeff"), plain=language == "CSS")
    said = reading.problems
    if not said:
        said = unbalanced(reading.brackets, reading.text)
        loose = reading.loose if language == "CSS" else []
        # What an open block holds reads as declarations too; what stands before it was read rightly.
        first = said[0].line if said else None
        said = [*said, *(one for one in loose if first is None or (one.line or 0) < first)]
    said = sorted(said, key=lambda problem: problem.line or 0)
    return [] if said and _TEMPLATE.search(text) else said[:MOST]


class _Part(NamedTuple):
    """What stands between two of `;`, `{` and `}`, with comments and strings blanked."""

    text: str
    start: int
    end: str
    """What ended it; "" for the end of the text."""
    depth: int


class _Reading:
    """One pass over a text: its brackets, and what is wrong with strings, comments and declarations."""

    def __init__(self, text: str, *, plain: bool) -> None:
        self.text = text
        self.brackets: list[Token] = []
        self.problems: list[Problem] = []
        self.loose: list[Problem] = []
        self._open: list[str] = []
        self._held: list[str] = []
        self._start = 0
        self._line, self._line_start, self._counted = 1, 0, 0
        self._read(_PIECE if plain else _PIECE_OR_LINE)

    def _read(self, pieces: re.Pattern[str]) -> None:
        at = 0
        for match in pieces.finditer(self.text):
            self._held.append(self.text[at : match.start()])
            at = match.end()
            piece = match[0]
            if piece in {"/*", '"', "'"}:
                what = "comment" if piece == "/*" else "string"
                self.problems.append(never_closed(self.text, match.start(), f"the {what}", f"Close the {what}."))
                return
            if piece in "(){}[];" or piece in CLOSER_OF:
                self._punctuation(piece, match.start())
            else:
                self._held.append(re.sub(r"[^\n]", " " if piece.startswith("/") else "x", piece))
        self._held.append(self.text[at:])
        self._ended("", len(self.text))

    def _place(self, at: int) -> tuple[int, int]:
        """Line and column of `at`, which never goes back."""
        self._line += self.text.count("\n", self._counted, at)
        last = self.text.rfind("\n", self._counted, at)
        self._line_start = last + 1 if last >= 0 else self._line_start
        self._counted = at
        return self._line, at - self._line_start + 1

    def _punctuation(self, piece: str, at: int) -> None:
        inside = bool(self._open) and self._open[-1] not in {"{"}
        if piece != ";":
            self.brackets.append(Token(piece, *self._place(at)))
        if piece in CLOSER_OF and not (piece == "{" and not inside):
            self._open.append(piece)
            self._held.append("x")
        elif inside and piece == "}" and "{" in self._open and self._open[-1] in {"(", "["}:
            del self._open[len(self._open) - self._open[::-1].index("{") - 1 :]
            self._began(at)
        elif inside:
            if piece == CLOSER_OF[self._open[-1]]:
                self._open.pop()
            self._held.append("x")
        elif piece in ";{}":
            self._ended(piece, at)
            if piece == "{":
                self._open.append("{")
            elif piece == "}" and self._open:
                self._open.pop()

    def _began(self, at: int) -> None:
        self._held, self._start = [], at + 1

    def _ended(self, end: str, at: int) -> None:
        part = _Part("".join(self._held), self._start, end, len(self._open))
        self._began(at)
        if len(self.loose) < MOST and not part.text.isspace() and part.text:
            self.loose.extend(_judged(part, self.text))


def _judged(part: _Part, text: str) -> list[Problem]:
    said = _AROUND.sub("    ", part.text) if part.depth == 0 else part.text
    begin = part.start + len(said) - len(said.lstrip())
    said = said.strip()
    if not said or said.startswith("@"):
        return []
    if part.end == "{":
        return _before_block(said, begin, text) if part.depth else []
    if part.depth == 0:
        return [problem_at(text, begin, f"`{shown(said)}` stands outside every block")]
    if not _DECLARATION.match(said):
        return [problem_at(text, begin, f"`{shown(said)}` is no declaration: it has no `property: value`")]
    return _value(said, begin, text)


def _before_block(said: str, begin: int, text: str) -> list[Problem]:
    """In a block, before a nested one: a declaration that lacks its semicolon would be part of the selector."""
    head, _, rest = said.partition("\n")
    if rest and re.match(r"-{0,2}[a-z][\w-]*\s*:\s+[^\s,]", head) and not head.rstrip().endswith(","):
        return [_no_semicolon(begin + len(head), text)]
    return []


def _value(said: str, begin: int, text: str) -> list[Problem]:
    if said.startswith("--"):
        return []
    colon = said.index(":")
    if found := _NEXT.search(said, colon):
        return [_no_semicolon(begin + found.start(), text)]
    if found := _SMART.search(said, colon):
        return [problem_at(text, begin + found.start(1), f"`{found[1]}` begins no string", "Write \" or '.")]
    return []


def _no_semicolon(at: int, text: str) -> Problem:
    return problem_at(text, len(text[:at].rstrip()), "`;` is missing at the end of the line", "Add the semicolon.")


_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
    | {"basefont", "bgsound", "frame", "keygen", "command"}
)
_MAY_STAY_OPEN = frozenset(
    {"html", "head", "body", "p", "li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "tfoot", "option", "optgroup"}
    | {"colgroup", "caption", "rt", "rp", "rb", "rtc"}
)
_MAY_CLOSE_NOTHING = frozenset({"p", "br", "html", "head", "body"})
_SCRIPTS = frozenset(
    {"", "module", "text/javascript", "application/javascript", "text/ecmascript", "text/babel", "text/jsx"}
)
_DATA = frozenset({"application/json", "application/ld+json", "importmap", "speculationrules"})
# What hid scripts from browsers without them.
_AROUND_CODE = re.compile(r"\A\s*<!--[^\n]*|(//)?\s*-->\s*\Z|(//|/\*)?\s*(<!\[CDATA\[|\]\]>)\s*(\*/)?")
_COMPONENTS = frozenset({"Vue", "Svelte", "Astro"})
_FRONT = re.compile(r"\A\s*---[ \t]*\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)


def problems(text: str, language: str) -> list[Problem]:
    """At most three, in order of the text; [] when nothing is wrong. Never raises."""
    text = text.removeprefix("\ufeff")
    if language in _COMPONENTS:
        return _ordered(_component(text, language))
    plain = masked(text)
    tags, cut = read_tags(plain)
    said = [*cut, *_code(text, tags, plain)]
    if is_steered(text):
        return _ordered([*(said if not cut else []), *open_blocks(text)])
    return _ordered([*said, *_outside(plain), *([] if cut else _elements(plain, tags))])


def _ordered(said: Sequence[Problem]) -> list[Problem]:
    return sorted(said, key=lambda problem: problem.line or 0)[:MOST]


def _elements(text: str, tags: Sequence[Tag]) -> list[Problem]:
    """Elements without an end that need one, and ends of nothing."""
    open_: list[Tag] = []
    found: list[Problem] = []
    for tag in tags:
        if tag.name in _VOID or tag.empty:
            continue
        if not tag.closes:
            open_.append(tag)
            continue
        at = next((place for place in range(len(open_) - 1, -1, -1) if open_[place].name == tag.name), -1)
        if at < 0:
            if tag.name not in _MAY_CLOSE_NOTHING:
                found.append(problem_at(text, tag.start, f"`</{tag.name}>` closes nothing"))
        else:
            found += _left_open(text, open_[at + 1 :])
            del open_[at:]
        if len(found) >= MOST:
            return found
    return found + _left_open(text, open_)


def _left_open(text: str, tags: Sequence[Tag]) -> list[Problem]:
    kept = [tag for tag in tags if tag.name not in _MAY_STAY_OPEN][-MOST:]
    names = [(tag.start, shown(tag.name)) for tag in kept]
    return [never_closed(text, start, f"`<{name}>`", f"Close it with `</{name}>`.") for start, name in names]


def _outside(text: str) -> Iterator[Problem]:
    """Words before the doctype or behind the end of the document."""
    before = re.match(r"\s*([^<\s][^<]*)<!doctype\b", text, re.IGNORECASE)
    behind = re.search(r"</html\s*>\s*([^<\s].*)\Z", text, re.IGNORECASE | re.DOTALL)
    escaped = re.match(r"\s*(&lt;[!/a-zA-Z])", text)
    leave = "Leave it out."
    for match, what, fix in (
        (before, "before the document", leave),
        (behind, "behind the document", leave),
        (escaped, "for a tag", "Write the characters themselves, not their entities."),
    ):
        if match:
            yield problem_at(text, match.start(1), f"`{shown(match[1])}` stands {what}", fix)


def _code(text: str, tags: Sequence[Tag], plain: str) -> Iterator[Problem]:
    """What is wrong in scripts and styles, each in its own language and at its place in the file."""
    for tag in tags:
        if tag.body is None or tag.name not in {"script", "style"}:
            continue
        held = plain[slice(*tag.body)]
        made = has_template(text[slice(*tag.body)])
        said = _script(tag, held) if tag.name == "script" else _style(tag, held)
        if made and said:
            continue
        yield from (_moved(problem, text, tag.body[0]) for problem in said)


def _moved(problem: Problem, text: str, start: int) -> Problem:
    line, column = place(text, start)
    if problem.line == 1 and problem.column is not None:
        return problem.model_copy(update={"line": line, "column": problem.column + column - 1})
    message = re.sub(r"\bline (\d+)", lambda match: f"line {int(match[1]) + line - 1}", problem.message)
    return problem.model_copy(update={"line": (problem.line or 1) + line - 1, "message": message})


def _script(tag: Tag, held: str) -> list[Problem]:
    kind, lang = tag.attributes.get("type", "").split(";")[0].strip().lower(), tag.attributes.get("lang", "").lower()
    if "src" in tag.attributes or not held.strip():
        return []
    if kind in _DATA:
        return data.check_json(held)
    if kind not in _SCRIPTS:
        return []
    grammar = {"ts": "typescript", "typescript": "typescript", "tsx": "tsx"}.get(lang, "javascript")
    if lang in {"coffee", "coffeescript", "livescript"}:
        return []
    return tree.problems(_AROUND_CODE.sub(blank, held), grammar)


def _style(tag: Tag, held: str) -> list[Problem]:
    language = {"scss": "SCSS", "less": "Less", "": "CSS", "css": "CSS", "postcss": "SCSS"}.get(
        tag.attributes.get("lang", tag.attributes.get("type", "").rpartition("/")[2]).lower()
    )
    return css_problems(_AROUND_CODE.sub(blank, held), language) if language else []


def _component(text: str, language: str) -> list[Problem]:
    """Returns the scripts and styles at the top; what stands between them is the component's own language."""
    said: list[Problem] = []
    if language == "Astro" and (front := _FRONT.match(text)):
        said += [_moved(one, text, front.start(1)) for one in tree.problems(front[1], "tsx")]
        text = blank(front) + text[front.end() :]
    tags = []
    for match in re.finditer(r"^<(script|style)\b[^>]*(?<!/)>", text, re.MULTILINE):
        tag, end = _tag(text, match.start()), text.find(f"</{match[1]}>", match.end())
        if end < 0:
            said.append(never_closed(text, match.start(), f"`<{match[1]}>`", f"Close it with `</{match[1]}>`."))
        elif isinstance(tag, Tag):
            # Astro's scripts are TypeScript, whatever they say.
            lang = {"lang": "ts"} if language == "Astro" and tag.name == "script" else {}
            tags.append(tag._replace(body=(tag.end, end), attributes={**tag.attributes, **lang}))
    return [*said, *_code(text, tags, text)]
