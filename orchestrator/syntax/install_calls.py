"""How shells, interpreters and wrappers are called: which of their words is code, a file, or a command."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from orchestrator.syntax.shell_expand import FETCHED, printed_by

SHELLS = frozenset(
    {"sh", "bash", "zsh", "dash", "ash", "ksh", "mksh", "pdksh", "yash", "rbash", "rzsh", "fish", "tcsh", "csh", "su"}
    | {"runuser", "pwsh", "powershell", "cmd", "powershell.exe", "cmd.exe", "bash.exe", "elvish", "nu", "xonsh"}
)
_WINDOWS = frozenset({"pwsh", "powershell", "powershell.exe", "cmd", "cmd.exe"})
_SHELL_VALUED = frozenset({"-o", "+o", "-O", "+O", "--rcfile", "--init-file"})
_SU_VALUED = frozenset({"-s", "--shell", "-g", "--group", "-G", "--supp-group", "-w", "--whitelist-environment", "-u"})
_IS_CODE = re.compile(r"^(-[A-Za-z]*c[A-Za-z]*|--(session-|init-)?command)$")
_PYTHON = re.compile(r"^(python|pypy|py)(w)?(2|3)?(\.\d+)?(t)?(\.exe)?$")
_CODE: Mapping[str, tuple[str, ...]] = {
    "node": ("-e", "--eval", "-p", "--print", "-pe", "--import", "--require", "-r"),
    "nodejs": ("-e", "--eval", "-p", "--print", "-pe"),
    "bun": ("-e", "--eval", "-p", "--print"),
    "deno": ("eval",),
    "perl": ("-e", "-E"),
    "ruby": ("-e",),
    "php": ("-r", "-B", "-R", "-E"),
    "lua": ("-e",),
    "luajit": ("-e",),
    "rscript": ("-e",),
    "r": ("-e",),
    "julia": ("-e", "-E", "--eval", "--print"),
    "osascript": ("-e",),
    "groovy": ("-e",),
    "scala": ("-e",),
    "tclsh": (),
    "expect": ("-c",),
    "awk": (),
    "gawk": ("-e", "--source"),
    "mawk": (),
    "nawk": (),
}
"""Interpreter → options whose value is program text."""
_CLUSTERS = frozenset({"perl", "ruby", "php"})
_AWKS = frozenset({"awk", "gawk", "mawk", "nawk"})
_VALUED = frozenset({"-W", "-X", "-I", "-v", "-F", "-r", "--require", "--import", "-d", "-S", "--loader"})
_MODULE_OPTION = re.compile(r"^-[A-Za-z]*?(?P<letter>[cmWX])(?P<rest>.*)$", re.DOTALL)


class Call(NamedTuple):
    """What an interpreter is given: code on the command line, a file, a module, or nothing (`reads`: its input)."""

    code: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    file: str = ""
    module: str = ""
    reads: bool = False


def is_python(name: str) -> bool:
    """Whether a command of this name is a Python interpreter."""
    return _PYTHON.match(name) is not None


def is_interpreter(name: str) -> bool:
    """Whether a command of this name runs program text that is no shell's."""
    return name.lower() in _CODE and name not in {"bun", "deno"}


def shell_call(name: str, words: Sequence[str]) -> Call:
    """How a shell is called; `words` are then what its code sees as `$0`, `$1` …"""
    if name in _WINDOWS:
        return _windows(words)
    personal = name in {"su", "runuser"}
    valued = _SU_VALUED if personal else _SHELL_VALUED
    coded, at = False, 0
    while at < len(words):
        word = words[at]
        plain = not word.startswith(("-", "+"))
        if _IS_CODE.match(word):
            coded = True
        elif coded and plain:
            return Call((word,), tuple(words[at + 1 :]))
        elif word == "-s" and not personal:
            return Call(reads=True)
        elif plain and not personal:
            return Call(file=word, words=tuple(words[at:]))
        at += 2 if word in valued else 1
    return _personal_call(words) if personal and not coded else Call(reads=not coded)


def _personal_call(words: Sequence[str]) -> Call:
    """`su` and `runuser` without a separate `-c`: code behind `=`, or a command behind `--`."""
    code = tuple(word.partition("=")[2] for word in words if word.startswith(("--command=", "--session-command=")))
    behind = words[words.index("--") + 1 :] if "--" in words else ()
    return Call(code, () if code else tuple(behind), reads=not code and not behind)


def _windows(words: Sequence[str]) -> Call:
    for at, word in enumerate(words):
        option = word.lower()
        if option in {"/c", "/k", "-command", "-c"}:
            return Call((" ".join(words[at + 1 :]),))
        if option.startswith("-e") and at + 1 < len(words) and not option.startswith("-ex"):
            return Call((printed_by(FETCHED),))
        if option in {"-file", "-f"}:
            return Call(file=words[at + 1] if at + 1 < len(words) else "")
    return Call(reads=True)


def python_call(words: Sequence[str]) -> Call:
    """How Python is called: options may stand together (`-Im pip`) and hold their value (`-Wignore`)."""
    at = 0
    while at < len(words):
        word = words[at]
        match = _MODULE_OPTION.match(word) if not word.startswith("--") else None
        if word == "-":
            return Call(reads=True)
        if match is not None:
            value, behind = (match["rest"], at + 1) if match["rest"] else ("".join(words[at + 1 : at + 2]), at + 2)
            if match["letter"] == "c":
                return Call((value,), tuple(words[behind:]))
            if match["letter"] == "m":
                return Call(module=value, words=tuple(words[behind:]))
            at = behind
        elif word.startswith("-"):
            at += 2 if word == "--check-hash-based-pycs" else 1
        else:
            return Call(file=word, words=tuple(words[at + 1 :]))
    return Call(reads=True)


def interpreter_call(name: str, words: Sequence[str]) -> Call:
    """How another interpreter is called: all its program texts, or its file, or neither."""
    name = name.lower()
    code: list[str] = []
    at = 0
    while at < len(words):
        word, following = words[at], "".join(words[at + 1 : at + 2])
        option, has_value, value = word.partition("=")
        coded = option in _CODE[name] or (name in _CLUSTERS and re.match(r"^-[A-Za-z0-9]*[eE]$", word))
        if coded:
            code.append(value if has_value and option.startswith("--") else following)
            at += 1 if has_value and option.startswith("--") else 2
        elif word == "-":
            return Call(tuple(code), reads=not code)
        elif name in _AWKS and word.startswith("-f"):
            return Call(tuple(code))
        elif word.startswith("-"):
            code += [word[2:]] if word[:2] in _CODE[name] and len(word) > 2 and word[1] != "-" else []
            at += 2 if word in _VALUED else 1
        elif name in _AWKS:
            return Call((*code, word))
        else:
            return Call(tuple(code), tuple(words[at + 1 :]), file=word)
    return Call(tuple(code), reads=not code)
