"""Where a command takes packages from, when it is not the usual place: options, variables, settings, files."""

import re
from collections.abc import Iterator, Sequence
from posixpath import normpath

from orchestrator.domain.file_kinds import is_manifest
from orchestrator.syntax.install_names import names_of
from orchestrator.syntax.install_tools import FILES_ONLY, NPM_LIKE, PYTHON_LIKE, VALUED
from orchestrator.syntax.shell_expand import shown

_SHORT = frozenset({"-i", "-f", "-r", "-e", "-c"})
_SHORT_TOOLS = frozenset({"pip", "uv", "uvx", "pip-sync", "easy_install", "pipenv"})
_LONG = ("--index-url", "--extra-index-url", "--index", "--find-links", "--default-index", "--config-file")
_NPM_LONG = ("--registry", "--userconfig", "--globalconfig", "--script-shell")
_OTHER_LONG = ("--registry", "--git", "--index", "--source", "--repository", "-X", "--repository-url", "--from-git")
_FILES = frozenset({"-r", "--requirement", "--requirements", "--file", "--with-requirements"})
_VARIABLE = re.compile(
    r"^(pip_(index_url|extra_index_url|find_links|config_file|requirement|no_index|trusted_host)"
    r"|uv_(index|index_url|default_index|extra_index_url|find_links|config_file|insecure_host)|uv_index_.*"
    r"|npm_config_(.*registry|userconfig|globalconfig|script_shell|prefix_?config|node_options)"
    r"|yarn_(npm_)?registry\w*|yarn_npm_.*|yarn_rc_filename|bun_config_registry|goproxy|goflags|poetry_repositories_.*"
    r"|cargo_registries_.*|pipenv_pypi_mirror|pdm_pypi_.*|pixi_.*_index.*)$",
    re.IGNORECASE,
)
_SETS = frozenset({"config", "c", "set", "source", "sources", "env", "repo", "registry"})
_READS = frozenset({"get", "list", "ls", "--list", "--get", "--show", "debug", "unset", "delete", "rm", "--unset"})
_SETTING = re.compile(
    r"(^|[.:_/-])(\w*index(-url)?|registry|registries|find-links|links|channels?|repositor(y|ies)|userconfig"
    r"|script-shell|goproxy|goflags|pypi|mirror|npmregistryserver|npmscopes|npmregistries|yarnpath)\b",
    re.IGNORECASE,
)


def set_by_variable(name: str, value: str) -> str:
    """`NAME=value` when a variable of this name says where packages come from, else ""."""
    return f"{name}={shown(value)}" if value and _VARIABLE.match(name) else ""


def set_by_command(tool: str, words: Sequence[str]) -> str:
    """The whole command when it changes where packages come from (`npm config set registry …`), else ""."""
    plain = [word for word in words if not word.startswith("-") or word in {"--add", "-w"}]
    if not plain or plain[0] not in _SETS or not _READS.isdisjoint(words):
        return ""
    adds = plain[0] in {"source", "sources", "repo"} and len(words) > 1
    return shown(" ".join([tool, *words])) if adds or any(_SETTING.search(word) for word in words[1:]) else ""


def other_sources(tool: str, words: Sequence[str]) -> Iterator[str]:
    """Requirement files that are no manifests, indexes and folders other than the usual one, editable places."""
    if tool in FILES_ONLY:
        yield from (f"-r {shown(word)}" for word in words if not word.startswith("-") and not is_manifest(word))
    for place, word in enumerate(words):
        if not word.startswith("-"):
            continue
        option, has_value, value = word.partition("=")
        if tool in PYTHON_LIKE and word[:2] in _SHORT and len(word) > 2 and word[1] != "-":
            option, has_value, value = word[:2], "=", word[2:].removeprefix("=")
        following = value if has_value else (words[place + 1] if place + 1 < len(words) else "")
        yield from _source(tool, option, following)


def _source(tool: str, option: str, value: str) -> Iterator[str]:
    python = tool in PYTHON_LIKE
    if python and (option in _FILES or _shortened(option, ("--requirement",), tool)):
        if "://" in value or not is_manifest(normpath(value)):
            yield f"-r {shown(value)}".strip()
    elif python and option in {"-e", "--editable"} and (tool != "uvx" or option == "--editable"):
        yield from names_of(tool, value)
    elif (python and option in {"-c", "--constraint"} and "://" in value) or (_is_source(tool, option) and value):
        yield f"{option} {shown(value)}"


def _is_source(tool: str, option: str) -> bool:
    if tool in NPM_LIKE:
        return option.endswith(":registry") or _shortened(option, _NPM_LONG, tool)
    if tool in PYTHON_LIKE:
        return (option in {"-i", "-f"} and tool in _SHORT_TOOLS) or _shortened(option, _LONG, tool)
    return option in _OTHER_LONG


def _shortened(option: str, names: Sequence[str], tool: str) -> bool:
    """Whether `option` is one of `names`, or an abbreviation that its tool takes for it."""
    if option in names:
        return True
    known = option in VALUED.get(tool, frozenset())
    return len(option) > 4 and not known and any(name.startswith(option) for name in names)
