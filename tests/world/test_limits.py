"""No answer and no test run may hold or end the process that reads it: what is too large is refused by name."""

import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.checks.action_plan import apply_plan
from orchestrator.checks.action_plan_files import PlanWorld
from orchestrator.checks.breakdown import merge_missing, read_breakdown
from orchestrator.checks.breakdown_rules import MAX_FILES, MAX_TASKS, mend
from orchestrator.checks.delivery import read_delivery
from orchestrator.code.check import check_syntax, is_well_formed
from orchestrator.code.grammar import MAX_OPEN
from orchestrator.code.parsers import MAX_CHARS, TooLarge, parse_json, parse_toml, parse_yaml
from orchestrator.core.action_plan import ActionPlan, Create, Delete
from orchestrator.core.finding import Finding
from orchestrator.core.value import remembered
from tests.world.case import Case, table

STORY, TASK = "S1", "T-S1-01"


def plan_of(count: int, **more: Any) -> dict[str, Any]:
    tasks = [
        {"task_id": f"x{n}", "description": f"After x{n - 1}", "files_to_create": [f"src/a{n}.py"], **more}
        for n in range(count)
    ]
    return {"story_id": STORY, "architectural_conflict": {"detected": False}, "task_count": count, "tasks": tasks}


def files_of(count: int) -> list[dict[str, str]]:
    return [{"path": f"src/a{n}.py", "content": f"A = {n}\n"} for n in range(count)]


def planned(value: object) -> Sequence[Finding]:
    return read_breakdown(value, STORY, names=True)[1]


def added(value: object) -> Sequence[Finding]:
    whole, _ = read_breakdown(plan_of(1), STORY, names=True)
    assert whole is not None
    return merge_missing(whole, value)[1]


def delivered(value: object) -> Sequence[Finding]:
    return read_delivery(value, STORY, TASK)[1]


def applied(actions: Sequence[Create | Delete]) -> Sequence[Finding]:
    world = PlanWorld(paths=frozenset(f"lib/b{n}.py" for n in range(50)), texts={})
    return apply_plan(ActionPlan(title="", rationale="", actions=tuple(actions)), world).findings


@table(
    Case(name="tasks", given=(planned, plan_of(4500)), right={"breakdown.too_many_tasks": 1}, seen="a poison pill"),
    Case(
        name="missing tasks",
        given=(added, {"tasks": plan_of(4500)["tasks"]}),
        right={"breakdown.too_many_tasks": 1},
        seen="the second answer of the same plan",
    ),
    Case(
        name="dependencies",
        given=(planned, plan_of(1, dependencies=[f"x{n}" for n in range(MAX_TASKS + 1)])),
        right={"breakdown.dependency": 1},
        seen="a task that waits for everything",
    ),
    Case(
        name="files of tasks",
        given=(planned, plan_of(1, files_to_create=[f"a{n}.py" for n in range(20_000)])),
        right={"breakdown.tasks": 1},
        seen="one task that makes a whole project",
    ),
    Case(
        name="files as a list",
        given=(delivered, {"files": files_of(20_000)}),
        right={"delivery.too_many_files": 1},
        seen="a poison pill of 1.2 MB",
    ),
    Case(
        name="files by path",
        given=(delivered, {"created_files": {one["path"]: one["content"] for one in files_of(MAX_FILES + 1)}}),
        right={"delivery.too_many_files": 1},
        seen="the same in the other form",
    ),
    Case(
        name="actions",
        given=(applied, [Create(path=f"src/a{n}.py", content="A = 1\n") for n in range(MAX_FILES + 1)]),
        right={"plan.too_long": 1},
        seen="the same as an action plan",
    ),
    Case(
        name="wrong actions",
        given=(applied, [Delete(path=f"lib/c{n}.py") for n in range(900)]),
        right={"plan.missing": 20},
        seen="the nearest file is looked for once for each refusal",
    ),
)
def test_a_large_answer_is_refused_by_name(case: Case) -> None:
    read: Callable[[Any], Sequence[Finding]]
    read, value = case.given
    codes = [finding.code for finding in read(value) if finding.severity.blocks]
    assert {code: codes.count(code) for code in codes} == case.right


