"""Is an HTML text well-formed, or a component of Vue, Svelte or Astro? Its elements, and the code in it.

What the standard lets be left out may be left out; what a template puts in may be anything.
"""

import re
from collections.abc import Iterator, Sequence

from orchestrator.syntax import css_check, javascript_check, json_check
from orchestrator.syntax.html_tags import Tag, read_tags
from orchestrator.syntax.problem import MOST, Problem, place, shown
from orchestrator.syntax.templates import blank, has_template, is_steered, masked, open_blocks

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
                line, column = place(text, tag.start)
                found.append(Problem(line=line, column=column, message=f"`</{tag.name}>` closes nothing"))
        else:
            found += _left_open(text, open_[at + 1 :])
            del open_[at:]
        if len(found) >= MOST:
            return found
    return found + _left_open(text, open_)


def _left_open(text: str, tags: Sequence[Tag]) -> list[Problem]:
    found = []
    for tag in [tag for tag in tags if tag.name not in _MAY_STAY_OPEN][-MOST:]:
        line, column = place(text, tag.start)
        message = f"`<{shown(tag.name)}>` opened in line {line} is never closed"
        found.append(Problem(line=line, column=column, message=message, fix=f"Close it with `</{shown(tag.name)}>`."))
    return found


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
            line, column = place(text, match.start(1))
            yield Problem(line=line, column=column, message=f"`{shown(match[1])}` stands {what}", fix=fix)


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
        return json_check.strict(held)
    if kind not in _SCRIPTS:
        return []
    grammar = {"ts": "typescript", "typescript": "typescript", "tsx": "tsx"}.get(lang, "javascript")
    if lang in {"coffee", "coffeescript", "livescript"}:
        return []
    return javascript_check.problems(_AROUND_CODE.sub(blank, held), grammar)


def _style(tag: Tag, held: str) -> list[Problem]:
    language = {"scss": "SCSS", "less": "Less", "": "CSS", "css": "CSS", "postcss": "SCSS"}.get(
        tag.attributes.get("lang", tag.attributes.get("type", "").rpartition("/")[2]).lower()
    )
    return css_check.problems(_AROUND_CODE.sub(blank, held), language) if language else []


def _component(text: str, language: str) -> list[Problem]:
    """The scripts and styles at the top; what stands between them is the component's own language."""
    said: list[Problem] = []
    if language == "Astro" and (front := _FRONT.match(text)):
        said += [_moved(one, text, front.start(1)) for one in javascript_check.problems(front[1], "tsx")]
        text = blank(front) + text[front.end() :]
    grammar_tags = []
    for match in re.finditer(r"^<(script|style)\b[^>]*>", text, re.MULTILINE):
        tags, cut = read_tags(text[match.start() :].split(f"</{match[1]}>", 1)[0] + f"</{match[1]}>")
        if f"</{match[1]}>" not in text[match.end() :]:
            line, column = place(text, match.start())
            message = f"`<{match[1]}>` opened in line {line} is never closed"
            said.append(Problem(line=line, column=column, message=message, fix=f"Close it with `</{match[1]}>`."))
        elif tags and tags[0].body is not None and not cut:
            moved = (tags[0].body[0] + match.start(), tags[0].body[1] + match.start())
            grammar_tags.append(tags[0]._replace(body=moved))
    if language == "Astro":
        grammar_tags = [_as_typescript(tag) for tag in grammar_tags]
    return [*said, *_code(text, grammar_tags, text)]


def _as_typescript(tag: Tag) -> Tag:
    return tag._replace(attributes={**tag.attributes, "lang": "ts"}) if tag.name == "script" else tag
