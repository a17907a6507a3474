"""Commands that a reader must follow because they set something, run their words, or bring files."""

import re
from collections.abc import Callable, Mapping, Sequence
from posixpath import basename

from orchestrator.domain.file_kinds import is_manifest
from orchestrator.syntax.install_runs import run_script
from orchestrator.syntax.install_sources import set_by_variable
from orchestrator.syntax.install_state import Fed, Reading, State
from orchestrator.syntax.install_wrappers import (
    PRINTERS,
    fd_commands,
    found_commands,
    git_runs,
    parallel_commands,
    sed_runs,
)
from orchestrator.syntax.shell_expand import OUTPUT, TYPED, printed_by
from orchestrator.syntax.shell_nesting import escaped_text

_SET = re.compile(r"(?P<name>[A-Za-z_]\w*)\+?=(?P<value>.*)", re.DOTALL)
_FIELD = re.compile(r"%(?:[-0-9.]*[sbqdi]|%)")
_FINDERS = frozenset({"which", "realpath", "readlink", "type", "whence", "whereis"})
_PLAIN_WRAPPERS = frozenset({"command", "builtin", "env", "sudo", "time", "nohup", "exec"})
_MAX_FIELDS, _MAX_LOOPS = 2_000, 64


def literal_output(words: Sequence[str], texts: Sequence[str], state: State) -> str | None:
    """What a command prints when its words say so; `texts` are what redirections bring to its input."""
    while words and (words[0] in _PLAIN_WRAPPERS or _SET.fullmatch(words[0])):
        words = words[1:]
    if not words:
        return "".join(texts) if texts else None
    name = basename(words[0])
    plain = [word for word in words[1:] if not re.fullmatch(r"-[A-Za-z]+", word)]
    if name in _SAID:
        return _SAID[name](words)
    if name in _FINDERS or (name == "command" and re.fullmatch(r"-\w*[vV]\w*", "".join(words[1:2]))):
        return plain[-1] if plain else None
    if name == "cat" and not plain:
        return "".join(texts) if texts else None
    held = state.file(plain[0]) if name == "cat" and len(plain) == 1 else None
    return held.text if held is not None else None


def _echoed(words: Sequence[str]) -> str:
    said = " ".join(word for word in words[1:] if not re.fullmatch(r"-[neE]+", word))
    return escaped_text(said) if any(re.fullmatch(r"-[nE]*e[neE]*", word) for word in words[1:4]) else said


def _formatted(words: Sequence[str]) -> str | None:
    """What `printf` prints, its escapes always read."""
    if not words or words[0] == "-v":
        return None
    form, values = escaped_text(words[0]), list(words[1 : 1 + _MAX_FIELDS])
    fields = len([field for field in _FIELD.findall(form) if field != "%%"])
    said = ""

    def filled(match: re.Match[str]) -> str:
        value = "%" if match[0] == "%%" else next(waiting, "")
        return escaped_text(value) if match[0].endswith("b") else value

    while True:
        waiting = iter(values[:fields])
        said += _FIELD.sub(filled, form)
        values = values[fields:]
        if not values or not fields:
            return said


_SAID: Mapping[str, Callable[[Sequence[str]], str | None]] = {
    "echo": _echoed,
    "printf": lambda words: _formatted([word for word in words[1:] if word != "--"]),
    ":": lambda words: "",
    "true": lambda words: "",
    "touch": lambda words: "",
}
"""What commands print that show it in their words."""


def _declare(reading: Reading, words: Sequence[str], fed: Fed | None) -> None:
    """`export NAME=value` and its kind: a value may be run later, by whoever reads it."""
    for word in words[1:]:
        match = _SET.fullmatch(word)
        if match is not None:
            reading.state.variables.put(match["name"], match["value"])
            reading.state.tell([set_by_variable(match["name"], match["value"])])
            if re.search(r"\s", match["value"]):
                reading.line(match["value"])


def _alias(reading: Reading, words: Sequence[str], fed: Fed | None) -> None:
    for word in words[1:]:
        name, sign, text = word.partition("=")
        if sign:
            reading.state.aliases[name] = text
            reading.line(text)


def _printf(reading: Reading, words: Sequence[str], fed: Fed | None) -> None:
    """`printf -v NAME …` sets a variable; what it prints otherwise is data."""
    if words[1:2] == ["-v"] and len(words) > 3:
        reading.state.variables.put(words[2], _formatted(words[3:]) or "")
    else:
        reading.state.data.append(" ".join(words))


def _set(reading: Reading, words: Sequence[str], fed: Fed | None) -> None:
    if "--" in words:
        reading.state.variables.words = ["", *words[words.index("--") + 1 :]]


def _shift(reading: Reading, words: Sequence[str], fed: Fed | None) -> None:
    held = reading.state.variables.words
    if held is not None:
        count = int(words[1]) if len(words) > 1 and re.fullmatch(r"\d{1,3}", words[1]) else 1
        reading.state.variables.words = [*held[:1], *held[1 + count :]]


def _read(reading: Reading, words: Sequence[str], fed: Fed | None) -> None:
    """`read NAME …`: what nobody typed is known only when the text itself feeds it."""
    names = [word for word in words[1:] if re.fullmatch(r"[A-Za-z_]\w*", word)] or ["REPLY"]
    said = fed.text if fed is not None else None
    unknown = printed_by(TYPED if fed is not None and not fed.file else "")
    for line in [unknown] if said is None else (said.splitlines() or [""]):
        texts = line.split(None, len(names) - 1)
        for place, name in enumerate(names):
            reading.state.variables.put(name, texts[place].strip() if place < len(texts) else "")


