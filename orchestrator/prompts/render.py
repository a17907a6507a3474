"""Prompt files → segments: Markdown with markers, includes and `{{slots}}`, checked against one table at start."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from orchestrator.core.calls.exchange import Segment
from orchestrator.core.errors import ConfigError
from orchestrator.core.value import suggest
from orchestrator.prompts.budget import SLOTS as DATA_SLOTS
from orchestrator.prompts.budget import as_data
from orchestrator.prompts.skills import SKILLS, Skill, read_skills

SHARED = "shared/"
"""Names of shared texts begin so; they are no prompts of their own."""
_INCLUDE = re.compile(r"^<!--[ \t]*include:[ \t]*(\S+)[ \t]*-->[ \t]*$", re.MULTILINE)
# Shared texts may include each other; a circle must end.
_DEPTH = 5


def expand(texts: Mapping[str, str]) -> dict[str, str]:
    """Returns the prompts among `texts`, each `<!-- include: shared/NAME -->` line replaced by that text.

    Raises ConfigError for a shared text that does not exist, or that includes itself.
    """
    parts = {name: text.strip("\n") for name, text in texts.items() if name.startswith(SHARED)}
    return {name: _expanded(name, text, parts) for name, text in texts.items() if not name.startswith(SHARED)}


def _expanded(name: str, text: str, parts: Mapping[str, str]) -> str:
    def part(match: re.Match[str]) -> str:
        if match[1] not in parts:
            hint = suggest(match[1], parts)
            raise ConfigError(f"prompt {name}.md: it includes {match[1]}, which does not exist{hint}")
        return parts[match[1]]

    for _ in range(_DEPTH):
        if not _INCLUDE.search(text):
            return text
        text = _INCLUDE.sub(part, text)
    raise ConfigError(f"prompt {name}.md: its shared texts include each other")


_COMMON = frozenset({"surface", "record", "story"})
"""What every persona of a story is shown first (shared/common.md)."""
_PLAN = (
    _COMMON
    | {"schema", "vision", "sprint_stories", "wireframe", "followed_plan"}
    | {
        *("overridden_conflict", "comment", "shown_files"),
    }
)
_BUILD = _COMMON | {
    *("design", "allowed_dependencies", "done_tasks", "task", "modified_files", "shown_files"),
    *("nearby", "instructions", "history", "another_way", "comments"),
}
_MERGE = frozenset({"merged_stories", "conflicts", "red", "result_diff", "story_diff", "feedback"})
_SUITE = _COMMON | {
    *("acceptance_tests", "suite_rule", "files", "place", "near_tests", "older_tests", "faulty", "feedback"),
    "shown_files",
}

PROMPT_SLOTS: Mapping[str, frozenset[str]] = {
    "architect/breakdown": _PLAN | {"feedback"},
    "architect/breakdown_missing": _PLAN | {"known_tasks", "missing"},
    "architect/amendment": _COMMON
    | {"schema", "plan", "done_tasks", "task", "refused", "shown_files"}
    | {"asked_files", "asked_packages", "asked_tests"},
    "developer/delivery": _BUILD | {"schema", "feedback"},
    "developer/delivery_plan": _BUILD | {"feedback"},
    "developer/delivery_whole": _BUILD | {"feedback"},
    "developer/continuation": _BUILD | {"schema", "whole_files", "missing_files"},
    "developer/continuation_plan": _BUILD | {"whole_files", "missing_files"},
    "developer/continuation_whole": _BUILD | {"whole_files", "missing_files"},
    "developer/merge": _BUILD | _MERGE | {"schema"},
    "developer/merge_plan": _BUILD | _MERGE,
    "developer/merge_whole": _BUILD | _MERGE,
    "tester/suite": _SUITE | {"schema"},
    "tester/suite_plan": _SUITE,
    "tester/suite_whole": _SUITE,
    "tester/analysis": _COMMON
    | {
        "schema",
        "suite",
        "files",
        "report",
        "environment",
        "older_tests",
        "planned_tests",
        "history",
        "feedback",
        "shown_files",
    },
    "reviewer/review": _COMMON
    | {"task_files", "allowed_dependencies", "skills", "done_tasks", "task", "diff", "shown_files", "earlier"}
    | {"previous", "feedback"},
    "analyst/stage": frozenset({"prd", "codebase", "prompt", "history", "contract", "feedback"}),
    "repair": frozenset({"schema", "problem", "broken"}),
}
"""Prompt name (path of its file without `.md`) → the slots it has, no more and no fewer."""

NOTE_SLOTS: Mapping[str, frozenset[str]] = {
    "notes/another_way": frozenset({"failure"}),
    "notes/looked_again": frozenset({"failure"}),
    "notes/same_answer": frozenset({"lines"}),
    "notes/whole_files": frozenset(),
    "notes/more_tests": frozenset({"file"}),
    "notes/new_test_file": frozenset({"file"}),
    "notes/suite_stays": frozenset(),
    "notes/stage_contract": frozenset({"schema"}),
    "notes/plan_instructions": frozenset(),
}
"""Name of a text that is said in a slot of prompts when it applies → its own slots."""

SHARED_SEGMENTS = ("data", "project", "story")
"""The same for all personas of a story, so that what a provider caches for one of them serves the others."""
SEGMENT_ORDER = (*SHARED_SEGMENTS, "role", "rules", "contract", "sprint", "skills", "done", "task", "feedback")
"""Segments from what all share to what changes with every call: the order provider caches need."""

# A marker is a whole line; one that is misspelt is an error, not text for a model.
_MARKER = re.compile(r"<!--[ \t]*segment:[ \t]*(\S+)[ \t]*-->[ \t]*")
_SLOT = re.compile(r"\{\{([^{}\n]*)\}\}")
_HEADING = re.compile(r"#{1,6} ")
_SOURCES = {"broken": "the text to repair"}
"""Slot → what its data is called in a prompt, where a model took the slot's name for a folder."""


