"""How many real faults are found: faults seeded into files of real projects, judged as `check` judges.

    make bench ARGS="recall CORPUS=DIR [FILES=4] [JOBS=1] [ONLY=NAME,…] [ROWS=FILE]"

A file that is refused as it is takes no part. What only runs can judge (a test that shows nothing) is not seeded here.
"""

import ast
import json
import random
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks import refusals
from benchmarks.measure import Figure, Result
from benchmarks.refusals import Project
from orchestrator.core.paths import is_test_file

PYTHON = frozenset((".py",))
SCRIPTS = frozenset((".js", ".mjs", ".ts", ".tsx", ".jsx"))
CODE = PYTHON | SCRIPTS
MANIFESTS = frozenset((".json", ".toml", ".yaml", ".yml"))
_NOWHERE = "zz_nowhere_to_be_found"


class Fault(NamedTuple):
    """A way to break a file."""

    name: str
    kinds: frozenset[str]
    """Endings of the files that it breaks."""
    seed: Callable[[Project, str, str], str | None]
    """Project, path and text → the broken text; None where this file cannot be broken so."""
    asked: bool = False
    """Whether a question to the architect is what is wanted: nothing is wrong in the text itself."""
    suite: bool = False


class Seeded(NamedTuple):
    """One fault in one file, and whether it was found."""

    fault: str
    project: str
    path: str
    found: bool
    said: list[str]


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True


def _broken(path: str, text: str) -> str | None:
    """The text, if it is sure to be broken: Python's own parser says so; the other seeds take an opener's partner."""
    return None if path.endswith(".py") and _parses(text) else text


