"""Files that run commands: scripts, build files, pipelines, settings of platforms → the packages these install."""

import json
import re
from collections.abc import Iterator, Sequence

from orchestrator.syntax.install import install_targets, machine_targets, plain_install_targets
from orchestrator.syntax.install_code import code_lines
from orchestrator.syntax.script_data import data_texts
from orchestrator.syntax.script_docker import copied_places, docker_script, is_copied
from orchestrator.syntax.script_make import make_script

_SHELL = re.compile(
    r"(^|/)(.*\.(sh|bash|zsh|ksh|fish|csh|command)|\.envrc|\.(bash|zsh)rc|\.(bash_|z)?profile|(\.husky|\.?githooks)/[^.]+)$"
)
_WINDOWS = re.compile(r"\.(ps1|psm1|bat|cmd)$")
_MAKE = re.compile(r"(^|/)((gnu)?makefile(\.(?!py$|js$|ts$|rb$|go$|c$|md$|txt$)\w+)?|.*\.(mk|mak))$")
_JUST = re.compile(r"(^|/)(\.?justfile|.*\.just)$")
_DOCKER = re.compile(r"(^|/)(.*\.)?(dockerfile|containerfile)([.-].*)?$")
_DATA = re.compile(
    r"(^|/)(\.github/(?!(issue|discussion)_template/|dependabot\.).*\.ya?ml|action\.ya?ml|\.gitlab-ci.*\.ya?ml|\.gitlab/.*\.ya?ml|\.travis\.ya?ml|\.drone\.ya?ml"
    r"|azure-pipelines.*\.ya?ml|bitbucket-pipelines\.ya?ml|\.circleci/.*\.ya?ml|\.pre-commit-(config|hooks)\.ya?ml"
    r"|\.woodpecker.*\.ya?ml|\.?appveyor\.ya?ml|cloudbuild\.ya?ml|buildspec\.ya?ml|(.*[.-])?(docker-)?compose.*\.ya?ml"
    r"|taskfile.*\.ya?ml|render\.ya?ml|netlify\.toml|railway\.(json|toml)|nixpacks\.(json|toml)|vercel\.json|now\.json"
    r"|fly\.toml|app\.json|\.?devcontainer(/.*)?\.json|\.devcontainer/.*\.json|\.vscode/tasks\.json|deno\.jsonc?"
    r"|tox\.ini|lefthook\.ya?ml|\.lefthook\.ya?ml|skaffold\.ya?ml|\.buildkite/.*\.ya?ml|\.semaphore/.*\.ya?ml"
    r"|\.gitpod\.ya?ml|\.cirrus\.ya?ml|heroku\.ya?ml|\.platform\.app\.ya?ml|apprunner\.ya?ml|dagger\.json|mprocs\.ya?ml)$"
)
_MACHINES = re.compile(
    r"(^|/)(\.github/(workflows|actions)/.*|action|\.gitlab-ci.*|\.gitlab/.*|\.travis|\.drone|azure-pipelines.*"
    r"|bitbucket-pipelines|\.circleci/.*|\.woodpecker.*|\.?appveyor|cloudbuild|buildspec|(.*[.-])?(docker-)?compose.*"
    r"|render|\.buildkite/.*|\.semaphore/.*|\.gitpod|\.cirrus|apprunner|\.?devcontainer(/.*)?)\.(ya?ml|json)$"
)
"""Files of data that say what a machine somewhere else is made of."""
_PROCESSES = re.compile(r"(^|/)procfile(\..*)?$")
_JENKINS = re.compile(r"(^|/)jenkinsfile(\..*)?$|\.jenkinsfile$")
_NOTEBOOK = re.compile(r"\.ipynb$")
_STEP = re.compile(r"^\s*(?:-\s+)?(?:[\w.-]+:\s+)?['\"]?")
_TITLE = re.compile(r"^\s*(?:-\s+)?(name|description|title):\s")
_KINDS = (_SHELL, _WINDOWS, _MAKE, _JUST, _DOCKER, _DATA, _PROCESSES, _JENKINS, _NOTEBOOK)


