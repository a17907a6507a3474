from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.checks.breakdown import merge_missing, read_breakdown
from orchestrator.checks.breakdown_rules import check_breakdown, mend
from orchestrator.core.breakdown import Breakdown
from orchestrator.core.finding import Finding, Severity, blocking

STORY = "US-004"
NO_CONFLICT = {"detected": False}


def task(number: int, *files: str, **more: Any) -> dict[str, Any]:
    given_ = {"task_id": f"T-{STORY}-{number:02d}", "description": f"Step {number}", "files_to_create": list(files)}
    return {**given_, "dependencies": [], "dependency_reason": "", **more}


def answer(*tasks: Any, **more: Any) -> dict[str, Any]:
    base = {"story_id": STORY, "architectural_conflict": NO_CONFLICT, "task_count": len(tasks), "dependencies": {}}
    return {**base, "tasks": list(tasks), **more}


def plan(*tasks: Any, **more: Any) -> Breakdown:
    found, findings = read_breakdown(answer(*tasks, **more), STORY)
    assert found is not None, findings
    return found


def codes(findings: list[Finding], severity: Severity | None = None) -> list[str]:
    return [f.code.removeprefix("breakdown.") for f in findings if severity is None or f.severity is severity]


def test_a_whole_answer_is_read_as_it_is() -> None:
    value = answer(task(1, "a.py"), task(2, command_to_run="make", dependencies=[f"T-{STORY}-01"]), extra="kept out")
    found, findings = read_breakdown(value, STORY)
    assert found is not None
    assert findings == []
    assert check_breakdown(found, frozenset()) == []
    assert [t.command for t in found.tasks] == [None, "make"]


def test_names_are_normalised_and_what_is_missing_is_filled_and_told() -> None:
    value = {
        "story_id": "US-4",
        "architectural_conflict": False,
        "tasks": [{"taskId": f"T-{STORY}-01", "title": "Store", "files_to_create": ["./a.py", "a.py"]}],
    }
    found, findings = read_breakdown(value, STORY)
    assert found is not None
    assert (found.story_id, found.task_count, found.architectural_conflict.detected) == (STORY, 1, False)
    assert found.tasks[0].files_to_create == ("a.py",)
    assert set(codes(findings)) == {"conflict", "story_id"}
    assert blocking(findings) == ()


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (None, "shape"),
        ([task(1, "a.py")], "shape"),
        ({"detected": False}, "conflict"),
        (answer(), "tasks"),
        (answer("write it"), "tasks"),
        (answer(task(1, "a.py"), {"task_id": "x", "files_to_create": []}), "tasks"),
        (answer({**task(1), "files_to_create": "a.py"}), "tasks"),
        ({k: v for k, v in answer(task(1, "a.py")).items() if k != "story_id"}, "shape"),
        (answer(task(1, "a.py"), architectural_conflict=True), "conflict"),
        (answer(task(1, "a.py"), architectural_conflict={"detected": "no"}), "conflict"),
        (answer(architectural_conflict={"detected": True, "conflict_reason": "x"}), "conflict"),
        (answer(task(1, "a.py", command_to_run=["make"])), "command"),
        (answer(task(1, "a.py", dependencies=[1])), "dependency"),
    ],
)
def test_a_broken_structure_gives_no_breakdown(value: Any, code: str) -> None:
    found, findings = read_breakdown(value, STORY)
    assert found is None
    assert code in codes(findings, Severity.MAJOR)
    assert all(finding.fix for finding in blocking(findings))


def test_a_conflict_needs_no_tasks() -> None:
    texts = dict.fromkeys(("current_architecture", "story_requirement", "conflict_reason", "recommended_action"), "x")
    for tasks in ([], None, ["nonsense"]):
        value = {**answer(), "architectural_conflict": {"detected": True, **texts}, "tasks": tasks}
        found, findings = read_breakdown(value, STORY)
        assert found is not None
        assert found.architectural_conflict.detected
        assert [*blocking(findings), *check_breakdown(found, frozenset())] == []


