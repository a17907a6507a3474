"""YAML → tree of texts with lines. Read as events, so that no tag builds anything and each value stays as written."""

from collections.abc import Iterator
from typing import Any

import yaml

from orchestrator.adapters.backlog_tree import Fields, Items, Node, Scalar, unusable
from orchestrator.errors import BacklogError

MAX_DEPTH = 8
_NOTHING = frozenset({"", "~", "null", "Null", "NULL"})
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The one in C reads ten thousand stories in a second, the other is there everywhere."""


def parse_yaml(text: str, source: str, *, before: int = 0) -> Node:
    """The one document of `text`; `before` lines of the file stand in front of it.

    Raises BacklogError naming source and line for broken YAML, a second document, merge keys and deep nesting.
    """
    tree = _Tree(source, before)
    try:
        return tree.document(yaml.parse(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        raise tree.broken(error.problem or "it cannot be read", line, _tab_in(text, line)) from error
    except yaml.reader.ReaderError as error:
        before_it = text[: error.position] if isinstance(error.position, int) else ""
        raise tree.broken("it holds a character that YAML does not allow", before_it.count("\n") + 1) from error


def _tab_in(text: str, line: int) -> bool:
    lines = text.split("\n")
    return any("\t" in lines[number - 1] for number in (line, line - 1) if 0 < number <= len(lines))


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


class _Tree:
    """Builds nodes from events; an alias is the node it names."""

    def __init__(self, source: str, before: int) -> None:
        self._source, self._before = source, before
        self._named: dict[str, Node] = {}

    def broken(self, problem: str, line: int, tab: bool = False) -> BacklogError:
        """The error for what stands in `line` of the text."""
        line += self._before
        message = f"{self._source}, line {line}: not valid YAML ({problem})"
        fix = "YAML is indented with spaces, never with tabs" if tab else "put quotes around texts with `: `, `#`, `@`"
        return unusable("backlog.syntax", message, self._source, fix=fix, line=line)

    def document(self, events: Iterator[Any]) -> Node:
        """The first document, which has to be the only one."""
        found: Node | None = None
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                if found is not None:
                    raise self.broken("a second document begins", _line(event))
                found = self._node(next(events), events, 0)
        return found or Scalar(1 + self._before, "")

    def _node(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        line = _line(event)
        if depth > MAX_DEPTH:
            raise self.broken("it is nested too deeply", line)
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._named:
                raise self.broken(f"*{event.anchor} names nothing that is complete", line)
            return self._named[event.anchor]
        node = self._made(event, events, depth)
        if event.anchor is not None:
            self._named[event.anchor] = node
        return node

    def _made(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        line = _line(event) + self._before
        if isinstance(event, yaml.SequenceStartEvent):
            return Items(line, tuple(self._until(yaml.SequenceEndEvent, events, depth)))
        if isinstance(event, yaml.MappingStartEvent):
            parts = list(self._until(yaml.MappingEndEvent, events, depth))
            pairs = tuple((self._name(name), value) for name, value in zip(parts[::2], parts[1::2], strict=True))
            return Fields(line, pairs)
        nothing = event.implicit[0] and event.value in _NOTHING
        return Scalar(line, "" if nothing else event.value)

    def _until(self, end: type[Any], events: Iterator[Any], depth: int) -> Iterator[Node]:
        for event in events:
            if isinstance(event, end):
                return
            yield self._node(event, events, depth + 1)

    def _name(self, node: Node) -> Scalar:
        if not isinstance(node, Scalar):
            raise self.broken("a field's name is no text", node.line - self._before)
        if node.text == "<<":
            raise self.broken("merge keys (<<) are not read", node.line - self._before)
        return node
