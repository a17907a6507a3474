"""What expressions of a JavaScript or TypeScript text mean, as far as the text alone says it.

Two questions: which things can a called expression be (`paths`), and which texts can an argument be (`texts`).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from orchestrator.syntax.grammar import Node
from orchestrator.syntax.javascript_names import bindings
from orchestrator.syntax.javascript_parts import EACH, THROUGH, alternatives, arguments, callee, members
from orchestrator.syntax.javascript_tree import name_text, short_text, string_value

Path = tuple[str, ...]
"""A dotted name: `("#child_process", "exec")` is the `exec` of that module, `?` stands for what is not known."""
HERE, FOLDER = "./", "/."
"""The folder of the file, and the one that the process runs in, as beginnings of a text."""
_GLOBALS = frozenset({"globalThis", "global", "window", "self", "default"})
_SAME = frozenset({"toString", "trim", "valueOf", "href", "pathname", "normalize", "freeze", "fileURLToPath", "URL"})
_SAME_OF = frozenset({"String", "fileURLToPath", "pathToFileURL", "URL", "freeze", "normalize"})
_FUNCTIONS = frozenset({"arrow_function", "function_expression", "function_declaration"})
_FIXED = {"import": "import", "this": "this", "super": "super", "meta_property": "import.meta"}
_DEPTH, _MOST = 60, 12
Result = TypeVar("Result")


class Text(NamedTuple):
    """A text that an expression may be."""

    value: str
    whole: bool = True
    """False when only this beginning of it is known."""


UNKNOWN = Text("", whole=False)


class Scope:
    """The names of one text. Every answer lists all that is possible; it never runs anything and never raises."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.names = bindings(nodes)
        self._depth = 0
        self._paths: dict[int | str, tuple[Path, ...]] = {}
        self._texts: dict[int | str, tuple[Text, ...]] = {}

    def paths(self, node: Node | None) -> tuple[Path, ...]:
        """What the expression may be called, names of this file replaced by what they are bound to."""
        if node is None:
            return (("?",),)
        return self._remembered(self._paths, node.id, lambda: self._paths_of(node), (("?",),))

    def texts(self, node: Node | None) -> tuple[Text, ...]:
        """The texts that the expression may be; one that is not `whole` among them: it may be something else too."""
        if node is None:
            return (UNKNOWN,)
        return self._remembered(self._texts, node.id, lambda: self._texts_of(node), (UNKNOWN,))

    def _remembered(
        self,
        memo: dict[int | str, tuple[Result, ...]],
        key: int | str,
        work: Callable[[], Iterator[Result]],
        unknown: tuple[Result, ...],
    ) -> tuple[Result, ...]:
        if key in memo:
            return memo[key]
        if self._depth > _DEPTH:
            return unknown
        memo[key] = unknown  # what leads back to itself is not known
        self._depth += 1
        found = tuple(dict.fromkeys(work()))
        self._depth -= 1
        memo[key] = found if 0 < len(found) <= _MOST else (*found[:_MOST], *unknown)
        return memo[key]

    def _paths_of(self, node: Node) -> Iterator[Path]:
        kind = node.type
        if kind in _FIXED:
            yield (_FIXED[kind],)
        elif kind in {"identifier", "shorthand_property_identifier"}:
            name = name_text(node)
            yield from self._remembered(self._paths, name, lambda: self._paths_of_name(name), (("?", name),))
        elif kind in {"member_expression", "subscript_expression"}:
            keys = self._keys(node)
            for path in self.paths(node.child_by_field_name("object")):
                yield from (_plain((*path, key)) for key in keys)
        elif kind == "call_expression":
            yield from self._paths_of_call(node)
        elif kind == "new_expression":
            yield from ((*path, "()") for path in self.paths(node.child_by_field_name("constructor")))
        else:
            inner = alternatives(node)
            yield from (path for one in inner for path in self.paths(one)) if inner else (("?",),)

    def _keys(self, node: Node, unknown: str = "?") -> list[str]:
        """What `a.b` or `a[b]` takes out of `a`."""
        if node.type == "member_expression":
            return [name_text(node.child_by_field_name("property"))]
        return [text.value if text.whole else unknown for text in self.texts(node.child_by_field_name("index"))]

    def _paths_of_name(self, name: str) -> Iterator[Path]:
        bound = self.names.get(name, ())
        if not bound or name == "require":
            yield (name,)
        for one in bound[:_MOST]:
            if one.module:
                yield _plain((_module(one.module), *one.keys))
            elif one.value is None or one.value.type in _FUNCTIONS:
                yield ("?", name)
            else:
                for path in self.paths(one.value):
                    yield _plain((*path, *one.keys)) if path != ("?",) else ("?", name)

    def _paths_of_call(self, node: Node) -> Iterator[Path]:
        given = arguments(node)
        for path in self.paths(node.child_by_field_name("function")):
            last = path[-1]
            if last == "createRequire":
                yield ("require",)
            elif last in {"require", "import", "getBuiltinModule", "importActual", "requireActual"} and given:
                yield from ((_module(text.value),) if text.whole else ("?",) for text in self.texts(given[0]))
            elif last == "bind":
                yield (
                    path[:-1] if path[0] not in {"Function", "bind"} else ("?",)
                )  # Function.call.bind(f) is f, called by hand
            elif last in {"promisify", "freeze"} and given:
                yield from self.paths(given[0])
            else:
                yield (*path, "()")

    def _texts_of(self, node: Node) -> Iterator[Text]:
        kind = node.type
        if kind in {"string", "number", "string_fragment", "escape_sequence"}:
            yield Text(string_value(node) if kind == "string" else name_text(node))
        elif kind == "template_string":
            yield from self._joined([part for part in node.children if part.type != "`"])
        elif kind == "binary_expression" and name_text(node.child_by_field_name("operator")) == "+":
            yield from self._joined([node.child_by_field_name("left"), node.child_by_field_name("right")])
        elif kind in {"identifier", "shorthand_property_identifier"}:
            name = name_text(node)
            yield from self._remembered(self._texts, name, lambda: self._texts_of_name(name), (UNKNOWN,))
        elif kind in {"member_expression", "subscript_expression"}:
            yield from self._texts_of_member(node)
        elif kind in {"call_expression", "new_expression"}:
            yield from self._texts_of_call(node)
        else:
            inner = alternatives(node)
            yield from (text for one in inner for text in self.texts(one)) if inner else (UNKNOWN,)

    def _joined(self, parts: Sequence[Node | None], between: str = "") -> Iterator[Text]:
        """Texts behind one another, as far as they are known from the beginning."""
        found: list[Text] = [Text("")]
        for place, part in enumerate(parts):
            last = between if place + 1 < len(parts) else ""
            found = [
                one if not one.whole else Text(f"{one.value}{more.value}{last if more.whole else ''}", more.whole)
                for one in found
                for more in (self.texts(part) if one.whole else (UNKNOWN,))
            ]
            if len(found) > _MOST:
                found = [UNKNOWN, *found[: _MOST - 1]]
        yield from found

    def _texts_of_name(self, name: str) -> Iterator[Text]:
        if name not in self.names:
            yield {"__dirname": Text("."), "__filename": Text("./_")}.get(name, UNKNOWN)
        bound = self.names.get(name, ())
        if len(bound) > _MOST:
            yield UNKNOWN
        for one in bound[:_MOST]:
            if one.value is None:
                yield UNKNOWN
            else:
                yield from (text for value in self._picked(one.value, one.keys) for text in self.texts(value))

    def _texts_of_member(self, node: Node) -> Iterator[Text]:
        holder = node.child_by_field_name("object")
        keys = self._keys(node, EACH)
        if holder is not None and holder.type == "meta_property":
            yield {"dirname": Text("."), "url": Text("./_"), "filename": Text("./_")}.get(keys[0], UNKNOWN)
        elif keys[0] in _SAME:
            yield from self.texts(holder)
        else:
            for key in keys:
                yield from (text for value in self._picked(holder, (key,)) for text in self.texts(value))

    def _picked(self, node: Node | None, keys: Path) -> Iterator[Node | None]:
        """The nodes that stand under `keys` in literals of objects and lists; None for what is not in the text."""
        waiting: list[tuple[Node | None, Path]] = [(node, keys)]
        seen = 0
        while waiting and seen < 4 * _MOST:
            seen += 1
            here, left = waiting.pop()
            if here is None or not left:
                yield here
            elif here.type == "identifier":
                bound = self.names.get(name_text(here), ())
                waiting += [(one.value, (*one.keys, *left)) for one in bound] or [(None, left)]
            elif here.type in {"object", "array"}:
                waiting += [(value, left[1:]) for value in members(here, left[0])]
            elif here.type == "call_expression" and (given := arguments(here)):
                frozen = short_text(here.child_by_field_name("function")) == "Object.freeze"
                waiting.append((given[0] if frozen else None, left))
            else:
                waiting += [(one, left) for one in alternatives(here)] or [(None, left)]
        if waiting:
            yield None

    def _texts_of_call(self, node: Node) -> Iterator[Text]:
        called, given = callee(node), arguments(node)
        for path in self.paths(called):
            last, first = path[-1], given[0] if given else None
            if path == ("process", "cwd"):
                yield Text(FOLDER)
            elif last in {"join", "resolve"} and "require" not in path and path[0] != "import.meta":
                yield from self._path_or_list(called, given, last)
            elif last in {*_SAME_OF, "resolve"} and first is not None:
                yield from self.texts(first)
            elif last == "dirname":
                yield from (Text(f"{one.value}/..") if one.whole else UNKNOWN for one in self.texts(first))
            elif last in _SAME and called is not None:
                yield from self.texts(called.child_by_field_name("object"))
            else:
                yield from self._returned(called)

    def _path_or_list(self, called: Node | None, given: Sequence[Node], last: str) -> Iterator[Text]:
        holder = called.child_by_field_name("object") if called is not None else None
        while holder is not None and holder.type in THROUGH and holder.named_children:
            holder = holder.named_children[-1]
        if holder is not None and holder.type == "array":
            between = self.texts(given[0]) if given else (Text(","),)
            yield from self._joined(holder.named_children, between[0].value)
            return
        for text in self._joined(given, "/"):
            rooted = text.value.startswith((".", "/")) or last == "join"
            yield text if rooted else Text(f"{FOLDER}/{text.value}", text.whole)

    def _returned(self, called: Node | None) -> Iterator[Text]:
        """What a function of this file returns, where that is one expression."""
        bound = self.names.get(name_text(called), ()) if called is not None and called.type == "identifier" else ()
        bodies = [one.value.child_by_field_name("body") for one in bound if one.value is not None and not one.keys]
        for body in bodies or [None]:
            if body is not None and body.type == "statement_block":
                last = body.named_children[-1] if body.named_children else body
                body = last.named_children[0] if last.type == "return_statement" and last.named_children else None
            yield from self.texts(body)


def _module(name: str) -> str:
    return f"#{name.removeprefix('node:')}"


def _plain(path: Path) -> Path:
    """The path without the global object and without `default`."""
    kept = tuple(key for key in path if key != "default")
    while len(kept) > 1 and kept[0] in _GLOBALS:
        kept = kept[1:]
    return kept or ("?",)
