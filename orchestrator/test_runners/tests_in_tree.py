"""Finds the tests of a tree, by name and a quick look: follows no link, and the walk is bounded.

Test runners that a JavaScript project brings itself: which one it uses and how its people call it (pure but for
looking at manifests; blocks).
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from orchestrator.code.parsers import parse_json
from orchestrator.core.suite import CaseResult, ReportedCase
from orchestrator.files.safe_files import read_text, root_files, walk_files
from orchestrator.test_runners.ava import read_tap
from orchestrator.test_runners.choice import KINDS, NODE, PYTEST, kind_of, stated_runners
from orchestrator.test_runners.failures import mendable
from orchestrator.test_runners.report import MAX_BYTES

MOCHA_REPORTER = Path(__file__).with_name("mocha_reporter.cjs")
SEPARATOR = " > "
"""Between the titles of a test and of what it stands in."""
TOOLS = ("vitest", "jest", "mocha", "ava")
_MANIFEST = "package.json"
_CONFIGS = {"vitest.config": "vitest", "jest.config": "jest", ".mocharc": "mocha", "ava.config": "ava"}
_VARIABLE = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_ENDS = {"&&", "||", ";", "|", "&"}
_TAKES_VALUE = frozenset(
    {"-c", "--config", "-r", "--require", "--import", "--loader", "--root", "--dir", "--project", "--projects"}
    | {"--rootDir", "--roots", "--timeout", "-t", "--testTimeout", "--extension", "--file", "--env", "--environment"}
    | {
        "--preset",
        "--ui",
        "-u",
        "--package",
        "--maxWorkers",
        "-w",
        "--pool",
        "--ignore",
        "--exclude",
        "--spec",
        "--mode",
    }
)
"""Options whose value is the next word."""
_NOT_OURS = re.compile(
    r"--(?:watch\w*|no-watch|coverage\S*|collectCoverage\S*|reporters?\S*|outputFile\S*|json|ci|silent|verbose|ui|open"
    r"|bail\S*|onlyChanged|changed\S*|passWithNoTests|detectOpenHandles|run|parallel|reporter-options?\S*)(?:=.*)?|-[wob]"
)
"""Options for interactive use: how results are shown, and skipping unchanged tests."""
_SPECIAL = re.compile(r"[.*+?^${}()|\[\]\\/]")
"""Characters that mean something in a pattern of JavaScript's."""
ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_RESULTS = {"passed": CaseResult.PASSED, "failed": CaseResult.FAILED}


class Tool(NamedTuple):
    """How a project's tests are run."""

    name: str
    """One of `TOOLS`."""
    folder: str
    """Below the root, of the manifest that says so; "" for the root itself."""
    why: str
    """What says so, for people."""
    options: tuple[str, ...] = ()
    """That its people call it with."""
    words: tuple[str, ...] = ()
    """Which tests they name to it."""
    env: Mapping[str, str] = {}


def tool_of(root: Path, file: str) -> Tool | None:
    """Returns the runner of the nearest folder above a test whose manifest names one. Blocks."""
    for parent in PurePosixPath(file).parents:
        folder = "" if str(parent) == "." else str(parent)
        if (found := tool_in(root, folder)) is not None:
            return found
    return None


def tool_in(root: Path, folder: str) -> Tool | None:
    """The runner that a folder's manifest names: in a script that tests, else as a package, else by its settings."""
    names = root_files(root / folder)
    if _MANIFEST not in names:
        return None
    where = f"{folder}/{_MANIFEST}" if folder else _MANIFEST
    with suppress(ValueError, AttributeError):  # an invalid manifest names no script
        manifest = parse_json(read_text(root, where) or "")
        scripts = manifest.get("scripts") or {}
        for name in sorted(scripts, key=lambda one: (one != "test", len(one))):
            if name.startswith("test") and isinstance(scripts[name], str):
                if (found := _called(scripts[name], folder, f"the script `{name}` of {where}")) is not None:
                    return found
                if name == "test" and re.search(r"\bnode\b.*--test\b", scripts[name]):
                    return None
        brought = {name for group in ("devDependencies", "dependencies") for name in manifest.get(group) or {}}
        if tools := [name for name in TOOLS if name in brought]:
            return Tool(tools[0], folder, f"{where} brings it")
        if tools := [name for name in TOOLS if name in manifest]:  # settings
            return Tool(tools[0], folder, f"{where} has settings of it")
    tools = [tool for start, tool in _CONFIGS.items() if any(name.startswith(start) for name in names)]
    return Tool(tools[0], folder, f"{folder or 'the root'} has settings of it") if tools else None


