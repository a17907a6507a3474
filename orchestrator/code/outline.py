"""What a file defines, in the fewest words that can be built on: signatures, class names, tables, headings."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from orchestrator.code.javascript import tree as javascript_tree
from orchestrator.code.python.source import parse_python
from orchestrator.core.paths import suffix_of
from orchestrator.core.value import remembered, shortened

MAX_SIGNATURE = 200
"""Characters of one signature: a call with forty parameters is known by its first."""
MAX_NAMES = 80
"""Limit on the class names of a style sheet or page."""
STYLES = frozenset({".css", ".scss", ".sass", ".less"})
PAGES = frozenset({".html", ".htm", ".jinja", ".jinja2", ".j2", ".vue", ".svelte", ".astro", ".ejs", ".hbs", ".njk"})
PROSE = frozenset({".md", ".rst", ".txt", ".adoc"})
_CODE = frozenset({".py", *javascript_tree.SUFFIXES})


class Definition(NamedTuple):
    """One thing that a file defines."""

    name: str
    line: int
    """Its first line, counted from 1, decorators included."""
    end: int
    """Its last line."""
    signature: str
    """On one line, indented like a member where it is one."""


@remembered(4096)
def outline(text: str, path: str) -> tuple[Definition, ...]:
    """Returns what a file defines, private names too, in its order; nothing of a file that cannot be read."""
    suffix = suffix_of(path)
    if suffix == ".py":
        return tuple(_python(text))
    if suffix in javascript_tree.SUFFIXES:
        return tuple(_javascript(text))
    if suffix == ".sql":
        return tuple(_tables(text))
    if suffix in STYLES:
        return _named("classes", re.findall(r"\.(-?[A-Za-z_][\w-]*)(?=[^{};]*\{)", text))
    if suffix in PAGES:
        return _page(text)
    if suffix in PROSE:
        return tuple(_headings(text))
    return ()


def is_code(path: str) -> bool:
    """Returns whether the file is a source whose definitions have bodies."""
    return suffix_of(path) in _CODE


def is_page(path: str) -> bool:
    """Returns whether the file is a page, a template or a style sheet."""
    return suffix_of(path) in STYLES | PAGES


def is_facts(path: str) -> bool:
    """Returns whether the file has names that other files use: class names, fields, tables."""
    return path.lower().endswith(".sql") or is_page(path)


# Up to the end of the statement, so that its columns are seen.
_TABLE = re.compile(
    r"^[ \t]*CREATE[ \t]+(?:\w+[ \t]+){0,2}TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?([\w.\"`\[\]]+)\s*\([^;]*",
    re.IGNORECASE | re.MULTILINE,
)


def _tables(text: str) -> Iterator[Definition]:
    for found in _TABLE.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield Definition(found[1].strip('"`[]'), line, line + found[0].count("\n"), shortened(found[0], 600))


def _python(text: str) -> Iterator[Definition]:
    tree = parse_python(text)
    for node in tree.body if tree is not None else ():
        if isinstance(node, ast.ClassDef):
            yield from _class(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield _function(node, "")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and target.id != "__all__":
                    told = ast.unparse(node)
                    told = shortened(told.replace("\\n", " "), 500 if "CREATE TABLE" in told.upper() else 80)
                    yield Definition(target.id, node.lineno, node.end_lineno or node.lineno, told)


def _class(node: ast.ClassDef) -> Iterator[Definition]:
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    fields = [shortened(ast.unparse(one), 60) for one in node.body if isinstance(one, ast.AnnAssign)]
    told = f"class {node.name}({bases})" if bases else f"class {node.name}"
    told += f": {'; '.join(fields)}" if fields else ""
    first = min((node.lineno, *(one.lineno for one in node.decorator_list)))
    yield Definition(node.name, first, node.end_lineno or node.lineno, shortened(told, 400))
    for one in node.body:
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
            yield _function(one, "  ")


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef, indent: str) -> Definition:
    kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    marks = _marks(node.decorator_list)
    told = shortened(f"{marks} {kind} {node.name}({ast.unparse(node.args)}){returns}", MAX_SIGNATURE)
    first = min((node.lineno, *(one.lineno for one in node.decorator_list)))
    return Definition(node.name, first, node.end_lineno or node.lineno, f"{indent}{told}")


def _marks(decorators: Sequence[ast.expr]) -> str:
    """Returns decorators as they stand; those of a command with ten options, which would hide its name, by theirs."""
    told = " ".join(f"@{ast.unparse(one)}" for one in decorators)
    if len(told) <= MAX_SIGNATURE // 2:
        return told
    named = (f"{ast.unparse(one.func)}(…)" if isinstance(one, ast.Call) else ast.unparse(one) for one in decorators)
    return shortened(" ".join(f"@{name}" for name in dict.fromkeys(named)), MAX_SIGNATURE // 2)


# At the margin, or behind `export`: what follows up to the body is the signature.
_JS_TOP = re.compile(
    r"(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?"
    r"(?:function\s*\*?|class|interface|type|enum|const|let|var)\s+([A-Za-z_$][\w$]*)"
)
_JS_SHARED = re.compile(r"(?:module\.)?exports(?:\.([\w$]+))?\s*=|export\s+default\b|export\s*\{")
_JS_MEMBER = re.compile(
    r"(?:\t|\s{2,4})(?:(?:static|async|get|set|public|private|protected|readonly|override|abstract)\s+)*\*?([#\w$]+)\s*"
    r"(?:<[^()]*>)?\s*\([^;]*\{"
)
# Where it begins a line: examples in it are no code of the file, and `/*` within a line may stand in a text.
_BLOCK_COMMENT = re.compile(r"^[ \t]*/\*.*?\*/[ \t]*", re.MULTILINE | re.DOTALL)
_MOST_LINES = 12
"""Limit on the lines of one signature."""
_JS_WORDS = frozenset({"if", "for", "while", "switch", "catch", "return", "function", "with", "do", "else"})


def _javascript(text: str) -> Iterator[Definition]:
    lines, found = text.splitlines(), list[tuple[int, str, str]]()
    ended = text.rfind("*/") + 2  # each comment behind it that is never closed would be looked for to the end
    ended = max(ended, text.find("\n", ended))
    bare = (_BLOCK_COMMENT.sub(_blank, text[:ended]) + text[ended:]).splitlines()
    for number, begun in enumerate(bare, start=1):
        line = _whole_signature(lines, number - 1) if begun.endswith(("(", "<")) else begun
        if top := _JS_TOP.match(line):
            found.append((number, top[1], shortened(_before_body(line), MAX_SIGNATURE)))
        elif shared := _JS_SHARED.match(line):
            found.append((number, shared[1] or "exports", shortened(line.rstrip("{ "), MAX_SIGNATURE)))
        elif (member := _JS_MEMBER.match(line)) and member[1] not in _JS_WORDS and _has_body(bare, number - 1):
            found.append((number, member[1], f"  {shortened(_before_body(line), MAX_SIGNATURE)}"))
    for at, (number, name, told) in enumerate(found):
        behind = [other for other, _, signature in found[at + 1 :] if told[:1] == " " or signature[:1] != " "]
        yield Definition(name, number, (behind[0] - 1) if behind else len(lines), told)


def _has_body(lines: Sequence[str], at: int) -> bool:
    """Returns whether a body or a type stands behind the first brackets from this line on: behind a call none does."""
    text, depth = "\n".join(lines[at : at + 3 * _MOST_LINES]), 0
    for bracket in re.finditer(r"[()]", text):
        depth += 1 if bracket[0] == "(" else -1
        if depth == 0:
            return re.match(r"\s*[:{]", text[bracket.end() :]) is not None
    return False


def _blank(comment: re.Match[str]) -> str:
    """Returns the line breaks of a comment, so that what follows keeps its lines."""
    return "\n" * (len(comment[0].splitlines()) - 1)


def _whole_signature(lines: Sequence[str], at: int) -> str:
    """Returns a declaration that is written on several lines as one; just its first line where no body follows."""
    begun = lines[at]
    indent = begun[: len(begun) - len(begun.lstrip())]
    for end in range(at + 1, min(at + _MOST_LINES, len(lines))):
        if lines[end].startswith((f"{indent})", f"{indent}>")):
            parts = " ".join(one.strip() for one in lines[at + 1 : end + 1])
            return re.sub(r",?\s+(?=\))|,\s*(?=>)", "", f"{begun}{parts}") if parts.endswith("{") else begun
    return begun


def _before_body(line: str) -> str:
    """Returns a declaration without the beginning of its body."""
    return re.sub(r"\s*(?:=>\s*)?\{?\s*$", "", line.rstrip())


def _named(what: str, names: Iterable[str]) -> tuple[Definition, ...]:
    unique = list(dict.fromkeys(names))
    more = f" and {len(unique) - MAX_NAMES} more" if len(unique) > MAX_NAMES else ""
    return (Definition(what, 1, 1, f"{what}: {', '.join(unique[:MAX_NAMES])}{more}"),) if unique else ()


def _page(text: str) -> tuple[Definition, ...]:
    listed = re.findall(r"\bclass(?:Name)?\s*=\s*[\"']([^\"'{}]*)[\"']", text)
    return (
        *_named("extends", re.findall(r"\{%-?\s*(?:extends|include)\s+[\"']([^\"']+)[\"']", text)),
        *_named("blocks", re.findall(r"\{%-?\s*block\s+(\w+)", text)),
        *_named("classes", (name for names in listed for name in names.split())),
        *_named("ids", re.findall(r"\bid\s*=\s*[\"']([\w-]+)[\"']", text)),
        *_named("fields", re.findall(r"<(?:input|select|textarea)[^>]*\bname\s*=\s*[\"']([\w\[\]-]+)[\"']", text)),
    )


_UNDERLINE = re.compile(r"([=\-~^\"'*+#`:.])\1{2,}\s*")


def _headings(text: str) -> Iterator[Definition]:
    """Yields sections by their headings, those of Markdown and those that are underlined, up to the next heading."""
    lines, found = text.splitlines(), list[tuple[int, str]]()
    for number, (line, below) in enumerate(pairwise((*lines, "")), start=1):
        underlined = len(below.rstrip()) >= len(line.rstrip()) > 0 and _UNDERLINE.fullmatch(below)
        if re.match(r"#{1,3} \S", line) or (underlined and line[0].isalnum()):
            found.append((number, line))
    for (number, line), (after, _) in pairwise((*found, (len(lines) + 1, ""))):
        subject = re.sub(r"[`*]|\(.*", "", line.lstrip("# ")).strip()
        yield Definition(subject or line, number, after - 1, shortened(line, 80))
