"""Command lines that a Python program hands to another process, as far as the program itself says them."""

import ast
import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import chain

from orchestrator.syntax.python_holes import filled, is_whole
from orchestrator.syntax.python_meaning import Meanings, handed_on, last, plain
from orchestrator.syntax.python_scopes import Scope
from orchestrator.syntax.python_source import parse
from orchestrator.syntax.python_values import Values

_RUNS = frozenset(
    {"run", "call", "exec", "execute", "spawn", "popen", "system", "shell", "sh", "cmd", "command", "invoke", "launch"}
    | {"getoutput", "getstatusoutput", "subprocess"}
)
"""Words in the names of functions that run what they are given."""
_RUN_NAMES = frozenset({"check_output", "create_subprocess_exec", "create_subprocess_shell"})
_GIVEN_AS = frozenset({"args", "cmd", "command", "cmdline", "argv", "commands"})
_EXEC = re.compile(r"^os\.((exec|spawn)(?P<form>[lv])p?e?|posix_spawnp?)$")
_PIP_MAIN = re.compile(r"^pip\b.*\bmain$|^(micropip|piplite)\.install$")
_EASY_INSTALL = re.compile(r"\beasy_install\b.*\bmain$")
_SHELL_PACKAGES = ("sh.", "plumbum.cmd.", "plumbum.local.")
_NOX = frozenset({"install", "run_install", "conda_install", "run_always"})
_END = r"(_?(bin|exe|path|cmd|command|executable))?(\(…\))?$"
_PYTHON_HOLE = re.compile(rf"(^|[._])(executable|interpreter|python[23]?|py){_END}", re.IGNORECASE)
_TOOL_HOLE = re.compile(rf"(^|[._])(?P<tool>pip|npm|pnpm|yarn|uv|poetry|conda){_END}", re.IGNORECASE)
"""Names of what cannot be known that say which command it is."""
_PYTHON = re.compile(r"^(python|pypy)[\d.]*(\.exe)?$")
_MOST_CHARS = 4000


def commands_run(text: str) -> tuple[str, ...]:
    """One line per call such as `os.system("…")` or `subprocess.run([…])`; () when the text does not parse.

    Texts and lists may be put together, stand under names of the file, or be handed over by its own functions. What
    cannot be known stands as `$name`; one that is named like an interpreter or a package manager stands for it.
    """
    tree = parse(text)
    return tuple(dict.fromkeys(_Reader(tree).found())) if tree is not None else ()


