"""Files that are not what they seem: no text of UTF-8, links, submodules, folders of another spelling, test folders."""

import asyncio
import json
from pathlib import Path

import pytest

from orchestrator.app.judge import CheckOptions, check
from orchestrator.app.plan_files import find_obstacles, judge_by_rules, project_files
from orchestrator.app.plans import check_plan
from orchestrator.contract.freeze import freeze
from orchestrator.contract.world import World
from orchestrator.core.breakdown import ArchitecturalConflict, Breakdown, Task
from orchestrator.core.finding import blocking
from orchestrator.core.paths import is_test_file
from orchestrator.core.sprint import BroughtPlan, StoryStatus
from orchestrator.git.workspace import GitWorkspace
from orchestrator.personas.jordan import Jordan
from orchestrator.settings import Settings
from orchestrator.settings.options import RunOptions
from tests.personas.desks import STORY, bench, brief
from tests.personas.test_jordan import a_brief, agrees, says
from tests.story.test_story import A, Stand, good, provider
from tests.support import git, make_repo, suite, suite_text
from tests.world.case import Case, table

LATIN = b"# price\nname = 'caf\xe9'\n"


def odd_repo(folder: Path) -> Path:
    """A repository with a file in Latin-1, a link to a file and to a folder, a submodule, and a folder `src/App`."""
    inner = make_repo(folder / "inner", {"a.py": "x = 1\n"})
    repo = make_repo(
        folder / "repo", {"src/App/a.py": "x = 1\n", "plain.py": "x = 1\n"}, {"link.py": "plain.py", "lib": "src"}
    )
    (repo / "latin.py").write_bytes(LATIN)
    git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "vendor/inner")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--message", "Odd")
    return repo


ODD = {
    "latin.py": "is no text of UTF-8 (byte 0xe9 in line 2)",
    "link.py": "is a link",
    "lib/new.py": "lies below `lib`, which is a link",
    "vendor/inner": "is a submodule",
    "vendor/inner/a.py": "lies below `vendor/inner`, which is a submodule",
    "src/app/new.py": "lies in `src/app`, a folder that is called `src/App`",
    "SRC/App/new.py": "lies in `SRC`, a folder that is called `src`",
}
"""Path → why no text can be written there."""
SOUND = ("plain.py", "src/App/a.py", "src/App/new.py", "other/new.py", "vendor/new.py")


async def test_a_run_and_a_check_know_the_same_of_them(tmp_path: Path) -> None:
    repo = odd_repo(tmp_path)
    base = git(repo, "rev-parse", "HEAD").strip()
    workspace = GitWorkspace(mirror=tmp_path / "mirror.git", folder=tmp_path / "trees", sprint="s1", base=base)
    await workspace.prepare(repo)
    await workspace.open("US-1")
    assert await workspace.obstacles("US-1", [*ODD, *SOUND]) == ODD
    assert await asyncio.to_thread(find_obstacles, repo, await project_files(repo), [*ODD, *SOUND]) == ODD


async def test_a_plan_that_names_one_is_sent_back_before_a_delivery_is_paid(tmp_path: Path) -> None:
    stand = Stand(tmp_path, base={"app/a.py": "x = 1\n"})
    stand.team.plan(A, ["App/us_1.py"])
    stand.team.plan(A, ["us_1.py"])
    stand.team.deliver(A, 1, good())
    stand.team.suite(A, suite_text(A))
    outcome = await stand.run(await provider(stand.team, tmp_path))
    assert (outcome.status, stand.asked) == (
        StoryStatus.DONE,
        ["breakdown 1", "breakdown 2", "delivery 1", "suite 1"],
    )
    assert "`App/us_1.py` lies in `App`, a folder that is called `app`" in stand.step.prompts[1].text


