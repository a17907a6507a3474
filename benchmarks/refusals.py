"""How often real, human work is refused: files, commits and suites of real projects through `check`.

    make bench ARGS="refusals CORPUS=DIR [FILES=40] [COMMITS=30] [SUITES=40] [JOBS=1] [SEED=1] [ONLY=NAME,…]
                     [MODES=fresh,…] [ROWS=FILE]"

DIR/NAME is a git repository, bare or not: a history, or an archive that was unpacked and committed once. Nothing in it
is written: each is cloned into a temporary folder. The modes:

    fresh   a file of HEAD, delivered whole into HEAD without it
    commit  the files of a real commit, delivered whole into its parent; the plan knows its message and its packages
    edits   the same commit as an action plan of EDIT, CREATE and DELETE
    suite   a test file of HEAD, held against HEAD

Rows: JSON lines, one per case, for a closer look.
"""

import difflib
import json
import random
import re
import shlex
import statistics
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks.measure import Figure, Result
from orchestrator.app.judge import CheckOptions, check, find_path_in, judged_json
from orchestrator.app.plans import check_any_plan
from orchestrator.code.packages import dependencies_of
from orchestrator.core.action_plan import Action, ActionPlan, Create, Delete, Edit, Pair
from orchestrator.core.paths import is_binary_file, is_manifest, is_test_file, unsafe_reason
from tests.answers.action_plan_text import render_plan

STORY = "US-001"
MAX_BYTES = 400_000
MAX_CHANGED = 10
"""Files of a commit: a larger one is no task's delivery."""
MODES = ("fresh", "commit", "edits", "suite")
CODE = frozenset((".py", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".vue", ".go"))
PROSE = frozenset((".md", ".mdx", ".rst", ".txt", ".svg", ".lock"))
_SUITE = re.compile(
    r"(^|/)(test_[^/]+\.py|[^/]+_test\.py|[^/]+[.-](test|spec)\.[cm]?[jt]s|(tests?|__tests__)/.*\.[cm]?[jt]s)$"
)
_HAS_TESTS = re.compile(r"^\s*(async )?def test|^\s*(describe|it|test|suite)\s*[.(]", re.M)
_NOT_WRITTEN = re.compile(r"(^|/)(node_modules|vendor|_vendor|dist|build|\.yarn)/|\.min\.(js|css)$|-lock\.")
_BOT = re.compile(r"\[bot\]|dependabot|renovate|pre-commit-ci|github-actions", re.I)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """How much of each project is judged."""

    files: int = 40
    """Files of code, and as many others."""
    commits: int = 30
    suites: int = 40
    seed: int = 1
    """Another one draws other files and commits."""
    modes: tuple[str, ...] = MODES


class Case(NamedTuple):
    """One thing that was judged, with what was said."""

    mode: str
    project: str
    what: str
    """The path, or the commit."""
    ms: float
    """Of a processor: the machine may be shared."""
    findings: list[dict[str, Any]]
    error: str

    @property
    def refused(self) -> bool:
        """Whether it would be sent back, or could not be judged."""
        return bool(self.error) or any(_refuses(finding) for finding in self.findings)


def _refuses(finding: Mapping[str, Any]) -> bool:
    return finding["severity"] in {"major", "critical"}


