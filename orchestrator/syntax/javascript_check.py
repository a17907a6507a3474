"""Is a JavaScript or TypeScript text well-formed? By its syntax tree."""

import re

from orchestrator.domain.findings import Finding, Where, major
from orchestrator.syntax.javascript_tree import SUFFIXES, below, is_typescript, node_text, root

__all__ = ["SUFFIXES", "problem"]
_NOT_IN_GRAMMAR = re.compile(
    r"\baccessor(?=[ \t]+[\w#\[])|(?<=\bexport )type(?=\s*\*)"
    r"|(?:(?<=[<,])|(?<=[<,] ))(?:in out|in|out)(?= [A-Z]\w*\s*[,=>])"
)
"""Rare TypeScript that is right and that the grammar does not know: these words are left out before it is asked."""


def problem(text: str, path: str, *, code: str = "content.syntax") -> Finding | None:
    """A major finding at the first place that does not parse, else None. Never raises."""
    tree = root(text, path)
    if tree.has_error and is_typescript(path):
        tree = root(_NOT_IN_GRAMMAR.sub(lambda match: " " * len(match[0]), text), path)
    if not tree.has_error:
        return None
    bad = next((node for node in below(tree) if node.is_missing or node.type == "ERROR"), tree)
    seen = " ".join(node_text(bad).split())[:60]
    said = f"`{bad.type}` is missing" if bad.is_missing else f"unexpected `{seen}`" if seen else "unexpected text"
    place = Where(file=path, line=bad.start_point.row + 1, column=bad.start_point.column + 1)
    return major(
        code,
        f"{'TypeScript' if is_typescript(path) else 'JavaScript'} does not parse: {said}",
        where=place,
        fix="Write the whole file anew, each statement ended by a semicolon.",
    )