async def test_architect_and_developer_are_told_what_is_there_and_is_no_text(tmp_path: Path) -> None:
    repo = odd_repo(tmp_path)
    (repo / "legacy.txt").write_bytes(LATIN)
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--message", "Older")
    base = git(repo, "rev-parse", "HEAD").strip()
    stand = Stand(tmp_path)
    workspace = GitWorkspace(mirror=tmp_path / "mirror.git", folder=tmp_path / "trees", sprint="sprint", base=base)
    await workspace.prepare(repo)
    stand.workspace = workspace  # type: ignore[assignment]
    stand.criteria = ("The value is read from legacy.txt, and from plain.py",)
    stand.team.plan(A, ["us_1.py"])
    stand.team.deliver(A, 1, good())
    stand.team.suite(A, suite_text(A))
    await stand.run(await provider(stand.team, tmp_path))
    told = (
        "There, but they can neither be shown nor edited: latin.py (is no text of UTF-8 (byte 0xe9 in line 2)), "
        "link.py (is a link), legacy.txt (is no text of UTF-8 (byte 0xe9 in line 2))\n"
    )
    assert stand.asked[:2] == ["breakdown 1", "delivery 1"]
    assert [told in one.text for one in stand.step.prompts[:2]] == [True, True]


@pytest.mark.parametrize("path", ODD)
def test_a_check_refuses_a_plan_and_a_delivery_of_one(path: str, tmp_path: Path) -> None:
    repo = odd_repo(tmp_path)
    task = {"task_id": "T-1", "description": "Write the price of a thing.", "files_to_create": [path]}
    plan = {"story_id": "US-1", "architectural_conflict": {"detected": False}, "task_count": 1, "tasks": [task]}
    told = check("breakdown", json.dumps(plan), CheckOptions(repo=repo)).findings
    assert any(path in one.message and one.severity.blocks for one in told)
    files = [{"path": path, "content": "x = 2\n"}]
    delivery = {"story_id": "US-1", "task_id": "T-1", "files": files}
    told = check("delivery", json.dumps(delivery), CheckOptions(repo=repo, environment="none")).findings
    assert [one.message for one in told if one.code == "delivery.unwritable"] == [f"`{path}` {ODD[path]}"]


PLAN = """# Plan
- **Status:** Green 🟢
- **Plan Type:** Implementation
- **Agent:** Developer

## Rationale
````text
Why.
````

## Action Plan

### `{verb}`
- **File Path:** [latin.py](/latin.py)
{rest}"""
FIND = "\n#### FIND:\n````python\nname\n````\n#### REPLACE:\n````python\ntitle\n````\n"
WHOLE = "- **Overwrite:** true\n\n````python\nx\n````\n"


@pytest.mark.parametrize(("verb", "rest"), [("EDIT", FIND), ("CREATE", WHOLE)])
def test_apply_writes_over_none(verb: str, rest: str, tmp_path: Path) -> None:
    judged = check_plan(PLAN.format(verb=verb, rest=rest), odd_repo(tmp_path), None)
    told = [(one.code, one.message) for one in blocking(judged.judged.findings)]
    assert told == [("plan.unreadable", f"`latin.py` {ODD['latin.py']}")]


@table(
    *(
        Case(name=path, given=path, right=False, seen="a project whose plan was refused for it")
        for path in ("docs/specs/api.md", "openapi/spec/v1.yaml", "app/spec/loader.py", "specs/001/plan.md")
    ),
    *(
        Case(name=path, given=path, right=False, seen="names of the same kind")
        for path in ("src/spec/parser.ts", "django/test/client.py", "docs/tests/how.md", "spec/openapi.json", "spec.py")
    ),
    *(
        Case(name=path, given=path, right=True, seen="what runners look for")
        for path in (
            "tests/helpers.py",
            "tests/data/a.json",
            "test/a.js",
            "packages/a/test/b.ts",
            "spec/models/user_spec.rb",
            "spec/shopSpec.js",
            "spec/support/jasmine.mjs",
            "app/spec/test_loader.py",
            "src/__tests__/a.ts",
            "src/a.spec.ts",
            "Spec/Helpers/a.js",
        )
    ),
)
def test_a_test_file_is_known_by_its_suffix_and_name(case: Case) -> None:
    assert is_test_file(case.given) is case.right


