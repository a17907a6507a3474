"""setup.cfg and setup.py: what they ask for, as far as it stands there."""

import ast
import configparser
import re
from collections.abc import Iterator, Mapping

from orchestrator.syntax.manifest_found import Found
from orchestrator.syntax.manifest_pyproject import BUILD_BACKENDS
from orchestrator.syntax.python_holes import is_whole
from orchestrator.syntax.python_index import is_usual
from orchestrator.syntax.python_scopes import Scope
from orchestrator.syntax.python_source import parse
from orchestrator.syntax.python_values import Values

_LISTS = ("install_requires", "tests_require", "setup_requires")
_MARKER = re.compile(r";[^;]*(==|!=|<|>|\bin\b)[^;]*['\"]")


def read_setup_cfg(text: str, folder: str) -> Found:
    """What setup.cfg declares, with `_` or `-` in its keys. Raises configparser.Error when it is none."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.read_string(text)
    found = Found()
    options = _section(parser, "options")
    for key in ("install_requires", "tests_require"):
        _entries(options.get(key, ""), folder, found)
    build = Found()
    _entries(options.get("setup_requires", ""), folder, build)
    found.names |= build.names - BUILD_BACKENDS
    found.sources |= build.sources
    found.bad += build.bad
    for value in _section(parser, "options.extras_require").values():
        _entries(value, folder, found)
    for line in options.get("dependency_links", "").split():
        found.sources.add(f"index {line}".lower())
    for name in ("easy_install", "develop", "install"):
        for key, value in _section(parser, name).items():
            if key in {"index_url", "find_links"}:
                found.sources |= {f"index {where}".lower() for where in value.split() if not is_usual(where)}
    return found


def _section(parser: configparser.ConfigParser, name: str) -> Mapping[str, str]:
    held = parser[name] if parser.has_section(name) else {}
    return {key.lower().replace("-", "_"): value or "" for key, value in held.items()}


def _entries(value: str, folder: str, found: Found) -> None:
    for line in _lines(value):
        if line.startswith("file:"):
            for file in line.removeprefix("file:").split(","):
                found.included(file.strip(), folder, "file:")
        else:
            found.requirement(line)


def _lines(entry: str) -> Iterator[str]:
    """A list that dangles, or one line whose `;` part requirements where no marker follows it."""
    for line in (line.split(" #")[0].strip() for line in entry.splitlines()):
        if ";" in line and not _MARKER.search(line):
            yield from (part.strip() for part in line.split(";") if part.strip())
        elif line and not line.startswith("#"):
            yield line


def read_setup_py(text: str) -> Found:
    """What setup.py hands to `setup(…)` or `dict(…)`, put together as it may be; what is computed is told as bad.

    Raises ValueError.
    """
    tree = parse(text)
    if tree is None:
        raise ValueError("it does not compile")
    return _SetupPy(tree).found


class _SetupPy:
    def __init__(self, tree: ast.Module) -> None:
        self.found = Found()
        self._values = Values(tree)
        for call, scope in self._values.survey.calls:
            for word in call.keywords:
                self._keyword(word.arg or "", word.value, scope)
                self._unpacked(word, scope)

    def _unpacked(self, word: ast.keyword, scope: Scope) -> None:
        """`setup(**settings)` with a dictionary of the file."""
        for held, home in self._values.values_of(word.value, scope) if word.arg is None else ():
            if isinstance(held, ast.Dict):
                for key, value in zip(held.keys, held.values, strict=True):
                    self._keyword(key.value if isinstance(key, ast.Constant) else "", value, home)

    def _keyword(self, name: object, value: ast.expr, scope: Scope) -> None:
        if name == "dependency_links":
            self.found.sources |= {f"index {entry}".lower() for entry in self._texts(str(name), value, scope)}
        elif name == "extras_require":
            self._extras(value, scope)
        elif name in _LISTS:
            own = BUILD_BACKENDS if name == "setup_requires" else frozenset()
            inner = Found()
            inner.requirements(self._texts(str(name), value, scope), str(name))
            self.found.names |= inner.names - own
            self.found.sources |= inner.sources
            self.found.bad += inner.bad

    def _extras(self, value: ast.expr, scope: Scope) -> None:
        held = self._values.values_of(value, scope)
        if not held:
            self._unknown("extras_require")
        for node, home in held:
            if not isinstance(node, ast.Dict):
                self._unknown("extras_require")
                continue
            for inner in node.values:
                self.found.requirements(self._texts("extras_require", inner, home), "extras_require")

    def _texts(self, name: str, value: ast.expr, scope: Scope) -> list[str]:
        """The entries of a list of requirements, which may be one text with lines."""
        found: list[str] = []
        for words in self._values.lists(value, scope) or [()]:
            found += words
        listed = self._values.values_of(value, scope)
        if not found:
            if any(isinstance(node, ast.List | ast.Tuple) and not node.elts for node, _ in listed):
                return []
            found = [line for text in self._values.texts(value, scope) for line in text.splitlines() if line.strip()]
        if any(not is_whole(entry) for entry in found):
            self._unknown(name)
        return [entry for entry in found if is_whole(entry) and entry != "None"]

    def _unknown(self, name: str) -> None:
        message = f"`{name}` is computed, so nothing is known about what it asks for"
        if message not in self.found.bad:
            self.found.bad.append(message)