def _called(script: str, folder: str, why: str) -> Tool | None:
    """`cross-env NODE_ENV=test NODE_OPTIONS=--experimental-vm-modules jest --config x tests`"""
    with suppress(ValueError):  # unbalanced quotes
        lexer = shlex.shlex(script, posix=True, punctuation_chars=";&|")
        lexer.whitespace_split, lexer.commenters = True, ""
        words = [*lexer]
        bases = [re.sub(r"\.[cm]?js$", "", PurePosixPath(word).name) for word in words]
        place = next((number for number, base in enumerate(bases) if base in TOOLS), None)
        if place is None:
            return None
        start = max((number + 1 for number, word in enumerate(words[:place]) if word in _ENDS), default=0)
        end = next((number for number, word in enumerate(words) if number > place and word in _ENDS), len(words))
        before = words[start:place]
        env = dict(word.split("=", 1) for word in before if _VARIABLE.fullmatch(word))
        if "node" in before and (flags := [word for word in before[before.index("node") :] if word.startswith("--")]):
            env["NODE_OPTIONS"] = " ".join(filter(None, (env.get("NODE_OPTIONS", ""), *flags)))
        options, positional = _split(words[place + 1 : end])
        return Tool(bases[place], folder, why, options, positional, env)
    return None


def _split(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Options with their values, and what is no option."""
    options, positional, waiting = list[str](), list[str](), [*words]
    while waiting:
        word = waiting.pop(0)
        if not word.startswith("-") or word == "-":
            positional += [word] if word not in {"run", "watch"} else []
            continue
        held = [word]
        if word in _TAKES_VALUE and waiting:
            held.append(waiting.pop(0))
        if not _NOT_OURS.fullmatch(word):
            options += held
    return tuple(options), tuple(positional)


def command(tool: Tool, program: str, scratch: Path, files: Sequence[str], only: Sequence[ReportedCase]) -> list[str]:
    """The command line for some files, seen from the tool's folder, none: whatever it finds; `only` cases of them."""
    report, pattern = scratch / "report.json", _pattern(only)
    if tool.name == "vitest":
        ours = [
            "run",
            "--reporter=default",
            "--reporter=json",
            f"--outputFile.json={report}",
            "--coverage.enabled=false",
        ]
        named = ["-t", pattern]
    elif tool.name == "jest":
        ours = ["--json", f"--outputFile={report}", "--ci", "--coverage=false", "--watchAll=false", "--watchman=false"]
        ours += [f"--cacheDirectory={scratch}"]
        named, files = ["--testNamePattern", pattern], ["--runTestsByPath", *files] if files else files
    elif tool.name == "ava":
        # It writes no file itself; a title with `*` or `!` would be a pattern.
        program, ours = "sh", ["-c", 'exec "$@" > "$0"', str(report), program, "--tap"]
        plain = not any(set("*!") & set(case.name) for case in only)
        named = [f"--match={case.name}" for case in only] if plain else []
    else:
        ours = [f"--reporter={MOCHA_REPORTER}", "--reporter-option", f"output={report}"]
        named = ["--grep", pattern]
    first = len(ours) if tool.name == "ava" else 1
    return [program, *ours[:first], *tool.options, *ours[first:], *(named if only else ()), *(files or tool.words)]


def _pattern(only: Sequence[ReportedCase]) -> str:
    """Of the whole names; tools join titles by spaces. What it selects beside them is left out of the report."""
    names = (_SPECIAL.sub(r"\\\g<0>", case.name).replace(SEPARATOR, "(?: > | )") for case in only)
    return f"^(?:{'|'.join(names)})$"


def read_results(report: Path, root: Path, tap_of: Sequence[str] | None = None) -> tuple[ReportedCase, ...]:
    """Returns the cases in the JSON that jest and vitest write, files told from `root`. Blocks.

    With `tap_of` it is AVA's report, which does not name the files that it is about: some of these. Raises ValueError,
    with a reason for people, when it is no report.
    """
    text = read_text(report.parent, report.name, MAX_BYTES)
    if text is None:
        raise ValueError("the runner ended without writing its report")
    if tap_of is not None:
        return read_tap(text, tap_of, root)
    try:
        results = parse_json(text)["testResults"]
        cases = [case for result in results for case in _cases(result, root)]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"the report cannot be read: {error!r}"[:300]) from error
    seen: dict[str, int] = {}
    for number, case in enumerate(cases):
        seen[case.id] = times = seen.get(case.id, 0) + 1
        if times > 1:  # the same title for several rows of a table
            cases[number] = case.model_copy(update={"id": f"{case.id} ({times})"})
    return tuple(cases)


