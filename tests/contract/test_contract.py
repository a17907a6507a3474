import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.contract.enforce import check_delivery, check_diff
from orchestrator.contract.freeze import freeze
from orchestrator.core.action_plan import Execute
from orchestrator.core.breakdown import ArchitecturalConflict, Breakdown, PackageDependencies, Task
from orchestrator.core.contract import ArchitectureContract
from orchestrator.core.delivery import Delivery, DiffEntry, FileChange
from orchestrator.core.errors import ContractViolation
from orchestrator.core.finding import Finding, Severity
from orchestrator.core.paths import is_test_file

FILES = ("README.md", "app/__init__.py", "app/store.py", "package.json", "requirements.txt", "src/tool/main.py")
MANIFESTS = {
    "requirements.txt": "Flask>=2\nPyYAML\npython-dateutil\ngoogle-cloud-storage\n",
    "package.json": '{"dependencies": {"express": "4", "@scope/Pkg": "1"}}',
}


def contract(packages: Mapping[str, str] | None = None, **tasks: tuple[str, ...]) -> ArchitectureContract:
    tasks = tasks or {"T1": ("app/cli.py", "app/store.py"), "T2": ("app/web.js", "Makefile", "package.json")}
    plan = Breakdown(
        story_id="US-001",
        architectural_conflict=ArchitecturalConflict(detected=False),
        task_count=len(tasks),
        tasks=tuple(Task(task_id=name, description="x", files_to_create=files) for name, files in tasks.items()),
        dependencies=PackageDependencies(dependencies=dict(packages or {"Rich_Text": "*", "socket.io": "4"})),
    )
    return freeze(breakdown=plan, base_commit="abc", files=FILES, manifests=MANIFESTS)


WORLD = contract()


def deliver(path: str, text: str, task: str = "T1", before: str | None = None) -> list[Finding]:
    delivery = Delivery(story_id="US-001", task_id=task, files=(FileChange(path=path, content=text),))
    return check_delivery(WORLD, delivery, {} if before is None else {path: before})


def codes(findings: list[Finding]) -> list[str]:
    return [finding.code.removeprefix("contract.") for finding in findings]


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("pip install left-pad", [("dependency", True)]),
        ("apt-get install -y jq", [("dependency", True)]),
        ("pip install -r requirements.txt && npm ci && uv run tox run -e typing", []),
        ("pip install $WHAT", [("unreadable", False)]),
    ],
)
def test_what_a_command_installs_is_asked_about_or_to_be_written_plainly(
    command: str, found: list[tuple[str, bool]]
) -> None:
    delivery = Delivery(story_id="US-001", task_id="T1", files=(), commands=(Execute(command=command),))
    said = check_delivery(WORLD, delivery, {})
    assert [(finding.code.removeprefix("contract."), finding.ask) for finding in said] == found
    assert [finding.severity.blocks for finding in said] == [not ask for _, ask in found]


def entry(path: str, status: str = "M", old: str = "100644", new: str = "100644") -> DiffEntry:
    return DiffEntry(path=path, status=status, old_mode=old, new_mode=new)


def diff(changed: DiffEntry, text: str | None = "", before: str | None = None, suite: str = "") -> list[Finding]:
    after = {} if text is None else {changed.path: text}
    old = {} if before is None else {changed.path: before}
    return check_diff(WORLD, [changed], after, old, frozenset({suite} if suite else ()))


def test_frozen_worlds_are_equal_whatever_the_order() -> None:
    again = freeze(
        breakdown=Breakdown(
            story_id="US-001",
            architectural_conflict=ArchitecturalConflict(detected=False),
            task_count=2,
            tasks=(
                Task(task_id="T2", description="", files_to_create=("package.json", "Makefile", "app/web.js")),
                Task(task_id="T1", description="", files_to_create=("app/store.py", "app/cli.py", "app/cli.py")),
            ),
            dependencies=PackageDependencies(devDependencies={"socket.io": "*", "Rich_Text": "1"}),
        ),
        base_commit="abc",
        files=tuple(reversed(FILES)),
        manifests=dict(reversed(MANIFESTS.items())),
    )
    assert again == WORLD
    assert WORLD.allowed_dependencies >= {"flask", "pyyaml", "express", "@scope/pkg", "rich-text", "socket.io"}
    assert ArchitectureContract.model_validate(json.loads(WORLD.model_dump_json())) == WORLD


