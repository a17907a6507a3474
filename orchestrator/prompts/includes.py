"""Text that several prompts share, and the examples that stand in prompts."""

import re
from collections.abc import Mapping

from rapidfuzz import process

from orchestrator.errors import ConfigError

SHARED = "shared/"
"""Names of shared texts begin so; they are no prompts of their own."""
_INCLUDE = re.compile(r"^<!--[ \t]*include:[ \t]*(\S+)[ \t]*-->[ \t]*$", re.MULTILINE)
_FENCE = re.compile(r"^(`{3,})(\w*)\n(.*?)^\1[ \t]*$", re.MULTILINE | re.DOTALL)
_DEPTH = 4


def expand(texts: Mapping[str, str]) -> dict[str, str]:
    """The prompts among `texts`, each `<!-- include: shared/NAME -->` line replaced by that text.

    Raises ConfigError for a shared text that does not exist, or that includes itself.
    """
    parts = {name: text.strip("\n") for name, text in texts.items() if name.startswith(SHARED)}
    return {name: _expanded(name, text, parts) for name, text in texts.items() if not name.startswith(SHARED)}


def fenced(text: str) -> tuple[str, ...]:
    """The contents of a prompt's fenced blocks: worked examples, in order."""
    return tuple(match[3] for match in _FENCE.finditer(text))


def without_examples(text: str) -> str:
    """The prompt without its fenced blocks."""
    return _FENCE.sub("", text)


def _expanded(name: str, text: str, parts: Mapping[str, str]) -> str:
    def part(match: re.Match[str]) -> str:
        wanted = match[1]
        if wanted not in parts:
            found = process.extractOne(wanted, sorted(parts))
            hint = f"; did you mean {found[0]}?" if found else ""
            raise ConfigError(f"prompt {name}.md: it includes {wanted}, which does not exist{hint}")
        return parts[wanted]

    for _ in range(_DEPTH):
        if not _INCLUDE.search(text):
            return text
        text = _INCLUDE.sub(part, text)
    raise ConfigError(f"prompt {name}.md: its shared texts include each other")