class _Reader:
    def __init__(self, tree: ast.Module) -> None:
        self._values = Values(tree)
        self._meanings = Meanings(self._values)
        held = chain.from_iterable(self._values.survey.module.names.values())
        self._nox = any(bound.name.split(".")[0] in {"nox", "nox_poetry"} for bound in held)

    def found(self) -> Iterator[str]:
        for made, scope in self._values.survey.calls:
            for call in (made, *handed_on(made)):
                for name in sorted({plain(name) for name in self._meanings.of(call.func, scope)}):
                    yield from self._lines(name, call, scope)

    def _lines(self, name: str, call: ast.Call, scope: Scope) -> Iterator[str]:
        short = last(name)
        before = self._before(name, short)
        if match := _EXEC.match(name):
            yield from self._executed(match["form"], short, call, scope)
        elif short in {"exec", "eval"} and before is None:
            for text in self._values.texts(call.args[0], scope) if call.args else ():
                yield from commands_run(text) if is_whole(text) else ()
        elif short == "run_line_magic":
            yield from (_line(" ".join(words)) for words in self._several(call.args, scope))
        elif before is not None or short in _RUN_NAMES or not _RUNS.isdisjoint(short.lower().split("_")):
            at_first = 1 if short.startswith("subprocess_") else 0  # a protocol stands before the command
            yield from self._given(before or (), _without(call, at_first), scope)

    def _before(self, name: str, short: str) -> tuple[str, ...] | None:
        """The words that a function stands for, None for one that stands for none."""
        if _PIP_MAIN.search(name):
            return ("pip",) if short == "main" else ("pip", "install")
        if _EASY_INSTALL.search(name):
            return ("easy_install",)
        if self._nox and short in _NOX:
            return () if short == "run_always" else ("pip", "install")
        shell = next((before for before in _SHELL_PACKAGES if name.startswith(before)), "")
        return tuple(name.removeprefix(shell).split(".")) if shell else None

    def _given(self, before: Sequence[str], call: ast.Call, scope: Scope) -> Iterator[str]:
        """The line of a call: a list, one text that is a line, or several that are words."""
        handed = [word.value for word in call.keywords if word.arg in _GIVEN_AS]
        handed += [value for word in call.keywords if word.arg is None for value in self._unpacked(word.value, scope)]
        args = [*handed, *(part for arg in call.args for part in _spread(arg))]
        if not args:
            return
        lists = [words for words in self._values.lists(args[0], scope) if words]
        if lists:
            yield from (_joined([*before, *words]) for words in lists)
        elif before or (len(args) > 1 and not handed):
            yield from (_joined([*before, *words]) for words in self._several(args, scope))
        if not before and not lists:
            yield from (_line(text) for text in self._values.texts(args[0], scope))

    def _unpacked(self, node: ast.expr, scope: Scope) -> Iterator[ast.expr]:
        """The command in a dictionary that is unpacked into a call."""
        for held, _ in self._values.values_of(node, scope):
            if isinstance(held, ast.Dict):
                pairs = zip(held.keys, held.values, strict=True)
                yield from (value for key, value in pairs if isinstance(key, ast.Constant) and key.value in _GIVEN_AS)

    def _several(self, args: Sequence[ast.expr], scope: Scope) -> list[tuple[str, ...]]:
        """Arguments as words; a list among them stands for those in it."""
        listed = (bool(self._values.lists(arg, scope)) for arg in args)
        spread = [
            ast.Starred(value=arg, ctx=ast.Load()) if many else arg for arg, many in zip(args, listed, strict=True)
        ]
        return self._values.words(ast.List(elts=list(spread), ctx=ast.Load()), scope)

    def _executed(self, form: str, short: str, call: ast.Call, scope: Scope) -> Iterator[str]:
        """`os.execvp(file, args)`, `os.spawnlp(mode, file, name, …)`: the first of the arguments is a name only."""
        args = call.args[1:] if short.startswith("spawn") else call.args
        if len(args) < 2:
            return
        rest: ast.expr = ast.List(elts=args[1:], ctx=ast.Load()) if form == "l" else args[1]
        for file in self._values.texts(args[0], scope):
            yield from (_joined([file, *words[1:]]) for words in self._values.words(rest, scope))


def _spread(arg: ast.expr) -> list[ast.expr]:
    starred = isinstance(arg, ast.Starred) and isinstance(arg.value, ast.List | ast.Tuple)
    return arg.value.elts if starred else [arg]  # type: ignore[attr-defined]


def _without(call: ast.Call, count: int) -> ast.Call:
    """A call without its first arguments; of starred ones what is in them counts."""
    if not count:
        return call
    return ast.Call(func=call.func, args=call.args[count:], keywords=call.keywords)


def programs_run(text: str) -> tuple[str, ...]:
    """The programs that a text hands to another interpreter, as in `subprocess.run([sys.executable, "-c", "…"])`."""
    found: list[str] = []
    for line in commands_run(text) if "-c" in text else ():
        try:
            words = shlex.split(line)
        except ValueError:
            continue
        if words and _PYTHON.match(words[0].rsplit("/", 1)[-1]) and "-c" in words[:-1]:
            found.append(words[words.index("-c") + 1])
    return tuple(found)


def _joined(words: Sequence[str]) -> str:
    """Words as a line that a shell would split into them again."""
    first = [_tool(words[0])] if words else []
    return " ".join(_quoted(word) for word in (*first, *words[1:]) if word)[:_MOST_CHARS]


def _quoted(word: str) -> str:
    return shlex.quote(word) if is_whole(word) else _line(word)


def _tool(text: str) -> str:
    """A hole at the place of a command, by its name."""
    name = filled(text, "%s") if not is_whole(text) else ""
    if _PYTHON_HOLE.search(name):
        return "python"
    match = _TOOL_HOLE.search(name)
    return match["tool"].lower() if match else text


def _line(text: str) -> str:
    """A line of a shell, its holes as variables."""
    start, opened, rest = text.partition("\x01")
    if opened and not start.strip():
        inner, _, rest = rest.partition("\x02")
        text = _tool(f"\x01{inner}\x02") + rest
    named = re.sub(r"\x01([^\x02]*)\x02", lambda match: _variable(match[1]), text)
    return named[:_MOST_CHARS]


def _variable(name: str) -> str:
    if _PYTHON_HOLE.search(name):
        return "python"
    return f"${re.sub(r'[^A-Za-z0-9]+', '_', name).strip('_') or 'unknown'}"