@pytest.mark.parametrize(
    ("stated", "normal", "dev"),
    [
        ({"dependencies": {"express": "^4"}, "devDependencies": ["jest@^29"]}, {"express": "^4"}, {"jest": "^29"}),
        (["@scope/x@1", "flask>=2", "uvicorn[standard]"], {"@scope/x": "1", "flask": ">=2", "uvicorn": "*"}, {}),
        ({"flask": None, "rich": 13}, {"flask": "*", "rich": "13"}, {}),
        ([{"name": "chalk", "version": "5"}], {"chalk": "5"}, {}),
        (["None", "the standard library only"], {}, {}),
        ("pandas==2.2; python_version>'3.9'", {"pandas": "==2.2"}, {}),
        (None, {}, {}),
    ],
)
def test_packages_are_normalised(stated: Any, normal: Mapping[str, str], dev: Mapping[str, str]) -> None:
    packages = plan(task(1, "a.py"), dependencies=stated).dependencies
    assert (packages.dependencies, packages.devDependencies) == (normal, dev)


OWN = [f"T-{STORY}-01", f"T-{STORY}-02", f"T-{STORY}-03"]


@pytest.mark.parametrize(
    ("ids", "needs", "meant"),
    [
        (["T-US-01", "T-US-02", "T-US-03"], ["T-US-01", "T-US-02"], OWN[:2]),
        ([None, None, None], [1, "2"], OWN[:2]),
        (["a", "a", "b"], ["a"], OWN[:2]),
        ([1, 2, 3], [1, 2], OWN[:2]),
        ([f"T-{STORY}-1", f"T-{STORY}-2", f"T-{STORY}-3"], [f"T-{STORY}-02", "task 1"], [OWN[1], OWN[0]]),
        ([OWN[2], OWN[0], OWN[1]], [OWN[0]], [OWN[1]]),
        (OWN, [OWN[0], "2"], OWN[:2]),
    ],
)
def test_names_are_given_by_us_and_never_a_reason_for_another_plan(
    ids: list[Any], needs: list[Any], meant: list[str]
) -> None:
    """Ids of another story, none, doubled, numbers, not rising."""
    tasks = [task(place, f"{place}.py", task_id=name) for place, name in enumerate(ids)]
    tasks[2]["dependencies"] = needs
    value = {**answer(*tasks), "story_id": None}
    found, findings = read_breakdown(value, STORY, names=True)
    assert found is not None
    assert blocking(findings) == ()
    assert [one.task_id for one in found.tasks] == OWN
    assert [need for need in found.tasks[2].dependencies if need in OWN] == meant
    assert "task_id" not in codes(check_breakdown(found, frozenset()))
    again, said = read_breakdown(answer(*(one.model_dump(mode="json") for one in found.tasks)), STORY, names=True)
    assert again is not None
    assert (again.tasks, said) == (found.tasks, [])


@pytest.mark.parametrize(
    ("tasks", "code"),
    [
        ([task(1, "a.py", task_id="T-US-005-01")], "task_id"),
        ([task(1, "a.py", task_id=f"T-{STORY}-1")], "task_id"),
        ([task(1, "a.py"), task(1, "b.py")], "task_id"),
        ([task(2, "a.py"), task(1, "b.py")], "task_id"),
        ([task(1)], "no_work"),
        ([task(1, "a.py", dependencies=["T-US-003-01"])], "dependency"),
        ([task(1, "a.py", dependencies=[f"T-{STORY}-01"])], "cycle"),
        ([task(1, "../a.py")], "unsafe_path"),
        ([task(1, "a.py", "database")], "abstract_path"),
        ([task(1, "login page")], "abstract_path"),
        ([task(1, "src/")], "abstract_path"),
        ([task(1, "app")], "abstract_path"),
        ([task(1, "README.md/a.py")], "abstract_path"),
        ([task(1, "src/*.py")], "unsafe_path"),
        ([task(1, "pkg.v1", "pkg.v1/a.py")], "abstract_path"),
        ([task(1, "tests/test_a.py")], "test_file"),
        ([task(1, "img/logo.png")], "binary_file"),
        ([task(1, "a.py", command_to_run="pip install flask")], "undeclared_package"),
    ],
)
def test_rules_that_block(tasks: list[dict[str, Any]], code: str) -> None:
    existing = frozenset({"README.md", "app/main.py"})
    assert code in codes(check_breakdown(plan(*tasks), existing), Severity.MAJOR)


def test_paths_that_are_no_abstractions() -> None:
    files = [
        "Makefile",
        "Dockerfile",
        "LICENSE",
        "LICENSE-MIT",
        "Dockerfile.dev",
        ".husky/pre-commit",
        ".gitignore",
        "bin/manage",
        "a..b.js",
        "x/data",
        "pages/[id].tsx",
    ]
    assert check_breakdown(plan(*(task(n + 1, f) for n, f in enumerate(files))), frozenset({"x/data"})) == []


