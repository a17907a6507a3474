"""`init`: a configuration and a backlog, packaged or proposed from a repository; `demo`: the packaged example."""

import asyncio
import csv
import io
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from orchestrator.app.plan_files import project_files, read_texts, write_new
from orchestrator.app.runners import project_runner, sandbox_for
from orchestrator.app.trust import give_trust
from orchestrator.code.parsers import parse_json, parse_toml
from orchestrator.core.contract import Surface
from orchestrator.core.errors import ConfigError
from orchestrator.core.paths import is_test_file
from orchestrator.core.suite import TestReport
from orchestrator.core.value import counted, listed, printable, shortened
from orchestrator.environments.interpreters import installed
from orchestrator.environments.proposal import is_read, propose, section
from orchestrator.git.command import run_git
from orchestrator.providers.routing import keys_there
from orchestrator.settings import Environment, Settings, packaged
from orchestrator.story.project_scan import build_surface, scan_paths

CONFIG, BACKLOG, TEAM = "config.yaml", "backlog.csv", "team.jsonl"
# In a repository no scripted team is proposed: it would build the example.
_SCRIPT = "script: team.jsonl      # the example team of backlog.csv; --script FILE names another one"
_NO_SCRIPT = "script: null            # recorded answers; --script FILE names them too"


@dataclass(frozen=True, kw_only=True)
class Started:
    """The files that `init` wrote, and their origin."""

    folder: Path
    written: tuple[Path, ...]
    files: int
    """Files of the repository that were looked at; 0 for an empty folder."""
    found: tuple[str, ...]
    """Sentences on what went into the proposal."""
    keys: dict[str, str]
    """Provider → the environment variable that holds a key for it."""


async def start(
    folder: Path, variables: Mapping[str, str], take: Callable[[Sequence[str]], bool] | None = None
) -> Started:
    """Writes config.yaml and backlog.csv into `folder`, which is made when it is absent; all or none.

    An empty folder gets an example that runs: team.jsonl is the scripted team that builds its stories.

    `take` is asked whether commands that the repository's files give belong into the configuration; without it, or
    where it says no, they stand there as comments. `variables` is the process environment: nothing of it is written,
    only the names of keys that are set are reported.
    Raises ConfigError when one of them is there already, or the folder cannot be read or written.
    """
    await asyncio.to_thread(_prepare, folder)
    files = await project_files(folder)
    if any(not path.startswith(".") for path in files):  # else there is nothing to propose from
        texts, found = await _proposed(folder, files, variables, take)
    else:
        texts, found = await asyncio.to_thread(_packaged), ()
    targets = {folder / name: text for name, text in texts.items()}
    await asyncio.to_thread(write_new, targets)
    with suppress(ConfigError):  # no home folder: the user is asked for it should git ever track the file
        await asyncio.to_thread(give_trust, folder / CONFIG, variables)
    return Started(folder=folder, written=tuple(targets), files=len(files), found=found, keys=keys_there(variables))


def _prepare(folder: Path) -> None:
    try:
        for path in (folder / CONFIG, folder / BACKLOG, folder / TEAM):
            if path.exists() or path.is_symlink():
                raise ConfigError(f"{path} is there already and is never overwritten; move it, or name another folder")
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be used: {error.strerror}") from error


def _packaged() -> dict[str, str]:
    source = packaged("examples") / "init"
    return {name: (source / name).read_text(encoding="utf-8") for name in (CONFIG, BACKLOG, TEAM)}


async def _proposed(
    folder: Path,
    files: tuple[str, ...],
    variables: Mapping[str, str],
    take: Callable[[Sequence[str]], bool] | None,
) -> tuple[dict[str, str], tuple[str, ...]]:
    wanted = {*scan_paths(files), *(path for path in files if path in {"package.json", "pyproject.toml"})}
    texts = await asyncio.to_thread(read_texts, folder, sorted(wanted))
    # A name that does not print would break the proposed CSV.
    surface = build_surface("", tuple(path for path in files if path.isprintable()), texts)
    name = (await asyncio.to_thread(folder.resolve)).name
    facts = _look(surface.files, texts)
    templates = await asyncio.to_thread(_packaged)
    header = next(csv.reader([templates[BACKLOG].split("\n", 1)[0]]))
    told = [f"{what}: {facts[key]}" for key, what in _TOLD.items() if key in facts]
    told += [counted(len(surface.dependencies), "package")] if surface.dependencies else []
    setups = propose(await asyncio.to_thread(read_texts, folder, filter(is_read, files)))
    commands = [f"{line.text}  ({line.source})" for line in setups.commands]
    taken = bool(commands) and take is not None and await asyncio.to_thread(take, commands)
    python = await asyncio.to_thread(installed, variables.get("PATH", "")) if setups.python else ()
    environment = section(setups, [str(one.number) for one in python if one.usable], take=taken)
    proposal = {
        CONFIG: _configuration(templates[CONFIG].replace(_SCRIPT, _NO_SCRIPT), facts) + environment,
        BACKLOG: _backlog(header, facts.get("name") or name, surface),
    }
    return proposal, tuple(told)


VISIONS = (
    *("vision.md", "docs/vision.md", "doc/vision.md", "product.md", "docs/product.md"),
    *("readme.md", "readme.rst", "readme.txt", "readme", "docs/readme.md", "docs/index.md"),
)
"""Files that describe a product, best first, in lower case."""
_TOLD = {"vision": "vision", "wireframes": "wireframes", "command": "test runner"}
"""Setting of the configuration → what it is for people."""
_CELL, _LISTED = 1500, 20
"""Characters of a cell, and names in it."""