class Project:
    """A clone whose files are those of one commit at a time."""

    def __init__(self, source: Path, folder: Path) -> None:
        self.name, self.folder = source.name.removesuffix(".git"), folder / "tree"
        self._plan = folder / "plan.json"
        quiet = ["git", "-c", "safe.directory=*", "clone", "-q", "--shared", "--no-checkout"]
        subprocess.run([*quiet, str(source), str(self.folder)], check=True, capture_output=True)
        self.head = self.git("rev-parse", "HEAD").strip()

    def git(self, *args: str) -> str:
        """What git says. Raises CalledProcessError."""
        plain = [
            "-c",
            "safe.directory=*",
            "-c",
            "filter.lfs.smudge=",
            "-c",
            "filter.lfs.required=false",
            "-c",
            "core.autocrlf=false",
        ]
        done = subprocess.run(["git", "-C", str(self.folder), *plain, *args], check=True, capture_output=True)
        return done.stdout.decode("utf-8", "surrogateescape")

    def check_out(self, commit: str) -> list[str]:
        """Returns the commit's regular files, which then lie in the folder."""
        self.git("checkout", "-q", "--force", "--detach", commit)
        rows = (row.partition("\t") for row in self.git("ls-tree", "-r", "-z", commit).split("\0"))
        return [path for meta, _, path in rows if meta.startswith("100")]

    def text(self, path: str, commit: str | None = None) -> str | None:
        """The file's text as it lies there, or of a commit; None for what is no text of a sane size."""
        try:
            if commit is None:
                data = (self.folder / path).read_bytes()
            else:
                data = self.git("show", f"{commit}:{path}").encode("utf-8", "surrogateescape")
            return data.decode("utf-8") if len(data) <= MAX_BYTES and b"\0" not in data else None
        except (OSError, UnicodeDecodeError, subprocess.CalledProcessError):
            return None

    def judge(self, mode: str, what: str, kind: str, plan: Mapping[str, Any] | None = None, **request: Any) -> Case:
        """One case, judged as `check` judges."""
        text, file = request.pop("text", None), request.pop("file", "")
        if text is None:
            text = Path(file).read_text(encoding="utf-8")
        if kind == "suite":
            file = find_path_in(self.folder, file)
        breakdown = json.dumps(plan) if plan is not None else None
        options = CheckOptions(story=STORY, repo=self.folder, plan=breakdown, file=file, **request)
        started = time.process_time()
        try:
            judged = check_any_plan(text, options)[1] if kind == "plan" else check(kind, text, options)
            said, error = judged_json(judged), ""
        except Exception as crash:  # noqa: BLE001 - a crash is a result here, and the other cases are wanted too
            said, error = {}, f"{type(crash).__name__}: {crash}"
        ms = (time.process_time() - started) * 1000
        return Case(mode, self.name, what, ms, said.get("findings", []), error)


class Commit(NamedTuple):
    """What a person committed, without its tests: those are the tester's."""

    sha: str
    parent: str
    message: str
    before: dict[str, str]
    after: dict[str, str]
    removed: list[str]


def _written(path: str) -> bool:
    return not (unsafe_reason(path) or is_test_file(path) or is_binary_file(path) or _NOT_WRITTEN.search(path))


def _fresh(project: Project, sample: Sample, chance: random.Random) -> Iterator[Case]:
    paths = [path for path in project.check_out(project.head) if _written(path)]
    paths = [path for path in paths if PurePosixPath(path).suffix not in PROSE]
    chance.shuffle(paths)
    code = [path for path in paths if PurePosixPath(path).suffix in CODE]
    others = [path for path in paths if PurePosixPath(path).suffix not in CODE]
    for path in [*code[: sample.files], *others[: sample.files]]:
        text = project.text(path)
        if not text or not text.strip():
            continue
        project.git("rm", "-q", "--force", "--", path)
        plan = _plan(f"Write `{path}`.", [path], _packages({}, {path: text}))
        yield project.judge("fresh", path, "delivery", plan, text=_delivery({path: text}))
        project.git("checkout", "-q", "--force", project.head, "--", path)


def _commits(project: Project, sample: Sample, chance: random.Random) -> Iterator[Commit]:
    log = project.git("log", "--no-merges", "-n", "900", "--format=%H%x00%P%x00%an%x00%B%x01", project.head)
    rows = [row.strip("\n").split("\0") for row in log.split("\x01") if row.strip()]
    chance.shuffle(rows)
    given = 0
    for sha, parents, author, message in rows:
        if given == sample.commits:
            return
        if not parents or _BOT.search(author):
            continue
        commit = _commit(project, sha, parents.split()[0], message.strip())
        if commit is not None:
            given += 1
            yield commit


def _commit(project: Project, sha: str, parent: str, message: str) -> Commit | None:
    try:
        raw = project.git("diff-tree", "-r", "-z", "--no-renames", parent, sha).split("\0")
    except subprocess.CalledProcessError:  # the parent lies beyond a shallow history
        return None
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    removed: list[str] = []
    for meta, path in zip(raw[::2], raw[1::2], strict=False):
        old_mode, mode, *_, kind = meta.removeprefix(":").split()
        if not _written(path) or (kind != "D" and not mode.startswith("100")) or old_mode.startswith("12"):
            continue
        if kind == "D":
            removed.append(path)
        elif (text := project.text(path, sha)) is not None:
            after[path] = text
        if kind != "A" and (old := project.text(path, parent)) is not None:
            before[path] = old
        elif kind != "A":
            return None
    if all(PurePosixPath(path).suffix in PROSE for path in after) or len(after) + len(removed) > MAX_CHANGED:
        return None
    return Commit(sha, parent, message, before, after, removed)