def test_an_answer_of_the_largest_size_is_taken() -> None:
    value = plan_of(MAX_TASKS)
    for number, task in enumerate(value["tasks"]):  # each waits for all others: one large tangle
        task["dependencies"] = [f"x{other}" for other in range(MAX_TASKS) if other != number]
    plan, _ = read_breakdown(value, STORY, names=True)
    assert plan is not None
    mended, _ = mend(plan, frozenset())
    assert [len(task.dependencies) for task in mended.tasks] == [*range(MAX_TASKS)]
    assert mended.tasks[1].description == "After T-S1-01"
    delivery, said = read_delivery({"files": files_of(MAX_FILES)}, STORY, TASK)
    assert delivery is not None
    assert (len(delivery.files), said) == (MAX_FILES, [])


ENDING = """
    import asyncio, os, signal, sys
    from pathlib import Path
    from orchestrator.core.errors import OrchestratorError
    from orchestrator.core.sprint import StoryOutcome, StoryStatus
    from tests.engine.test_durable import PROMPT, Counting, House, done

    async def body(step, payload):
        async def work(_step_id):
            return "text"
        if payload["story"] == "B":
            for _ in range(3):
                await step.step("read", work, str)
            return done(story="B")
        try:
            await HOW
        except OrchestratorError as error:
            print(error.message)
            return StoryOutcome(id="A", status=StoryStatus.FAILED)
        os.kill(os.getpid(), signal.SIGKILL)

    house = House(Path(sys.argv[1]), Counting())
    print([outcome.status.value for outcome in asyncio.run(house.run(body, "B", "A"))])
"""


