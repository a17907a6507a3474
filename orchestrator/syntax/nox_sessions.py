"""What a noxfile installs into its sessions."""

import ast
import shlex

from orchestrator.syntax.python_source import parse

_INSTALLS = {"install": "pip install", "conda_install": "conda install"}


def session_installs(text: str) -> tuple[str, ...]:
    """One command line per `session.install("…")`; an argument that is no literal stands as `$unknown`.

    () when the text does not parse.
    """
    tree = parse(text)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)] if tree is not None else []
    found = []
    for call in calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr in _INSTALLS and call.args:
            words = [arg.value if isinstance(arg, ast.Constant) else "$unknown" for arg in call.args]
            plain = [shlex.quote(str(word)) if word != "$unknown" else "$unknown" for word in words]
            found.append(f"{_INSTALLS[call.func.attr]} {' '.join(plain)}")
    return tuple(found)
