"""The tolerant syntax tree of a JavaScript or TypeScript text: is it well-formed, and what every reader of it needs."""

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from orchestrator.code import grammar as code_grammar
from orchestrator.code.grammar import MOST, Node, Problem, below, language, node_text, parse, shown

if TYPE_CHECKING:
    from tree_sitter import Query

TYPESCRIPT = (".ts", ".mts", ".cts", ".tsx")
JAVASCRIPT = (".js", ".mjs", ".cjs", ".jsx")
SUFFIXES = (*JAVASCRIPT, *TYPESCRIPT)
"""Files this tree is for."""


def is_typescript(path: str) -> bool:
    """Returns whether the name says so."""
    return path.lower().endswith(TYPESCRIPT)


def grammar_of(path: str) -> str:
    """Returns the grammar for a file of this name: TypeScript with or without JSX, else JavaScript."""
    if not is_typescript(path):
        return "javascript"
    return "tsx" if path.lower().endswith(".tsx") else "typescript"


def root(text: str, path: str = "") -> Node:
    """Returns the root of the tree; a broken text gives error nodes, never an exception.

    The name in `path` tells TypeScript, with or without JSX, from JavaScript.
    """
    return _remembered(grammar_of(path), text)


_remembered = lru_cache(maxsize=4)(parse)
"""Several checks look at one delivery in a row, each by its tree. Trees never change, so threads may share them."""


@lru_cache(maxsize=2)  # the nodes of a long text take some hundred times its room
def everything(tree: Node) -> tuple[Node, ...]:
    """Returns the node and all below it, walked once for all who look at a tree in a row."""
    return tuple(below(tree))


def nodes_of(tree: Node, path: str, kinds: frozenset[str]) -> list[Node]:
    """Returns the nodes of these `kinds` in order of the text, those around others first.

    A query finds them several times faster than a walk through a tree of a hundred thousand nodes.
    """
    from tree_sitter import QueryCursor

    found = QueryCursor(_query_of(grammar_of(path), kinds)).captures(tree).get("node", [])
    return sorted(found, key=lambda node: (node.start_byte, -node.end_byte))


@cache
def _query_of(grammar: str, kinds: frozenset[str]) -> "Query":
    from tree_sitter import Query

    known = sorted(kind for kind in kinds if language(grammar).id_for_node_kind(kind, True) is not None)
    return Query(language(grammar), f"[{' '.join(f'({kind})' for kind in known)}] @node")


def short_text(node: Node | None, most: int = 200) -> str:
    """`node_text` of what is no longer than `most` bytes, "" for anything longer: asking is cheap at every node."""
    return node_text(node) if node is not None and node.end_byte - node.start_byte <= most else ""


def _literal(node: Node | None) -> str:
    """Returns the content of a string, or of a template string without substitutions; "" for anything else."""
    if node is None or node.type not in {"string", "template_string"}:
        return ""
    if any(child.type == "template_substitution" for child in node.children):
        return ""
    return node_text(node)[1:-1]


_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|u\{0*([0-9A-Fa-f]{1,6})\}|([0-7]{1,3})|(\r\n|[\s\S]))")
_NAMED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "\n": "", "\r\n": "", "\r": ""}


def string_value(node: Node | None) -> str:
    """Returns the content of a string without substitutions as a JavaScript engine reads it; "" for anything else."""
    return unescaped(_literal(node))


def unescaped(text: str) -> str:
    """Returns the text between two quotes with its escapes read."""
    return _ESCAPE.sub(_meant, text) if "\\" in text else text


