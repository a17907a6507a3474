"""A shell command of several steps → the steps that run one after the other, so that the one that fails has a name."""

import re

_COMPOUND = re.compile(
    r"(?:^|[;&|(])\s*(?:if|then|else|elif|fi|for|while|until|do|done|case|esac|function|select|\{|\}|\[\[)(?=[\s;]|$)"
    r"|\(\s*\)|<<|(?<![&>|])&(?![&>])",
    re.MULTILINE,
)
"""What makes a text more than a chain: compound commands, functions, here documents, jobs in the background."""
_INSTALL = re.compile(
    r"(?:npm[ \t]+(?:install|i|ci|clean-install)|pnpm[ \t]+(?:install|i)|yarn(?:[ \t]+install)?)"
    r"(?:[ \t]+--?(?!g\b|global\b|prefix\b|dir\b|cwd\b)[\w-]+(?:=[\w./-]+)?)*"
)
"""No name of a package: those are read, and asked about, before the command is run."""


def steps(command: str) -> tuple[str, ...]:
    """The steps of a chain of `&&`, `;` and lines, each as it is written; the whole command where it is no plain chain.

    A list with `||` in it is one step. Quotes, comments, substitutions and line continuations are known.
    """
    if _COMPOUND.search(_bare(command)):
        return (command.strip(),)
    found: list[str] = []
    for line in _split(command, ("\n", ";")):
        parts = _split(line, ("&&",))
        found += [line] if len(_split(line, ("||",))) > 1 else parts
    kept = tuple(_joined(step.strip()) for step in found if _bare(step).strip())
    return kept or (command.strip(),)


def _joined(step: str) -> str:
    """The step without the backslash that continued its line."""
    slashes = len(step) - len(step.rstrip("\\"))
    return step[:-1].rstrip() if slashes % 2 else step


def packages_ready(step: str) -> str:
    """Returns the step; one in which a manager of Node installs what package.json declares, as a word that it is done.

    Packages are set up before a command runs, and lie in the worktree read-only: npm would fail to put them there anew.
    """
    return "echo 'the packages of package.json are installed'" if _INSTALL.fullmatch(step.strip()) else step


def script(command: str, token: str, *, at_root: bool = True) -> str:
    """A script for `sh -c` that runs the steps up to the first that fails, and then tells `token` and its number.

    `at_root`: it starts where the packages of package.json were set up.
    """
    told = f'trap \'_rc=$?; [ "$_rc" -eq 0 ] || printf "\\n%s %s\\n" {token} "$_step" >&2\' EXIT'
    known = steps(command)
    at_root = at_root and not any(step.startswith(("cd ", "pushd ")) for step in known)
    shown = [packages_ready(step) if at_root else step for step in known]
    lines = [line for number, step in enumerate(shown) for line in (f"_step={number}", step)]
    return "\n".join(["set -e", told, *lines]) + "\n"


def failed_step(command: str, token: str, output: str) -> tuple[str, str]:
    """The step that a script of `script` told to have failed, "" when it told none, and the output without that."""
    told = re.search(rf"\n?^{re.escape(token)} (\d+)\n?", output, re.MULTILINE)
    if told is None:
        return "", output
    known = steps(command)
    number = int(told[1])
    return (known[number] if number < len(known) else ""), output[: told.start()] + output[told.end() :]


def _bare(text: str) -> str:
    """The text without what stands in quotes and comments."""
    return "".join(char for char, quoted in _marked(text) if not quoted)


def _split(text: str, signs: tuple[str, ...]) -> list[str]:
    """The parts of a text between signs that stand in no quotes, comments or brackets."""
    parts, start, at, depth = [], 0, 0, 0
    quoted = [mark for _, mark in _marked(text)]
    while at < len(text):
        if not quoted[at]:
            depth += (text[at] == "(") - (text[at] == ")")
            sign = next((sign for sign in signs if depth == 0 and text.startswith(sign, at)), None)
            if sign is not None:
                parts.append(text[start:at])
                at = start = at + len(sign)
                continue
        at += 1
    return [*parts, text[start:]]


_QUOTED = re.compile(r"\\.|'[^']*'?|\"(?:[^\"\\]|\\.)*\"?|`[^`]*`?|(?:(?<=\s)|(?<![^;&|(]))#[^\n]*", re.DOTALL)


def _marked(text: str) -> list[tuple[str, bool]]:
    """Each character, and whether it stands in quotes, behind a backslash or in a comment."""
    marks = [False] * len(text)
    for found in _QUOTED.finditer(text):
        marks[found.start() : found.end()] = [True] * (found.end() - found.start())
    return list(zip(text, marks, strict=True))
