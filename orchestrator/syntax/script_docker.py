"""A Dockerfile → one shell text that runs what its instructions would, and the addresses it adds files from."""

import json
import re
import shlex
from collections.abc import Iterator
from posixpath import basename, normpath

from orchestrator.syntax.install_calls import SHELLS

_INSTRUCTION = re.compile(r"^\s*(?P<name>[A-Za-z]+)\s+(?P<rest>.*)$", re.DOTALL)
_FLAGS = re.compile(r"^(\s*--[\w-]+(=(\"[^\"]*\"|\S*))?\s+)*")
_HEREDOC = re.compile(r"<<-?\s*([\"']?)(?P<word>\w+)\1")
_RUNS = frozenset({"run", "cmd", "entrypoint"})


def docker_script(text: str) -> tuple[str, list[str]]:
    """(shell text, addresses). Names of instructions in any case; flags, JSON lists and here-documents are known."""
    lines: list[str] = []
    far: list[str] = []
    shell: list[str] = []
    for name, rest in _instructions(text):
        if name == "onbuild" and (inner := _INSTRUCTION.match(rest)):
            name, rest = inner["name"].lower(), inner["rest"]
        if name == "healthcheck":
            name, rest = "cmd", re.sub(r"^.*?\bCMD\s", "", rest, flags=re.IGNORECASE | re.DOTALL)
        plain = _FLAGS.sub("", rest, count=1).strip()
        if name in _RUNS:
            lines.append(_command(plain, shell))
        elif name == "shell":
            shell = _listed(plain) or []
        elif name in {"env", "arg"}:
            lines.append(plain if "=" in plain.split(None, 1)[0] else re.sub(r"^(\w+)\s+(.*)$", r'\1="\2"', plain))
        elif name in {"add", "copy"}:
            far += [word for word in (_listed(plain) or plain.split()) if re.search(r"://|^git@", word)]
            if _HEREDOC.match(plain):
                lines.append(re.sub(r"^(\S+)\s+(\S+)", r"cat \1 > \2", plain, count=1))
    return "\n".join(lines), [word.lower() for word in far]


def copied_places(text: str) -> tuple[str, ...]:
    """Absolute places in the image to which the project's files, or another stage's, are copied."""
    stages: set[str] = set()
    places: list[str] = []
    for name, rest in _instructions(text):
        if name == "from" and (stage := re.search(r"\sAS\s+(\S+)\s*$", rest, re.IGNORECASE)):
            stages.add(stage[1].lower())
        source = re.search(r"--from=(\S+)", rest)
        own = source is None or source[1].lower() in stages or source[1].isdigit()
        if name == "copy" and own and not _HEREDOC.search(rest):
            plain = _FLAGS.sub("", rest, count=1).strip()
            place = normpath((_listed(plain) or plain.split() or [""])[-1])
            places += [place] if place.startswith("/") and place != "/" else []
    return tuple(places)


def is_copied(name: str, places: tuple[str, ...]) -> bool:
    """Whether what an install command names (`/wheels/*`, `--find-links /wheels`) lies in one of these places."""
    path = normpath(re.sub(r"^(--find-links|-f) ", "", name))
    return any(path == place or path.startswith(f"{place}/") for place in places)


def _command(text: str, shell: list[str]) -> str:
    """What RUN and its kind run: a JSON list, the body of a here-document, or a line of the shell in force."""
    if words := _listed(text):
        return shlex.join(words)
    match = _HEREDOC.match(text)
    if match is not None:
        first, _, body = text.partition("\n")
        body = re.sub(rf"\n?[ \t]*{match['word']}\s*$", "", body)
        text = f"{body}\n" if match.end() == len(first.rstrip()) else text
        if body.startswith("#!") and not re.match(r"#!.*sh\b", body):
            return f"{body.splitlines()[0][2:].strip()} {first}\n{body}\n{match['word']}"
    if shell and basename(shell[0]).lower() not in SHELLS:
        return shlex.join([*shell, text])
    return text


def _listed(text: str) -> list[str] | None:
    if not text.startswith("["):
        return None
    try:
        held = json.loads(text)
    except (ValueError, RecursionError):
        return re.sub(r"[\[\],\"']", " ", text).split()
    return [str(word) for word in held] if isinstance(held, list) and held else None


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    """Each instruction's name in lower case and what stands behind it, over continued lines and here-documents."""
    escape = "`" if re.match(r"#\s*escape\s*=\s*`", text) else "\\"
    lines = iter(text.splitlines())
    for line in lines:
        if line.lstrip().startswith("#"):
            continue
        parts = [line.rstrip()]
        while parts[-1].endswith(escape):
            parts[-1] = parts[-1][:-1]
            following = next((other for other in lines if other.strip() and not other.lstrip().startswith("#")), None)
            if following is None:
                break
            parts.append(following.rstrip())
        whole = " ".join(parts)
        for held in _HEREDOC.finditer(whole):
            for inner in lines:
                whole += f"\n{inner}"
                if inner.strip() == held["word"]:
                    break
        match = _INSTRUCTION.match(whole)
        if match is not None:
            yield match["name"].lower(), match["rest"].strip()
