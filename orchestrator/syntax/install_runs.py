"""Shells, interpreters, scripts and package managers: what a call of one of them runs or brings."""

import re
from collections.abc import Sequence
from posixpath import basename, normpath

from orchestrator.syntax.install_calls import Call, interpreter_call, python_call, shell_call
from orchestrator.syntax.install_code import code_lines, names_in_code, only_prints
from orchestrator.syntax.install_state import FROM_INPUT, Fed, Reading
from orchestrator.syntax.install_tools import NPM_LIKE, PYTHON_LIKE, SYSTEM
from orchestrator.syntax.install_use import Use, tool_of, use_of
from orchestrator.syntax.install_wrappers import PRINTERS
from orchestrator.syntax.process_calls import commands_run
from orchestrator.syntax.shell_expand import FETCHED, OUTPUT, printed_by

_INPUT = re.compile(r"^(-|/dev/stdin|/dev/fd/\d+|/proc/self/fd/\d+)$")
_NO_SCRIPT = re.compile(r"\.(txt|md|rst|log|json|csv|html?|xml|dat|tmp|bak|ya?ml|toml|ini|cfg)$|^https?:")
_ALSO_RUN = frozenset({"bun", "deno"})
_ITS_PIP = re.compile(r"^(get-pip\.py|pip[\w.-]*\.pyz)$")


def run_shell(reading: Reading, name: str, words: Sequence[str], fed: Fed | None, *, piped: bool) -> None:
    """A shell: its code, its script, or its input."""
    call = shell_call(name, words)
    for code in call.code:
        if not _hidden(reading, code):
            more = (*(call.words or ("",)), printed_by(FETCHED)) if piped else call.words
            reading.line(code, fed=fed, words=more or None)
    if call.file:
        run_script(reading, call.file, call.words, fed)
    elif call.words and not call.code:
        reading.command(call.words, fed)
    elif call.reads and piped:
        reading.state.tell([FROM_INPUT])
    elif call.reads:
        _from_input(reading, fed)


def run_script(
    reading: Reading, path: str, words: Sequence[str], fed: Fed | None, *, called: bool = False, python: bool = False
) -> None:
    """A file that is run: one of the project is judged where it is delivered, one that the text writes is read here.

    `called`: it stands in the place of a command, so that its name alone says nothing against it.
    """
    held = reading.state.file(path)
    if _hidden_file(reading, path):
        return
    if held is not None:
        if held.text is None:
            reading.state.refuse(f"{held.shown}: {path}")
        elif python:
            _program(reading, held.text, python=True)
        else:
            reading.line(held.text, fed=fed, words=words or None)
    elif _INPUT.match(path):
        _from_input(reading, fed, python=python)
    elif not called and _NO_SCRIPT.search(path):
        reading.state.refuse(f"run {path}")


def _hidden(reading: Reading, code: str) -> bool:
    """Whether code begins with what another command prints; said unless that one is known to print settings."""
    match = OUTPUT.match(code.strip())
    if match is not None and match["name"] not in PRINTERS:
        reading.state.refuse()
    return match is not None and match.end() == len(code.strip())


def _hidden_file(reading: Reading, path: str) -> bool:
    """Whether a path is a file of what another command prints, or a name that was fetched; said if so."""
    match = OUTPUT.fullmatch(path)
    name = match["name"] if match is not None else ""
    if name == FETCHED or (name[:1] == "@" and name[1:] not in PRINTERS):
        reading.state.refuse()
    return match is not None


def _from_input(reading: Reading, fed: Fed | None, *, python: bool = False) -> None:
    if fed is None:
        return
    if fed.text is not None:
        if not _hidden(reading, fed.text):
            _program(reading, fed.text, python=True) if python else reading.line(fed.text)
    elif fed.file:
        run_script(reading, fed.file, (), None, python=python)
    else:
        reading.state.refuse(fed.shown)


def run_python(reading: Reading, words: Sequence[str], fed: Fed | None) -> None:
    """Python: a module that installs, code, a file, or its input."""
    call = python_call(words)
    if call.module:
        reading.command([call.module.split(".")[0], *call.words], fed)
        return
    _programs(reading, call, fed, python=True)
    name = basename(normpath(call.file)) if call.file else ""
    if _ITS_PIP.match(name):
        reading.command(["pip", *([] if name.endswith(".pyz") else ["install"]), *call.words])
    elif tool_of(name):
        reading.command([name, *call.words])


def run_interpreter(reading: Reading, name: str, words: Sequence[str], fed: Fed | None) -> None:
    """Another interpreter: its program texts, its file, or its input."""
    _programs(reading, interpreter_call(name, words), fed, python=False)


def _programs(reading: Reading, call: Call, fed: Fed | None, *, python: bool) -> None:
    for code in call.code:
        if not _hidden(reading, code):
            _program(reading, code, python=python)
    if call.file:
        run_script(reading, call.file, call.words, fed, python=True)
    elif call.reads and fed is not None and fed.text is not None:
        _program(reading, fed.text, python=python)
    elif call.reads:
        _from_input(reading, fed, python=python)


def _program(reading: Reading, code: str, *, python: bool) -> None:
    if python and only_prints(code):
        reading.state.data.append(code)
        return
    for line in dict.fromkeys((*code_lines(code), *(commands_run(code) if python else ()))):
        reading.line(line)
    reading.state.tell(names_in_code(code))


def use_tool(reading: Reading, tool: str, words: Sequence[str], *, piped: bool) -> None:
    """A package manager: the names it is given, and what it runs."""
    state = reading.state
    if tool in _ALSO_RUN:
        run_interpreter(reading, tool, words, None)
    use = use_of(tool, words)
    if piped and (use.takes_more or not words):
        state.tell([*use.names, FROM_INPUT])
    state.tell(use.names, system=tool in SYSTEM)
    _written_names(reading, tool, words, use)
    for command in use.commands:
        reading.command(command)
    for line in use.lines:
        reading.line(line)


def _written_names(reading: Reading, tool: str, words: Sequence[str], use: Use) -> None:
    """Requirement files and archives that the text wrote or fetched itself; a project that it cloned."""
    state = reading.state
    if not use.takes_more or tool not in NPM_LIKE | PYTHON_LIKE:
        return
    for word in words:
        path = re.sub(r"^(-r|--requirements?=)", "", word)
        held = None if path.startswith("-") or not path else state.file(path)
        if held is None:
            continue
        if path.endswith((".txt", ".in")) and held.text is not None:
            lines = (line.split("#")[0].strip() for line in held.text.splitlines())
            state.tell(use_of("pip", ["install", *(word for line in lines for word in line.split())]).names)
        elif held.fetched or not path.endswith((".txt", ".in", ".json", ".toml")):
            state.refuse(f"{held.shown}: {path}")
    if state.cloned and any(not word.startswith("-") and ("/" in word or word[:1] == ".") for word in words):
        state.refuse(f"{state.cloned}; {tool} {' '.join(words)}")
