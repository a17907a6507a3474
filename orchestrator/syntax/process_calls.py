"""Command lines that a Python program hands to another process, where they stand as literals."""

import ast
import shlex

from orchestrator.syntax.python_source import dotted, parse

_RUNS = frozenset(
    {"system", "popen", "run", "Popen", "call", "check_call", "check_output", "getoutput", "getstatusoutput", "main"}
    | {"create_subprocess_shell", "create_subprocess_exec", "spawn", "execvp", "execv", "execlp", "execl"}
)


def commands_run(text: str) -> tuple[str, ...]:
    """One line per call such as `os.system("…")` or `subprocess.run([…])`; () when the text does not parse.

    What is no literal in a list stands as `python`, which is what `sys.executable` mostly is.
    """
    tree = parse(text)
    if tree is None:
        return ()
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (name := dotted(node.func)).split(".")[-1] in _RUNS:
            line = _line(node.args)
            found.append(f"pip {line}" if name.split(".")[0].startswith("pip") and line else line)
    return tuple(line for line in found if line)


def _line(args: list[ast.expr]) -> str:
    if not args:
        return ""
    first = args[0]
    if isinstance(first, ast.List | ast.Tuple):
        return shlex.join(_word(item) for item in first.elts)
    if len(args) > 1 and all(isinstance(arg, ast.Constant | ast.Attribute | ast.Name) for arg in args):
        return shlex.join(_word(arg) for arg in args)
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""


def _word(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    return "python" if dotted(node).endswith("executable") else "$unknown"
