"""Does a Python text compile, for the Python that the project promises?"""

import ast
import sys
import warnings

from orchestrator.syntax import python_source, tree_problems
from orchestrator.syntax.grammar import below, parse
from orchestrator.syntax.problem import Problem
from orchestrator.syntax.python_newer import as_older
from orchestrator.syntax.python_source import ONE_AT_A_TIME, strange_encoding

_OLD = {
    "print_statement": "`print` is a function: its arguments stand in brackets",
    "exec_statement": "`exec` is a function",
}
"""What the grammar still knows of Python 2."""
_STATEMENTS: dict[str, type[ast.stmt]] = {"Pattern matching": ast.Match, "Exception groups": ast.TryStar}
"""What Python says is too new → the statement it means."""
_OLDEST = (3, 7)
"""Python's own parser knows what older ones lacked, from here on."""


def problems(text: str, path: str, python: tuple[int, int] | None) -> list[Problem]:
    """At most three; [] when the text compiles for `python`, or for any known one when that is None. Never raises."""
    said = _compiled(text, path)
    running = sys.version_info[:2]
    if said and (python is None or python > running):
        older = as_older(text)
        if older != text and not _compiled(older, path):
            return []
        return said if python is None else _by_grammar(text)
    if not said and python is not None and python < running:
        return _for_older(text, max(python, _OLDEST))
    return said


def _compiled(text: str, path: str) -> list[Problem]:
    if encoding := strange_encoding(text):
        message = f"Python reads this file as {encoding[:40]}, but files are written as UTF-8"
        return [Problem(line=1, message=message, fix="Leave the line with the encoding out.")]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(
                text.removeprefix("\ufeff"),
                path.replace("\0", "").encode("utf-8", "replace"),
                "exec",
                dont_inherit=True,
            )
    except SyntaxError as error:
        return [Problem(line=error.lineno or None, column=error.offset or None, message=error.msg or "unexpected text")]
    except ValueError as error:
        return [Problem(message=str(error), fix="Remove the character.")]
    except (RecursionError, MemoryError):
        return [Problem(message="it is nested too deeply", fix="Write it with less nesting.")]
    return []


def _by_grammar(text: str) -> list[Problem]:
    """For a Python newer than the running one, whose own parser refuses what is right there."""
    root = parse("python", text)
    said = tree_problems.problems(root, text)
    return (
        said
        or [
            Problem(line=node.start_point.row + 1, column=node.start_point.column + 1, message=_OLD[node.type])
            for node in below(root)
            if node.type in _OLD
        ][:3]
    )


def _for_older(text: str, python: tuple[int, int]) -> list[Problem]:
    """What the promised Python would not read although the running one does."""
    try:
        with ONE_AT_A_TIME, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text.removeprefix("\ufeff"), feature_version=python)
    except SyntaxError as error:
        line, column = _begins(text, error)
        promised = f"the project promises Python {python[0]}.{python[1]}"
        fix = f"Write it in the syntax of Python {python[0]}.{python[1]}."
        return [Problem(line=line, column=column, message=f"{error.msg}; {promised}", fix=fix)]
    except (RecursionError, MemoryError):  # the running Python compiled it
        return []
    return []


def _begins(text: str, error: SyntaxError) -> tuple[int | None, int | None]:
    """Where the statement begins that is too new: the parser tells where it ended."""
    kinds = tuple(kind for word, kind in _STATEMENTS.items() if word in error.msg)
    tree = python_source.parse(text) if kinds else None
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, kinds) and node.lineno <= (error.lineno or 0) <= (node.end_lineno or 0) + 1:
            return node.lineno, node.col_offset + 1
    return error.lineno, error.offset
