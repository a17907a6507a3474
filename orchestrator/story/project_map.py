"""What of a project a story is shown: files ranked by its words and by who imports whom, signatures first."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import log
from posixpath import basename, dirname, join, normpath

from orchestrator.code.outline import PROSE, Definition, is_code, is_facts, outline
from orchestrator.core.contract import FileExports
from orchestrator.core.paths import is_manifest, is_test_file, suffix_of
from orchestrator.core.value import remembered
from orchestrator.prompts.budget import CHARS_PER_TOKEN, fence, language_of

MAP_TOKENS = 950
"""The map of a project in every prompt of a story, however large the project is."""
NEAR_TOKENS = 900
"""What is shown of the files around those of a task."""
NEAR_FILES = 10
LARGE_TOKENS = 2_500
"""A longer file of a task is shown as its outline and the parts that the task is about."""
PART_TOKENS = 1_600
"""Those parts together."""
_IMPORT = re.compile(r"(?:from|import)\s|(?:const|let|var)\b.*\brequire\(|export\b.*\bfrom\b")
LAST_LINES = 6
"""Lines that are shown of the end of a long source, behind which new functions go."""
MOST_IMPORTS = 120
"""Lines of imports, or of `__all__`, that are shown of a long source."""
PROSE_TOKENS = 700
"""A longer document (README, changelog) is shown by its head."""
ABOVE = "It stands whole above, with the project."
SLIGHT = 0.5
"""Files of less weight are not what a story is about: they are shown where there is much room."""
MAX_ROOT_CHARS = 200
"""Files of the root that a map has no room for are named where their names together are no longer."""
SMALL_LINES = 12
"""A file of the story's words that is no longer is shown whole: its outline would say as much."""
MAX_IMPORTS = 40
_STOP = frozenset(
    re.findall(
        r"\w+",
        "the and for with that this from into are has have not all one its when where which what can must should shall "
        "will user users want add adds new use used using get set make see each per also only out how than then they "
        "there their story test tests file files src lib init index main",
    )
)
_WORDS = re.compile(r"[A-Za-z][a-z0-9]+|[A-Z]{2,}(?![a-z])")
_NAMES = re.compile(r"[A-Za-z_$][\w$]*")


@lru_cache(maxsize=8192)
def _stem(word: str) -> str:
    lower = word.lower()
    for ending in ("ings", "ing", "ies", "es", "ed", "s"):
        if lower.endswith(ending) and len(lower) - len(ending) >= 3:
            return lower[: -len(ending)]
    return lower


def words_of(text: str) -> frozenset[str]:
    """Returns the stems of the words in a text, also of those that names are made of."""
    return frozenset(_stem(word) for word in _WORDS.findall(text) if len(word) > 2 and word.lower() not in _STOP)