def _for(reading: Reading, words: Sequence[str], fed: Fed | None) -> None:
    """`for NAME in …`: the values its body is read with."""
    if len(words) > 3 and words[2] == "in":
        for value in words[3:]:
            reading.state.variables.put(words[1], value, room=_MAX_LOOPS)


def _source(reading: Reading, words: Sequence[str], fed: Fed | None) -> None:
    if len(words) > 1:
        run_script(reading, words[1], words[1:], fed)


def _eval(reading: Reading, words: Sequence[str], fed: Fed | None) -> None:
    text = " ".join(words[1:])
    match = OUTPUT.fullmatch(text.split(None, 1)[0]) if text.strip() else None
    if match is None:
        reading.line(text, fed=fed)
    elif match["name"] not in PRINTERS:
        reading.state.refuse()


def _invoke(reading: Reading, words: Sequence[str], fed: Fed | None) -> None:
    """PowerShell's `iex`: runs its words or its input."""
    if fed is not None:
        reading.state.refuse(fed.shown)
    for word in words[1:]:
        reading.line(word)


def _trap(reading: Reading, words: Sequence[str], fed: Fed | None) -> None:
    if len(words) > 1:
        reading.line(words[1])


def _each(find: Callable[[Sequence[str]], list[list[str]]]) -> "Handler":
    def read(reading: Reading, words: Sequence[str], fed: Fed | None) -> None:
        for command in find(words[1:]):
            if len(command) == 1:
                reading.line(command[0])
            else:
                reading.command(command)

    return read


def _parallel(reading: Reading, words: Sequence[str], fed: Fed | None) -> None:
    commands = parallel_commands(words[1:])
    for command in commands:
        if len(command) == 1:
            reading.line(command[0], fed=fed)
        else:
            reading.command(command, piped=fed is not None)
    if not commands and fed is not None:
        reading.line(fed.text) if fed.text is not None else reading.state.refuse(fed.shown)


def _input_runner(reading: Reading, words: Sequence[str], fed: Fed | None) -> None:
    """`at`, `batch`, `crontab -`, `ssh HOST`: a shell reads their input."""
    if fed is not None and fed.text is not None:
        reading.line(fed.text)
    elif fed is not None and not fed.file and (words[0] != "ssh" or len(words) == 2):
        reading.state.refuse(fed.shown)
    for word in words[1:]:
        if re.search(r"\s", word):
            reading.line(word)
    if words[0] == "ssh" and len(words) > 2:
        reading.command(words[2:], fed)


def _git(reading: Reading, words: Sequence[str], fed: Fed | None) -> None:
    state = reading.state
    if not git_runs(words[1:]):
        state.data.append(" ".join(words))
    else:
        for word in words[1:]:
            if re.search(r"\s", word):
                reading.line(re.sub(r"^[\w.-]*=?!?", "", word) if "!" in word else word.partition("=")[2] or word)
        at = next((place for place, word in enumerate(words) if word in {"foreach", "run"}), len(words))
        reading.command([word for word in words[at + 1 :] if word != "--recursive"])
    if "clone" in words[1:4] and any("://" in word or "@" in word for word in words):
        state.cloned = " ".join(words)


def _sed(reading: Reading, words: Sequence[str], fed: Fed | None) -> None:
    if sed_runs(words[1:]):
        for word in words[1:]:
            reading.line(re.sub(r"[/|#,;{}]|\be\b", ";", word))
    else:
        reading.state.data.append(" ".join(words))
    if any(re.match(r"-\w*i|--in-place", word) for word in words[1:]):
        for word in words[1:]:
            reading.state.write(word if is_manifest(word) else "", None, fetched=True)


def _fetch(reading: Reading, words: Sequence[str], fed: Fed | None) -> None:
    """curl and wget: the files they write are nobody's that is known."""
    named = [words[at + 1] for at, word in enumerate(words[:-1]) if re.fullmatch(r"-[a-zA-Z]*[oO]", word)]
    named += [word.partition("=")[2] for word in words if re.match(r"--output(-document)?=", word)]
    named += [words[at + 1] for at, word in enumerate(words[:-1]) if word in {"--output", "--output-document"}]
    named += [basename(word.split("?")[0].rstrip("/")) for word in words if "://" in word]
    for path in named:
        if path not in {"-", ""} and "://" not in path:
            reading.state.write(path, None, fetched=True)
    reading.state.data.append(" ".join(words))


Handler = Callable[[Reading, Sequence[str], Fed | None], None]
BUILTINS: Mapping[str, Handler] = {
    **dict.fromkeys(("export", "declare", "local", "readonly", "typeset"), _declare),
    **dict.fromkeys(("curl", "wget", "wget2", "aria2c", "fetch"), _fetch),
    **dict.fromkeys(("at", "batch", "crontab", "ssh"), _input_runner),
    **dict.fromkeys(("read", "mapfile", "readarray"), _read),
    **dict.fromkeys(("source", "."), _source),
    **dict.fromkeys(("for", "select"), _for),
    **dict.fromkeys(("fd", "fdfind"), _each(fd_commands)),
    **dict.fromkeys(("sed", "gsed"), _sed),
    **dict.fromkeys(("iex", "invoke-expression"), _invoke),
    "printf": _printf,
    "find": _each(found_commands),
    "parallel": _parallel,
    "alias": _alias,
    "set": _set,
    "shift": _shift,
    "eval": _eval,
    "trap": _trap,
    "git": _git,
    "case": lambda reading, words, fed: None,
}
"""Command → what its call does to a reading."""