def live_once(folder: Path, how: str) -> tuple[int, str]:
    program = [sys.executable, "-c", textwrap.dedent(ENDING).replace("HOW", how), str(folder)]
    ended = subprocess.run(program, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout


@table(
    Case(
        name="reply",
        given="step.turn(PROMPT)",
        right="the process ended 2 times while the story worked on the result of its step 1 (turn:breakdown)",
        seen="a breakdown that held the event loop until the watchdog ended the daemon, at each start",
    ),
    Case(
        name="step",
        given='step.step("test", work, str)',
        right="the process ended 2 times while the story worked on the result of its step 1 (test)",
        seen="a report of 90,000 failures",
    ),
)
def test_what_ends_the_process_twice_ends_its_story_alone(case: Case, tmp_path: Path) -> None:
    lives = [live_once(tmp_path, case.given) for _ in range(3)]
    assert [code for code, _ in lives[:2]] == [-signal.SIGKILL] * 2
    assert lives[2] == (0, f"{case.right}\n['done', 'failed']\n")


BOMBS = {
    "toml keys": (parse_toml, "a" + ".a" * 20_000 + " = 1"),
    "toml table": (parse_toml, "[" + "a." * 20_000 + "a]"),
    "toml quoted": (parse_toml, '"a"' + " . 'a'" * 20_000 + " = 1"),
    "toml inline": (parse_toml, "x = { a" + ".a" * 20_000 + " = 1 }"),
    "toml behind a string": (parse_toml, "x = {b='''\n\"''', a" + ".a" * 20_000 + " = 1, c='\"'}"),
    "toml many": (parse_toml, "".join(f"a{n}{'.b' * 39} = 1\n" for n in range(20_000))),
    "toml arrays": (parse_toml, "x = " + "[" * 100_000),
    "toml size": (parse_toml, "#" * (MAX_CHARS + 1)),
    "json": (parse_json, '{"a":' * 100_000),
    "json size": (parse_json, " " * (MAX_CHARS + 1)),
    "yaml": (parse_yaml, "[" * 100_000),
    "yaml blocks": (parse_yaml, "\n".join(f"{' ' * n}a:" for n in range(2_000))),
    "yaml values": (parse_yaml, "- a\n" * 1_000_000),
    "yaml merges": (
        parse_yaml,
        "a0: &a0 {k: v}\n"
        + "".join(f"a{n + 1}: &a{n + 1} {{<<: [{','.join([f'*a{n}'] * 9)}], k{n}: 1}}\n" for n in range(12)),
    ),
}
"""Each took gigabytes, or time without end."""


@pytest.mark.parametrize("name", BOMBS)
def test_data_that_grows_is_not_parsed(name: str) -> None:
    parse, text = BOMBS[name]
    with pytest.raises(TooLarge):
        parse(text)


@table(
    Case(name="toml", given=(parse_toml, 'a.b."c.d" = "1.2.3"\n[x.y]\nz = """a.b.c.'), right=None, seen="unterminated"),
    Case(
        name="toml strings",
        given=(parse_toml, f'x = "{"a." * 500}"\ny = """\n{"b." * 500}"""  # {"c." * 500}\nz = \'{"d." * 500}\''),
        right={"x": "a." * 500, "y": "b." * 500, "z": "d." * 500},
        seen="a dot in a text or a comment is none of a key",
    ),
    Case(name="toml depth", given=(parse_toml, "a.b.c.d = 1"), right={"a": {"b": {"c": {"d": 1}}}}, seen="settings"),
    Case(name="yaml merge", given=(parse_yaml, "a: &a {k: 1}\nb: {<<: *a, l: 2}"), right={"k": 1, "l": 2}, seen="CI"),
    Case(name="json", given=(parse_json, "[" * 30 + "]" * 30), right=list, seen="nested lists"),
)
def test_data_of_projects_is_parsed(case: Case) -> None:
    parse, text = case.given
    if case.right is None:
        with pytest.raises(ValueError, match="Unterminated"):
            parse(text)
        return
    value = parse(text)
    assert (value["b"] if case.name == "yaml merge" else type(value) if case.right is list else value) == case.right


def test_a_cache_of_texts_has_a_bound_in_characters() -> None:
    asked: list[str] = []

    @remembered(3, chars=40)
    def length(text: str, more: str = "") -> int:
        asked.append(text)
        return len(text + more)

    for text in ("a" * 10, "b" * 10, "a" * 10, "c" * 10, "d" * 10, "a" * 10, "b" * 10, "e" * 11, "e" * 11):
        assert length(text) == len(text)
    assert [text[0] for text in asked] == [
        "a",
        "b",
        "c",
        "d",
        "b",
        "e",
        "e",
    ]


def test_elements_in_elements_are_judged_each_once() -> None:
    deep = f"x = {'<a>' * 3_000}{'</a>' * 3_000}"
    assert check_syntax("a.jsx", deep) == []
    (found,) = check_syntax("a.jsx", deep.replace("<a></a>", "<a><b></c></a>"))
    assert "`<b>` opened in line 1 is closed by `</c>`" in found.message


@table(
    *(
        Case(name=f"{path} {unit}", given=(path, unit), right=f"more than {MAX_OPEN} brackets are open", seen="a hang")
        for path, unit in (
            ("a.js", "("), ("a.js", "["), ("a.ts", "{"), ("a.ts", "A<"), ("a.go", "("), ("a.java", "A<"),
            ("a.java", "f("), ("a.rs", "[("), ("a.sql", "("), ("a.jsx", "{("),
        )
    ),
    *(Case(name=path, given=(path, "<a>"), right="nested too deeply", seen="a hang") for path in ("a.xml", "b.svg")),
)  # fmt: skip
def test_a_file_that_nests_too_deep_is_refused_at_once(case: Case) -> None:
    path, unit = case.given
    begun = time.process_time()
    (told,) = check_syntax(path, unit * (160_000 // len(unit)))
    assert case.right in told.message
    assert not is_well_formed(path, unit * 80_000)
    assert time.process_time() - begun < 1.0


@table(
    Case(name="closed", given=("a.js", "f(" * 900 + ")" * 900), right=[], seen="generated code"),
    Case(name="many", given=("a.js", "f([{}]);\n" * 5_000), right=[], seen="a long file"),
    Case(name="shifts", given=("a.js", "x = [\n" + "  1 << 2,\n" * 2_000 + "]\n"), right=[], seen="a table of flags"),
    Case(name="compared", given=("a.js", "a < b;\n" * 2_000), right=[], seen="a long file"),
    Case(name="drawing", given=("a.svg", "<g>" * 500 + "</g>" * 500), right=[], seen="a drawing"),
)
def test_a_file_that_is_only_long_is_read(case: Case) -> None:
    assert check_syntax(*case.given) == case.right
