"""Template languages inside other languages: what they put in is made harmless, and their blocks are matched."""

import re

from orchestrator.syntax.problem import Problem, place

_MARKS = re.compile(
    r"\{\{(?:(?!\{\{|\}\}).)*\}\}|\{%(?:(?!\{%|%\}).)*%\}|\{#(?![{\w])(?:(?!\{#|#\}).)*#\}|<%(?:(?!<%|%>).)*%>"
    r"|<\?(?!xml).*?(\?>|\Z)",
    re.DOTALL,
)
_STEERING = re.compile(
    r"\{%|<%(?![=-])|<\?(?!xml)|\{\{[~-]?\s*([#/^>]|(if|range|end|else|each|with|block|define|template|unless)\b)"
)
"""What may open an element in one branch and close it in another, or bring a part from elsewhere."""
_STATEMENT = re.compile(
    r"\{%[-+~]?\s*(end)?(if|for|block|macro)\b(?:(?!%\}).)*%\}|\{%[-+~]?\s*(raw|verbatim|comment)\b", re.DOTALL
)
_RAW = re.compile(r"(\{#(?![{\w]).*?#\})|\{%[-+~]?\s*(raw|verbatim|comment)\b.*?\{%[-+~]?\s*end\2\b.*?%\}", re.DOTALL)

_RAW_END = re.compile(r"#\}|\{%[-+~]?\s*end(raw|verbatim|comment)\b")


def is_steered(text: str) -> bool:
    """Whether a template's conditions and loops stand in the text: its elements cannot be matched then."""
    return _STEERING.search(text) is not None


def has_template(text: str) -> bool:
    """Whether anything of a template stands in the text."""
    return _MARKS.search(text) is not None


def is_generated(path: str, text: str) -> bool:
    """Whether a tool fills this file in before anybody parses it: it lies among templates and is one."""
    *folders, name = path.lower().split("/")
    # cookiecutter and its like put marks into the paths as well.
    among = "{{" in path or any("template" in folder or folder == "skeleton" for folder in folders) or ".tmpl" in name
    return among and has_template(text)


def masked(text: str) -> str:
    """The text with letters where a template puts something in; every other character keeps its place."""
    return _MARKS.sub(lambda match: re.sub(r"[^\n]", "x", match[0]), text)


def blank(match: re.Match[str]) -> str:
    """Blanks in the room of a match, its line ends kept."""
    return re.sub(r"[^\n]", " ", match[0])


def open_blocks(text: str) -> list[Problem]:
    """`{% if %}`, `{% for %}`, `{% block %}` and `{% macro %}` without their end, or an end without its begin."""
    waiting: list[tuple[str, int]] = []
    held = _RAW.sub(blank, text) if _RAW_END.search(text) else text
    for match in _STATEMENT.finditer(held):
        name = match[2]
        if name is None:
            return []  # text that is not read as a template, and whose end is not there
        if not match[1]:
            waiting.append((name, match.start()))
        elif waiting and waiting[-1][0] == name:
            waiting.pop()
        else:
            opened = waiting.pop() if waiting else None
            return [_unmatched(text, opened) if opened else _closes_nothing(text, name, match.start())]
    return [_unmatched(text, waiting[-1])] if waiting else []


def _unmatched(text: str, opened: tuple[str, int]) -> Problem:
    line, column = place(text, opened[1])
    message = f"`{{% {opened[0]} %}}` of line {line} has no `{{% end{opened[0]} %}}`"
    return Problem(line=line, column=column, message=message, fix=f"End it with `{{% end{opened[0]} %}}`.")


def _closes_nothing(text: str, name: str, at: int) -> Problem:
    line, column = place(text, at)
    return Problem(line=line, column=column, message=f"`{{% end{name} %}}` ends nothing")
