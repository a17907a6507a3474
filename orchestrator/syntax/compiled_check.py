"""Are Go, Java and Rust texts well-formed? By their syntax trees, and by what those overlook."""

import re

from orchestrator.syntax import tree_problems
from orchestrator.syntax.grammar import Node, below, parse
from orchestrator.syntax.problem import MOST, Problem

_NOT_IN_GRAMMAR = re.compile(r"\btry!(?=\s*\()|~")
"""Rust of older editions, and a sign that only macros take: other signs stand for them when the grammar is asked."""
_LISTS = frozenset({"literal_value", "argument_list", "parameter_list", "type_parameter_list"})


def problems(text: str, grammar: str) -> list[Problem]:
    """At most three, the first place first; [] when the text parses by `grammar`. Never raises."""
    tree = parse(grammar, text)
    if tree.has_error and grammar == "rust":
        tree = parse(grammar, _NOT_IN_GRAMMAR.sub(lambda match: "+" if match[0] == "~" else "tri+", text))
    said = tree_problems.problems(tree, text)
    return said or (_last_commas(tree, text)[:MOST] if grammar == "go" else [])


def _last_commas(tree: Node, text: str) -> list[Problem]:
    """Go: a list whose closing bracket stands in a line of its own ends with a comma, which the grammar lets pass."""
    lines = text.split("\n")
    found = []
    for node in below(tree):
        if node.type not in _LISTS or node.child_count < 3:
            continue
        parts = [child for child in node.children if child.type != "comment"]
        last, closing = parts[-2], parts[-1]
        if last.type not in {",", "(", "{", "["} and last.end_point.row < closing.start_point.row:
            line = last.end_point.row + 1
            message = "`,` is missing before the line end"
            found.append(
                Problem(line=line, column=len(lines[line - 1].rstrip()) + 1, message=message, fix="Add the comma.")
            )
    return found
