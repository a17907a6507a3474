"""Command lines that a JavaScript or TypeScript program hands to another process, where they stand as literals."""

import shlex
from collections.abc import Iterator, Sequence

from orchestrator.syntax.grammar import Node
from orchestrator.syntax.javascript_mixed import scripts
from orchestrator.syntax.javascript_parts import arguments, callee
from orchestrator.syntax.javascript_tree import below, literal, node_text, root, short_text, string_value

_RUNS = frozenset(
    {"exec", "execSync", "execFile", "execFileSync", "spawn", "spawnSync", "execa", "execaSync", "execaCommand", "$"}
)
_UNKNOWN = "$unknown"


def commands_run(text: str, path: str = "") -> tuple[str, ...]:
    """Returns one line per call such as `execSync("…")`, `spawn("npm", […])` or `` $`…` ``. Never raises.

    A word that is no literal stands as `$unknown`.
    """
    if not any(name in text for name in _RUNS):
        return ()
    calls = (node for node in below(root(scripts(text, path), path)) if node.type == "call_expression")
    named = (call for call in calls if short_text(callee(call)).rpartition(".")[2] in _RUNS)
    return tuple(dict.fromkeys(line for call in named for line in _lines(arguments(call))))


def _lines(given: Sequence[Node]) -> Iterator[str]:
    if not given or not (first := literal(given[0])):
        return
    if len(given) > 1 and given[1].type == "array":
        words = [string_value(item) or _UNKNOWN for item in given[1].named_children if item.type != "comment"]
        yield shlex.join([first, *words])
    else:
        yield string_value(given[0]) if given[0].type == "string" else node_text(given[0]).strip("`")