def _of_commits(project: Project, sample: Sample, chance: random.Random) -> Iterator[Case]:
    for commit in _commits(project, sample, chance):
        project.check_out(commit.parent)
        files = sorted({*commit.after, *commit.removed})
        what = f"{commit.sha[:9]} {', '.join(files)}"[:160]
        actions = _action_plan(commit)
        if "commit" in sample.modes:
            plan = _plan(commit.message, files, _packages(commit.before, commit.after))
            text = actions if commit.removed else _delivery(commit.after)
            yield project.judge("commit", what, "delivery", plan, text=text)
        if "edits" in sample.modes:
            yield project.judge("edits", what, "plan", text=actions, context=sorted(commit.before), story=None)


def _suites(project: Project, sample: Sample, chance: random.Random) -> Iterator[Case]:
    files = project.check_out(project.head)
    suites = [path for path in files if _SUITE.search(path) and not _NOT_WRITTEN.search(path)]
    chance.shuffle(suites)
    given = 0
    for path in suites:
        text = project.text(path)
        if text is None or not _HAS_TESTS.search(text) or unsafe_reason(path):
            continue
        yield project.judge("suite", path, "suite", file=path, text=text, context=_tested(path, files))
        given += 1
        if given == sample.suites:
            return


def _tested(suite: str, files: list[str]) -> list[str]:
    """The source that the suite's name names, if there is one."""
    stem = re.sub(r"^test_|_test$|[.-](test|spec)$", "", PurePosixPath(suite).name.rsplit(".", 1)[0])
    kin = {".py"} if suite.endswith(".py") else CODE - {".py"}
    found = (path for path in files if PurePosixPath(path).suffix in kin and not is_test_file(path))
    return sorted((path for path in found if PurePosixPath(path).stem == stem), key=len)[:1]


