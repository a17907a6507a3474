"""What reviewers look for in files of one kind: `system_prompts/reviewer/skills`, chosen by the change."""

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from posixpath import basename
from typing import Any

import yaml

from orchestrator.core.errors import ConfigError
from orchestrator.core.value import Value, suggest

SKILLS = "reviewer/skills/"
"""The names of these files begin so."""
MOST_CHARS = 4_000
"""Characters of one skill's text."""
ROOM = 8_000
"""Characters of all skills in a prompt, 2,000 tokens: four or five of the packaged ones."""
FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?P<front>.*?\n)---[ \t]*\n", re.DOTALL)
_SEARCHED = 50_000
"""Characters of one file's diff in which patterns are searched for: a longer one is hardly written by hand."""
_FIELDS = ("name", "files", "content")
_HUNK = re.compile(r"^@@.*$", re.MULTILINE)


class Skill(Value):
    """What to look for, and in which files: by their path or by what stands in them."""

    name: str
    files: tuple[str, ...] = ()
    """Patterns of whole paths, or of names where they hold no `/`; `*` stands for anything."""
    content: tuple[str, ...] = ()
    """Regular expressions that are searched for in the changed lines and those around them."""
    text: str

    def concerns(self, path: str, text: str) -> bool:
        """Returns whether it is for this file."""
        named = any(fnmatchcase(path if "/" in one else basename(path), one) for one in self.files)
        return named or any(re.search(one, text, re.MULTILINE) for one in self.content)


def read_skills(texts: Mapping[str, str]) -> tuple[Skill, ...]:
    """Returns the skills of these files (name without suffix → text), in the order of the names.

    Raises ConfigError, which names file and field, for front matter that cannot be read, a text that is empty or too
    long, and two skills with one name.
    """
    found: dict[str, tuple[str, Skill]] = {}
    for file in sorted(texts):
        skill = _skill(file, texts[file])
        if skill.name in found:
            raise _wrong(
                file, f"name: {found[skill.name][0]}.md has it too; a file replaces the one of its own file name"
            )
        found[skill.name] = file, skill
    return tuple(skill for _, skill in found.values())


def choose_skills(skills: Iterable[Skill], changes: Iterable[tuple[str, str]]) -> tuple[Skill, ...]:
    """Returns the skills for a change (path, diff of each file) that there is room for, in their own order.

    The room goes to those that concern most of the change, so that one line of YAML does not take Python's place.
    """
    given = tuple(skills)
    read = [(path, len(diff), _lines(diff)) for path, diff in changes]
    weights = {skill.name: sum(size for path, size, text in read if skill.concerns(path, text)) for skill in given}
    chosen: set[str] = set()
    room = ROOM
    for skill in sorted(given, key=lambda one: -weights[one.name]):
        if weights[skill.name] and len(skill.text) <= room:
            chosen.add(skill.name)
            room -= len(skill.text)
    return tuple(skill for skill in given if skill.name in chosen)


def render_skills(skills: Sequence[Skill]) -> str:
    """Returns the texts under their names."""
    return "\n\n".join(f"### {skill.name}\n\n{skill.text}" for skill in skills)


def _lines(diff: str) -> str:
    """Returns the lines that a file has after the change, as far as its diff shows them."""
    _, *hunks = _HUNK.split(diff[:_SEARCHED])
    lines = (line for hunk in hunks for line in hunk.split("\n")[1:])
    return "\n".join(line[1:] for line in lines if line.startswith(("+", " ")))


def _skill(file: str, text: str) -> Skill:
    match = FRONT_MATTER.match(text)
    if match is None:
        raise _wrong(file, "it does not begin with front matter: a line `---`, name, files or content, a line `---`")
    try:
        front = yaml.safe_load(match["front"])
    except yaml.YAMLError as error:
        how = 'put patterns into quotes, as in files: ["*.py"]'
        raise _wrong(file, f"its front matter is not valid YAML; {how}") from error
    if not isinstance(front, dict):
        raise _wrong(file, "its front matter is no list of fields such as `name: Python`")
    for field in front:
        if field not in _FIELDS:
            raise _wrong(file, f"{field}: there is no such field{suggest(str(field), _FIELDS)}")
    name, body = front.get("name"), text[match.end() :].strip()
    if not isinstance(name, str) or not name.strip() or "\n" in name.strip():
        raise _wrong(file, "name: it must be a text of one line")
    skill = Skill(
        name=name.strip(), files=_texts(file, front, "files"), content=_texts(file, front, "content"), text=body
    )
    if not skill.files and not skill.content:
        raise _wrong(file, "files: neither files nor content says which files it is for")
    for pattern in skill.content:
        try:
            re.compile(pattern, re.MULTILINE)
        except re.error as error:
            raise _wrong(file, f"content: `{pattern}` is no regular expression: {error}") from error
    if not body or len(body) > MOST_CHARS:
        raise _wrong(file, f"its text has {len(body)} characters; it must have 1 to {MOST_CHARS}")
    return skill


def _texts(file: str, front: Mapping[Any, object], field: str) -> tuple[str, ...]:
    value = front.get(field, [])
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise _wrong(file, f'{field}: it must be a list of texts, as in {field}: ["…"]')
    return tuple(value)


def _wrong(file: str, problem: str) -> ConfigError:
    return ConfigError(f"skill {file}.md: {problem}")
