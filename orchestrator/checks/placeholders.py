"""Text that stands where code should stand: "rest of the code unchanged", "TODO: implement"."""

import ast
import io
import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterator
from posixpath import splitext

from orchestrator.checks.omissions import BARE, THROWN, leaves_undone, may_leave_undone, stands_for_code
from orchestrator.domain.findings import Finding, Where, major, minor
from orchestrator.syntax import python_source

_COMMENT = re.compile(r"(?:^|\s)(?://|#|/\*|\*|<!--|--|\{/\*|;;|%)(?P<text>.*)$")
_EMPTY_BLOCK = re.compile(
    r"\{\s{0,80}(?://|/\*)\s{0,9}(?:TODO|FIXME|Implement|Placeholder|Not (?:yet )?implemented)[^\n{}]{0,200}\n?"
    r"\s{0,80}\}",
    re.IGNORECASE,
)
_COMMENT_CAP = 1000
"""Characters of a line that are looked at: longer ones are data, not comments."""
_PROSE = frozenset({".md", ".rst", ".txt", ".adoc", ".csv", ".json", ".svg", ".lock"})
_FIX = "Write the whole file, every line of it."


def placeholders(path: str, text: str, *, before: str = "") -> list[Finding]:
    """Findings on comments that stand for missing code; prose and data files are not looked at.

    An omission is major. A TODO to implement something is major where it is all a function holds, minor elsewhere.
    A comment that stood in `before` already is not the delivery's.
    """
    if splitext(path)[1].lower() in _PROSE:
        return []
    old = {line.strip() for line in before.splitlines()}
    stubs = _stub_lines(path, text) if may_leave_undone(text) else frozenset()
    findings: list[Finding] = []
    for number, comment, line in _comments(path, text):
        where = Where(file=path, line=number)
        said = comment.strip()[:120]
        if line.strip() in old:
            continue
        if stands_for_code(comment):
            message = f"`{said}` stands for code that is not there"
            findings.append(major("delivery.placeholder", message, where=where, fix=_FIX))
        elif leaves_undone(comment):
            make = major if number in stubs else minor
            findings.append(make("delivery.placeholder", f"`{said}` leaves work undone", where=where, fix=_FIX))
    return [*findings, *_not_written(path, text, old)]


def _not_written(path: str, text: str, old: set[str]) -> Iterator[Finding]:
    """Functions whose code only says that they are not written. A class's method may leave that to its heirs."""
    lines = text.split("\n")
    if splitext(path)[1].lower() in {".py", ".pyi"}:
        tree = python_source.parse(text) if "NotImplementedError" in text else None
        numbers = [
            node.body[-1].lineno
            for node in (tree.body if tree is not None else ())
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and isinstance(node.body[-1], ast.Raise)
            and all(_says_nothing(statement) for statement in node.body)
        ]
    else:
        numbers = [at for at, line in enumerate(lines, start=1) if THROWN.search(line[:_COMMENT_CAP])]
    for number in numbers:
        said = lines[number - 1].strip()
        if said not in old:
            where = Where(file=path, line=number)
            yield minor("delivery.placeholder", f"`{said[:120]}` leaves work undone", where=where, fix=_FIX)


def _comments(path: str, text: str) -> Iterator[tuple[int, str, str]]:
    """(line number, comment, whole line): by tokens where Python allows, else by the look of the line."""
    lines = text.split("\n")
    if splitext(path)[1].lower() in {".py", ".pyi"} and python_source.parse(text) is not None:
        if "#" not in text:
            return
        try:
            for token in tokenize.generate_tokens(io.StringIO(text).readline):
                if token.type == tokenize.COMMENT:
                    yield token.start[0], token.string[:_COMMENT_CAP], token.line
        except (tokenize.TokenError, SyntaxError):
            return  # it parsed, so at most the tail after the last statement is lost
        return
    for number, line in enumerate(lines, start=1):
        match = _COMMENT.search(line[:_COMMENT_CAP])
        if match:
            yield number, match["text"], line[:_COMMENT_CAP]
        elif BARE.match(line[:_COMMENT_CAP]):
            yield number, f"... {line.strip()[:_COMMENT_CAP]}", line[:_COMMENT_CAP]


def _stub_lines(path: str, text: str) -> frozenset[int]:
    """Lines of functions (Python) or blocks (languages with braces) that hold nothing but a note."""
    if path.lower().endswith(".pyi"):
        return frozenset()  # there a body of `...` is all that a function ever has
    if splitext(path)[1].lower() != ".py":
        starts = [0, *(match.end() for match in re.finditer("\n", text))]
        blocks = ((bisect_right(starts, m.start()), bisect_right(starts, m.end())) for m in _EMPTY_BLOCK.finditer(text))
        return frozenset(line for first, last in blocks for line in range(first, last + 1))
    tree = python_source.parse(text)
    found: set[int] = set()
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and all(_says_nothing(s) for s in node.body):
            found.update(range(node.lineno, (node.end_lineno or node.lineno) + 2))
    return frozenset(found)


def _says_nothing(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Pass):
        return True
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return True
    raised = statement.exc if isinstance(statement, ast.Raise) else None
    name = raised.func if isinstance(raised, ast.Call) else raised
    if isinstance(name, ast.Name) and name.id == "NotImplementedError":
        return True
    returned = statement.value if isinstance(statement, ast.Return) else False
    return returned is None or (isinstance(returned, ast.Constant) and returned.value is None)
