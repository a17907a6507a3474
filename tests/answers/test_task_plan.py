"""A person's task plan is read as its author meant it, or it is told what was not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.answers.task_plan import read_task_plan
from orchestrator.core.breakdown import PlannedTask
from orchestrator.core.paths import is_test_file
from tests.answers.task_plans import WRITTEN, Facts, plans
from tests.effort import examples


def task_of(body: str) -> PlannedTask:
    (task,) = read_task_plan(f"### Task 1: T\n\n{body}\n").plan.tasks
    return task


def said(text: str) -> list[str]:
    return [finding.code for finding in read_task_plan(text).findings]


def test_a_plan_as_people_write_it() -> None:
    plan, findings = read_task_plan(WRITTEN, "plan.md")
    assert plan.goals[0] == "Customers see every price with its currency: never a bare number."
    assert (plan.packages, plan.dev_packages) == (("babel>=2.14,<3", "python-dateutil"), ())
    assert plan.head.endswith("**Dev packages:** none")
    assert [(task.number, task.title, task.line, task.command) for task in plan.tasks] == [
        ("1", "Prices and currencies", 15, None),
        ("2.1", "The page", 38, "python -m shop.build_pages"),
        ("2.2", "", 55, "pytest -q"),
    ]
    assert [task.files for task in plan.tasks] == [
        ("shop/prices.py", "shop/money/__init__.py", "shop/money/rates.py", "shop/page.py"),
        ("shop/page.py", "shop/static/style.css"),
        ("shop/about.py", "shop/faq.py"),
    ]
    assert [task.depends_on for task in plan.tasks] == [(), ("1",), ("2.1", "1")]
    assert plan.path == "plan.md"
    assert plan.tasks[0].text.startswith("### Task 1: Prices")
    assert plan.tasks[0].text.endswith("Expected: FAIL")
    assert findings == ()


@settings(max_examples=examples(150))
@given(plans())
def test_what_was_written_is_read_however_it_is_dressed(drawn: tuple[str, list[Facts]]) -> None:
    text, facts = drawn
    plan, findings = read_task_plan(text)
    read = [Facts(task.number, task.title, task.files, task.depends_on) for task in plan.tasks]
    own = [fact._replace(files=tuple(path for path in fact.files if not is_test_file(path))) for fact in facts]
    assert read == own
    assert all({*fact.files} <= {*task.files, *task.tests} for task, fact in zip(plan.tasks, facts, strict=True))
    assert plan.goals
    assert findings == ()


PIECES = [
    "### Task 1", "#", "- Create:", "`", "```", "\n", "<!--", "-->", "> ", "**Goal:**", "Task 2", " ", "(", "[", "\t",
    "**Depends on:** 1-9", "Modify: ", "a.py", ":1-", "\r", "\0", "\ud800", "<think>", "**Packages:** a>=", "|",
    "- [ ] T001 ", "1. **", "### 1. ", "(depends on T", "Run: ", "Files: ", "src/a.py",
]  # fmt: skip


@settings(max_examples=examples(300))
@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_no_text_is_too_odd(text: str) -> None:
    plan, findings = read_task_plan(text)
    assert all(finding.fix for finding in findings)
    assert all(path == path.strip() != "" for task in plan.tasks for path in task.files)


@pytest.mark.parametrize(
    "heading",
    [
        "### Task 1", "### Task 1: A b", "### Task 1 - A", "### **Task 1: A**", "### `Task 1`: A",
        "### Task 1: A (b)", "### Task 1: A ###", "### task 01: A", "   ### Task 1", "### Task #1",
        "## Task 1: A", "#### Task 1",
    ],
)  # fmt: skip
def test_headings_of_tasks(heading: str) -> None:
    (task,) = read_task_plan(f"# P\n\n{heading}\n\n- Create: `a.py`\n").plan.tasks
    assert (task.number, task.files) == ("1", ("a.py",))


@pytest.mark.parametrize(
    "heading",
    [
        "##### Task 1", "###Task 1", "### Task: A", "### Task 1a", "### Task 1-3", "### ✅ Task 1",
        "### [x] Task 1: A", "**Task 1: A**",
    ],
)  # fmt: skip
def test_headings_that_nearly_are_one_are_told(heading: str) -> None:
    told = read_task_plan(f"# Plan\n\n{heading}\n\n- Create: `a.py`\n\n## Task 9\n\n- Create: `b.py`\n")
    assert [(task.number, task.files) for task in told.plan.tasks] == [("9", ("b.py",))]
    (finding,) = told.findings
    assert (finding.code, finding.where.line, finding.severity.blocks) == ("task_plan.heading", 3, True)
    assert "### Task 1: Component" in finding.fix


@pytest.mark.parametrize(
    "text",
    [
        "- ### Task 1", "    ### Task 1", "> ### Task 1", "```\n### Task 1\n```", "### Tasks", "<!-- ### Task 1 -->",
        "<!--\n### Task 1\n\n### Task 2\n-->", "Task 1",
    ],
)  # fmt: skip
def test_what_is_no_heading_of_a_task(text: str) -> None:
    plan, findings = read_task_plan(f"# Plan\n\n{text}\n")
    assert (plan.tasks, findings) == ((), ())


def test_a_task_ends_at_the_next_one_or_at_a_higher_heading() -> None:
    assert said("# Task 4 of the roadmap\n\n### Task 1\n\n#### Task 1.1\n") == []
    assert len(read_task_plan("### Task 1\n\n## Task 2\n\nCreate: `a.py`\n").plan.tasks) == 2
    plan = read_task_plan(
        "### Task 1\n\n- Create: `a.py`\n\n#### Part\n\n- Create: `b.py`\n\n### Notes\n\nx\n\n# End\n\ny"
    ).plan
    assert plan.tasks[0].files == ("a.py", "b.py")
    assert plan.tasks[0].text.endswith("x")
    assert [task.number for task in read_task_plan("### Task 1\n### Task 1\n### Task 1: x\n").plan.tasks] == ["1"] * 3


@pytest.mark.parametrize(
    ("body", "files"),
    [
        ("- Create: `a.py`, `b.py` and `c.py`", "a.py b.py c.py"),
        ("- Create: a.py, b/c.py:10 (new), d.py — as `e.py`", "a.py b/c.py d.py"),
        ("- **Create**: **`a.py`**", "a.py"),
        ("**Create:**\n- `a.py`\n- b.py (new)\n\nProse.\n\n- other", "a.py b.py"),
        ("- Create:\n  - `a.py`\n  - Modify: `b.py`\n- Modify: `c.py`", "a.py b.py c.py"),
        ("**Files to Create:** `a.py`\n**Files to modify:**\n- `b.py`", "a.py b.py"),
        ("- Create/Modify: `a.py`\n- Modify or create: `b.py`", "a.py b.py"),
        ("- Modify: `a.py:55` (docblock), `:69-71` (the `guard`)\n- Modify: `./a.py`", "a.py"),
        ("- Modify: [b.py](src/b.py#L1), [`c.py`](c.py), [the page](src/page.py)", "src/b.py c.py src/page.py"),
        ("- Create: `src/__init__.py`\n- Create: __main__.py", "src/__init__.py __main__.py"),
        ("- Create: `my file.txt`\n- Create: none\n- Modify: N/A", "my file.txt"),
        ("- Create: `../x`, `/etc/x`, `C:\\x`, `x\\y`", "../x /etc/x C:\\x x\\y"),
        ("- Test: `tests/a.py`\nRun: `b.py`\n\nCreate `c.py` and d.py\n\n```\nCreate: `e.py`\n```", ""),
        ("Create:\n\n`a.py`\n\n`b.py`", "a.py"),
    ],
)
def test_files(body: str, files: str) -> None:
    assert " ".join(task_of(body).files) == files


def test_a_path_that_cannot_be_known_is_asked_for() -> None:
    text = "### Task 1\n\n- Create: the file of prices\n- Create: b.py, the file src/a.py\n"
    plan, findings = read_task_plan(text)
    assert plan.tasks[0].files == ("b.py", "src/a.py")
    assert [(f.code, f.where.line, f.severity.blocks, f.ask) for f in findings] == [("task_plan.path", 1, False, True)]


@pytest.mark.parametrize(
    ("body", "needs"),
    [
        ("**Depends on:** Task 1, Task 2.3", "1|2.3"),
        ("- Depends on: 1, 2 and 3", "1|2|3"),
        ("**Depends on:** Tasks 2-4", "2|3|4"),
        ("**Depends on:** Task 1: Prices, and rates", "1"),
        ("**Depends on:** Task 1 (needs 2 files). Not Task 3", "1"),
        ("**Depends on:** None", ""),
        ("**Depends on:** none (foundational)", ""),
        ("**Depends on:** —", ""),
        ("**Depends on:** the database", ""),
        ("**Depends on:** Task 1 | **Satisfies:** AC-2", "1"),
        ("**Dependencies:** express@4.18, lodash 4", ""),
    ],
)
def test_dependencies(body: str, needs: str) -> None:
    assert "|".join(task_of(body).depends_on) == needs


@pytest.mark.parametrize(
    ("body", "command"),
    [
        ("**Command:** `npm run build`", "npm run build"),
        ("**Command:**\n\n```bash\npython tool.py\n```", "python tool.py"),
        ("Command: $ make assets", "make assets"),
        ("Say so in the page. Run: `make assets`", None),
        ("Say so in the page.\n\nRun: `make assets`", None),
        ("- Create: `a.py`\n\nRun: `make assets`", None),
        ("Run: `pytest -q`", None),
        ("**Command:** `make a`\n\n**Command:** `make b`", "make a && make b"),
        ("**Command:** `make build && make test`", "make build && make test"),
        ("**Command:** None", None),
        ("**Command:** `testbed up`", "testbed up"),
    ],
)
def test_commands(body: str, command: str | None) -> None:
    assert task_of(body).command == command


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("**Goal:** See prices", "See prices"),
        ("**Goal**: See prices\n**Architecture:** x", "See prices"),
        ("Goal: See prices", "See prices"),
        ("- **Goal:** See prices", "See prices"),
        ("**Goal:**\n\nSee prices\n\nMore", "See prices"),
        ("## Goal\n\nSee prices.\n\nAnd *sums*.\n\n## Other\n\nx", "See prices."),
        ("## 1. Goals\n\n- See prices\n- See sums", "See prices"),
        ("# Goal: See prices", "See prices"),
        ("---\ngoal: See prices\n---", "See prices"),
        ("```\nGoal: no\n```", ""),
        ("### Task 1\n\n**Goal:** of the task\n\n## Goal\n\nSee prices", "See prices"),
        ("### Task 1\n\n**Goal:** of the task", ""),
        ("# Implementation plan\n\n> x\n\nRound\nprices.\n\nMore.", "Implementation plan|Round prices."),
    ],
)
def test_goals(text: str, goal: str) -> None:
    assert "|".join(read_task_plan(f"{text}\n\n## Task 9\n").plan.goals) == goal


def test_a_plan_without_an_end_is_told() -> None:
    plan, findings = read_task_plan("#\n" * 20_001, "plan.md")
    assert (plan.tasks, [(f.code, f.where.file) for f in findings]) == ((), [("task_plan.too_long", "plan.md")])


@pytest.mark.parametrize(
    ("text", "tasks"),
    [
        (
            "- [ ] T001 [P] [US1] Add it in src/a.py\n- [x] **T002** Use it in src/b.py (depends on T001)\n",
            ["T001 1 Add it in src/a.py: src/a.py", "T002 2 Use it in src/b.py (depends on T001): src/b.py <1 done"],
        ),
        (
            "- [ ] 1. Prices\n  - [ ] 1.1 Round in `shop/a.py`\n  - see `src/b.py`: the sums\n\n"
            "## More\n\n- [ ] 2.1 Page\n",
            ["Task 1 1 Prices: shop/a.py src/b.py", "Task 2.1 2.1 Page: ?"],
        ),
        ("- [ ] Round in shop/a.py\n- [ ] Show\n", ["Task 1 1 Round in shop/a.py: shop/a.py", "Task 2 2 Show: ?"]),
        ("- [ ]* 1.1 Add it in src/a.py\n\n1. **No**\n", ["Task 1.1 1.1 Add it in src/a.py: src/a.py"]),
        ("- Add it in `a.py`\n\n## 1. Goals\n", []),
        ("1. **Add it** in `a.py`\n\n## Phase 2\n\n`b.py`\n", []),
    ],
)
def test_a_plan_without_headings_of_tasks_has_boxes(text: str, tasks: list[str]) -> None:
    read = read_task_plan(text).plan.tasks
    assert [
        f"{task.name} {task.number} {task.title}: {' '.join(task.files) or '?'}"
        + "".join(f" <{need}" for need in task.depends_on)
        + " done" * task.done
        for task in read
    ] == tasks


@pytest.mark.parametrize(
    ("body", "files", "tests"),
    [
        ("- Create: `a.py`\n- Modify: `tests/test_a.py:3`\n- Test: `spec/a.rb`", "a.py", "spec/a.rb tests/test_a.py"),
        ("Say so in docs/a.md and `README.md`.\n\nRun: `python tools/a.py`", "", ""),
        ("- Create: `a.py`\n\nAs in `b.py`.", "a.py", ""),
    ],
)
def test_tests_are_the_testers_and_sentences_name_no_file_of_a_headed_task(body: str, files: str, tests: str) -> None:
    task = task_of(body)
    assert (" ".join(task.files), " ".join(sorted(task.tests))) == (files, tests)
