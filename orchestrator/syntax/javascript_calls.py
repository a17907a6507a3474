"""Command lines that a JavaScript or TypeScript program hands to another process, as far as they stand in its text."""

import re
import shlex
from collections.abc import Iterator, Sequence

from orchestrator.syntax.grammar import Node
from orchestrator.syntax.javascript_mixed import scripts
from orchestrator.syntax.javascript_parts import arguments, callee
from orchestrator.syntax.javascript_scope import Path, Scope, Text
from orchestrator.syntax.javascript_tree import below, node_text, root

_RUNS = frozenset(
    {"exec", "execSync", "execFile", "execFileSync", "spawn", "spawnSync", "fork", "execAsync", "execPromise", "$"}
    | {"execa", "execaSync", "execaCommand", "execaCommandSync", "execaNode", "command", "commandSync", "Command"}
    | {"sh", "shell", "bash", "cmd", "run", "runSync", "system", "popen", "x", "xSync", "crossSpawn", "shellSync"}
)
"""Last names of what runs a command line; a name that has another meaning does no harm: only installing is told."""
_MODULES = frozenset({"#child_process", "#execa", "#cross-spawn", "#shelljs", "#zx", "#tinyexec", "#nano-spawn"})
_UNKNOWN = "$unknown"
_ENDING = re.compile(r"\.(cmd|exe|bat|ps1)$", re.IGNORECASE)
_FUNCTIONS = frozenset({"arrow_function", "function_expression", "function_declaration", "method_definition"})
_ROUNDS, _MOST = 3, 8


def commands_run(text: str, path: str = "") -> tuple[str, ...]:
    """One line per command of calls such as `execSync("…")`, `spawn("npm", […])`, `` $`…` `` or `Bun.spawn([…])`.

    A function of the file that hands its own argument on to such a call is one itself. What is not known in a line
    stands as `$unknown`. Never raises.
    """
    nodes = list(below(root(scripts(text, path), path)))
    scope = Scope(nodes)
    calls = [node for node in nodes if node.type in {"call_expression", "new_expression"}]
    runners, found = set(_RUNS), dict[str, None]()
    for _ in range(_ROUNDS):
        before = len(runners)
        for call in calls:
            if any(_runs(path, runners) for path in scope.paths(callee(call))):
                lines = _lines(scope, arguments(call))
                found.update(dict.fromkeys(lines))
                if any(_UNKNOWN in line for line in lines):
                    runners.update(_wrapper(call))
        if len(runners) == before:
            break
    return tuple(found)


def _runs(path: Path, runners: set[str]) -> bool:
    while len(path) > 1 and path[-1] in {"()", "sync", "call", "apply"}:
        path = path[:-1]
    return path[-1] in runners or path[0] in _MODULES or "$" in path[:2]


def _wrapper(call: Node) -> Iterator[str]:
    """The name of the function around a call."""
    node = call.parent
    while node is not None and node.type not in _FUNCTIONS:
        node = node.parent
    if node is None:
        return
    name = node.child_by_field_name("name")
    holder = node.parent
    if name is None and holder is not None:
        name = holder.child_by_field_name("name") or holder.child_by_field_name("key")
    if name is not None and node_text(name) not in {"main", "constructor", "then", "catch"}:
        yield node_text(name)


def _lines(scope: Scope, given: Sequence[Node]) -> list[str]:
    """The command lines a call may mean: one text, a program and its words, or a list of words."""
    if not given:
        return []
    first, rest = given[0], given[1:]
    if first.type == "template_string":
        return [_filled(scope, first)]
    if first.type == "object":  # Bun.spawn({cmd: […]})
        pairs = {node_text(one.child_by_field_name("key")): one for one in first.named_children if one.type == "pair"}
        listed = pairs["cmd"].child_by_field_name("value") if "cmd" in pairs else None
        return [_listed(scope, listed)] if listed is not None else []
    if first.type == "array":
        return [_listed(scope, first)]
    words = [_listed(scope, one) for one in rest if one.type in {"array", "identifier", "call_expression"}][:1]
    options = next((one for one in rest if one.type == "object"), None)
    if not words and options is not None:  # new Deno.Command("npm", {args: […]})
        pairs = {node_text(one.child_by_field_name("key")): one for one in options.named_children if one.type == "pair"}
        words = [_listed(scope, pairs["args"].child_by_field_name("value"))] if "args" in pairs else []
    if rest and rest[0].type in {"string", "template_string"}:  # execlp("npm", "i", "x")
        words = [shlex.join(_one(scope, word) for word in rest if word.type in {"string", "template_string"})]
    starts = [_program(text) for text in scope.texts(first)[:_MOST]] if first.type != "binary_expression" else []
    starts = starts or [_filled(scope, first)]
    return [" ".join([start, *words]) for start in starts]


def _program(text: Text) -> str:
    head, space, tail = text.value.partition(" ")
    return _ENDING.sub("", head) + space + tail + ("" if text.whole else _UNKNOWN)


def _listed(scope: Scope, node: Node | None) -> str:
    """The words of a list, in this place or behind a name, also put together by `concat` or cut by `split`."""
    words = _words(scope, node)
    return shlex.join([_ENDING.sub("", words[0]), *words[1:]]) if words else ""


def _words(scope: Scope, node: Node | None, depth: int = 0) -> list[str]:
    if node is not None and node.type == "identifier" and depth < _MOST:
        values = [one.value for one in scope.names.get(node_text(node), ()) if one.value is not None and not one.keys]
        found = [_words(scope, value, depth + 1) for value in values[:1]]
        return found[0] if found else [_UNKNOWN]
    if node is not None and node.type == "array":
        items = [item for item in node.named_children if item.type != "comment"]
        return [word for item in items for word in _spread(scope, item, depth)]
    called = callee(node) if node is not None and node.type == "call_expression" and depth < _MOST else None
    if node is None or called is None or called.type != "member_expression":
        return [_UNKNOWN]
    how, holder = node_text(called.child_by_field_name("property")), called.child_by_field_name("object")
    if how == "concat":
        behind = [
            _words(scope, one, depth + 1) if one.type != "string" else [_one(scope, one)] for one in arguments(node)
        ]
        return [*_words(scope, holder, depth + 1), *(word for held in behind for word in held)]
    return _filled(scope, holder).split() if how == "split" else [_UNKNOWN]


def _spread(scope: Scope, item: Node, depth: int) -> list[str]:
    if item.type != "spread_element" or depth >= _MOST:
        return [_one(scope, item)]
    return _words(scope, item.named_children[0] if item.named_children else None, depth + 1)


def _one(scope: Scope, node: Node) -> str:
    texts = scope.texts(node) if node.type != "spread_element" else ()
    whole = [text.value for text in texts if text.whole]
    if whole:
        return whole[0]
    return "node" if node_text(node) in {"process.execPath", "process.argv[0]"} else _UNKNOWN


def _filled(scope: Scope, node: Node | None) -> str:
    """A text with what is not known of it in its place: what stands behind it counts too."""
    if node is None:
        return _UNKNOWN
    if node.type == "template_string":
        parts = [child for child in node.children if child.type != "`"]
        return "".join(_filled(scope, part) for part in parts)
    if node.type == "binary_expression":
        return _filled(scope, node.child_by_field_name("left")) + _filled(scope, node.child_by_field_name("right"))
    if node.type == "template_substitution" and node.named_children:
        return _filled(scope, node.named_children[0])
    texts = scope.texts(node)
    return texts[0].value if texts[0].whole else texts[0].value + _UNKNOWN
