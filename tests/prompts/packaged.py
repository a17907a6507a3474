"""The prompt files of this repository, for the tests of this folder."""

import re

from orchestrator.prompts.render import PromptLibrary, expand, load_prompts
from orchestrator.settings import packaged


def packaged_files() -> dict[str, str]:
    return load_prompts(packaged("system_prompts"), None)


def packaged_texts() -> dict[str, str]:
    return expand(packaged_files())


def packaged_library() -> PromptLibrary:
    return PromptLibrary(packaged_files())


def fenced(text: str) -> tuple[str, ...]:
    """The fenced blocks of a prompt: its examples, in order."""
    return tuple(match[3] for match in re.finditer(r"^(`{3,})(\w*)\n(.*?)^\1[ \t]*$", text, re.MULTILINE | re.DOTALL))


def examples_in(name: str) -> tuple[str, ...]:
    return fenced(packaged_texts()[name])


def without_examples(text: str) -> str:
    """The prompt without its fenced blocks."""
    return re.sub(r"^(`{3,})\w*\n.*?^\1[ \t]*$", "", text, flags=re.MULTILINE | re.DOTALL)