@dataclass(frozen=True, kw_only=True)
class _Section:
    """A heading with what stands under it, up to the next heading."""

    text: str
    slots: tuple[str, ...]
    bare: bool
    """No text of its own beside a heading and slots."""

    @classmethod
    def parse(cls, text: str) -> "_Section":
        slots = tuple(name.strip() for name in _SLOT.findall(text))
        rest = [line for line in _SLOT.sub("", text).splitlines() if line.strip() and not _HEADING.match(line)]
        return cls(text=text, slots=slots, bare=not rest)

    def spoken(self, filled: frozenset[str]) -> bool:
        """Returns whether the section says something beyond its heading."""
        return not self.bare or any(slot in filled for slot in self.slots)

    def render(self, slots: Mapping[str, str]) -> str:
        return _SLOT.sub(lambda match: slots[match.group(1).strip()], self.text)


def _sections(lines: list[str]) -> tuple[_Section, ...]:
    groups: list[list[str]] = [[]]
    for line in lines:
        if _HEADING.match(line) and any(part.strip() for part in groups[-1]):
            groups.append([])
        groups[-1].append(line)
    texts = ("\n".join(group).strip("\n") for group in groups)
    return tuple(_Section.parse(text) for text in texts if text.strip())


def _filled(sections: Sequence[_Section], slots: Mapping[str, str]) -> str:
    """The text of a segment; empty when nothing but headings would be left."""
    filled = frozenset(name for name, value in slots.items() if value.strip())
    if not any(section.spoken(filled) for section in sections):
        return ""
    kept = (section for section in sections if not section.slots or section.spoken(filled))
    return "\n\n".join(section.render(slots) for section in kept)