def world(ignore: dict[str, str]) -> World:
    task = Task(task_id="T-1", description="x", files_to_create=("app.py",))
    plan = Breakdown(
        story_id="US-1", architectural_conflict=ArchitecturalConflict(detected=False), task_count=1, tasks=(task,)
    )
    return World(freeze(breakdown=plan, base_commit="", files=("app.py", *ignore), manifests=ignore))


IGNORE = {".gitignore": "*.log\n!keep.log\n/dist\nbuild/*.js\nout/\n[z-a]\n", "pkg/.gitignore": "gen/\n!debug.log\n"}


@table(
    *(
        Case(name=path, given=path, right=right, seen="man gitignore")
        for path, right in {
            "debug.log": True,
            "a/debug.log": True,
            "keep.log": False,
            "a/keep.log": False,
            "pkg/debug.log": False,
            "dist/a.js": True,
            "a/dist/a.js": False,
            "build/a.js": True,
            "build/deep/a.js": False,
            "a/out/b.js": True,
            "pkg/gen/a.py": True,
            "gen/a.py": False,
        }.items()
    )
)
def test_patterns_of_gitignore_count_as_in_git(case: Case, tmp_path: Path) -> None:
    assert world(IGNORE).makes(case.given) is case.right
    make_repo(tmp_path / "repo", IGNORE)
    ignored = git(tmp_path / "repo", "ls-files", "--others", "--ignored", "--exclude-standard", "--directory")
    assert ignored.strip() == ""
    (tmp_path / "repo" / case.given).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "repo" / case.given).write_text("")
    ignored = git(tmp_path / "repo", "ls-files", "--others", "--ignored", "--exclude-standard")
    assert (case.given in ignored.split("\n")) is case.right, "git says otherwise"


def test_no_file_of_a_large_project_is_dropped(tmp_path: Path) -> None:
    for number in range(51):
        folder = tmp_path / f"f{number:02d}"
        folder.mkdir()
        for name in range(1000):
            (folder / f"{name}").touch()
    assert len(asyncio.run(project_files(tmp_path))) == 51_000


async def test_whole_test_files_keep_the_crlf_of_the_old_ones() -> None:
    old = "from a import A\r\n\r\n\r\ndef test_old():\r\n    assert A\r\n"
    more = "from a import A\n\n\ndef test_old():\n    assert A\n\n\ndef test_a():\n    assert A == 1\n"
    at = bench(says({**suite(STORY, more), "test_file": "tests/test_a.py"}))
    asked = a_brief().model_copy(update={"place": "tests/test_a.py", "covered": old})
    written = await Jordan(at.desk, brief()).suite(asked, agrees)
    assert written.suite is not None
    assert written.suite.test_content == more.replace("\n", "\r\n")


def test_a_dry_run_names_the_files_of_a_persons_plan_that_it_cannot_write(tmp_path: Path) -> None:
    text = "".join(
        f"- [ ] Write the price of the thing into `{path}`\n" for path in ("latin.py", "link.py", "plain.py")
    )
    plan = BroughtPlan(path="plan.md", text=f"# Prices\n\n{text}")
    options = RunOptions(backlog=tmp_path / "b.csv", repo=odd_repo(tmp_path))
    told = judge_by_rules(options, {"US-1": plan}, Settings())["US-1"]
    said = [one.message for one in told.findings if one.code == "breakdown.unwritable"]
    assert said == [f"`{path}` {ODD[path]}" for path in ("latin.py", "link.py")]
    nowhere = RunOptions(backlog=tmp_path / "b.csv", repo=tmp_path / "none")
    assert not [
        one for one in judge_by_rules(nowhere, {"US-1": plan}, Settings())["US-1"].findings if "link" in str(one)
    ]