def test_a_cycle_is_named_and_missing_tasks_are_counted() -> None:
    one, two = f"T-{STORY}-01", f"T-{STORY}-02"
    found = plan(task(1, "a.py", dependencies=[two]), task(2, "b.py", dependencies=[one]), task_count=4)
    messages = {finding.code: finding.message for finding in check_breakdown(found, frozenset())}
    assert f"{one} → {two} → {one}" in messages["breakdown.cycle"]
    assert "says 4, but there are 2" in messages["breakdown.missing_tasks"]


def test_paths_that_one_file_system_would_take_for_one() -> None:
    composed, apart = "caf\u00e9.py", "cafe\u0301.py"
    for first, second in ((composed, apart), ("a.py", "A.py")):
        found = check_breakdown(plan(task(1, first), task(2, second)), frozenset())
        assert codes(found) == ["path_clash"]
        assert codes(check_breakdown(plan(task(1, second)), frozenset({first}))) == ["path_clash"]
    assert check_breakdown(plan(task(1, apart)), frozenset({apart})) == []


def test_what_is_only_told() -> None:
    wordy = task(1, "a.py", "b.py", "c.py", "d.py", description="Use the `leftpad` library, npm i axios")
    found = check_breakdown(plan(wordy), frozenset())
    assert codes(found) == ["too_many_files", "undeclared_package", "undeclared_package"]
    assert blocking(found) == ()
    declared = plan(wordy, dependencies=["leftpad"])
    assert codes(check_breakdown(declared, frozenset(), frozenset({"axios"}))) == ["too_many_files"]


def test_missing_tasks_are_merged_once_and_in_order() -> None:
    short = plan(task(1, "a.py"), task(3, "c.py"), task_count=4)
    same_work = {**task(9, "c.py"), "description": "step  3"}
    late = {"tasks": [task(1, "other.py"), task(4, "d.py"), task(2, "b.py"), same_work], "dependencies": ["flask"]}
    merged, findings = merge_missing(short, late)
    assert findings == []
    assert [t.task_id[-2:] for t in merged.tasks] == ["01", "02", "03", "04"]
    assert merged.tasks[0].files_to_create == ("a.py",)
    assert "flask" in merged.dependencies.names
    assert check_breakdown(merged, frozenset()) == []
    assert merge_missing(short, late["tasks"])[0].tasks == merged.tasks
    unchanged, said = merge_missing(short, "sorry")
    assert unchanged == short
    assert codes(said) == ["tasks"]


def test_missing_tasks_numbered_anew_keep_their_work_and_their_order() -> None:
    short = plan(task(1, "a.py"), task(2, "b.py"), task_count=4)
    again = {**task(1, "b.py"), "description": "step 2."}
    third = {**task(2, "c.py", dependencies=[f"T-{STORY}-01"]), "description": "The third, on T-US-004-01"}
    fourth = {**task(3, "d.py", dependencies=[f"T-{STORY}-02"]), "description": "The fourth"}
    merged, findings = merge_missing(short, {"tasks": [third, again, fourth]})
    assert [(t.task_id[-2:], t.files_to_create) for t in merged.tasks] == [
        ("01", ("a.py",)), ("02", ("b.py",)), ("03", ("d.py",)), ("04", ("c.py",)),
    ]  # fmt: skip
    last = merged.task(f"T-{STORY}-04")
    assert last is not None
    assert (last.dependencies, last.description) == ((f"T-{STORY}-02",), "The third, on T-US-004-02")
    assert merged.tasks[2].dependencies == (f"T-{STORY}-04",)
    assert codes(findings) == ["renumbered"]


def test_missing_tasks_that_only_repeat_add_nothing() -> None:
    whole = plan(task(1, "a.py"), task(2, command_to_run="make"))
    twisted = [
        {**task(7, command_to_run="make"), "description": "STEP 2"},
        {**task(8, "a.py"), "description": "Step  1."},
    ]
    assert merge_missing(whole, {"tasks": twisted}) == (whole, [])
    assert merge_missing(whole, {"tasks": list(reversed(twisted))}) == (whole, [])