def test_an_unsafe_path_is_never_frozen() -> None:
    with pytest.raises(ContractViolation) as caught:
        contract(T1=("../x.py",))
    assert codes(list(caught.value.findings)) == ["file"]


def test_files_of_the_task_only() -> None:
    assert deliver("app/cli.py", "import app.store\n") == []
    assert codes(deliver("app/other.py", "")) == ["file"]
    assert "app/cli.py, app/store.py" in deliver("app/other.py", "")[0].fix
    assert codes(deliver("README.md", "")) == ["other_task"]
    assert deliver("README.md", "")[0].ask
    assert codes(deliver("tests/test_cli.py", "")) == ["test_file"]
    clash = deliver("APP/cli.py", "")[0]
    assert "case only" in clash.message
    assert clash.severity is Severity.CRITICAL


def test_dependencies_enter_only_by_declaration() -> None:
    more = '{"dependencies": {"express": "5", "left-pad": "1"}}'
    assert codes(deliver("package.json", more, task="T2")) == ["dependency"]
    assert deliver("package.json", more, task="T2", before='{"dependencies": {"Left-Pad": "1"}}') == []
    assert deliver("package.json", '{"dependencies": {"socket.io": "4"}}', task="T2") == []
    assert codes(deliver("package.json", "{", task="T2")) == ["unreadable"]
    hidden = '{"scripts": {"postinstall": "npm i left-pad express"}}'
    assert codes(deliver("package.json", hidden, task="T2")) == ["dependency"]
    assert deliver("Makefile", "setup:\n\t@pip install requests\n", task="T2") == [], "it runs without network"
    assert codes(diff(entry("requirements.txt"), "Flask\nhttps://host/evil.whl\n")) == ["dependency"]
    assert codes(diff(entry("requirements.txt"), "Flask\n-r README.md\n")) == ["dependency"]


@pytest.mark.parametrize(
    ("section", "fine"),
    [
        ('pythonpath = ["src"]\naddopts = "-q --strict-markers --import-mode=importlib"', True),
        ('testpaths = ["tests", "more/"]', True),
        ('testpaths = ["more"]', False),
        ('addopts = "--ignore=tests/test_old.py"', False),
        ('addopts = ["-q", "-p", "app.plugin"]', False),
        ('python_files = "check_*.py"', False),
        ("norecursedirs = ['tests']", False),
    ],
)
def test_what_chooses_tests_is_the_testers(section: str, fine: bool) -> None:
    frozen = contract(T1=("pyproject.toml",))
    world = frozen.model_copy(update={"baseline_files": (*frozen.baseline_files, "tests/test_old.py")})
    text = f"[tool.pytest.ini_options]\n{section}\n"
    change = Delivery(story_id="US-001", task_id="T1", files=(FileChange(path="pyproject.toml", content=text),))
    said = [finding.code for finding in check_delivery(world, change, {})]
    assert said == ([] if fine else ["contract.test_settings"])
    assert check_delivery(world, change, {"pyproject.toml": text}) == [], "what stood there already"
    at_end = check_diff(world, [entry("pyproject.toml")], {"pyproject.toml": text}, {}, frozenset())
    assert [finding.code for finding in at_end] == said


def test_a_text_that_cannot_be_read_is_no_pass() -> None:
    assert deliver("app/cli.py", "def f(:") == [], "that is told as syntax"
    found = diff(entry("app/store.py"), None)
    assert (codes(found), found[0].severity) == (["unreadable"], Severity.CRITICAL)