def _cases(result: Mapping[str, object], root: Path) -> list[ReportedCase]:
    named = str(result.get("name") or "")
    inside = PurePosixPath(named).is_relative_to(root)
    file = PurePosixPath(named).relative_to(root).as_posix() if inside else ""
    found, held = list[ReportedCase](), result.get("assertionResults")
    for one in held if isinstance(held, list) else ():
        name = SEPARATOR.join(str(title) for title in (*(one.get("ancestorTitles") or ()), one["title"]) if title)
        state = _RESULTS.get(one.get("status"), CaseResult.SKIPPED)
        found.append(_case(file, name, state, one.get("failureMessages") or (), root))
    if not found and result.get("status") == "failed":
        found.append(_case(file, file, CaseResult.ERROR, [result.get("message")], root))
    return found


def _case(file: str, name: str, result: CaseResult, messages: Sequence[object], root: Path) -> ReportedCase:
    said = mendable(ANSI.sub("", "\n".join(map(str, messages))).strip(), root)
    return ReportedCase(name=name, id=f"{file}::{name}", file=file, result=result, message=said)


_NO_TESTS_THERE = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})
_IN_FOLDER = re.compile(r"(^|/)(__tests__|tests?)/([^/]+/)*[^/.]+\.[cm]?[jt]sx?$")
"""Folders in which jest and mocha find tests of any name."""
_NODES = re.compile(r"^(test|test-.*|.*[_-]test)\.[cm]?[jt]s$")
"""Names of tests that only node and AVA find."""
_UNITTESTS = re.compile(r"^(tests?.*|.*_tests)\.py$")
"""Names of tests that only unittest and Django find."""
_NAMED = (*(kind.suites for kind in KINDS.values()), _NODES, _UNITTESTS)
_TYPESCRIPT = (".ts", ".mts", ".cts")


def kinds_of_tests(root: Path) -> tuple[str, ...]:
    """Runners that the whole suite needs; pytest when there is no test at all, which it will say. Blocks.

    A JavaScript or TypeScript test counts when it imports `node:test`, or when a manifest above it names what runs it.
    """
    found = {PYTEST} & {*stated_runners(root_files(root))}
    for path in files_of_tests(root):
        kind = kind_of(path)
        # The cheap question first: the others read the file and the manifests above it.
        if kind in found:
            continue
        if kind != NODE or is_nodes(root, path) or (_is_for_tools(path) and tool_of(root, path) is not None):
            found.add(kind)
        if found == KINDS.keys():
            break
    return tuple(kind for kind in KINDS if kind in found) or (PYTEST,)


def typescript_tests(root: Path) -> tuple[str, ...]:
    """Node's own tests below `root` that are written in TypeScript, sorted. Blocks."""
    return tuple(sorted(path for path in files_of_tests(root) if is_typescript(path) and is_nodes(root, path)))


def is_typescript(path: str) -> bool:
    """Returns whether node has to leave types out to run it."""
    return path.endswith(_TYPESCRIPT)


def is_nodes(root: Path, path: str) -> bool:
    """Returns whether it is for `node --test`: it imports `node:test`. Blocks."""
    return not path.endswith(".py") and "node:test" in (read_text(root, path) or "")


def _is_for_tools(path: str) -> bool:
    """Returns whether jest, vitest or mocha may find it: to them `test-setup.js` is a helper, to node a test."""
    name = PurePosixPath(path).name
    return bool(KINDS[NODE].suites.search(name) or _IN_FOLDER.search(path) or name.startswith("test."))


def files_of_tests(root: Path) -> Iterator[str]:
    """Yields paths below `root` that are named like tests, no link followed. Blocks."""
    for place, names in walk_files(root, lambda name: name.startswith(".") or name in _NO_TESTS_THERE):
        for name in names:
            named = any(pattern.search(name) for pattern in _NAMED)
            if named or _IN_FOLDER.search(place + name):
                yield place + name
