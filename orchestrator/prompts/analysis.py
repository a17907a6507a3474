"""What the stages of an analysis are shown: PRD, earlier findings, and the repository within a token budget.

Of the repository what tells most goes in first, and what is cut is said.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from orchestrator.core.analysis import LeftOut, Packed, StageResult, StageStatus
from orchestrator.core.paths import holds_private_key, is_binary_file, is_manifest, is_private_file, is_test_file
from orchestrator.prompts.budget import CHARS_PER_TOKEN, cap, fence, language_of, tokens

HISTORY_TOKENS = 8000
"""Room for what earlier stages found."""
_LONGEST_SUMMARY = 2000  # characters per earlier stage


def render_prd(prd: str, budget_tokens: int) -> str:
    """Returns the PRD in a fence that holds, its end left out and told where it is too long."""
    if not prd.strip():
        return "There is no document with requirements: judge by what the project itself says that it is for."
    return fence(cap(prd.strip(), budget_tokens * CHARS_PER_TOKEN), "markdown")


def render_history(results: Sequence[StageResult]) -> str:
    """What earlier stages found, in their order; "" when none answered."""
    told = [_result(result) for result in results if result.status in {StageStatus.ANSWERED, StageStatus.PROSE}]
    return cap("\n\n".join(told), HISTORY_TOKENS * CHARS_PER_TOKEN)


def _result(result: StageResult) -> str:
    lines = [f"### {result.name}", "", fence(cap(result.summary or "(no summary)", _LONGEST_SUMMARY), "text"), ""]
    lines += [f"- {' '.join(text.split())}" for text in result.recommendations]
    for task in result.tasks:
        place = f" (`{task.file}`)" if task.file else ""
        lines.append(f"- Task, {task.priority}: {task.title}{place}")
    return "\n".join(lines).rstrip()


MAX_SHARE = 5
"""One file gets at most a fifth of the budget as long as others wait."""
LISTING_SHARE = 8
"""An eighth of the budget at most for the list of all files."""
_LEAST = 600
"""Characters of a beginning that are worth showing."""
_NOTICE = 160
# Code first: it tells most about a project.
_SOURCE = re.compile(
    r"\.(pyi?|[cm]?[jt]s|[jt]sx|vue|svelte|go|rs|java|kts?|scala|rb|php|cs|c|h|cc|cpp|hpp|swift|m|sql|sh|bash|lua|exs?"
    r"|erl|clj|hs|ml|dart|r|jl|p[lm]|proto|graphql)$"
)
# Large and tells little.
_DATA = re.compile(r"\.(lock|map|snap|[ct]sv|svg|log|min\.(js|css)|ipynb|pot?|jsonl|ndjson|geojson|xml|html|css)$")
_SETTING = re.compile(r"\.(toml|ya?ml|ini|cfg|json)$|^[^.]+$")
_LOCKS = frozenset({"package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "go.sum", "constraints.txt"})
# Where programs start.
_ENTRIES = re.compile(r"^(main|app|index|server|cli|manage|__main__|settings|config|routes?|urls|models?|schema)\b")
# Folders beside the product itself.
_ASIDE = re.compile(
    r"(^|/)(examples?|samples?|fixtures?|testdata|corpus|vendor|third[-_]party|benchmarks?|generated|migrations)/", re.I
)
_WORD = re.compile(r"[a-z]{4,}")

NO_ROOM, BINARY, SECRET, UNREADABLE = "no room", "binary", "secret", "no text, or too long"


class Source(NamedTuple):
    """A file that may be shown."""

    path: str
    size: int


Read = Callable[[str], str | None]
"""Path → its text; None when it has none that can be shown."""
Mask = Callable[[str], str]
"""A text → the same without secrets."""


def weight(path: str, wanted: frozenset[str]) -> int:
    """How much a file is likely to tell, higher is more; `wanted` are words of the requirements."""
    name = PurePosixPath(path).name.lower()
    if name in _LOCKS or _DATA.search(name):
        return 0
    # 6: what the project says of itself; 4 and 5: sources and entry points; 2: tests, settings; 0: data.
    if is_manifest(path) or (name.startswith("readme") and "/" not in path):
        return 6
    value = 2 if _SETTING.search(name) else 1
    if _SOURCE.search(name):
        value = 2 if is_test_file(path) else 4
    if _ASIDE.search(path):
        return min(value, 1)
    if value == 4 and _ENTRIES.match(name):
        value += 1
    return value + (value >= 2 and not wanted.isdisjoint(_WORD.findall(path.lower())))


def words_of(prd: str) -> frozenset[str]:
    """Words of the requirements by which files are known to matter: long ones that come more than once."""
    found = Counter(_WORD.findall(prd.lower()))
    return frozenset(word for word, times in found.items() if len(word) >= 5 and times > 1)


def pack(sources: Sequence[Source], read: Read, mask: Mask, *, budget_tokens: int, prd: str = "") -> Packed:
    """Returns the repository as one text of at most about `budget_tokens`; the same files give the same text.

    Files are taken in by what they tell, then from small to large, and stand in it by path; of those that are too long
    for their share the beginning is shown while there is room.
    """
    chars = budget_tokens * CHARS_PER_TOKEN
    listing = _listing([source.path for source in sources], chars // LISTING_SHARE)
    desk = _Desk(read, mask, chars - len(listing) - chars // 20)
    wanted = words_of(prd)
    open_to_see = [source for source in sources if desk.admits(source)]
    ranked = sorted(open_to_see, key=lambda one: (-weight(one.path, wanted), one.size, one.path))
    # Whole files first; beginnings of long ones fill what is left.
    late = [source for source in ranked if not desk.whole(source, chars // MAX_SHARE)]
    for source in late:
        desk.beginning(source)
    notice = _notice(list(desk.left_out.values()), chars // 20)
    parts = [desk.texts[path] for path in sorted(desk.texts)]
    text = "\n\n".join([listing, *parts, *([notice] if notice else [])])
    return Packed(
        text=text,
        paths=tuple(source.path for source in sources),
        shown=tuple(path for path in sorted(desk.texts) if path not in desk.cut),
        cut=tuple(held for _, held in sorted(desk.cut.items())),
        left_out=tuple(held for _, held in sorted(desk.left_out.items())),
        masked=tuple(sorted(desk.masked)),
        tokens=tokens(text),
    )


class _Desk:
    """What is taken in so far, and how many characters are left."""

    def __init__(self, read: Read, mask: Mask, chars: int) -> None:
        self._read, self._mask, self._room = read, mask, chars
        self.texts: dict[str, str] = {}
        self.cut: dict[str, LeftOut] = {}
        self.left_out: dict[str, LeftOut] = {}
        self.masked: set[str] = set()

    def admits(self, source: Source) -> bool:
        """Returns whether the name speaks for text that may be seen; otherwise it is noted why not."""
        why = SECRET if is_private_file(source.path) else BINARY if is_binary_file(source.path) else ""
        if why:
            self._leave(source, why)
        return not why

    def whole(self, source: Source, share: int) -> bool:
        """Take the file in as it is; False when it is too long for its share or for the room."""
        if source.size > share or source.size + _NOTICE > self._room:
            return False
        text = self._text(source)
        if text is not None:
            self._place(source.path, fence(text, language_of(source.path)))
        return True

    def beginning(self, source: Source) -> None:
        """Take in what fits of the file, to the end of a line; or note that there is no room."""
        if self._room < _LEAST + _NOTICE:
            self._leave(source, NO_ROOM)
            return
        text = self._text(source)
        if text is None:
            return
        end = text.rfind("\n", 0, self._room - _NOTICE) + 1
        if len(text) + _NOTICE <= self._room:
            self._place(source.path, fence(text, language_of(source.path)))
        elif end < _LEAST // 2:
            self._leave(source, NO_ROOM)
        else:
            self.cut[source.path] = LeftOut(path=source.path, size=source.size, why=NO_ROOM)
            told = f"[{source.path}: cut here, {len(text) - end} of {len(text)} characters left out]"
            self._place(source.path, f"{fence(text[:end], language_of(source.path))}\n{told}")

    def _text(self, source: Source) -> str | None:
        text = self._read(source.path)
        if text is None or holds_private_key(text):
            self._leave(source, UNREADABLE if text is None else SECRET)
            return None
        safe = self._mask(text)
        if safe != text:
            self.masked.add(source.path)
        return safe

    def _place(self, path: str, text: str) -> None:
        self.texts[path] = f"### {path}\n\n{text}"
        self._room -= len(self.texts[path]) + 2

    def _leave(self, source: Source, why: str) -> None:
        self.left_out[source.path] = LeftOut(path=source.path, size=source.size, why=why)


def _listing(paths: Sequence[str], room: int) -> str:
    """Returns all paths by folder; those for which there is no room are counted."""
    folders: dict[str, list[str]] = {}
    for path in sorted(paths):
        folder, _, name = path.rpartition("/")
        folders.setdefault(folder, []).append(name)
    lines: list[str] = []
    used, told = 0, 0
    for folder, names in folders.items():
        line = f"{folder or '.'}/: {', '.join(names)}"
        used += len(line) + 1
        if used > room:
            lines.append(f"… and {len(paths) - told} more files in {len(folders) - len(lines)} folders")
            break
        lines.append(line)
        told += len(names)
    held = fence("\n".join(lines), "text")
    return f"### All files ({len(paths)})\n\n{held}"


def _notice(left_out: Sequence[LeftOut], room: int) -> str:
    """What is not shown at all, by reason; names as far as there is room."""
    by_why: dict[str, list[str]] = {}
    for one in sorted(left_out, key=lambda one: one.path):
        by_why.setdefault(one.why, []).append(one.path)
    share = room // max(len(by_why), 1)
    return "\n".join(_named(why, paths, share) for why, paths in sorted(by_why.items()))


def _named(why: str, paths: Sequence[str], room: int) -> str:
    line, shown = f"[Left out, {why} ({len(paths)}):", 0
    for path in paths:
        if len(line) + len(path) > room - 30:
            break
        line, shown = f"{line} {path},", shown + 1
    more = f" and {len(paths) - shown} more" if shown < len(paths) else ""
    return f"{line.rstrip(',')}{more}]"
