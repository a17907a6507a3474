"""The keys of the block format, where the lines of a text say them."""

import re
from typing import NamedTuple

_NAMES = {
    "STORY": "STORY", "STORY_ID": "STORY", "TASK_COUNT": "TASK_COUNT", "TASK": "TASK", "TASK_ID": "TASK",
    "FILE": "FILES", "FILES": "FILES", "FILES_TO_CREATE": "FILES", "DESCRIPTION": "DESCRIPTION",
    "COMMAND": "COMMAND", "COMMAND_TO_RUN": "COMMAND", "DEPENDENCIES": "DEPENDENCIES", "DEPENDS_ON": "DEPENDENCIES",
    "DEPENDENCY_REASON": "DEPENDENCY_REASON", "END_TASK": "END_TASK", "ENDTASK": "END_TASK",
}  # fmt: skip
_WORDS = (
    r"(?:STORY(?:[ _-]?ID)?|TASK(?:[ _-]ID|[ _-]COUNT|[ _-]?\d{1,3})?|FILES?(?:[ _-]TO[ _-]CREATE)?|DESCRIPTION"
    r"|COMMAND(?:[ _-]TO[ _-]RUN)?|DEPENDENCIES|DEPENDS[ _-]ON|DEPENDENCY[ _-]REASON)"
)
_END = r"END[ _-]?TASK(?![A-Za-z0-9])"
_TOKEN = re.compile(
    r"^[ \t>]{0,40}+(?:(?:[-*+•]|\d{1,3}[.)]|\#{1,6})[ \t]++)?+(?P<decor>[*_`]{1,3}+)?+"
    rf"(?:(?P<name>{_WORDS})(?(decor)[*_`]{{0,3}}+)[ \t]*+[:：](?(decor)[*_`]{{0,3}}+)"
    rf"|(?P<end>{_END})[*_`.:]{{0,4}}+[ \t\r]*+$)"
    rf"|(?<=[ \t])(?-i:(?P<inline>{_WORDS}):(?=[ \t])|(?P<close>{_END})(?=[ \t\r]*+(?:$|TASK[ :_])))"
    r"|^(?P<fence>[ \t>]{0,40}+(?:```|~~~))|(?P<thought></?(?:think|thinking|reasoning)\b[^<>\n]{0,80}>)",
    re.IGNORECASE | re.MULTILINE,
)
"""A key at the start of a line, decorated or not; a key in capitals further on; a code fence; a reasoning tag."""


class Key(NamedTuple):
    """A key of the format, where its line says it."""

    name: str
    """Its name in the format, whatever the text calls it."""
    word: str
    """Its name as the text has it."""
    start: int
    end: int
    spelled: str
    """All of it: markers, decoration, colon."""
    inline: bool
    """Whether other words stand before it on its line."""
    fences: int
    """How many code fences begin or end before it."""

    @property
    def capital(self) -> bool:
        """Whether it is written in capitals."""
        return self.word == self.word.upper()

    @property
    def plain(self) -> bool:
        """Whether it is written exactly as the format says."""
        return self.spelled.strip() in (f"{self.name}:", self.name)

    @property
    def number(self) -> str:
        """The figure in `TASK 2:`, else ""."""
        return self.word[4:].strip(" _-") if self.name == "TASK" and self.word[-1].isdigit() else ""


def find_keys(text: str) -> list[Key]:
    """The keys of the format in order, outside thoughts. Linear.

    Where one TASK is written in capitals, the `Task:` of prose is none.
    """
    found: list[Key] = []
    thought, fences = -1, 0
    for match in _TOKEN.finditer(text):
        if match["thought"]:
            if match["thought"][1] != "/":
                thought = match.start() if thought < 0 else thought
                continue
            # A thought whose beginning is missing (some chat templates swallow it) began with the text.
            while found and found[-1].start >= thought:
                found.pop()
            thought = -1
        elif match["fence"]:
            fences += 1
        else:
            found.append(_key(match, fences))
    capitals = any(key.name == "TASK" and key.capital for key in found)
    return [key for key in found if key.capital or not capitals or key.name not in ("TASK", "STORY")]


def _key(match: re.Match[str], fences: int) -> Key:
    inline = match["inline"] or match["close"]
    word = inline or match["name"] or match["end"]
    name = re.sub(r"[ -]", "_", word.upper())
    name = "TASK" if name[-1].isdigit() else _NAMES[name]
    return Key(name, word, match.start(), match.end(), match.group(), inline is not None, fences)
