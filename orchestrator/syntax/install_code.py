"""Program text given to an interpreter on its command line or input → the shell lines its literals make."""

import ast
import re
from collections.abc import Iterator, Sequence

from orchestrator.syntax.python_source import parse
from orchestrator.syntax.shell_nesting import escaped_text

_JOINED = re.compile(r"""(["'`])\s*[+.]?\s*[rbfuRBFU]{0,2}\1""")
_QUOTE = re.compile(r"""\\.|(?P<quote>["'`])""", re.DOTALL)
_CLOSED = {quote: re.compile(rf"(?:[^{quote}\\]|\\.)*{quote}", re.DOTALL) for quote in "\"'`"}
_QUOTED = re.compile(
    r"%[xqQwW]?[{(\[](?P<text>[^})\]]{0,500})[})\]]|\bqx/(?P<other>[^/]{0,500})/|\bqw?[({](?P<words>[^)}]{0,500})[)}]"
)
_RUNS = re.compile(r"\b(exec\w*|eval|system|popen|spawn\w*|run|call|check_\w+|Function|loads|passthru|shell_exec)\b")
_HIDDEN = re.compile(
    r"b(16|32|64|85)decode|\batob\b|base64_decode|fromhex|unhexlify|urlopen|urlretrieve|decompress|codecs|fetch\("
    r"|Buffer\.from|fromCharCode|pack\(|https?\.get|requests\.get|\bchr\("
)
_OTHER_CALLS = re.compile(
    r"(?:install\.packages|install_github|Pkg\.add|CPAN::\w+|install)\s*\(\s*(?:c\(\s*)?([\"'])(?P<name>[\w.@/-]+)\1"
)
_LONGEST = 100_000
HIDDEN = "code that hides what it runs"
"""Stands for program text that decodes or fetches what it runs."""


def only_prints(code: str) -> bool:
    """Whether this Python text surely runs nothing: every call in it is `print`."""
    tree = parse(code) if len(code) < _LONGEST else None
    if tree is None:
        return False
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    quiet = not any(isinstance(node, ast.Import | ast.ImportFrom | ast.Assign) for node in ast.walk(tree))
    return quiet and all(isinstance(call, ast.Name) and call.id == "print" for call in calls)


def code_lines(code: str) -> Sequence[str]:
    """What a program's literals say, each alone and all as the words of one command."""
    if len(code) > _LONGEST:
        return (code,)
    joined = _JOINED.sub("", code)
    literals = [escaped_text(text) for text in _literals(joined)]
    literals += [match["text"] or match["other"] or match["words"] or "" for match in _QUOTED.finditer(joined)]
    together = " ".join(literals)
    lines = [*literals, together]
    if re.search(r"\bpip\b", joined) and not re.search(r"\bpip\b", together):
        lines.append(f"pip {together}")
    return [line for line in lines if line.strip()]


def _literals(code: str) -> Iterator[str]:
    """What stands between quotes; a quote that nothing closes is passed over."""
    at, open_ones = 0, set[str]()
    while match := _QUOTE.search(code, at):
        at, quote = match.end(), match["quote"]
        closed = _CLOSED[quote].match(code, at) if quote and quote not in open_ones else None
        if closed is not None:
            at = closed.end()
            yield code[match.end() : at - 1]
        elif quote:
            open_ones.add(quote)


def names_in_code(code: str) -> Sequence[str]:
    """Packages that calls such as R's `install.packages` name, and `HIDDEN` for code that decodes what it runs."""
    found = [match["name"].lower() for match in _OTHER_CALLS.finditer(code[:_LONGEST])]
    if _HIDDEN.search(code) and _RUNS.search(code):
        found.append(HIDDEN)
    return found
