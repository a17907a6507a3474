"""The marks of template languages: where a program fills a file in, and whether a template's blocks match."""

import re

from orchestrator.code.grammar import Problem, problem_at

# Jinja and its like, ERB and its like, PHP; `{#` before a word is Svelte, `<?xml` opens XML. Each mark ends before the
# next one begins, so that a text full of openings costs no more than its length.
_MARKS = re.compile(
    r"\{\{(?:(?!\{\{|\}\}).)*\}\}|\{%(?:(?!\{%|%\}).)*%\}|\{#(?![{\w])(?:(?!\{#|#\}).)*#\}|<%(?:(?!<%|%>).)*%>"
    r"|<\?(?!xml).*?(\?>|\Z)",
    re.DOTALL,
)
# `{%`, `<%` without `=`, PHP, and the block words of Handlebars and of Go.
_STEERING = re.compile(
    r"\{%|<%(?![=-])|<\?(?!xml)|\{\{[~-]?\s*([#/^>]|(if|range|end|else|each|with|block|define|template|unless)\b)"
)
"""What may open an element in one branch and close it in another, or bring a part from elsewhere."""


_STATEMENT = re.compile(
    r"\{%[-+~]?\s*(end)?(if|for|block|macro)\b(?:(?!%\}).)*%\}|\{%[-+~]?\s*(raw|verbatim|comment)\b", re.DOTALL
)
_RAW = re.compile(r"(\{#(?![{\w]).*?#\})|\{%[-+~]?\s*(raw|verbatim|comment)\b.*?\{%[-+~]?\s*end\2\b.*?%\}", re.DOTALL)
_RAW_END = re.compile(r"#\}|\{%[-+~]?\s*end(raw|verbatim|comment)\b")
"""Looked for first: a text with many beginnings and no end would take the square of its length."""


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
    """Returns `{% if %}`, `{% for %}`, `{% block %}` or `{% macro %}` without its end, or an end without its begin."""
    waiting: list[tuple[str, int]] = []
    for match in _STATEMENT.finditer(_RAW.sub(blank, text) if _RAW_END.search(text) else text):
        name = match[2]
        if name is None:
            return []  # text that is not read as a template, and whose end is not there
        if not match[1]:
            waiting.append((name, match.start()))
        elif not waiting:
            return [problem_at(text, match.start(), f"`{{% end{name} %}}` ends nothing")]
        elif waiting[-1][0] != name:
            break
        else:
            waiting.pop()
    return [
        problem_at(text, at, f"`{{% {name} %}}` has no `{{% end{name} %}}`", f"End it with `{{% end{name} %}}`.")
        for name, at in waiting[-1:]
    ]