def _split(name: str, text: str) -> list[tuple[str, list[str]]]:
    """Segments of a prompt file as (name, lines). Raises ConfigError for text outside them or a misspelt marker."""
    segments: list[tuple[str, list[str]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if marker := _MARKER.fullmatch(line):
            segments.append((marker.group(1), []))
        elif line.lstrip().startswith("<!--"):
            how = "<!-- segment: NAME --> or <!-- include: shared/NAME -->"
            raise ConfigError(f"prompt {name}.md, line {number}: a marker is written {how}")
        elif segments:
            segments[-1][1].append(line)
        elif line.strip():
            raise ConfigError(f"prompt {name}.md, line {number}: text before the first <!-- segment: NAME -->")
    if not segments:
        raise ConfigError(f"prompt {name}.md: it has no <!-- segment: NAME --> line")
    return segments


def _check_segments(name: str, found: list[str]) -> None:
    for segment in found:
        if segment not in SEGMENT_ORDER:
            raise ConfigError(f"prompt {name}.md: unknown segment {segment}{suggest(segment, SEGMENT_ORDER)}")
    places = [SEGMENT_ORDER.index(segment) for segment in found]
    if places != sorted(set(places)):
        raise ConfigError(f"prompt {name}.md: segments stand once each and in the order {', '.join(SEGMENT_ORDER)}")


_IN_FILE = ("the file has the unknown", "the file does not use the")
_GIVEN = ("no place for the given", "nothing given for the")


def _check_slots(name: str, found: Iterable[str], expected: frozenset[str], what: tuple[str, str]) -> None:
    for slot in sorted(set(found) - expected):
        raise ConfigError(f"prompt {name}.md: {what[0]} slot {{{{{slot}}}}}{suggest(slot, expected)}")
    for slot in sorted(expected.difference(found)):
        raise ConfigError(f"prompt {name}.md: {what[1]} slot {{{{{slot}}}}}")


@lru_cache(maxsize=64)
def _parse(name: str, text: str) -> dict[str, tuple[_Section, ...]]:
    """Segment → its sections."""
    raw = _split(name, text)
    _check_segments(name, [segment for segment, _ in raw])
    segments = {segment: _sections(lines) for segment, lines in raw}
    used = (slot for sections in segments.values() for section in sections for slot in section.slots)
    _check_slots(name, set(used), PROMPT_SLOTS[name], _IN_FILE)
    return segments


def _note(name: str, texts: Mapping[str, str]) -> _Section:
    if name not in texts:
        raise ConfigError(f"the text {name}.md is missing")
    note = _Section.parse(texts[name].strip())
    _check_slots(name, note.slots, NOTE_SLOTS[name], _IN_FILE)
    return note


class PromptLibrary:
    """Every prompt of the product, parsed and checked once; rendering is pure."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        """`texts`: name → Markdown, the names of PROMPT_SLOTS and NOTE_SLOTS, shared texts they include, and skills.

        Raises ConfigError, naming file and place, for a missing or unknown prompt or shared text, a segment that is
        unknown or out of order, a slot that is unknown or unused, and what `read_skills` raises it for.
        """
        texts = expand(texts)
        self.skills: tuple[Skill, ...] = read_skills({n: text for n, text in texts.items() if n.startswith(SKILLS)})
        """What reviewers look for in files of one kind."""
        texts = {name: text for name, text in texts.items() if not name.startswith(SKILLS)}
        self._notes = {name: _note(name, texts) for name in NOTE_SLOTS}
        texts = {name: text for name, text in texts.items() if name not in NOTE_SLOTS}
        for name in sorted(set(texts) - set(PROMPT_SLOTS)):
            raise ConfigError(f"unknown prompt {name}.md{suggest(name, PROMPT_SLOTS)}")
        for name in sorted(set(PROMPT_SLOTS) - set(texts)):
            raise ConfigError(f"the prompt {name}.md is missing")
        self._segments = {name: _parse(name, text) for name, text in texts.items()}
        self._versions = {
            name: hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16] for name, text in texts.items()
        }

    def render(self, name: str, slots: Mapping[str, str]) -> tuple[Segment, ...]:
        """Returns the prompt's segments, stable-first, with `slots` (exactly those of PROMPT_SLOTS) filled in.

        Values are inserted verbatim and never expanded again, those of others between marks (`as_data`). A section
        (heading) and a segment whose slots are all blank and that say nothing themselves are left out. Raises
        ConfigError for an unknown name or a slot too many or too few.
        """
        self._known(name)
        _check_slots(name, slots, PROMPT_SLOTS[name], _GIVEN)
        marked = {
            slot: as_data(text, _SOURCES.get(slot, slot)) if slot in DATA_SLOTS else text
            for slot, text in slots.items()
        }
        rendered = ((segment, _filled(sections, marked)) for segment, sections in self._segments[name].items())
        return tuple(Segment(name=segment, text=text) for segment, text in rendered if text)

    def note(self, name: str, **slots: str) -> str:
        """One of NOTE_SLOTS with exactly its slots filled in. Raises ConfigError for a slot too many or too few."""
        _check_slots(name, slots, NOTE_SLOTS[name], _GIVEN)
        return self._notes[name].render(slots)

    def version(self, name: str) -> str:
        """Hash of the prompt's text (16 hexadecimal digits), for records. Raises ConfigError for an unknown name."""
        self._known(name)
        return self._versions[name]

    def _known(self, name: str) -> None:
        if name not in PROMPT_SLOTS:
            raise ConfigError(f"there is no prompt {name}{suggest(name, PROMPT_SLOTS)}")


_SUFFIX = ".md"
_LIBRARY = "library/"
"""Below it stand the prompts of analyses, which are read by adapters/stage_prompts.py."""


def _files(folder: Path) -> dict[str, Path]:
    """Relative POSIX path → file, for everything below `folder` that is not hidden."""
    try:
        found = {path.relative_to(folder): path for path in sorted(folder.rglob("*")) if path.is_file()}
    except OSError as error:
        raise ConfigError(f"cannot read the prompt folder {folder}: {error.strerror}") from error
    return {name.as_posix(): path for name, path in found.items() if not any(p.startswith(".") for p in name.parts)}


def read_given(path: Path, what: str = "the prompt") -> str:
    """Returns the text of a file that people wrote. Raises ConfigError, which calls it `what`. Blocks."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"cannot read {what} {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{what} {path} is not UTF-8 (byte {error.start}): save it as UTF-8") from error


def _is_prompt(name: str) -> bool:
    return name.endswith(_SUFFIX) and not name.startswith(_LIBRARY)


def load_prompts(packaged: Path, override: Path | None) -> dict[str, str]:
    """Prompt name (`architect/breakdown`) → text. Line ends become `\\n`, a byte order mark is dropped.

    A file of `override` replaces the packaged one of the same relative name; of skills it may hold further ones. Raises
    ConfigError when a folder does not exist, a file cannot be read, or `override` holds a file that replaces nothing
    (the message names the nearest).
    """
    for folder in (packaged, override):
        if folder is not None and not folder.is_dir():
            raise ConfigError(f"the prompt folder {folder} does not exist")
    chosen = {name: path for name, path in _files(packaged).items() if _is_prompt(name)}
    if not chosen:
        raise ConfigError(f"the prompt folder {packaged} holds no {_SUFFIX} files")
    for name, path in (_files(override) if override is not None else {}).items():
        if name.startswith(_LIBRARY):
            continue
        if name not in chosen and not (name.startswith(SKILLS) and name.endswith(_SUFFIX)):
            raise ConfigError(f"{path} replaces no prompt: there is no {name}{suggest(name, chosen)}")
        chosen[name] = path
    return {name.removesuffix(_SUFFIX): read_given(path) for name, path in chosen.items()}
