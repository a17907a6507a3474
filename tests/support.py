"""What tests of whole runs share: scripted teams, backlogs, repositories, runs in this process and in their own."""

import asyncio
import csv
import json
import os
import re
import resource
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from orchestrator.app.run import Run
from orchestrator.core.event import Event
from orchestrator.core.finding import Finding
from orchestrator.core.sprint import StoryReport
from orchestrator.records.sprint_reader import RunResult
from orchestrator.settings import load
from orchestrator.settings.options import RunOptions
from tests.answers.review_text import SEVERITIES
from tests.event_table import untrue
from tests.zygote import zygote

COLUMNS = (
    "Story_ID", "Title", "Dependencies", "Acceptance_Criteria", "Priority", "Sprint_ID", "Execution_Status",
    "Execution_Started_At", "Execution_Completed_At", "Last_Event", "Last_Updated",
)  # fmt: skip
RESULT = "sprint-result"
_LISTING = """\
{ echo "<testsuites>"
for file in $(find tests -name '*.py' 2> /dev/null); do
  echo "<testsuite file='$PWD/$file'>"
  sed -n "s/^def \\(test_[a-z0-9_]*\\).*/<testcase classname='t' name='\\1'\\/>/p" "$file"
  echo "</testsuite>"
done
echo "</testsuites>"; } > listed.xml"""
ALL_PASS = "test.custom=" + json.dumps({"command": _LISTING, "junit": ["listed.xml"]})
"""A setting by which each test is there and passes, for stories without criteria in sprints of which tests are not the
matter: runs of pytest are two thirds of what a small sprint takes."""
_PLAIN = """\
import os, sys
sys.path[:0] = [os.getcwd(), os.path.abspath("src")]
told = []
def attempt(file, case, run):
    result = ""
    try:
        return run()
    except BaseException as error:
        said = f"{type(error).__name__}: {error}".translate({38: "+", 60: "(", 62: ")", 34: "*"})
        result = f"<failure message=\\"{said}\\"/>"
    finally:
        if case or result:
            told.append(f"<testcase file=\\"{file}\\" classname=\\"{file}\\" name=\\"{case}\\">{result}</testcase>")
for place, _, names in sorted(os.walk("tests")):
    for name in sorted(names):
        if name.startswith("test_") and name.endswith(".py"):
            file, module = f"{place}/{name}", {"__name__": name[:-3]}
            attempt(file, "", lambda: exec(compile(open(file).read(), file, "exec"), module))
            for case in [case for case in module if case.startswith("test_")]:
                attempt(file, case, module[case])
open("plain.xml", "w").write("<testsuites>" + "".join(told) + "</testsuites>")
print(*told, sep="\\n")
sys.exit("failure" in "".join(told))
"""
PLAIN_TESTS = "test.custom=" + json.dumps({"command": f"{sys.executable} -I -S -c '{_PLAIN}'", "junit": ["plain.xml"]})
"""A setting by which test functions without parameters are run as they stand: pytest's start is eight times as long."""
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed on this machine")

STRIPS = "process.features.typescript || process.allowedNodeEnvironmentFlags.has('--experimental-strip-types')"


def _node_runs_typescript() -> bool:
    node = shutil.which("node")
    done = subprocess.run([node, "-p", STRIPS], capture_output=True, text=True, check=False) if node else None
    return done is not None and done.stdout.strip() not in {"", "false"}


NODE_RUNS_TYPESCRIPT = _node_runs_typescript()
needs_typescript = pytest.mark.skipif(
    not NODE_RUNS_TYPESCRIPT, reason="no node here runs TypeScript (22.6 and newer do)"
)


