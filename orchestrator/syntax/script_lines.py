"""Files that run commands → their plain shell lines, each read by its own format and no further."""

import json
import re
import shlex
from collections.abc import Iterator

from orchestrator.syntax.yaml_data import load_yaml

_SHELL = re.compile(
    r"(^|/)(.*\.(sh|bash|zsh|ksh|command|bats|ps1|bat|cmd)|\.envrc|(\.husky|\.?githooks)/[^.]+|procfile)$"
)
_MAKE = re.compile(r"(^|/)((gnu)?makefile(\.(?!py$|js$|ts$|rb$|go$|c$|md$|txt$)\w+)?|.*\.(mk|mak)|\.?justfile)$")
_DOCKER = re.compile(r"(^|/)(.*\.)?(dockerfile|containerfile)([.-].*)?$")
_COMPOSE = re.compile(r"(^|/)(.*[.-])?(docker-)?compose.*\.ya?ml$")
_TOOLS = re.compile(r"(^|/)\.(github|gitlab|circleci|devcontainer|vscode)/")
"""Pipelines and editors: what they install is for them, and no program needs it."""
_RUNS = re.compile(
    r"^[ \t]*(?:ONBUILD[ \t]+)?(?:RUN|CMD|ENTRYPOINT|HEALTHCHECK(?:[ \t]+--\S+)*[ \t]+CMD)[ \t]+(?:--\S+[ \t\\\n]+)*",
    re.MULTILINE | re.IGNORECASE,
)
_OTHERS = re.compile(
    r"^[ \t]*(?:FROM|COPY|ADD|ENV|ARG|LABEL|WORKDIR|EXPOSE|USER|VOLUME|SHELL|STOPSIGNAL|HEALTHCHECK)\b", re.M | re.I
)
_RECIPE = re.compile(r"^(?:\t|[ ]{2,}|[^\s#:=][^=\n:]*:[^=\n;]*;)[ \t]*[@+-]*(?P<line>.*)$")


def is_script(path: str) -> bool:
    """Whether the name of a file says that it runs commands of the project, not of a pipeline or an editor."""
    lowered = path.lower()
    return not _TOOLS.search(lowered) and any(kind.search(lowered) for kind in (_SHELL, _MAKE, _DOCKER, _COMPOSE))


def shell_lines(path: str, text: str) -> str:
    """Returns the shell commands of a script, Makefile, Dockerfile or compose file as one text; "" of other files.

    A file that cannot be read by its format has none. Never raises.
    """
    if not is_script(path):
        return ""
    path, text = path.lower(), text.removeprefix("\ufeff").replace("\r\n", "\n")
    if _COMPOSE.search(path):
        return "\n".join(_compose(text))
    if _DOCKER.search(path):
        return _docker(text)
    if _MAKE.search(path):
        joined = re.sub(r"\\\n[ \t]*", " ", text)
        lines = (found["line"] for line in joined.split("\n") if (found := _RECIPE.match(line)))
        return "\n".join(lines).replace("$$", "$")
    return text


def _docker(text: str) -> str:
    """The instructions as commands of a shell: what runs nothing becomes `:`, a document that RUN is given is run."""
    bare = _OTHERS.sub(":", _RUNS.sub("", re.sub(r"(?m)^[ \t]*#.*\n", "", text)))
    return re.sub(r"(?m)^\[.*", lambda line: _exec_form(line[0]), re.sub(r"(?m)^<<", "sh <<", bare))


def _exec_form(line: str) -> str:
    """`["sh", "-c", "x y"]` as a shell would be given it."""
    try:
        return shlex.join(map(str, json.loads(line)))
    except (ValueError, TypeError, RecursionError):
        return line


def _compose(text: str) -> Iterator[str]:
    try:
        data = load_yaml(text)
    except (ValueError, RecursionError):
        return
    services = data.get("services") if isinstance(data, dict) else None
    for service in services.values() if isinstance(services, dict) else ():
        for key in ("entrypoint", "command"):
            given = service.get(key) if isinstance(service, dict) else None
            if given is not None:
                yield shlex.join(map(str, given)) if isinstance(given, list) else str(given)
