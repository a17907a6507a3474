"""Is a JavaScript or TypeScript text well-formed? By its syntax tree."""

import re
from functools import cache
from typing import TYPE_CHECKING

from orchestrator.syntax import tree_problems
from orchestrator.syntax.grammar import Node, below, language, node_text, parse
from orchestrator.syntax.problem import MOST, Problem, shown

if TYPE_CHECKING:
    from tree_sitter import Query

_NOT_IN_GRAMMAR = re.compile(
    r"\baccessor(?=[ \t]+[\w#\[])|(?<=\bexport )type(?=\s*\*)|(?<=\bkeyof )readonly(?= )"
    r"|(?<=[<,\s])(?:in out|in|out)(?= [A-Z]\w*(?:\s*[,=>]| extends ))"
)
"""Rare TypeScript that is right and that the grammar does not know: these words are left out before it is asked."""
_NAMED_SO = re.compile(r"""\bimport\((?:"[^"\n]*"|'[^'\n]*')\)|\b(?:abstract|declare|accessor)(?=\??\s*:)""")
"""What stands for a name, and is put there as one."""
_EXPORTED_AS = re.compile(r"\bas \w+(?=\s*[,}])")
"""Any word may be the name that a module offers something by."""
_NAMELESS = re.compile(r"(?<=\bexport )default function(?=\s*[(<])")
"""A declaration of the default export may lack both a name and a body."""
_CALL_SIGNATURE = re.compile(r"(?m)^([ \t]*)[ \t](?=<[A-Za-z_$][^()]{0,400}>\s*\()")
"""Type parameters at a line's start: the grammar takes them for arguments of the type that the line above ends with."""
_RAW = re.compile(r"\bString\.raw`(?:\\.|[^`\\$])*`")
"""A backslash in it begins no escape, and need be none that there is."""
_TYPES = frozenset({"type_annotation", "interface_declaration", "type_alias_declaration", "as_expression"})
"""What no engine runs in a script; Flow's files say that a tool takes it out."""
_ELEMENTS = """
(jsx_element open_tag: (jsx_opening_element) @open close_tag: (jsx_closing_element) @close)
"""


def problems(text: str, grammar: str) -> list[Problem]:
    """At most three, the first place first; [] when the text parses by `grammar`. Never raises.

    A script is broken where the grammar of TSX says so, too, or takes it for its types alone: each of the two knows
    what the other does not.
    """
    tree, grammar = _tree(text, grammar)
    crossed = _crossed_tags(tree, grammar, text) if "</" in text and grammar != "typescript" else []
    return [*crossed, *(() if crossed else tree_problems.problems(tree, text))][:MOST]


def is_broken(text: str, grammar: str) -> bool:
    """Whether there are `problems`, without saying which: that takes most of the time."""
    tree, grammar = _tree(text, grammar)
    return tree.has_error or bool("</" in text and grammar != "typescript" and _crossed_tags(tree, grammar, text))


def _tree(text: str, grammar: str) -> tuple[Node, str]:
    """The tree by the grammar that takes the text, if one does, and which that is."""
    tree = parse(grammar, text)
    if tree.has_error and (known := _for_grammar(text, grammar)) != text:
        tree = parse(grammar, known)
    if tree.has_error and grammar == "javascript":
        other, _ = _tree(text, "tsx")
        if not other.has_error and ("@flow" in text or not any(node.type in _TYPES for node in below(other))):
            return other, "tsx"
    return tree, grammar


def _for_grammar(text: str, grammar: str) -> str:
    """The text, each character at its place, with what the grammar does not know written as it knows it."""
    text = _EXPORTED_AS.sub(lambda match: "as " + "x" * (len(match[0]) - 3), text)
    text = _RAW.sub(lambda match: match[0].replace("\\", "x"), text)
    if grammar != "typescript":
        text = text.replace("&", "|")  # alone it is text in JSX; between values and types the other sign is as good
    if grammar == "javascript":
        return text
    text = _NAMED_SO.sub(lambda match: "x" * len(match[0]), _NAMELESS.sub("function unnamed", text))
    if grammar == "typescript":
        text = _CALL_SIGNATURE.sub(r"\1;", text)
    return _NOT_IN_GRAMMAR.sub(lambda match: " " * len(match[0]), text)


@cache
def _query(grammar: str) -> "Query":
    from tree_sitter import Query

    return Query(language(grammar), _ELEMENTS)


def _crossed_tags(tree: Node, grammar: str, text: str) -> list[Problem]:
    """JSX elements that another name closes: the grammar takes any."""
    from tree_sitter import QueryCursor

    lines = tree_problems.Lines(text)
    found = []
    for _, captured in QueryCursor(_query(grammar)).matches(tree):
        opened, closed = captured["open"][0], captured["close"][0]
        name, other = (shown(node_text(node.child_by_field_name("name"))) for node in (opened, closed))
        if name != other:
            line, column = lines.point(opened)
            message = f"`<{name}>` opened in line {line} is closed by `</{other}>` of line {closed.start_point.row + 1}"
            found.append(Problem(line=line, column=column, message=message, fix=f"Close it with `</{name}>`."))
    # The innermost pair that is crossed shows where a tag is missing; those around it are crossed by it.
    return sorted(found, key=lambda problem: -(problem.line or 0))[:1]