def plain_environment(**more: str) -> dict[str, str]:
    """Environment of a process as if nothing of ours were set, no GIT_* and no keys."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return {"HOME": "/nonexistent", **kept, **more}


class Team:
    """Builds a scripted team's file; turns are counted per key as the orchestrator counts them."""

    def __init__(self) -> None:
        self._lines: list[dict[str, Any]] = []
        self._turns: Counter[tuple[str, str, str | None, str]] = Counter()

    def say(self, persona: str, story: str, purpose: str, answer: Any, *, task: int | None = None, **more: Any) -> None:
        """The next reply of a key; `answer` is text, or a value that becomes JSON. `task` is a task's number."""
        name = task_id(story, task) if task is not None else None
        self._turns[persona, story, name, purpose] += 1
        text = answer if isinstance(answer, str) else json.dumps(answer)
        turn = self._turns[persona, story, name, purpose]
        line = {"persona": persona, "story": story, "task": name, "purpose": purpose, "turn": turn, "text": text}
        self._lines.append({**line, **more})

    def plan(self, story: str, *tasks: Any, **fields: Any) -> None:
        """Mike's next breakdown; a task is its list of files, or a whole task as a mapping."""
        self.say("mike", story, "breakdown", breakdown(story, *tasks, **fields))

    def deliver(self, story: str, number: int, files: Mapping[str, str], **more: Any) -> None:
        """Alex's next delivery of one task."""
        self.say("alex", story, "delivery", delivery(story, number, files), task=number, **more)

    def review(self, story: str, number: int, text: str, *, by: str = "reviewer", **more: Any) -> None:
        """A reviewer's next review of one task. Of a task without any, each delivery is approved."""
        self.say(by, story, "review", text, task=number, **more)

    def suite(self, story: str, content: str, file: str | None = None) -> None:
        """Jordan's next suite."""
        self.say("jordan", story, "suite", suite(story, content, file))

    def analyse(self, story: str, *entries: tuple[str, str]) -> None:
        """Jordan's next analysis: pairs of file and fix."""
        told = [{"file": file, "function": "", "issue": "it is wrong", "fix": fix} for file, fix in entries]
        self.say("jordan", story, "analysis", {"failure_analysis": told})

    def good(self, story: str, *, value: int = 1) -> None:
        """A story without trouble: one module with one tested function."""
        module = module_of(story)
        self.plan(story, [f"{module}.py"])
        self.deliver(story, 1, {f"{module}.py": f"def value():\n    return {value}\n"})
        self.suite(story, suite_text(story, value))

    def write(self, path: Path) -> Path:
        """The script as a file."""
        lines, turns = list(self._lines), self._turns.copy()
        self._approve()
        path.write_text("".join(f"{json.dumps(line)}\n" for line in self._lines), encoding="utf-8")
        self._lines, self._turns = lines, turns
        return path

    def _approve(self) -> None:
        """A review that approves for every delivery of a task of whose reviews nothing is said."""
        told = {(line["story"], line["task"]) for line in self._lines if line["purpose"] == "review"}
        for line in [line for line in self._lines if line["purpose"] == "delivery" and line["task"] is not None]:
            if (line["story"], line["task"]) not in told:
                self.review(line["story"], int(line["task"].rpartition("-")[2]), APPROVED)


def reviewed(ready: str, *issues: str, severity: str = "Major (Should Fix)") -> str:
    """A review in the format with `Ready: <ready>`; issues are `[FILE:LINE] title`."""
    found = "\n".join(
        f"{n}. {issue}\n   - Issue: It is wrong.\n   - Fix: Mend it." for n, issue in enumerate(issues, 1)
    )
    told = "".join(f"### {one}\n\n{found if one == severity and found else 'None'}\n\n" for one in SEVERITIES.values())
    verdict = f"## Verdict\n\nReady: {ready}\nRationale: The change as the task asks for it.\n"
    return f"## Review Summary\n\nOne task.\n\n## Issues\n\n{told}## Good Patterns\n\n- Small functions\n\n{verdict}"


APPROVED = reviewed("Yes")


def module_of(story: str) -> str:
    """Name of the module that a story's simple implementation consists of."""
    return re.sub(r"\W", "_", story.lower())


def task_id(story: str, number: int) -> str:
    """T-<story>-NN."""
    return f"T-{story}-{number:02d}"


def suite_text(story: str, value: int = 1) -> str:
    """A suite that wants `value` from the story's module."""
    module = module_of(story)
    return f"from {module} import value\n\n\ndef test_{module}():\n    assert value() == {value}\n"


