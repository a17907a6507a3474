"""What a person does about a base whose tests cannot be loaded, by what the runner said (pure)."""

import re
from collections.abc import Mapping, Sequence

from orchestrator.core.contract import Installed, InstalledPackages

# Python names the module, Node and its test runners the package or file that they did not find.
_MISSING = re.compile(
    r"No module named '(?P<python>[\w.]+)'|Cannot find (?:package|module|dependency) '(?P<node>[^'\n]+)'"
    r"|Preset (?P<preset>[@\w/.-]+) not found|Module (?P<module>[@\w/.-]+) in the \w+ option was not found"
    r"|(?P<environment>jest-environment-[\w-]+) cannot be found"
    r"|(?P<needed>ts-node|tsx|esbuild(?:-register)?|@[\w-]+/[\w-]+)['\"`]? is required\b"
)
# A name that an installed module no longer has, or a part of it that is gone.
_LOST = re.compile(
    r"cannot import name '[^']+' from (?:partially initialized module )?'([\w.]+)'|module '([\w.]+)' has no attribute"
    r"|No module named '([\w.]+)'"
)
_FRAME = re.compile(r"(?:site-packages/|\(library\) )([\w-]+)")
_LOST_IN_NODE = re.compile(
    r"requested module '((?:@[^/'\s]+/)?[^./'\s][^/'\s]*)|in \S*node_modules/((?:@[^/\s]+/)?[^/\s]+)/package\.json"
    r"|require\(\) of ES Module \S*node_modules/((?:@[^/\s]+/)?[^/\s]+)/"
)
_FRAME_IN_NODE = re.compile(r"node_modules/(?!\.pnpm)((?:@[^/\s]+/)?[^/\s:)]+)/")
_RUNNERS = re.compile(
    r"^(_?pytest|pluggy|_\w+|pip|@?vitest\b.*|vite(-node)?|@?jest\b.*|babel-jest|ts-jest|mocha|ava|ts-node|tsx|yargs)$"
)
"""Packages whose frames stand around every failure."""
_PACKAGE = re.compile(r"^(@[^/]+/[^/]+|[^@/][^/]*)/.*")
_PROVIDED = {"pkg_resources": "setuptools"}
_UNTIL = {
    **dict.fromkeys(("distutils", "imp", "asyncore", "asynchat", "smtpd"), "3.11"),
    **dict.fromkeys(("cgi", "cgitb", "crypt", "imghdr", "pipes", "sndhdr", "telnetlib", "uu"), "3.12"),
}
"""Modules that newer Pythons do not have, and the last version with them."""
# pytest ends so over what `addopts` asks of a plugin that is not installed.
_UNKNOWN_OPTIONS = re.compile(r"error: unrecognized arguments: (.+)")
_PLUGINS = {
    "--cov": "pytest-cov",
    "--no-cov": "pytest-cov",
    "--timeout": "pytest-timeout",
    "--asyncio": "pytest-asyncio",
    **dict.fromkeys(("-n", "--numprocesses", "--dist", "--maxprocesses"), "pytest-xdist"),
    "--ds": "pytest-django",
    "--reuse-db": "pytest-django",
    "--benchmark": "pytest-benchmark",
    "--reruns": "pytest-rerunfailures",
    "--random-order": "pytest-random-order",
    "--mypy": "pytest-mypy",
}
"""Option, or how it begins before a `-` or `=` → the plugin that knows it."""
_DAY = "DATE, as 2025-01-31"


def missing(text: str) -> tuple[str, ...]:
    """Returns the modules, packages and files that a runner did not find, in its order."""
    return tuple(dict.fromkeys(name for found in _MISSING.finditer(text) for name in found.groups() if name))


def advice(text: str, installed: InstalledPackages) -> str:
    """Returns what to do, in the words of the project's language; "" when the text names no cause."""
    gone = [name for name in missing(text) if name in _UNTIL and name not in installed.python]
    if gone:
        return f'newer Pythons do not have `{gone[0]}`: name one that does, as environment.python: "{_UNTIL[gone[0]]}"'
    if broken := next(filter(None, (_in_python(text, installed.python), _in_node(text, installed.node))), None):
        return broken
    if unknown := _UNKNOWN_OPTIONS.search(text):
        plugins = [
            plugin for option, plugin in _PLUGINS.items() if re.search(rf"(?:^|\s){option}(?![a-z])", unknown[1])
        ]
        if plugins:
            return (
                f"add {_quoted(plugins)}, whose options `addopts` names, to the project's manifests, or name the extra "
                "or group that has it in environment.extras or environment.groups"
            )
    names = missing(text)
    files = [name for name in names if name.startswith((".", "/"))]
    python = [found["python"] for found in _MISSING.finditer(text) if found["python"]]
    node = [_PACKAGE.sub(r"\1", name) for name in names if name not in {*files, *python}]
    if python:
        return (
            f"name what provides {_quoted(python)} in the project's manifests, or the extra or group that has it in "
            "environment.extras or environment.groups"
        )
    if node:
        return f"add {_quoted(node)} to devDependencies in package.json, or name what installs it in environment.setup"
    return f"name the command that makes {_quoted(files)} in environment.build" if files else ""


def _in_python(text: str, packages: Mapping[str, Installed]) -> str:
    """Returns what to do about an installed package that no longer has what is asked of it, or in which it ended."""
    lost = (next(filter(None, groups)) for groups in _LOST.findall(text))
    frames = (name for name in reversed(_FRAME.findall(text)) if not _RUNNERS.match(name))
    for module in (*lost, *frames):
        name = _distribution(_PROVIDED.get(module, module).partition(".")[0], packages)
        if name:
            return f"{_pinned(name, packages[name])}, or with another Python (environment.python)"
    return ""


def _in_node(text: str, packages: Mapping[str, Installed]) -> str:
    lost = (next(filter(None, groups)) for groups in _LOST_IN_NODE.findall(text))
    frames = (name for name in _FRAME_IN_NODE.findall(text) if not _RUNNERS.match(name))  # the innermost comes first
    name = next((name for name in (*lost, *frames) if name in packages), "")
    return _pinned(name, packages[name]) if name else ""


def _distribution(module: str, packages: Mapping[str, Installed]) -> str:
    found = (name for name, one in packages.items() if any(own.partition(".")[0] == module for own in one.modules))
    return next(found, "")


def _pinned(name: str, package: Installed) -> str:
    return (
        f"`{name}` {package.version} is installed: if a newer release of it broke the tests, pin an older one in the "
        f"manifest, or install what there was on a day when they passed (environment.exclude_newer: {_DAY})"
    )


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in dict.fromkeys(names))
