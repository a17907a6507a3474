"""Paths as people and models write them: in links, in backticks, plain, with line numbers and remarks behind them.

One path that a field of an action plan must name, every path in a line of a task plan, and the files in a sentence.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from orchestrator.answers.markdown import Block, Piece, looks_like_path, pieces_of
from orchestrator.code.check import language_of
from orchestrator.core.action_plan import is_url
from orchestrator.core.paths import suffix_of, tidy


class Path(NamedTuple):
    """A path as it was meant; `problem` says why it cannot be known."""

    path: str = ""
    linked: bool = True
    """Whether it stood in a link or in backticks."""
    problem: str = ""


def path_of(raw: str) -> Path:
    """Returns the path or address in a field: a link, a code span, or plain text. One leading `/` is the root."""
    pieces = pieces_of(raw.replace("\n", " "))
    marked = [piece for piece in pieces if piece.kind != "text"]
    around = "".join(piece.text for piece in pieces if piece.kind == "text").strip(" *_")
    if len(marked) > 1:
        return Path(problem="names more than one path")
    if marked and around and not around.startswith(("(", "–", "—", "-", "←", "#")):
        return Path(problem="holds more than a path")
    return _one_marked(marked[0]) if marked else _one_plain(around)


def _one_marked(piece: Piece) -> Path:
    shown, target = rooted(piece.text.strip("*")), rooted(piece.target)
    if piece.kind == "code" or not shown or not target:
        return Path(shown or target) if shown or target else Path(problem="is empty")
    bare = target.partition("#")[0]
    if shown in {target, bare, unquote(target)}:
        return Path(shown)
    if is_url(target) and not looks_like_path(shown):
        return Path(target)
    if bare.endswith(f"/{shown}") and not is_url(bare):
        return Path(bare)
    return Path(problem=f"names two paths: `{shown[:80]}`, and `{target[:80]}` in its link")


def _one_plain(text: str) -> Path:
    text = text.strip("\"'`* ")
    if text.startswith("[") and text.endswith(")") and "](" in text:  # a link that blanks have broken
        shown, _, target = text[1:-1].partition("](")
        same = rooted(shown) == rooted(target)
        return Path(rooted(shown), linked=False) if same else Path(problem="is a link that cannot be read")
    path = rooted(text)
    if not path:
        return Path(problem="is empty")
    if text.count("[") != text.count("]") or text.count("(") != text.count(")") or re.search(r'[`*?<>|"]', path):
        return Path(problem="is no path that could be read")
    if re.search(r"[,;]\s|\s(?:and|or|&)\s", path):
        return Path(problem="names more than one path")
    if " " in path and not (re.search(r"\.[A-Za-z0-9_]{1,16}$", path) and path.count(" ") <= 4):
        return Path(problem="holds more than a path")
    return Path(path, linked=False)


def rooted(path: str) -> str:
    """Returns the path from the root: without `./`, or the one `/` that stands for the root."""
    return tidy(path).removeprefix("/")


_RANGE = re.compile(r"#L(\d{1,9})(?:C\d+)?(?:[-–:]L?(\d{1,9})(?:C\d+)?)?$")


def split_lines(address: str) -> tuple[str, range | None]:
    """Returns the path and the lines that stand behind it as an address of a forge names them (`a.py#L10-L20`), 1-based
    and with the last; None where there are none."""
    found = _RANGE.search(address)
    if found is None:
        return address, None
    first, last = sorted((int(found[1]), int(found[2] or found[1])))
    return address[: found.start()], range(first, last + 1)


def path_in_info(block: Block) -> str:
    """Returns the one path that stands behind a block's bar: ```` ```python src/a.py ````, ```` ```src/a.py ````."""
    said = (word.strip("\"'") for word in block.info.replace(":", " ").replace("=", " ").split())
    found = [word for word in said if looks_like_path(word)]
    return rooted(found[0]) if len(found) == 1 else ""


# ---- every path in a line

