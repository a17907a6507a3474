"""What reviewers look for in files of one kind: `system_prompts/reviewer/skills`, chosen by the change."""

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from posixpath import basename

import yaml
from pydantic import Field, ValidationError

from orchestrator.core.errors import ConfigError
from orchestrator.core.value import Value

SKILLS = "reviewer/skills/"
"""The names of these files begin so."""
MOST_CHARS = 4_000
"""Characters of one skill's text."""
ROOM = 8_000
"""Characters of all skills in a prompt, 2,000 tokens: four or five of the packaged ones."""
FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?P<front>.*?\n)---[ \t]*\n", re.DOTALL)


class Skill(Value):
    """What to look for, and in which files."""

    name: str = Field(pattern=r"^\S.*$")
    files: tuple[str, ...] = Field(min_length=1)
    """Patterns of whole paths, or of names where they hold no `/`; `*` stands for anything."""
    text: str = Field(min_length=1, max_length=MOST_CHARS)

    def concerns(self, path: str) -> bool:
        """Returns whether it is for this file."""
        return any(fnmatchcase(path if "/" in one else basename(path), one) for one in self.files)


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
    given, read, room = tuple(skills), tuple(changes), ROOM
    weights = {skill.name: sum(len(diff) for path, diff in read if skill.concerns(path)) for skill in given}
    chosen: set[str] = set()
    for skill in sorted(given, key=lambda one: -weights[one.name]):
        if weights[skill.name] and len(skill.text) <= room:
            chosen.add(skill.name)
            room -= len(skill.text)
    return tuple(skill for skill in given if skill.name in chosen)


def render_skills(skills: Sequence[Skill]) -> str:
    """Returns the texts under their names."""
    return "\n\n".join(f"### {skill.name}\n\n{skill.text}" for skill in skills)


def _skill(file: str, text: str) -> Skill:
    match = FRONT_MATTER.match(text)
    if match is None:
        raise _wrong(file, "it does not begin with front matter: a line `---`, name and files, a line `---`")
    try:
        front = yaml.safe_load(match["front"])
        return Skill.model_validate({**front, "text": text[match.end() :].strip()})
    except (yaml.YAMLError, TypeError) as error:
        how = 'name: Python, and in a further line files: ["*.py"]'
        raise _wrong(file, f"its front matter is not valid YAML with fields; write {how}") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise _wrong(file, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def _wrong(file: str, problem: str) -> ConfigError:
    return ConfigError(f"skill {file}.md: {problem}")