def _meant(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if code or match[4]:
        number = int(code, 16) if code else int(match[4], 8)
        return chr(number) if number < 0xD800 or 0xDFFF < number < 0x110000 else "\ufffd"
    return _NAMED.get(match[5], match[5])


FUNCTIONS = frozenset(
    {"arrow_function", "function_expression", "function_declaration", "generator_function", "method_definition"}
    | {"generator_function_declaration"}
)


def callee(call: Node) -> Node | None:
    """What is called, or made by `new`."""
    return call.child_by_field_name("function") or call.child_by_field_name("constructor")


def arguments(call: Node) -> list[Node]:
    """What stands between the brackets of a call, or behind its tag, without comments."""
    given = call.child_by_field_name("arguments")
    if given is None:
        return []
    return (
        [given] if given.type == "template_string" else [one for one in given.named_children if one.type != "comment"]
    )


_NOT_IN_GRAMMAR = re.compile(
    r"\baccessor(?=[ \t]+[\w#\[])|(?<=\bexport )type(?=\s*\*)|(?<=\bkeyof )readonly(?= )"
    r"|(?<=[<,\s])(?:in out|in|out)(?= [A-Z]\w*(?:\s*[,=>]| extends\b))"
)
"""Rare TypeScript that is right and that the grammar does not know: these words are left out before it is asked."""
_NAMED_SO = re.compile(
    r"""\bimport\((?:"[^"\n]*"|'[^'\n]*')\)|\b(?:abstract|declare|accessor)(?=\??\s*:)|(?<=\[)type(?= in )"""
)
"""What stands for a name, and is put there as one."""
_EXPORTED_AS = re.compile(r"\bas \w+(?=\s*[,}])")
"""Any word may be the name that a module offers something by."""
_NAMELESS = re.compile(r"(?<=\bexport )default function(?=\s*[(<])")
"""A declaration of the default export may lack both a name and a body."""
_CALL_SIGNATURE = re.compile(
    r"(?<![=(,:?|&{\[<])(?<!=>)(\r?\n[ \t]*)[ \t](?=<\s*[A-Za-z_$][^;]{0,600}?>\s*\()"
)  # fmt: skip
"""Type parameters at a line's start: the grammar takes them for arguments of the type that the line above ends with.
Behind an operator or an opening bracket they begin an arrow function, where no `;` may stand."""
_IN_WORD = re.compile(r"(?m)^([ \t]*)in(?=[\d_$])")
"""A name at a line's start, of which the grammar takes the first letters for an operator behind the line above."""
_TEMPLATE = re.compile(
    r"""\\.|'(?>\\.|[^'\\\n])*+'|"(?>\\.|[^"\\\n])*+"|[\w$)\]]?`(?>\\.|\$\{[^{}]*\}|[^`\\])*+`""", re.DOTALL
)
"""Behind a tag a backslash need begin no escape that there is; strings are taken whole for the quotes in them."""
_TYPES = frozenset({"type_annotation", "interface_declaration", "type_alias_declaration", "as_expression"})
"""What no engine runs in a script; Flow's files say that a tool takes it out."""
# A pattern with both tags would be kept open for every element around: quadratic in the depth.
_ELEMENTS = "(jsx_element) @element"


def problems(text: str, grammar: str) -> list[Problem]:
    """At most three, the first place first; [] when the text parses by `grammar`. Never raises.

    A script is broken where the grammar of TSX says so, too, or takes it for its types alone: each of the two knows
    what the other does not.
    """
    tree, grammar = _tree(text, grammar)
    crossed = _crossed_tags(tree, grammar, text) if "</" in text and grammar != "typescript" else []
    return [*crossed, *(() if crossed else code_grammar.problems(tree, text))][:MOST]


def is_broken(text: str, grammar: str) -> bool:
    """Returns whether there are `problems`, without saying which: that takes most of the time."""
    tree, grammar = _tree(text, grammar)
    return tree.has_error or bool("</" in text and grammar != "typescript" and _crossed_tags(tree, grammar, text))


def _tree(text: str, grammar: str) -> tuple[Node, str]:
    """Returns the tree by the grammar that takes the text, if one does, and which that is."""
    tree = _remembered(grammar, text)
    if tree.has_error:
        known = _for_grammar(text, grammar)
        tree = _remembered(grammar, known)
        if tree.has_error and grammar == "typescript":  # a second `;` behind one would be a fault itself
            tree = _remembered(grammar, _CALL_SIGNATURE.sub(r"\1;", known))
    if tree.has_error and grammar == "javascript":
        other, _ = _tree(text, "tsx")
        if not other.has_error and ("@flow" in text or not any(node.type in _TYPES for node in below(other))):
            return other, "tsx"
    return tree, grammar


def _for_grammar(text: str, grammar: str) -> str:
    """Returns the text, each character at its place, with what the grammar does not know written as it knows it."""
    text = _EXPORTED_AS.sub(lambda match: "as " + "x" * (len(match[0]) - 3), text)
    text = _TEMPLATE.sub(lambda match: match[0] if match[0][0] in "'\"`\\" else re.sub(r"\\.", "xx", match[0]), text)
    text = _IN_WORD.sub(r"\1xx", text)
    if grammar != "typescript":
        text = text.replace("&", "|")  # alone it is text in JSX; between values and types the other sign is as good
    if grammar == "javascript":
        return text
    text = _NAMED_SO.sub(lambda match: "x" * len(match[0]), _NAMELESS.sub("function unnamed", text))
    return _NOT_IN_GRAMMAR.sub(lambda match: " " * len(match[0]), text)


@cache
def _query(grammar: str) -> "Query":
    from tree_sitter import Query

    return Query(language(grammar), _ELEMENTS)


def _crossed_tags(tree: Node, grammar: str, text: str) -> list[Problem]:
    """JSX elements that another name closes: the grammar takes any."""
    from tree_sitter import QueryCursor

    lines = code_grammar.Lines(text)
    found = []
    for element in QueryCursor(_query(grammar)).captures(tree).get("element", []):
        opened, closed = element.child_by_field_name("open_tag"), element.child_by_field_name("close_tag")
        if opened is None or closed is None:
            continue
        name, other = (shown(node_text(node.child_by_field_name("name"))) for node in (opened, closed))
        if name != other:
            line, column = lines.point(opened)
            message = f"`<{name}>` opened in line {line} is closed by `</{other}>` of line {closed.start_point.row + 1}"
            found.append(Problem(line=line, column=column, message=message, fix=f"Close it with `</{name}>`."))
    # The innermost pair that is crossed shows where a tag is missing; those around it are crossed by it.
    return sorted(found, key=lambda problem: -(problem.line or 0))[:1]