def imports_of(texts: Mapping[str, str], files: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Returns file → the project's files that it imports, sorted."""
    known = _stems(files)
    found = {path: _imported(texts[path], path) for path in texts if is_code(path)}
    resolved = {
        path: {known[stem] for stem in stems if stem in known and known[stem] != path} for path, stems in found.items()
    }
    return {path: tuple(sorted(targets)[:MAX_IMPORTS]) for path, targets in sorted(resolved.items()) if targets}


def _stems(files: Iterable[str]) -> dict[str, str]:
    """Returns the name by which a module is imported → its file, also below `src/` or `lib/`."""
    known: dict[str, str] = {}
    for path in sorted(files, reverse=True):
        if is_code(path):
            stem = path[: -len(suffix_of(path))]
            for name in (stem, stem.removesuffix("/__init__").removesuffix("/index")):
                known[name] = path
                top, _, rest = name.partition("/")
                if top in {"src", "lib"} and rest:
                    known.setdefault(rest, path)
    return known


# Read by pattern: a parse of every file for every story costs seconds, and a name too many only widens a guess.
_PYTHON_FROM = re.compile(r"^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)", re.MULTILINE)
_PYTHON_IMPORT = re.compile(r"^[ \t]*import[ \t]+([\w., \t]+)", re.MULTILINE)
_SCRIPT_FROM = re.compile(r"(?:\bfrom|\bimport|\brequire\s*\(|\bimport\s*\()\s*[\"']([^\"'\n]+)[\"']")


@remembered(4096)
def _imported(text: str, path: str) -> frozenset[str]:
    """Returns names by which a file may mean others of the project."""
    if not path.endswith(".py"):
        told = (
            normpath(join(dirname(path), one)) if one.startswith(".") else one for one in _SCRIPT_FROM.findall(text)
        )
        return frozenset(re.sub(r"\.[cm]?[jt]sx?$", "", one) for one in told)
    found = {name.strip().replace(".", "/") for names in _PYTHON_IMPORT.findall(text) for name in names.split(",")}
    for dots, module, names in _PYTHON_FROM.findall(text):
        stem = module.replace(".", "/")
        if dots:
            stem = normpath(join(dirname(path), "../" * (len(dots) - 1), stem))
        found |= {stem, *(f"{stem}/{name}" for name in re.findall(r"\w+", names))}
    return frozenset(found)


@lru_cache(maxsize=8192)
def path_words(path: str) -> frozenset[str]:
    """Returns the stems of the words in a path."""
    return words_of(path.replace("_", " ").replace("/", " "))


_DEFINING = re.compile(
    r"^[ \t]*(?:export\s+)?(?:default\s+)?(?:async\s+)?(?:def|class|function\s*\*?|interface|type|enum)\s+([\w$]+)"
    r"|^(?:export\s+)?(?:const|let|var)\s+([\w$]+)|^([A-Za-z_]\w*)\s*(?::[^=\n]+)?=",
    re.MULTILINE,
)


@remembered(4096)
def _defined(text: str, path: str) -> frozenset[str]:
    """Returns the names that a file defines, private ones and methods too."""
    if is_code(path):
        return frozenset(name for names in _DEFINING.findall(text) for name in names if name)
    return frozenset(one.signature for one in outline(text, path)) if is_facts(path) else frozenset()


@remembered(4096)
def _defined_words(text: str, path: str) -> frozenset[str]:
    return words_of(" ".join(_defined(text, path)).replace("_", " "))


def ranked(
    about: str, files: Sequence[str], texts: Mapping[str, str], imports: Mapping[str, Sequence[str]]
) -> list[tuple[str, float]]:
    """Returns the files with their weight, the ones that a text is about first: words in path and names, weighed by how
    rare they are in the project, half of it one import further; then what most others import."""
    wanted, named = words_of(about), frozenset(_NAMES.findall(about))
    told = {
        path: (path_words(path), _defined_words(texts[path], path) if path in texts else frozenset()) for path in files
    }
    spread = Counter(word for of_path, defined in told.values() for word in (of_path | defined) & wanted)
    rare = {word: log((1 + len(files)) / count) for word, count in spread.items()}
    own: dict[str, float] = {}
    for path, (of_path, defined) in told.items():
        own[path] = sum(rare[word] * (2 if word in of_path else 1) for word in (of_path | defined) & wanted)
        own[path] += 6.0 * (path in about)
        if path in texts and is_code(path):
            own[path] += 4.0 * sum(len(name) > 3 for name in named & _defined(texts[path], path))
    used = Counter(target for targets in imports.values() for target in targets)
    near: dict[str, float] = {}
    for path, targets in imports.items():
        for target in targets:
            near[target] = max(near.get(target, 0.0), own.get(path, 0.0) / 2)
            near[path] = max(near.get(path, 0.0), own.get(target, 0.0) / 2)
    weight = {
        path: (own[path] + near.get(path, 0.0)) * (0.5 if is_test_file(path) else 1.0) + 0.1 * log(1 + used[path])
        for path in files
    }
    # Of files that nothing is said of, one of each folder, and of each name, comes before the second of any.
    turn: dict[str, int] = {}
    within: Counter[str] = Counter()
    for path in sorted(files):
        alike = (f"{dirname(path)}/", basename(path))
        turn[path] = max(within[one] for one in alike)
        within.update(alike)
    return sorted(weight.items(), key=lambda one: (-round(one[1], 6), turn[one[0]], one[0].count("/"), one[0]))


def project_map(
    about: str, files: Sequence[str], texts: Mapping[str, str], imports: Mapping[str, Sequence[str]]
) -> str:
    """Returns the project as a story is to see it: outlines of the files it is about, paths of some more, folders."""
    room, shown = MAP_TOKENS * CHARS_PER_TOKEN, dict[str, str]()
    weights = ranked(about, files, texts, imports)
    order = [path for path, _ in weights]
    for path, weight in weights:
        if weight < SLIGHT and sum(map(len, shown.values())) > room // 3:
            break
        if path not in texts or is_manifest(path) or not (is_code(path) or is_facts(path)):
            continue
        told = file_outline(path, texts[path], about, whole=weight >= SLIGHT)
        if told and len(told) <= room * 2 // 5 and sum(map(len, shown.values())) + len(told) <= room * 3 // 4:
            shown[path] = told
        elif sum(map(len, shown.values())) > room * 2 // 3:
            break
    rest = [path for path in order if path not in shown]
    left = room - sum(map(len, shown.values()))
    listed: list[str] = []
    for path in rest:
        left -= len(path) + 1
        if left < room // 10:
            break
        listed.append(path if path.isprintable() else repr(path))
    parts = ["\n".join(shown.values()), "\n".join(listed), _folders(rest[len(listed) :])]
    return "\n\n".join(part for part in parts if part)


def _folders(paths: Sequence[str]) -> str:
    """Returns how many files each folder has that are not named."""
    if not paths:
        return ""
    counts = Counter("/".join(path.split("/")[:-1][:2]) for path in paths if "/" in path)
    most = [f"{name} ({count})" for name, count in counts.most_common(10)]
    root = sorted(path for path in paths if "/" not in path)
    if root:
        # Changelogs and manifests lie there, which no story has words of: they are named unless they are very many.
        names = ", ".join(path for path in root if path.isprintable() and not path.startswith("."))
        most.insert(0, f"the root ({names if 0 < len(names) <= MAX_ROOT_CHARS else len(root)})")
    more = f" and {len(counts) - 10} folders more" if len(counts) > 10 else ""
    return f"Files not named here: {len(paths)}, in {', '.join(most)}{more}"


def file_outline(path: str, text: str, about: str = "", limit: int = 1_400, *, whole: bool = True) -> str:
    """Returns what a file defines, what `about` names before the rest; a short file whole; "" where it says nothing."""
    name = path if path.isprintable() else repr(path)
    lines = text.splitlines()
    found = outline(text, path)
    if whole and 0 < len(lines) <= SMALL_LINES and len(text) <= 500 and (found or not is_code(path)):
        return whole_text(path, text)
    if not found:
        return ""
    kept = _within([one.signature for one in found], _weights(found, about), limit)
    return f"{name}:\n{kept}"


def whole_text(path: str, text: str) -> str:
    """Returns a file as a map shows one whole."""
    return f"{path if path.isprintable() else repr(path)}:\n{fence(text, language_of(path))}"


def _weights(found: Sequence[Definition], about: str) -> list[int]:
    """Returns how much each definition is meant: named, public at the margin, a member, private."""
    words = _named_in(about)
    return [_weight(one, one.name in words or (not one.name.isidentifier() and one.name in about)) for one in found]


@remembered(64)
def _named_in(about: str) -> frozenset[str]:
    """Returns the words of a text whole; each file of a project is weighed by the same text."""
    return frozenset(re.findall(r"\w+", about))


def _weight(one: Definition, is_named: bool) -> int:
    if len(one.name) > 3 and is_named:
        return 3
    private = one.name.startswith(("_", "#")) and not one.name.startswith("__init__")
    return 0 if private else 1 if one.signature.startswith(" ") else 2


def _within(lines: Sequence[str], weights: Sequence[int], limit: int) -> str:
    """Returns the heaviest lines in their order, together within the limit, and how many are missing."""
    room, kept = limit, set[int]()
    for at in sorted(range(len(lines)), key=lambda at: (-weights[at], at)):
        if len(lines[at]) + 1 > room:
            continue
        room -= len(lines[at]) + 1
        kept.add(at)
    more = [f"… and {len(lines) - len(kept)} more"] if len(kept) < len(lines) else []
    return "\n".join([*(line for at, line in enumerate(lines) if at in kept), *more])


def near_paths(
    about: str,
    own: Sequence[str],
    files: Sequence[str],
    exports: Sequence[FileExports],
    imports: Mapping[str, Sequence[str]],
) -> tuple[str, ...]:
    """Returns the files to look at for a task: named in its text, imported by its files or importing them, exporting a
    name that its text has. Tests are the tester's."""
    named = frozenset(name for name in _NAMES.findall(about) if len(name) > 3)
    mine = frozenset(own)
    weight: Counter[str] = Counter()
    for path in files:
        if path in about:
            weight[path] += 8
    for entry in exports:
        if hits := named.intersection(entry.names):
            weight[entry.path] += 4 * len(hits)
    for path, targets in imports.items():
        if path in mine:
            weight.update(dict.fromkeys(targets, 3))
        elif not mine.isdisjoint(targets):
            weight[path] += 2
    found = [path for path in weight if path not in mine and not is_test_file(path)]
    return tuple(sorted(found, key=lambda path: (-weight[path], path))[:NEAR_FILES])


def nearby(paths: Sequence[str], texts: Mapping[str, str], about: str, told: str = "") -> str:
    """Returns the outlines of these files in order within the budget, without those that `told` shows already."""
    room, parts = NEAR_TOKENS * CHARS_PER_TOKEN, list[str]()
    for path in paths:
        text = file_outline(path, texts[path], about, 1_000) if path in texts and f"{path}:\n" not in told else ""
        if text and len(text) <= room:
            parts.append(text)
            room -= len(text)
    return "\n".join(parts)


def parts_of(texts: Mapping[str, str], about: str, told: str = "") -> dict[str, str]:
    """Returns what is shown of those files that are long, and of those that `told`, a map, shows whole already."""
    above = {path: ABOVE for path, text in texts.items() if whole_text(path, text) in told}
    return above | {path: shown for path, text in texts.items() if (shown := in_part(path, text, about))}


def in_part(path: str, text: str, about: str) -> str:
    """Returns what is shown of a long file: a document's head, else the outline with lines, then what `about` names.

    "" for a file that is shown whole.
    """
    size = len(text) // CHARS_PER_TOKEN
    if suffix_of(path) in PROSE:
        return _parts(text, path, [(1, 25)], about) if size > PROSE_TOKENS else ""
    return _parts(text, path, _head(text), about) if size > LARGE_TOKENS else ""


def _head(text: str) -> list[tuple[int, int]]:
    """Returns the lines of a source that nearly every change of it touches: both its ends, imports, and `__all__`."""
    lines = text.splitlines()
    spans = [(1, 15), (len(lines) - LAST_LINES + 1, len(lines))]
    imports = [number for number, line in enumerate(lines[:MOST_IMPORTS], start=1) if _IMPORT.match(line)]
    if imports:
        spans.append((imports[0], _end(lines, imports[-1])))
    names = next((number for number, line in enumerate(lines, start=1) if line.startswith("__all__")), None)
    if names is not None:
        spans.append((names, _end(lines, names)))
    return spans


def _end(lines: Sequence[str], start: int) -> int:
    """Returns the line in which the brackets are closed that are open in line `start`, or the last that is shown."""
    last, still_open = min(len(lines), start + MOST_IMPORTS), 0
    for number in range(start, last + 1):
        line = lines[number - 1]
        still_open += sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))
        if still_open <= 0:
            return number
    return last