def is_script(path: str) -> bool:
    """Whether the name of a file says that it runs commands."""
    return any(kind.search(path.lower()) for kind in _KINDS)


def script_installs(path: str, text: str) -> tuple[str, ...]:
    """Names of the packages that the commands in a file install, as `install_targets` tells them. Never raises.

    A script is read as one text, a Makefile's recipes and a Dockerfile's instructions as if they stood in one; of a
    pipeline every string is read, whatever its key. What cannot be parsed is read line by line.
    """
    return tuple(dict.fromkeys(_installs(path.lower(), text.removeprefix("\ufeff").replace("\r\n", "\n"))))


def machine_installs(path: str, text: str) -> frozenset[str]:
    """Those of `script_installs` that make the machine (`machine_targets`), in a file that describes one: an image, a
    pipeline, a platform. Never raises."""
    lowered, plain = path.lower(), text.removeprefix("\ufeff").replace("\r\n", "\n")
    if _DOCKER.search(lowered):
        return machine_targets(docker_script(plain)[0])
    found = data_texts(lowered, plain) if _MACHINES.search(lowered) else None
    if found is None:
        return frozenset()
    kinds = [(frozenset(install_targets(script)), machine_targets(script)) for script in found.scripts]
    ordinary = {name for every, machine in kinds for name in every - machine}
    return frozenset(name for _, machine in kinds for name in machine) - ordinary - set(found.names)


def _installs(path: str, text: str) -> Iterator[str]:
    if _DATA.search(path):
        yield from _from_data(path, text)
    elif _DOCKER.search(path):
        script, far = docker_script(text)
        places = copied_places(text)
        yield from (*far, *(name for name in install_targets(script) if not is_copied(name, places)))
    elif _NOTEBOOK.search(path):
        yield from install_targets("\n".join(_notebook_lines(text)))
    elif _JENKINS.search(path):
        for line in (*code_lines(text), *text.splitlines()):
            yield from install_targets(line)
    elif is_script(path):
        yield from install_targets(_as_shell(path, text))


def _as_shell(path: str, text: str) -> str:
    if _WINDOWS.search(path):
        joined = re.sub(r"[`^]\n", " ", text).replace("\\", "/")
        named = re.sub(r"%(\w+)%", r"${\1}", re.sub(r"\$env:(\w+)", r"${\1}", joined))
        return re.sub(r"(?mi)^\s*(@|rem\b.*|::.*|set\s+(?=\w+=))", "", named)
    if _MAKE.search(path) or _JUST.search(path):
        return make_script(text, just=_JUST.search(path) is not None)
    if _PROCESSES.search(path):
        return re.sub(r"(?m)^[\w.-]+:", "", text)
    return text


def _from_data(path: str, text: str) -> Iterator[str]:
    found = data_texts(path, text)
    if found is None:
        lines = [_STEP.sub("", line) for line in re.sub(r"\\\n", " ", text).splitlines() if not _TITLE.match(line)]
        yield from (name for line in lines for name in install_targets(line.strip()))
        return
    yield from found.names
    yield from (name for script in found.scripts for name in install_targets(script))
    yield from (name for words in found.doubtful for name in plain_install_targets(words))


def _notebook_lines(text: str) -> Sequence[str]:
    """Lines of a notebook's cells that go to a shell: behind `!` and `%`."""
    try:
        cells = json.loads(text)["cells"]
        sources = [cell["source"] for cell in cells if cell.get("cell_type") == "code"]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return [line.strip(' ",\\n').lstrip("!%") for line in text.splitlines()]
    lines = [
        line
        for source in sources
        for line in ("".join(source) if isinstance(source, list) else str(source)).split("\n")
    ]
    return [re.sub(r"^\s*([!%]+|.*?=\s*!)", "", line) for line in lines if re.match(r"^\s*[!%]|.*=\s*!", line)]