def task(story: str, number: int, files: Sequence[str], command: str | None = None, **fields: Any) -> dict[str, Any]:
    """One task of a breakdown."""
    body = {"task_id": task_id(story, number), "description": f"Work {number}", "files_to_create": list(files)}
    return {**body, "command_to_run": command, "dependencies": [], "dependency_reason": "", **fields}


def breakdown(story: str, *tasks: Any, **fields: Any) -> dict[str, Any]:
    """Mike's answer."""
    whole = [entry if isinstance(entry, dict) else task(story, n, entry) for n, entry in enumerate(tasks, start=1)]
    packages: dict[str, Any] = {"dependencies": {}, "devDependencies": {}}
    answer = {"story_id": story, "architectural_conflict": {"detected": False}, "task_count": len(whole)}
    return {**answer, "tasks": whole, "dependencies": packages, **fields}


def delivery(story: str, number: int, files: Mapping[str, str]) -> dict[str, Any]:
    """Alex's answer."""
    listed = [{"path": path, "content": content} for path, content in files.items()]
    return {"story_id": story, "task_id": task_id(story, number), "files": listed}


def suite(story: str, content: str, file: str | None = None) -> dict[str, Any]:
    """Jordan's answer, its cases read from the content."""
    cases = [{"name": name, "criterion": "it works"} for name in re.findall(r"^def (test_\w+)", content, re.MULTILINE)]
    name = file or f"tests/test_{module_of(story)}.py"
    return {"story_id": story, "test_file": name, "test_content": content, "test_cases": cases}


def write_backlog(path: Path, *rows: Mapping[str, str] | str) -> Path:
    """A CSV backlog; a row is its cells, or just an id, or `ID < ID, ID` for an id with its dependencies."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for row in rows:
            if isinstance(row, str):
                name, _, needs = (part.strip() for part in row.partition("<"))
                row = {"Story_ID": name, "Title": f"Story {name}", "Dependencies": needs}
            writer.writerow({column: row.get(column, "") for column in COLUMNS})
    return path


def cells(path: Path) -> dict[str, dict[str, str]]:
    """Story id → its cells."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return {row["Story_ID"]: row for row in csv.DictReader(file)}