def _parts(text: str, path: str, first: Sequence[tuple[int, int]], about: str) -> str:
    lines, found = text.splitlines(), outline(text, path)
    wanted = words_of(about)
    spread = Counter(word for one in found for word in words_of(one.name.replace("_", " ")))
    weights = _weights(found, about)
    named = {one for one, weight in zip(found, weights, strict=True) if weight == 3}
    # Methods of many classes have the same name: of a named one, the method of the class that is named is meant.
    inside = {one for one in named if any(of.line < one.line <= of.end for of in named)}
    rank = {
        one: 10 * (one in named)
        + 5 * (one in inside)
        + 5 * _is_heading_in(one.name, wanted)
        + sum(1 / spread[word] for word in words_of(one.name.replace("_", " ")) & wanted)
        for one in found
    }
    room, kept = PART_TOKENS * CHARS_PER_TOKEN, list(first)
    # A word that more than three names share says nothing of any of them.
    for one in sorted((one for one in found if rank[one] > 0.3), key=lambda one: (-rank[one], one.line)):
        end = min(one.end, one.line + 80)
        size = sum(len(line) + 1 for line in lines[one.line - 1 : end])
        if size <= room:
            room -= size
            kept.append((max(1, one.line - 2), min(len(lines), end + 2)))
    told = [f"{path} has {len(lines)} lines; these are parts of it, READ shows it whole, `READ {path}#L1-L80` lines."]
    if is_code(path):
        signatures = [f"{one.line}: {one.signature}" for one in found]
        told.append("Outline:\n" + _within(signatures, weights, 4_000))
    for start, end in _joined(kept):
        part = fence("\n".join(lines[start - 1 : end]), language_of(path))
        told.append(f"Lines {start} to {min(end, len(lines))}:\n{part}")
    return "\n\n".join(told)


def _is_heading_in(name: str, wanted: frozenset[str]) -> bool:
    """Returns whether a text has all words of a section's heading, in whatever order."""
    words = words_of(name)
    return not name.isidentifier() and bool(words) and words <= wanted


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1] + 3:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