def test_mending_tells_what_it_did() -> None:
    found = plan(
        task(1, "a.py", "../b.py", task_id="TASK-1", dependencies=["TASK-2"]),
        task(2, "tests/test_b.py", "c.py", task_id="TASK-2", dependencies=["TASK-1", "US-001"]),
    )
    mended, findings = mend(found, frozenset())
    assert [t.task_id for t in mended.tasks] == [f"T-{STORY}-01", f"T-{STORY}-02"]
    assert [t.files_to_create for t in mended.tasks] == [("a.py",), ("c.py",)]
    assert [t.dependencies for t in mended.tasks] == [(), (f"T-{STORY}-01",)]
    assert check_breakdown(mended, frozenset()) == []
    renumbered = next(f for f in findings if f.code == "breakdown.renumbered")
    assert f"TASK-1 → T-{STORY}-01, TASK-2 → T-{STORY}-02" in renumbered.message
    assert codes(findings).count("struck") == 2
    assert codes(findings).count("dependency_dropped") == 2
    assert blocking(findings) == ()
    assert mend(mended, frozenset()) == (mended, [])


@pytest.mark.parametrize(
    "stated",
    [
        {"x": "https://h.example/x.whl"},
        {"x": "git+ssh://git@h.example/x"},
        {"x": "git@h.example:a/x.git"},
        {"x": "github:a/x"},
        {"x": "a/x#main"},
        {"x": "file:../../x"},
        {"x": "link:../x"},
        {"x": "../x"},
        {"x": "~/x"},
        {"x": "x-1.0.tgz"},
        {"x": "npm:evil@1"},
        {"x": {"git": "https://h.example/x"}},
        {"x": {"path": "../x"}},
        {"x @ https://h.example/x": "1"},
        ["x @ https://h.example/x"],
        ["x@git+https://h.example/x"],
        {"dependencies": {}, "devDependencies": {"x": "jsr:@a/x"}},
        [{"name": "x", "version": "https://h.example/x"}],
    ],
)
def test_a_package_from_elsewhere_is_refused_and_struck(stated: Any) -> None:
    found = plan(task(1, "a.py"), dependencies=stated)
    assert codes(check_breakdown(found, frozenset()), Severity.MAJOR) == ["package_source"]
    mended, findings = mend(found, frozenset())
    assert (mended.dependencies.names, codes(findings)) == (frozenset(), ["struck"])
    assert check_breakdown(mended, frozenset()) == []


@pytest.mark.parametrize(
    "version",
    [
        *("", "*", "latest", "^4.18.0", "~1.2", "~=1.2", ">=2,<3", "1.x || >=2.5.0", "==1.0.post1+local", "next", "v1"),
        *(
            ">=2 ; python_version > '3'",
            "1.0.0 - 2.0.0",
            "workspace:*",
            "npm:x@^1",
            "1",
            "any version",
            "2.0 (MIT/BSD)",
        ),
    ],
)
def test_a_version_is_no_source(version: str) -> None:
    found = plan(task(1, "a.py"), dependencies={"x": version})
    assert check_breakdown(found, frozenset()) == []
    assert mend(found, frozenset()) == (found, [])


IDS = st.sampled_from([f"T-{STORY}-01", f"T-{STORY}-02", f"T-{STORY}-03", "TASK-1", "", "T-US-001-01", "1"])
PATHS = st.sampled_from(["a.py", "b/c.js", "../x", "database", "tests/test_x.py", "Makefile", "logo.png", "b"])
TASKS = st.builds(
    lambda name, files, needs: task(1, *files, task_id=name or "x", dependencies=needs),
    IDS,
    st.lists(PATHS, max_size=4),
    st.lists(IDS, max_size=3),
)


@given(st.lists(TASKS, min_size=1, max_size=6))
def test_mended_plans_satisfy_every_rule_but_work(tasks: list[dict[str, Any]]) -> None:
    mended, findings = mend(plan(*tasks), frozenset({"b/old.js"}))
    assert set(codes(check_breakdown(mended, frozenset({"b/old.js"})), Severity.MAJOR)) <= {"no_work"}
    assert blocking(findings) == ()
    assert all(finding.fix for finding in findings)
    assert mend(mended, frozenset({"b/old.js"})) == (mended, [])
    assert len(mended.tasks) == len(tasks)


KEYS = st.sampled_from([*answer(), *task(1), "detected", "todos", "acceptance_tests", "id", "title"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner),
    max_leaves=20,
)


@given(VALUES)
def test_no_value_makes_the_reader_raise(value: Any) -> None:
    found, findings = read_breakdown(value, STORY)
    assert (found is None) <= bool(blocking(findings))
    if found is not None:
        mend(merge_missing(found, value)[0], frozenset())
