"""A Makefile or justfile → one shell text that runs what its recipes would."""

import re
from collections.abc import Iterator

_CONTINUED = re.compile(r"\\\r?\n[ \t]*")
_SETTING = re.compile(
    r"^(?:export\s+|override\s+|unexport\s+|set\s+)*(?P<name>[\w.-]+)\s*(?:[:+?!]{0,3}=)\s*(?P<value>.*)$"
)
_RULE = re.compile(r"^[^\s#=][^=#]*?:(?!=)")
_REFERENCE = re.compile(r"\$(?:\((?P<round>[^(){}$]*)\)|\{(?P<curly>[^(){}$]*)\})")
_SPECIAL = re.compile(r"\$(?=[@<^+?*%|])[@<^+?*%|]")
_HELD, _ENDS = "\ue010", "\ue011"
_PASSES = 6
_FUNCTIONS = "eval|error|warning|info|foreach|if|call|patsubst|filter|filter-out|sort|strip|subst|wildcard|addprefix"
_SPLIT = frozenset({"foreach", "if", "call", "eval", "or", "and", "let", "file", "intcmp"})


def make_script(text: str, *, just: bool = False) -> str:
    """Recipes as they would be run, one below the other; variables of the file become the shell's. Never raises."""
    return "\n".join(_lines(_CONTINUED.sub(" ", text), just=just))


def _lines(text: str, *, just: bool) -> Iterator[str]:
    for line in text.splitlines():
        shell = re.sub(r"\{\{\s*(\w+)\s*\}\}", r"${\1}", line) if just else line
        recipe = line.startswith("\t") or (just and line.startswith(" "))
        setting = None if recipe else _SETTING.match(shell.strip())
        if recipe:
            yield from _in_shell(shell.lstrip().lstrip("@-+ "), just=just)
        elif setting is not None:
            yield from _setting(setting["name"], setting["value"], just=just)
        elif rule := _RULE.match(shell):
            prerequisites, _, command = shell[rule.end() :].partition(";")
            local = _SETTING.match(prerequisites.strip())
            yield from _setting(local["name"], local["value"], just=just) if local else ()
            yield from _in_shell(command.strip().lstrip("@-+ "), just=just)
        elif not line.startswith("#"):
            yield from _in_shell(shell.strip().lstrip("@"), just=just)


def _setting(name: str, value: str, *, just: bool) -> Iterator[str]:
    """An assignment as the shell's, its value in double quotes."""
    value = value.strip()
    if just and value[:1] in {"'", '"'}:
        value = value.strip("'\"")
    *more, said = _in_shell(value.split(" #")[0], just=just)
    yield from more
    quoted = said.replace("\\", "\\\\").replace('"', '\\"')
    yield f'{re.sub("[.-]", "_", name)}="{quoted}"'


def _in_shell(line: str, *, just: bool) -> list[str]:
    """The line in the shell's language, behind what its functions hold."""
    if just or "$" not in line:
        return [line]
    more: list[str] = []

    def replaced(match: re.Match[str]) -> str:
        inner = match["round"] if match["round"] is not None else match["curly"]
        name, blank, rest = inner.strip().partition(" ")
        if name == "shell":
            return f"{_HELD}({rest}){_ENDS}"
        if blank:
            more.extend(rest.split(",") if name in _SPLIT else [])
            return f"{_HELD}{{{name}}}{_ENDS}"
        return f"{_HELD}{{{re.sub('[^A-Za-z0-9_]', '_', name)}}}{_ENDS}"

    line = _SPECIAL.sub(f"{_HELD}{{target}}{_ENDS}", line.replace("$$", "\ue012"))
    for _ in range(_PASSES):
        line, count = _REFERENCE.subn(replaced, re.sub(f"{_HELD}\\{{(\\w+)\\}}{_ENDS}", "\ue013\\1\ue014", line))
        if not count:
            break
    return [_plain(text) for text in (*more, line)]


def _plain(line: str) -> str:
    line = re.sub(rf"\$[({{]({_FUNCTIONS})\b", r"${\1}", line.replace("$(shell ", "$("))
    line = line.replace("\ue013", "${").replace("\ue014", "}").replace("\ue012", "$")
    return line.replace(_HELD, "$").replace(_ENDS, "")