def test_the_diff_is_judged_by_what_is_in_the_tree() -> None:
    assert diff(entry("app/cli.py", "A", old="000000"), "x = 1\n") == []
    assert codes(diff(entry("app/store.py"), "import requests\n")) == ["import"]
    assert codes(diff(entry("README.md", "D", new="000000"), None)) == ["deletion"]
    assert codes(diff(entry("app/cli.py", "A", "000000", "120000"), None)) == ["link", "unreadable"]
    assert codes(diff(entry("vendor/lib", "A", "000000", "160000"), None)) == ["submodule", "file"]
    assert codes(diff(entry("Makefile", "A", "000000", "100755"), "all:\n")) == ["mode"]
    assert diff(entry("README.md", old="100755", new="100755"), "text") == []
    assert codes(diff(entry("notes.md", "A", "000000"), "text")) == ["file"]
    suite = "tests/test_us_001.py"
    assert codes(diff(entry(suite, "A", "000000"), "import os\n")) == ["test_file"]
    assert diff(entry(suite, "A", "000000"), "import pytest\n", suite=suite) == []
    assert codes(diff(entry(suite, "A", "000000", "120000"), None, suite=suite)) == ["link"]
    assert codes(diff(entry(suite, "D", new="000000"), None, suite=suite)) == ["deletion"]
    assert all(f.severity is Severity.CRITICAL for f in diff(entry("app/store.py"), "def f(:"))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("tests/helper.py", True), ("src/__tests__/a.js", True), ("a/Test_x.py", True), ("store_test.py", True),
        ("a.spec.tsx", True), ("a.test.mjs", True), ("conftest.py", True), ("pytest.ini", True),
        ("jest.config.js", True), ("e2e/login.cy.ts", True), ("src/app.e2e-spec.ts", True), ("legacy.js", False),
        ("testing.py", False), ("latest.py", False), ("contest/a.py", False), ("a.tests", False), ("protest.js", False),
        ("app/attest.py", False), ("test.js", True), ("src/test.ts", False),
    ],
)  # fmt: skip
def test_which_files_are_the_testers(path: str, expected: bool) -> None:
    assert is_test_file(path) is expected


SEGMENT = st.sampled_from(["app", "src", "a.py", "store.py", "cli.py", "x", "README.md", "tests"])


@given(st.lists(SEGMENT, min_size=1, max_size=4).map("/".join), st.sampled_from(["x = 1\n", ""]))
def test_a_file_outside_is_always_found(path: str, text: str) -> None:
    outside = path not in WORLD.allowed_files or is_test_file(path)
    for found in (deliver(path, text), diff(entry(path, "A", old="000000"), text)):
        assert bool({"file", "test_file", "clash"} & set(codes(found))) is outside
        assert outside <= any(f.severity is Severity.CRITICAL or f.ask for f in found)


@pytest.mark.parametrize(
    ("path", "asks"),
    [
        ("conftest.py", True), ("pytest.py", True), ("_pytest/runner.py", True), ("src/unittest/__init__.py", True),
        ("vendor/extra.pth", True), ("app/conftest.py", False), ("tests/conftest.py", False), ("app/pytest.py", False),
        ("docs/unittest/index.md", False), ("pytest.ini", False), ("app/_pytest.py", False),
    ],
)  # fmt: skip
def test_a_file_that_runs_unasked_is_a_question_also_of_the_tester(path: str, asks: bool) -> None:
    found = diff(entry(path, "A", old="000000"), "x = 1\n", suite=path)
    assert [(one.code, one.ask) for one in found] == ([("contract.startup_file", True)] if asks else [])


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        ("app/store.py", "x = 1\ny = 2  # \u202eadmin\n", 2),
        ("app/store.py", "# \x1b[8m\n", 1),
        ("app/store.py", "# a comment\rimport os\n", 1),
        ("app/web.js", "// a comment\u2028go()\n", 1),
        ("app/run.sh", "echo \x9b8m\n", 1),
        ("app/x.rb", "a = 1\n# \u2066x\n", 2),
        ("app/store.py", "x = 1\r\n\x0c\r\ny = '\U0001f468\u200d\U0001f469 \u200e'\r\n", None),
        ("app/store.py", "OLD = '\x1b[0m'\nx = 1\n", None),
        ("locale/he.po", "msgstr '\u202ea'\n", None),
        ("locale/he.json", '{"a": "\u202ea"}', None),
        ("README.md", "\u2067a\u2069\n", None),
        ("tests/data/terminal.txt", "\x1b[31m\x00\n", None),
        ("app/he.html", "<p>\u2067a\u2069</p>\n", None),
    ],
)
def test_sources_that_read_otherwise_than_they_run_are_a_question(path: str, text: str, line: int | None) -> None:
    found = diff(entry(path), text, before="OLD = '\x1b[0m'\n", suite=path)
    assert [(one.code, one.ask, one.where.line) for one in found] == (
        [("contract.hidden_text", True, line)] if line else []
    )