def _look(files: Sequence[str], texts: Mapping[str, str]) -> dict[str, str]:
    """Returns what a repository says of itself: its name, values of settings, and package.json's own test script."""
    by_name = {path.lower(): path for path in reversed(files)}
    package, project = (_read(parse, texts.get(name, "")) for name, parse in _MANIFESTS.items())
    folders = {parent for path in files if (parent := PurePosixPath(path).parent).name.lower().startswith("wireframe")}
    script = shortened(str(_table(package, "scripts").get("test") or ""), 120)
    tests = [path for path in files if is_test_file(path)]
    kinds = {"pytest" for path in tests if path.endswith(".py")}
    others = {"" for path in tests if re.search(r"\.[cm]?[jt]sx?$", path)}
    kinds |= {"node"} if "node --test" in script else others
    found = {
        "name": shortened(str(_table(project, "project").get("name") or package.get("name") or ""), 80),
        "vision": next((by_name[path] for path in VISIONS if path in by_name), ""),
        "wireframes": min(map(str, folders), key=lambda path: (path.count("/"), path), default=""),
        "command": kinds.pop() if len(kinds) == 1 else "",
        "script": script,
    }
    return {name: value for name, value in found.items() if value}


_MANIFESTS: Mapping[str, Callable[[str], Any]] = {"package.json": parse_json, "pyproject.toml": parse_toml}


def _read(parse: Callable[[str], Any], text: str) -> Mapping[str, Any]:
    try:
        value = parse(text)
    except (ValueError, RecursionError):  # an invalid manifest proposes nothing
        return {}
    return value if isinstance(value, dict) else {}


def _table(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    inner = value.get(name)
    return inner if isinstance(inner, dict) else {}


def _configuration(template: str, facts: Mapping[str, str]) -> str:
    """Returns the template with the facts filled in."""
    lines = {name: f"{json.dumps(facts[name], ensure_ascii=False)}  # found here" for name in _TOLD if name in facts}
    if "command" not in facts and "script" in facts:
        lines["command"] = f"null  # package.json says: {facts['script']}"
    return "".join(
        f"  {name}: {lines.pop(name)}\n" if (name := line.partition(":")[0].strip()) in lines else line
        for line in template.splitlines(keepends=True)
    )


def _backlog(header: Sequence[str], name: str, surface: Surface) -> str:
    """Returns a CSV backlog with one row, NFR-001, that describes the project's foundation; unknown cells are empty."""
    tests = any(map(is_test_file, surface.files))
    folders = Counter(f"{path.split('/', 1)[0]}/" if "/" in path else "the top folder" for path in surface.files)
    most = sorted(folders.items(), key=lambda one: (-one[1], one[0]))[:8]
    row = {
        "Story_ID": "NFR-001",
        "Title": f"What {name} stands on",
        "User_Story": f"As a developer, I want new work to keep to what {name} is built on so that it fits in.",
        "Functional_Requirements": "; ".join(f"{count} files in {folder}" for folder, count in most),
        "Integrations": listed(surface.dependencies, _LISTED),
        "Dependencies": "None (foundational)",
        "Constraints": "; ".join(filter(None, (surface.runtime, "What is there keeps working"))),
        "Acceptance_Criteria": f"1. {'The tests that are there pass unchanged' if tests else 'A first test passes'}; "
        "2. docs/conventions.md says where code and tests go, how they are named and how the tests are run",
        "Priority": "Critical",
        "Status": "Backlog",
        "Notes": f"Proposed by `orchestrator init` from {len(surface.files)} files: correct it and add your stories. "
        "Nothing to do here? Write completed into Execution_Status",
    }
    out = io.StringIO()
    writer = csv.DictWriter(out, header, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerow({column: printable(shortened(text, _CELL), keep="") for column, text in row.items()})
    return out.getvalue()


EXAMPLE = "library"
PARTS = ("backlog.csv", "vision.md", "config.yaml", "team.jsonl", "README.md")


def fresh_copy(parent: Path) -> Path:
    """Returns a new folder `demo-run`, `demo-run-2`, … below `parent` with the example's files. Raises ConfigError."""
    source = packaged("examples") / EXAMPLE
    number = 1
    while (place := parent.absolute() / ("demo-run" if number == 1 else f"demo-run-{number}")).exists():
        number += 1
    try:
        place.mkdir(parents=True)
        for name in PARTS:
            shutil.copyfile(source / name, place / name)
    except OSError as error:
        raise ConfigError(f"cannot set up the example in {place}: {error.strerror}") from error
    return place


async def check_out(repo: Path, branch: str, target: Path) -> None:
    """Clones `branch` of `repo` into `target`, so that a person can look at it and run it. Raises WorkspaceError."""
    await run_git(
        ["clone", "--quiet", "--no-local", "--branch", branch, "--", str(repo), str(target)],
        cwd=repo.parent,
        protocols="file",
    )


async def run_suite(folder: Path, settings: Settings, environment: Environment) -> TestReport:
    """Returns the whole suite of the application in `folder`."""
    sandbox = await sandbox_for(settings, environment)
    runner = project_runner(settings, environment, environment.home / "environments", sandbox)
    return await runner.run(folder, key="demo")