def _packages(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    manifests = {path: text for path, text in after.items() if is_manifest(path)}
    gained = (
        dependencies_of(path, text) - dependencies_of(path, before.get(path, "")) for path, text in manifests.items()
    )
    return dict.fromkeys(sorted(name for names in gained for name in names), "*")


def _plan(description: str, files: list[str], packages: Mapping[str, str]) -> dict[str, Any]:
    return {
        "story_id": STORY,
        "architectural_conflict": {"detected": False},
        "task_count": 1,
        "tasks": [{"task_id": f"T-{STORY}-01", "description": description or "A change.", "files_to_create": files}],
        "dependencies": {"dependencies": dict(packages)},
    }


def _delivery(files: Mapping[str, str]) -> str:
    listed = [{"path": path, "content": text} for path, text in files.items()]
    return json.dumps({"story_id": STORY, "task_id": f"T-{STORY}-01", "files": listed})


def _action_plan(commit: Commit) -> str:
    actions: list[Action] = []
    for path, text in commit.after.items():
        pairs = _pairs(commit.before[path], text) if path in commit.before else ()
        if pairs:
            actions.append(Edit(path=path, pairs=pairs))
        else:
            actions.append(Create(path=path, content=text, overwrite=path in commit.before))
    actions += [Delete(path=path) for path in commit.removed]
    return render_plan(ActionPlan(title="Change", rationale="A real commit.", actions=tuple(actions)))


def _pairs(old: str, new: str) -> tuple[Pair, ...]:
    """The changed places with enough lines around them to be found once; none where the file is better given whole."""
    if "\r" in old + new or not old.endswith("\n") or not new.endswith("\n"):
        return ()
    was, now = old.split("\n")[:-1], new.split("\n")[:-1]
    pairs = []
    for group in difflib.SequenceMatcher(None, was, now, autojunk=False).get_grouped_opcodes(3):
        find = "\n".join(was[group[0][1] : group[-1][2]]) + "\n"
        if old.count(find) != 1 or not find.strip():
            return ()
        pairs.append(Pair(find=find, replace="".join(f"{line}\n" for line in now[group[0][3] : group[-1][4]])))
    return tuple(pairs)


def _judge_project(source: Path, sample: Sample) -> list[Case]:
    with TemporaryDirectory() as folder:
        project = Project(source, Path(folder))
        chance = random.Random(f"{sample.seed} {project.name}")
        cases: list[Case] = []
        if "fresh" in sample.modes:
            cases += _fresh(project, sample, chance)
        if {"commit", "edits"} & set(sample.modes):
            cases += _of_commits(project, sample, chance)
        if "suite" in sample.modes:
            cases += _suites(project, sample, chance)
        return cases


def run(options: Mapping[str, str]) -> Result:
    """Judge the corpus; figures per mode, and the causes with examples. Raises ValueError for unusable options."""
    known = {"CORPUS", "FILES", "COMMITS", "SUITES", "JOBS", "SEED", "ONLY", "MODES", "ROWS"}
    if "CORPUS" not in options or not options.keys() <= known:
        raise ValueError(f"refusals takes CORPUS=DIR and, if wanted, {', '.join(sorted(known - {'CORPUS'}))}")
    numbers = {name.lower(): int(options[name]) for name in ("FILES", "COMMITS", "SUITES", "SEED") if name in options}
    modes = tuple(options["MODES"].split(",")) if "MODES" in options else MODES
    only = set(filter(None, options.get("ONLY", "").split(",")))
    sources = [path for path in sorted(Path(options["CORPUS"]).iterdir()) if _is_repository(path)]
    sources = [path for path in sources if not only or path.name in only]
    cases: list[Case] = []
    skipped: list[str] = []
    with ProcessPoolExecutor(int(options.get("JOBS", "1")), get_context("spawn")) as workers:
        judge = partial(_judge_project, sample=Sample(**numbers, modes=modes))
        results = {workers.submit(judge, source): source.name for source in sources}
        for done in as_completed(results):
            if isinstance(error := done.exception(), subprocess.CalledProcessError):  # a history that git cannot read
                skipped.append(f"skipped {results[done]}: {shlex.join(error.cmd[-4:])} exits {error.returncode}")
                continue
            cases += done.result()
            if "ROWS" in options:  # as they come: a run that is ended keeps what it found
                rows = "".join(json.dumps(case._asdict()) + "\n" for case in done.result())
                with Path(options["ROWS"]).open("a", encoding="utf-8") as file:
                    file.write(rows)
    cases.sort(key=lambda case: case[:3])
    figures = [figure for mode in modes for figure in _figures(mode, [case for case in cases if case.mode == mode])]
    about = f"{len(sources)} projects, {len(cases)} cases"
    return Result(name="refusals", about=about, figures=tuple(figures), notes=(*skipped, *_causes(cases)))


def _is_repository(path: Path) -> bool:
    return any((place / "HEAD").exists() for place in (path, path / ".git"))


def _figures(mode: str, cases: list[Case]) -> Iterator[Figure]:
    count = len(cases)
    yield Figure(name=f"{mode}: cases", value=count)
    if not cases:
        return
    refused = sum(case.refused for case in cases)
    asked = sum(any(finding.get("ask") for finding in case.findings) for case in cases)
    advice = sum(not (_refuses(finding) or finding.get("ask")) for case in cases for finding in case.findings)
    times = sorted(case.ms for case in cases)
    yield Figure(name=f"{mode}: refused", value=refused)
    yield Figure(name=f"{mode}: refused, share", value=100 * refused / count, unit="%")
    yield Figure(name=f"{mode}: asked about, share", value=100 * asked / count, unit="%")
    yield Figure(name=f"{mode}: advice per case", value=advice / count)
    yield Figure(name=f"{mode}: median", value=statistics.median(times), unit="ms")
    yield Figure(name=f"{mode}: p99", value=times[int(0.99 * (count - 1))], unit="ms")
    yield Figure(name=f"{mode}: longest", value=times[-1], unit="ms")
    yield Figure(name=f"{mode}: over 1 s", value=sum(ms > 1000 for ms in times))


def _causes(cases: list[Case], most: int = 12, examples: int = 4) -> Iterator[str]:
    """The commonest causes of refusals, of questions and of advice, each with places from different projects."""
    told: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    count: Counter[tuple[str, str]] = Counter()
    for case in cases:
        if case.error:
            count["crashed", case.error[:80]] += 1
            told["crashed", case.error[:80]].setdefault(case.project, case.what)
        for finding in case.findings:
            weight = "refused" if _refuses(finding) else "asked" if finding.get("ask") else "advice"
            place = f"{case.mode}: {finding['where']['file'] or case.what}:{finding['where']['line'] or ''}"
            count[weight, finding["code"]] += 1
            told[weight, finding["code"]].setdefault(case.project, f"{place} {finding['message']}"[:200])
    for weight in ("crashed", "refused", "asked", "advice"):
        for (_, code), number in [one for one in count.most_common() if one[0][0] == weight][:most]:
            yield f"{weight} {number}× {code}"
            for project, example in list(told[weight, code].items())[:examples]:
                yield f"    {project} {example}"