def git(folder: Path, *args: str) -> str:
    """Output of a git command in `folder`, with no configuration of anybody."""
    env = plain_environment(
        GIT_CONFIG_NOSYSTEM="1", GIT_AUTHOR_NAME="Ann", GIT_AUTHOR_EMAIL="ann@example.org",
        GIT_COMMITTER_NAME="Ann", GIT_COMMITTER_EMAIL="ann@example.org",
    )  # fmt: skip
    done = subprocess.run(["git", *args], cwd=folder, env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def make_repo(path: Path, files: Mapping[str, str] | None = None, links: Mapping[str, str] | None = None) -> Path:
    """A repository whose one commit holds `files` and symbolic `links`."""
    path.mkdir(parents=True)
    git(path, "init", "--quiet", "--initial-branch=main")
    for name, content in (files or {}).items():
        target = path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")
    for name, goal in (links or {}).items():
        (path / name).symlink_to(goal)
    git(path, "add", "--all")
    git(path, "commit", "--quiet", "--allow-empty", "--message", "Base")
    return path


@dataclass
class Played:
    """A run in this process and what it left."""

    result: RunResult
    events: list[Event]
    told: list[str]
    repo: Path
    mirror: Path
    calls: list[dict[str, Any]] = field(default_factory=list)

    def story(self, name: str) -> StoryReport:
        """A story of the report."""
        return next(story for story in self.result.report.stories if story.id == name)

    def status(self, name: str) -> str:
        """A story's status as a word."""
        return self.story(name).status.value

    def codes(self, name: str) -> set[str]:
        """Codes of the findings of a story."""
        return {finding.code for finding in self.story(name).findings}

    def finding(self, name: str, code: str) -> Finding:
        """The story's first finding of this code."""
        return next(finding for finding in self.story(name).findings if finding.code == code)

    def tasks(self, name: str) -> list[str]:
        """Statuses of the story's tasks in order."""
        return [done.status.value for done in self.story(name).tasks]

    def told_of(self, name: str, event: str) -> list[Event]:
        """Events of one name about a story, in order."""
        return [one for one in self.events if one.story == name and one.name == event]

    def sent_back(self, name: str) -> list[str]:
        """Codes with which answers of a story were sent back, in order."""
        return [entry["code"] for one in self.told_of(name, "answer_sent_back") for entry in one.data["findings"]]

    def asked(self, name: str, persona: str | None = None) -> list[str]:
        """`purpose turn` of the paid calls for a story, in order."""
        return [
            f"{call['purpose']} {call['turn']}"
            for call in self.calls
            if call["story"] == name and persona in {None, call["persona"]}
        ]

    def tree(self, branch: str) -> list[str]:
        """Paths on a branch of the mirror."""
        return git(self.mirror, "ls-tree", "-r", "--name-only", self.ref(branch)).splitlines()

    def text(self, branch: str, path: str) -> str:
        """A file on a branch of the mirror."""
        return git(self.mirror, "show", f"{self.ref(branch)}:{path}")

    def ref(self, branch: str) -> str:
        """`result` or a story → its branch."""
        return f"orchestrator/{self.result.report.sprint}/{branch}"

    def subjects(self, branch: str) -> list[str]:
        """Subjects of the commits of a branch, newest first."""
        return git(self.mirror, "log", "--format=%s", self.ref(branch)).splitlines()


def play(
    folder: Path,
    team: Team,
    backlog: Path,
    *settings: str,
    repo: Path | None = None,
    sprint: str | None = None,
    stories: Sequence[str] = (),
    push_to: str | None = None,
    strict: bool = False,
    plans: Sequence[str] = (),
    listen: Callable[[Event], object] = lambda _event: None,
    record: Path | None = None,
    replay: Path | None = None,
) -> Played:
    """One `run` in this process, with its state folder in `folder`. Raises what the run raises."""

    def heard(event: Event) -> None:
        events.append(event)
        listen(event)

    folder.mkdir(exist_ok=True)
    overrides = ("provider.wait_initial_s=0.01", "sprint.stop_after_failures=0", *settings)
    configured, environment = load(None, overrides, plain_environment(ORCHESTRATOR_HOME=str(folder / "state")), folder)
    log = folder / "calls.jsonl"
    events: list[Event] = []
    told: list[str] = []
    options = RunOptions(
        backlog=backlog,
        repo=repo or folder / "repo",
        script=team.write(folder / "team.jsonl"),
        call_log=log,
        sprint=sprint,
        stories=tuple(stories),
        push_to=push_to,
        strict=strict,
        plans=tuple(plans),
        record=record,
        replay=replay,
    )
    result = asyncio.run(Run(options, configured, environment, tell=told.append, listen=heard).go())
    calls = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    mirror = next((folder / "state" / "mirrors").glob("*.git"))
    assert untrue(events) == []
    return Played(result=result, events=events, told=told, repo=options.repo or folder, mirror=mirror, calls=calls)


def run_cli(
    args: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None, timeout_s: float = 100
) -> subprocess.CompletedProcess[str]:
    """`python -m orchestrator ARGS` in its own process, with a plain environment and nothing to read."""
    if any(name.startswith("PYTHON") and name != "PYTHONPATH" for name in env or ()):  # read at an interpreter's start
        command = [sys.executable, "-m", "orchestrator", *args]
        return subprocess.run(
            command, cwd=cwd, env=dict(env or {}), capture_output=True, text=True, timeout=timeout_s, check=False
        )
    process = zygote().start("orchestrator", args, cwd=cwd, env=env or plain_environment())
    try:
        out, err = process.communicate(timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return subprocess.CompletedProcess(list(args), process.poll() or 0, out, err)


@contextmanager
def full_disk() -> Iterator[None]:
    """Until the end of the context no file of this process can be written behind its first 8 KiB."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def copy_state(source: Path, target: Path) -> Path:
    """A copy of a state folder, or of a folder with one in it, that works beside the original."""
    return Path(shutil.copytree(source, target, symlinks=True))
