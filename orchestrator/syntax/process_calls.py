"""Command lines that a Python program hands to another process, where they stand there as literals."""

import ast
import shlex
from collections.abc import Iterator

from orchestrator.syntax.python_source import dotted, parse

_RUNS = frozenset(
    {"run", "call", "check_call", "check_output", "Popen", "getoutput", "getstatusoutput", "system", "popen"}
    | {"create_subprocess_exec", "create_subprocess_shell"}
)
_UNKNOWN = "$unknown"


def commands_run(text: str) -> tuple[str, ...]:
    """Returns one line per call such as `os.system("…")` or `subprocess.run([…])`; () when the text does not parse.

    A word that is no literal stands as a variable, `sys.executable` as `python`.
    """
    tree = parse(text) if any(name in text for name in _RUNS) else None
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call)) if tree is not None else ()
    return tuple(dict.fromkeys(line for call in calls for line in _lines(call)))


def _lines(call: ast.Call) -> Iterator[str]:
    if dotted(call.func).rpartition(".")[2] not in _RUNS or not call.args:
        return
    first = call.args[0]
    if isinstance(first, ast.List | ast.Tuple):
        yield shlex.join(_word(item) for item in first.elts)
    elif len(call.args) > 1 and all(isinstance(arg, ast.Constant) for arg in call.args):
        yield shlex.join(_word(arg) for arg in call.args)
    elif isinstance(first, ast.Constant) and isinstance(first.value, str):
        yield first.value


def _word(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return "python" if dotted(node) == "sys.executable" else _UNKNOWN
