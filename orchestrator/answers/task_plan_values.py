"""What the fields of a task plan say: paths, tasks, packages, a command."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from orchestrator.answers.action_plan_document import Piece, pieces_of
from orchestrator.answers.action_plan_words import looks_like_path

_LINES = r"~?L?\d+(?:\s*[-–—,:]\s*~?L?\d+)*\+?"
_SUFFIX = re.compile(rf"(?::\s*{_LINES}|#{_LINES}|\s*\(?\blines?\s+{_LINES}\)?)$", re.IGNORECASE)
_BETWEEN = re.compile(r"(?:[\s,;&+|/]|\band\b|\bor\b|\bplus\b)*", re.IGNORECASE)
_REMARK = re.compile(r"\s+(?:\(|[–—-]+\s|#\s|//|<-|←|→)|\s*\[(?:new|modify|edit)\]", re.IGNORECASE)
_NONE = frozenset({"", "none", "nothing", "n/a", "na", "no", "-", "–", "—", "null", "nil"})
_TASK = re.compile(
    r"(?P<word>tasks?\s+)?#?(?P<from>\d+(?:\.\d+)?)(?:\s*(?:[-–—]|to|through)\s*#?(?P<to>\d+))?(?P<rest>.*)",
    re.IGNORECASE,
)
_PARENTHESES = re.compile(r"\([^()]*\)")
_TEST_RUN = re.compile(
    r"(?:\w+=\S*\s+|(?:uv|poetry|pdm|hatch|pipenv|rye)\s+run\s+|npx\s+|pnpm\s+(?:exec\s+|run\s+)?|yarn\s+(?:run\s+)?"
    r"|bunx?\s+(?:run\s+)?|npm\s+(?:run\s+)?|\S*python[\d.]*\s+(?:-m\s+|manage\.py\s+)|\S*/)*"
    r"(?:pytest|py\.test|unittest|nose2?|tox|nox|jest|vitest|mocha|ava|karma|playwright\s+test|cypress\s+run|phpunit|pest"
    r"|rspec|tests?|ctest|test:\S+|node\s+--test|deno\s+test|cargo\s+(?:nextest|test)|go\s+test|(?:mvnw?|gradlew?)\s+test"
    r"|dotnet\s+test|make\s+(?:test|check)|mix\s+test|swift\s+test)(?:\s|$)",
    re.IGNORECASE,
)
MAX_SUFFIX = 60
"""Characters at the end of a path that may be line numbers."""
MAX_RANGE = 50
"""Tasks that `Tasks 1-N` may stand for."""


class Paths(NamedTuple):
    """The paths that a field names."""

    paths: tuple[str, ...]
    unread: tuple[str, ...] = ()
    """Texts that may hold a path and are none."""


def paths_of(values: Sequence[str]) -> Paths:
    """Every path in these lines: marked ones, or plain ones with commas between, without what is said about them."""
    paths: dict[str, None] = {}
    unread: list[str] = []
    for value in values:
        found = _marked(value)
        for path in found if found is not None else _plain(value):
            bare = _bare(path)
            if found is None and " " in bare:
                unread.append(bare)
            elif bare and bare.casefold() not in _NONE:
                paths[bare] = None
    return Paths(tuple(paths), tuple(unread))


def _marked(value: str) -> list[str] | None:
    """The paths in backticks or links with which a line begins; None when it does not begin with one."""
    found: list[str] = []
    depth = 0
    for piece in pieces_of(value.strip().strip("*").strip()):
        if piece.kind == "text":
            outside, depth = _outside(piece.text.replace("*", ""), depth)
            if not found and outside.strip():
                return None
            if not _BETWEEN.fullmatch(outside):
                break
        elif depth == 0:
            found.append(_meant(piece))
    return found or None


def _meant(piece: Piece) -> str:
    """The path of a code span or link: of a link its text, where that is a path, else its target."""
    text, target = piece.text.strip(), piece.target.partition("#")[0]
    return text if piece.kind == "code" or (looks_like_path(text) and not target.endswith(f"/{text}")) else target


def _outside(text: str, depth: int) -> tuple[str, int]:
    """What stands outside of parentheses, of which `depth` are open before it; and how many are open behind it."""
    kept = []
    for char in text:
        depth += char == "("
        if depth == 0:
            kept.append(char)
        depth -= char == ")" and depth > 0
    return "".join(kept), depth


def _plain(value: str) -> Iterator[str]:
    for part in re.split(r"[,;]\s|\s(?:and|&)\s", _unlined(" ".join(value.split()).strip("* "))):
        yield _REMARK.split(part.strip(), maxsplit=1)[0].strip("\"'* ")


def _bare(path: str) -> str:
    """Without line numbers behind it, and the `./` before it that means nothing."""
    path = _unlined(path.strip())
    while path.startswith("./") and len(path) > 2:
        path = path[2:]
    return path


def _unlined(path: str) -> str:
    match = _SUFFIX.search(path, max(0, len(path) - MAX_SUFFIX))
    return path[: match.start()].rstrip() if match else path


def tasks_of(values: Sequence[str], *, named_only: bool) -> tuple[str, ...]:
    """Numbers of the tasks that a field names; a text that names none as it stands, or left out with `named_only`.

    With `named_only` a number counts only behind the word task: the field may as well speak of packages.
    """
    found: dict[str, None] = {}
    for value in values:
        said = _PARENTHESES.sub(" ", value.replace("*", "").replace("`", "")).strip()
        said = re.split(r"\.(?:\s|$)", said, maxsplit=1)[0]
        titled = False
        for part in re.split(r"[,;&|+]|\band\b", said):
            part = part.strip(" .:-–—")
            match = _TASK.fullmatch(part) if not part.casefold().startswith("none") else None
            if match is not None and (match["word"] or found or not named_only) and _is_number(match):
                found.update(dict.fromkeys(_numbers(match)))
                titled = bool(match["rest"].strip())
            elif not named_only and not titled and part.split(" ")[0].casefold() not in _NONE:
                found[part] = None
    return tuple(found)


def _is_number(match: re.Match[str]) -> bool:
    rest = match["rest"]
    return not rest or rest[0] in " :–—-"


def _numbers(match: re.Match[str]) -> list[str]:
    first, last = match["from"], match["to"]
    if last is not None and "." not in first and 0 <= int(last) - int(first) <= MAX_RANGE:
        return [str(number) for number in range(int(first), int(last) + 1)]
    return [".".join(str(int(part)) for part in first.split(".")), *([last] if last else [])]


def packages_of(values: Sequence[str]) -> tuple[str, ...]:
    """Requirements as they were written, one each."""
    found: list[str] = []
    for value in values:
        for part in re.split(r"[,;]", _PARENTHESES.sub(" ", value)):
            part = part.strip(" `*\"'")
            if found and part[:1] in set("<>=!~") and part:
                found[-1] += f",{part}"  # `flask>=2,<4` is one requirement
            elif part.casefold() not in _NONE and part.split(" ")[0].casefold() != "none":
                found.append(part)
    return tuple(dict.fromkeys(found))


class Command(NamedTuple):
    """What a command field says."""

    command: str | None
    test_run: bool = False
    """Whether it only runs tests; it is no command of a task then."""


def command_of(values: Sequence[str], code: str) -> Command:
    """The shell command in a field: a code span, a code block or plain text."""
    spans = [piece.text for value in values for piece in pieces_of(value) if piece.kind == "code"]
    said = (spans[0] if spans else code or " ".join(values)).strip().removeprefix("$ ")
    if said.casefold().rstrip(".") in _NONE:
        return Command(None)
    parts = [part.strip() for part in re.split(r"&&|;|\n", said) if not part.strip().startswith("cd ")]
    return Command(None, test_run=True) if all(_TEST_RUN.match(part) for part in parts) else Command(said)
