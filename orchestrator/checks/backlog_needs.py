"""What stories speak of that this machine or its configuration does not have: told before anything is paid for."""

import re
from collections.abc import Collection, Iterator, Sequence

from orchestrator.checks.environment import SERVICES
from orchestrator.domain.findings import Finding, Where, minor
from orchestrator.domain.story import Story
from orchestrator.settings.environment import EnvironmentSettings

_NAMES = {"PostgreSQL": r"postgres(?:ql)?", "MongoDB": r"mongo(?:db)?"}
"""Of services, where people call them otherwise too."""
_BUILT = re.compile(
    r"(?<![\w-])(sqlite3|better-sqlite3|bcrypt|argon2|node-sass|node-gyp|serialport|psycopg2|mysqlclient|pyodbc|uwsgi)"
    r"(?![\w-])"
)
"""Packages that are built where they are installed, by names that mean nothing else."""
_NODE = re.compile(r"\b(?:node\.?js|npm|typescript|express\.js|react|vitest|jest|vite)\b", re.IGNORECASE)
_LOADING = re.compile(
    r"(?<![\w-])(puppeteer|cypress|electron|playwright-chromium|chromedriver)(?![\w-])", re.IGNORECASE
)
"""Packages that load a browser when they are installed, which nobody allows unasked."""
HEADERS = "node.h"
LOOKED_FOR = ("cc", "make", "node", HEADERS)
_TOLD = 8
"""Stories that are named."""


def needs_told(
    stories: Sequence[Story], environment: EnvironmentSettings, programs: Collection[str]
) -> Iterator[Finding]:
    """A finding for each need; `programs` are those of `LOOKED_FOR` that are on PATH."""
    texts = {story.id: "\n".join(_texts(story)) for story in stories}
    open_ports = {one.rpartition(":")[2] for one in environment.services}
    for port, name in SERVICES.items():
        pattern = re.compile(rf"\b(?:{_NAMES.get(name, re.escape(name))})\b", re.IGNORECASE)
        if port not in open_ports and (found := [one for one, text in texts.items() if pattern.search(text)]):
            yield minor(
                "environment.no_service",
                f"{_who(found)} of {name}: tests reach only what environment.services names",
                where=Where(story=found[0]),
                fix=f"name the address of one that you started, as localhost:{port}, or have tests do without it",
            )
    built = {one: match[1].lower() for one, text in texts.items() if (match := _BUILT.search(text))}
    loading = {one: match[1].lower() for one, text in texts.items() if (match := _LOADING.search(text))}
    setting = environment.install_scripts
    listed = setting if isinstance(setting, tuple) else (setting,)
    refused = {one: name for one, name in loading.items() if name not in listed}
    if "auto" not in listed:
        refused |= {one: name for one, name in built.items() if name not in listed}
    if refused:
        names = sorted({*refused.values()})
        held = [name for name in listed if name != "never"]
        yield minor(
            "environment.install_script",
            f"{_who([*refused])} of {', '.join(names)}: packages that run code while they are installed, which "
            "environment.install_scripts does not allow",
            where=Where(story=next(iter(refused))),
            fix=f"set environment.install_scripts: [{', '.join((*held, *names))}], or have the stories do without",
        )
    built = {one: name for one, name in built.items() if one not in refused}
    packages = ", ".join(sorted({*built.values()}))
    if built and not {"cc", "make"} <= {*programs}:
        yield minor(
            "environment.no_program",
            f"{_who([*built])} of {packages}: packages that are built where they are installed, "
            "and this machine has no C compiler with make",
            where=Where(story=next(iter(built))),
            fix="install them, or name the hosts of prebuilt binaries in environment.hosts",
        )
    elif built and {"node", HEADERS} & {*programs} == {"node"} and "nodejs.org" not in environment.hosts:
        yield minor(
            "environment.hosts",
            f"{_who([*built])} of {packages}: packages that are built where they are installed, and this machine has "
            "no headers of its `node`, which would then be fetched from nodejs.org",
            where=Where(story=next(iter(built))),
            fix="install node with its headers, or set environment.hosts: [nodejs.org]",
        )
    if "node" not in programs and (found := [one for one, text in texts.items() if _NODE.search(text)]):
        yield minor(
            "environment.no_program",
            f"{_who(found)} of what runs on Node, and this machine has no `node`",
            where=Where(story=found[0]),
            fix="install Node 20 or newer with npm",
        )


def _texts(story: Story) -> Iterator[str]:
    for value in story.model_dump().values():
        if isinstance(value, str):
            yield value
        elif isinstance(value, tuple):
            yield from (one for one in value if isinstance(one, str))


def _who(stories: Sequence[str]) -> str:
    more = f" and {len(stories) - _TOLD} more" if len(stories) > _TOLD else ""
    named = ", ".join(stories[:_TOLD]) + more
    return f"{named} {'speaks' if len(stories) == 1 else 'speak'}"