def _drop_bracket(_: Project, path: str, text: str) -> str | None:
    closers = list(re.finditer(r"^[)\]}]", text, re.M))
    if not closers:
        return None
    at = closers[len(closers) // 2].start()
    return _broken(path, text[:at] + text[at + 1 :])


def _cut_keyword(_: Project, path: str, text: str) -> str | None:
    pattern = r"^(\s*(?:async )?de)f(?= \w+\()" if path.endswith(".py") else r"^((?:export )?functio)n(?= \w+\()"
    cut, count = re.subn(pattern, r"\1", text, count=1, flags=re.M)
    return _broken(path, cut) if count else None


def _truncate(_: Project, path: str, text: str) -> str | None:
    opened = [found.end() for found in re.finditer(r"^.*[({\[]\n", text, re.M)]
    return _broken(path, text[: opened[len(opened) // 2]]) if opened else None


def _elide(_: Project, path: str, text: str) -> str | None:
    lines = text.splitlines(keepends=True)
    starts = [at for at, line in enumerate(lines) if re.match(r"(def|class|function|export) ", line)]
    if len(starts) < 3:
        return None
    mark = "#" if path.endswith(".py") else "//"
    return "".join([*lines[: starts[-2]], f"{mark} ... rest of the code unchanged ...\n"])


def _mark_conflict(_: Project, __: str, text: str) -> str:
    lines = text.splitlines(keepends=True)
    half = len(lines) // 2
    part = lines[half : half + 2]
    return "".join([*lines[:half], "<<<<<<< HEAD\n", *part, "=======\n", *part, ">>>>>>> topic\n", *lines[half + 2 :]])


def _import_own(project: Project, path: str, text: str) -> str | None:
    if not path.endswith(".py"):
        return f"{text}\nimport {{ thing }} from './{_NOWHERE}';\n"
    folder = PurePosixPath(path).parent
    if not (project.folder / folder / "__init__.py").exists():
        return None
    return f"{text}\nfrom .{_NOWHERE} import thing\n"


def _import_package(_: Project, path: str, text: str) -> str:
    line = f"import {_NOWHERE}" if path.endswith(".py") else f"import nowhere from '{_NOWHERE}';"
    return f"{text}\n{line}\n"


def _lose_export(project: Project, path: str, text: str) -> str | None:
    """A top-level function or class that another file of the same package imports by name is called otherwise."""
    folder, stem = PurePosixPath(path).parent, PurePosixPath(path).stem
    for other in sorted((project.folder / folder).glob("*.py")):
        source = other.read_text(encoding="utf-8", errors="ignore") if other.name != f"{stem}.py" else ""
        for names in re.findall(rf"^from \.{re.escape(stem)} import ([\w, ]+)$", source, re.M):
            for name in re.findall(r"\w+", names):
                defined = re.search(rf"^(?:def|class) {name}\b", text, re.M)
                if defined and len(re.findall(rf"^\s*(?:(?:def|class) )?{name}\b", text, re.M)) == 1:
                    return re.sub(rf"\b{name}\b", f"{name}_{_NOWHERE}", text)
    return None


def _lose_dependency(project: Project, path: str, text: str) -> str | None:
    """A dependency that shipped code imports is taken out of the root's package.json or pyproject.toml."""
    if path == "package.json":
        manifest = json.loads(text)
        for name in sorted(manifest.get("dependencies", {})):
            others = (manifest.get(group, {}) for group in ("peerDependencies", "devDependencies"))
            if any(name in group for group in others) or not _imports(
                project, rf"(from |require\()['\"]{re.escape(name)}['\"]"
            ):
                continue
            del manifest["dependencies"][name]
            return json.dumps(manifest, indent=2) + "\n"
    if path == "pyproject.toml":
        for line in re.findall(r'^ +"[A-Za-z][\w-]*[^"\n]*",?\n', text, re.M):
            name = re.findall(r"[\w-]+", line)[0]
            module = name.replace("-", "_").lower()
            if len(re.findall(rf"\b{name}\b", text)) == 1 and _imports(project, rf"^(import|from) {module}\b"):
                return text.replace(line, "", 1)
    return None


def _imports(project: Project, pattern: str) -> bool:
    try:
        return bool(
            project.git("grep", "-lE", pattern, "--", "*.py", "*.js", "*.ts", ":!*test*", ":!docs", ":!examples")
        )
    except subprocess.CalledProcessError:  # nothing found
        return False


def _break_manifest(_: Project, path: str, text: str) -> str | None:
    if path.endswith(".json"):
        closed = text.rstrip()
        return closed[:-1] if closed.endswith("}") else None
    if path.endswith(".toml"):
        return f"{text}\n[broken\n"
    return f"{text}\nbroken: [1, 2\nother: }}\n"


def _double_test(_: Project, __: str, text: str) -> str | None:
    found = re.search(r"^def (test_\w+)\(", text, re.M)
    return f"{text}\n\ndef {found[1]}():\n    assert 1 + 1 == 2\n" if found else None


def _rename_tests(_: Project, path: str, text: str) -> str | None:
    if not path.endswith(".py") or re.search(r"^class|runTest|load_tests", text, re.M):
        return None
    return re.sub(r"^((?:async )?def )test_", r"\1checks_", text, flags=re.M)


FAULTS = (
    Fault("a bracket dropped", CODE, _drop_bracket),
    Fault("a keyword cut", CODE, _cut_keyword),
    Fault("the file ends in the middle", CODE, _truncate),
    Fault("code left out, a comment in its place", CODE, _elide),
    Fault("markers of a merge", CODE, _mark_conflict),
    Fault("an own module that is nowhere", CODE, _import_own),
    Fault("a package that nothing declares", CODE, _import_package, asked=True),
    Fault("a function gone that others import", PYTHON, _lose_export),
    Fault("a manifest that does not parse", MANIFESTS, _break_manifest),
    Fault("a dependency gone that code imports", frozenset((".json", ".toml")), _lose_dependency),
    Fault("suite: a bracket dropped", CODE, _drop_bracket, suite=True),
    Fault("suite: a test's name twice", PYTHON, _double_test, suite=True),
    Fault("suite: nothing to collect", PYTHON, _rename_tests, suite=True),
)


def _judge(project: Project, fault: Fault, path: str, text: str) -> refusals.Case:
    if fault.suite:
        return project.judge("suite", path, "suite", file=path, text=text)
    plan = refusals._plan(f"Change `{path}`.", [path], {})
    return project.judge("delivery", path, "delivery", plan, text=refusals._delivery({path: text}))


def _of_project(source: Path, files: int) -> list[Seeded]:
    with TemporaryDirectory() as folder:
        project = Project(source, Path(folder))
        paths = project.check_out(project.head)
        random.Random(project.name).shuffle(paths)
        return [seeded for fault in FAULTS for seeded in _of_fault(project, fault, paths, files)]


def _of_fault(project: Project, fault: Fault, paths: list[str], files: int) -> Iterator[Seeded]:
    given = 0
    for path in paths:
        if given == files:
            return
        wanted = bool(refusals._SUITE.search(path)) if fault.suite else refusals._written(path)
        if not wanted or PurePosixPath(path).suffix not in fault.kinds or (not fault.suite and is_test_file(path)):
            continue
        text = project.text(path)
        try:
            broken = fault.seed(project, path, text) if text and text.strip() else None
        except ValueError:  # a manifest that is none
            continue
        if broken is None or broken == text or _judge(project, fault, path, text or "").refused:
            continue
        said = _judge(project, fault, path, broken)
        asked = any(finding.get("ask") for finding in said.findings)
        given += 1
        codes = sorted({finding["code"] for finding in said.findings})
        yield Seeded(fault.name, project.name, path, said.refused or (fault.asked and asked), codes)


def run(options: Mapping[str, str]) -> Result:
    """Seeds every fault into files of every project. Raises ValueError for unusable options."""
    if "CORPUS" not in options or not options.keys() <= {"CORPUS", "FILES", "JOBS", "ONLY", "ROWS"}:
        raise ValueError("recall takes CORPUS=DIR and, if wanted, FILES, JOBS, ONLY, ROWS")
    only = set(filter(None, options.get("ONLY", "").split(",")))
    sources = [path for path in sorted(Path(options["CORPUS"]).iterdir()) if refusals._is_repository(path)]
    sources = [path for path in sources if not only or path.name in only]
    seeded: list[Seeded] = []
    with ProcessPoolExecutor(int(options.get("JOBS", "1")), get_context("spawn")) as workers:
        judge = partial(_of_project, files=int(options.get("FILES", "4")))
        for done in as_completed([workers.submit(judge, source) for source in sources]):
            seeded += done.result()
            if "ROWS" in options:
                rows = "".join(json.dumps(one._asdict()) + "\n" for one in done.result())
                with Path(options["ROWS"]).open("a", encoding="utf-8") as file:
                    file.write(rows)
    return Result(
        name="recall",
        about=f"{len(sources)} projects, {len(seeded)} seeded faults",
        figures=tuple(_figures(seeded)),
        notes=tuple(f"not found: {one.fault}: {one.project} {one.path} {one.said}" for one in seeded if not one.found),
    )


def _figures(seeded: list[Seeded]) -> Iterator[Figure]:
    for fault in FAULTS:
        ones = [one.found for one in seeded if one.fault == fault.name]
        yield Figure(name=f"{fault.name}: seeded", value=len(ones))
        if ones:
            yield Figure(name=f"{fault.name}: found", value=100 * sum(ones) / len(ones), unit="%")
    if seeded:
        yield Figure(name="all: found", value=100 * sum(one.found for one in seeded) / len(seeded), unit="%")