_LINES = r"~?L?\d+(?:\s*[-–—,:]\s*~?L?\d+)*\+?"
# Line numbers behind a path.
_SUFFIX = re.compile(rf"(?::\s*{_LINES}|#{_LINES}|\s*\(?\blines?\s+{_LINES}\)?)$", re.IGNORECASE)
_BETWEEN = re.compile(r"(?:[\s,;&+|/]|\band\b|\bor\b|\bplus\b)*", re.IGNORECASE)
# A remark behind a path.
_REMARK = re.compile(r"\s+(?:\(|[–—-]+\s|#\s|//|<-|←|→)|\s*\[(?:new|modify|edit)\]", re.IGNORECASE)
NOTHING = frozenset({"", "none", "nothing", "n/a", "na", "no", "-", "–", "—", "null", "nil"})
"""What people write where there is nothing."""
_REMARKS = re.compile(r"(?<!\])\([^()]*\)")
"""Parentheses that are no target of a link."""
MAX_SUFFIX = 60
"""Characters at the end of a path that may be line numbers."""


def paths_of(values: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns every path in these lines, marked or with commas between, and texts that may hold one and are none."""
    paths: dict[str, None] = {}
    unread: list[str] = []
    for value in values:
        found = _marked(value)
        for path in found if found is not None else _plain_value(value):
            bare = _bare(path)
            if found is None and " " in bare:
                unread.append(bare)
            elif bare and bare.casefold() not in NOTHING:
                paths[bare] = None
    return tuple(paths), tuple(unread)


def _marked(value: str) -> list[str] | None:
    """Returns the paths in backticks or links with which a line begins; None when it does not begin with one."""
    found: list[str] = []
    for piece in pieces_of(_REMARKS.sub(" ", value).strip().strip("*").strip()):
        outside = piece.text.replace("*", "").strip()
        if piece.kind != "text":
            target = piece.target.partition("#")[0]
            shown = piece.text.strip()
            own = piece.kind == "code" or (looks_like_path(shown) and not target.endswith(f"/{shown}"))
            found.append(shown if own else target)
        elif outside and not found:
            return None
        elif not _BETWEEN.fullmatch(outside):
            break
    return found or None


def _plain_value(value: str) -> Iterator[str]:
    for part in re.split(r"[,;]\s|\s(?:and|&)\s", _unlined(" ".join(value.split()).strip("* "))):
        yield _REMARK.split(part.strip(), maxsplit=1)[0].strip("\"'* ")


def _bare(path: str) -> str:
    """Without line numbers behind it, and the `./` before it that means nothing."""
    return tidy(_unlined(path.strip()))


def _unlined(path: str) -> str:
    match = _SUFFIX.search(path, max(0, len(path) - MAX_SUFFIX))
    return path[: match.start()].rstrip() if match else path


# ---- every file in a sentence

_FILE = re.compile(r"[^/.\s]\.[A-Za-z][A-Za-z0-9_+~-]{0,15}$")
_TEXTS = (".md", ".mdx", ".rst", ".txt", ".cfg", ".ini", ".sql", ".csv")
_AROUND_WORD = "([{<*\"'"
# `Node.js` and `Vue.js` are no files.
_PRODUCT = re.compile(r"[A-Z][a-z]+\.js")


def mentioned_files(lines: Sequence[str]) -> tuple[str, ...]:
    """Returns what can be nothing but files in sentences: in backticks or links, or words with a folder and a suffix.

    Folders, addresses, commands and names such as `self.budget` are none.
    """
    return tuple(dict.fromkeys(path for line in lines for path in _mentioned(line)))


def _mentioned(line: str) -> Iterator[str]:
    for piece in pieces_of(line):
        if piece.kind == "text":
            words = (word.lstrip(_AROUND_WORD).rstrip(".,;:!?)]}>*\"'") for word in piece.text.split())
            found = [word for word in words if "/" in word]
        else:
            found = [piece.target.partition("#")[0] if piece.kind == "link" else piece.text]
        yield from (path for path in map(_bare, found) if _is_file(path))


def _is_file(path: str) -> bool:
    if not looks_like_path(path) or is_url(path) or "(" in path or not _FILE.search(path):
        return False
    if "/" in path:
        return True
    return not _PRODUCT.fullmatch(path) and (language_of(path) is not None or suffix_of(path) in _TEXTS)
