"""One refused and one accepted example for the rules of the closed world; those of each language stand beside."""

import pytest

from orchestrator.contract import enforce
from orchestrator.contract.enforce import check_delivery, check_diff
from orchestrator.core.contract import ArchitectureContract
from orchestrator.core.delivery import Delivery, DiffEntry
from orchestrator.core.finding import Finding, Severity
from tests.contract.worlds import closed_world, judged

FILES = (
    "README.md", "Makefile", "app/__init__.py", "app/store.py", "web/index.ts", "bin/tool", "docs/café.md",
    "packages/core/pyproject.toml", "packages/core/src/core/__init__.py", "packages/ui/package.json", "tests/test_a.py",
)  # fmt: skip
BASE = {
    "package.json": '{"name": "Shop", "dependencies": {"express": "4"}, "workspaces": ["packages/*"]}',
    "packages/ui/package.json": '{"name": "@shop/ui", "devDependencies": {"react": "18", "@types/estree": "1"}}',
    "requirements.txt": "Flask>=2\nPyYAML\n",
    "tsconfig.json": """{
  // comment
  "compilerOptions": {"paths": {"@app/*": ["src/*"], "lodash": ["node_modules/x"],}},
}""",
}
NEW = (
    "app/new.py", "app/web.js", "app/page.vue", "web/new.ts", "bin/run", "requirements.txt", "requirements-dev.txt",
    "package.json", "pyproject.toml", "setup.cfg", "setup.py", "Pipfile", ".npmrc", ".gitattributes", ".gitmodules",
    ".github/workflows/ci.yml", "Dockerfile", "packages/core/src/core/x.py", "packages/app/src/y.py", ".gitignore",
    "noxfile.py", "compose.yaml",
)  # fmt: skip


def frozen(*more: str) -> ArchitectureContract:
    return closed_world((*NEW, *more), (*FILES, *BASE), BASE, ("rich", "socket.io"))


WORLD = frozen()


def said(path: str, text: str, before: str | None = None, world: ArchitectureContract = WORLD) -> list[Finding]:
    return judged(world, {path: text}, {} if before is None else {path: before})


def test_a_file_that_a_tool_fills_in_need_not_parse() -> None:  # cookiecutter-django
    path, text = "{{cookiecutter.slug}}/views.py", "from {{ cookiecutter.slug }}.users import User\n"
    assert said(path, text, world=frozen(path)) == []


def codes(findings: list[Finding]) -> set[str]:
    return {finding.code.removeprefix("contract.") for finding in findings}


TEXTS = [
    ("app/new.py", "import google.cloud.storage", "import", "import app.store, json"),
    ("packages/core/src/core/x.py", "import ui", "import", "import core"),
    ("packages/app/src/y.py", "import numpy", "import", "import core, app"),
    ("bin/run", "#!/usr/bin/env python3\nimport numpy", "import", "#!/usr/bin/env python3\nimport yaml"),
    ("app/web.js", "import x from '@other/ui'", "import", "import x from '@shop/ui/button'"),
    ("app/web.js", "import x from 'lodash'", "import", "import x from 'shop/server.js'"),
    ("web/new.ts", "import type { A } from 'types-only'", "import", "import type { A } from '@app/a'"),
    ("web/new.ts", "import { A } from 'estree'", "import", "import type { A } from 'estree'"),
    ("app/page.vue", "<script>\nimport x from 'left-pad'\n</script>", "import", "<script>\nimport 'react'\n</script>"),
    ("package.json", '{"peerDependencies": {"left-pad": "1"}}', "dependency", '{"peerDependencies": {"express": "4"}}'),
    ("package.json", '{"optionalDependencies": {"a": "1"}}', "dependency", '{"optionalDependencies": {"Rich": "1"}}'),
    ("package.json", '{"bundleDependencies": ["left-pad"]}', "dependency", '{"bundledDependencies": ["express"]}'),
    ("package.json", '{"overrides": {"express": {"left-pad": "1"}}}', "dependency", '{"overrides": {"express": "4"}}'),
    ("package.json", '{"resolutions": {"**/left-pad": "1"}}', "dependency", '{"resolutions": {"a/express": "4"}}'),
    (
        "package.json",
        '{"dependencies": {"express": "npm:evil@1"}}',
        "dependency",
        '{"dependencies": {"express": "^4.1"}}',
    ),
    ("package.json", '{"dependencies": {"express": "user/evil"}}', "source", '{"dependencies": {"express": ">=4 <6"}}'),
    ("requirements.txt", "flask @ https://host/flask.whl\n", "source", "flask==3\n"),
    ("requirements.txt", "-r ../requirements.txt\n", "dependency", "-r requirements-dev.txt\n"),
    ("requirements-dev.txt", "-c https://host/c.txt\n", "dependency", "-c constraints.txt\nPyYAML\n"),
    ("pyproject.toml", '[project]\ndependencies = ["evil"]', "dependency", '[project]\ndependencies = ["Flask>=2"]'),
    (
        "pyproject.toml",
        '[dependency-groups]\nx = ["evil"]',
        "dependency",
        '[project.optional-dependencies]\nx = ["rich"]',
    ),
    (
        "pyproject.toml",
        "[tool.poetry.group.x.dependencies]\nevil = '1'",
        "dependency",
        "[tool.poetry.dependencies]\npython='3'",
    ),
    ("pyproject.toml", '[build-system]\nrequires = ["evil"]', "dependency", '[build-system]\nrequires = ["hatchling"]'),
    (
        "setup.cfg",
        "[options]\nsetup_requires = evil",
        "dependency",
        "[options]\ninstall_requires =\n    flask\n    rich",
    ),
    (
        "setup.cfg",
        "[options]\ninstall_requires = flask; evil",
        "dependency",
        "[options]\ninstall_requires = flask; rich",
    ),
    (".gitattributes", "*.bin filter=evil", "git_settings", "*.txt text eol=lf"),
    (".gitmodules", '[submodule "x"]', "git_settings", ""),
]


@pytest.mark.parametrize(("path", "refused", "code", "accepted"), TEXTS)
def test_texts(path: str, refused: str, code: str, accepted: str) -> None:
    found = said(path, refused)
    assert codes(found) - {"other_task", "ci"} == {code}, found
    assert codes(said(path, accepted)) <= {"other_task", "ci"}
    assert codes(said(path, refused, before=refused)) <= {"other_task", "ci"}, (
        "what stood there already is not held against it"
    )


@pytest.mark.parametrize(
    ("path", "code", "word"),
    [
        ("app/other.py", "file", "outside"),
        (".github/workflows/other.yml", "ci", "a person decides"),
        ("readme.md", "clash", "case only"),
        ("docs/cafe\u0301.md", "clash", "letters are encoded"),
        ("../x.py", "file", "unsafe"),
        (".git/hooks/x", "file", "unsafe"),
        ("README.md/x.py", "clash", "a file and a folder"),
        ("app", "clash", "a file and a folder"),
        ("tests/test_b.py", "test_file", "tester"),
    ],
)
def test_places(path: str, code: str, word: str) -> None:
    for found in (said(path, ""), check_diff(WORLD, [entry(path, "A", "000000")], {path: ""}, {}, frozenset())):
        assert code in codes(found)
        assert any(word in one.message and (one.severity is Severity.CRITICAL or one.ask) for one in found)


def test_a_path_of_the_plan_is_the_file_that_is_meant_by_it() -> None:
    world = frozen("Readme.md", "docs/cafe\u0301.md", "app/Extra.py", "app/extra.py")
    assert world.task_files["T1"].count("README.md") == 1
    assert "docs/café.md" in world.task_files["T1"]
    assert not {"Readme.md", "docs/cafe\u0301.md", "app/extra.py"} & world.allowed_files
    assert said("README.md", "x", world=world) == []
    assert "Write `README.md`" in said("Readme.md", "x", world=world)[0].fix


@pytest.mark.parametrize("path", ["app", "README.md/x", "bin"])
def test_a_file_is_no_folder(path: str) -> None:
    assert codes(said(path, "", world=frozen(path))) == {"clash"}


def entry(path: str, status: str = "M", old: str = "100644", new: str = "100644") -> DiffEntry:
    return DiffEntry(path=path, status=status, old_mode=old, new_mode=new)


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        (entry("README.md"), None),
        (entry("README.md", old="100664"), None),
        (entry("app/new.py", "A", "000000"), None),
        (entry("bin/tool", old="100755", new="100755"), None),
        (entry("bin/tool", old="100755"), "mode"),
        (entry("README.md", new="100755"), "mode"),
        (entry("app/new.py", "A", "000000", "100755"), "mode"),
        (entry("README.md", "D", new="000000"), "deletion"),
        (entry("README.md", "R"), "deletion"),
        (entry("app/new.py", "A", "000000", "120000"), "link"),
        (entry("README.md", "T", old="120000"), "link"),
        (entry("README.md", "T", new="160000"), "submodule"),
        (entry("README.md", "T", old="160000"), "submodule"),
    ],
)
def test_kinds(changed: DiffEntry, code: str | None) -> None:
    found = check_diff(WORLD, [changed], {changed.path: ""}, {}, frozenset())
    assert codes(found) == ({code} if code else set())
    assert all(finding.severity is Severity.CRITICAL for finding in found)


@pytest.mark.parametrize("path", [".npmrc", "app/web.js", ".gitattributes"])
def test_what_must_be_read_and_cannot_be_is_no_pass(path: str) -> None:
    assert "unreadable" in codes(check_diff(WORLD, [entry(path)], {}, {}, frozenset()))


def test_a_check_that_crashes_is_a_violation_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object) -> None:
        raise KeyError("boom")

    monkeypatch.setattr(enforce, "check_text", crash)
    for found in (said("README.md", "x"), check_diff(WORLD, [entry("README.md")], {"README.md": "x"}, {}, frozenset())):
        assert {f.code for f in found if f.severity is Severity.CRITICAL} == {"contract.crashed"}


def test_a_task_takes_away_its_own_files_and_nothing_else() -> None:
    own = frozen("app/old.py", "app/new.py", "package.json", "README.md")

    def gone(path: str, world: ArchitectureContract) -> set[str]:
        delivery = Delivery(story_id="US-001", task_id="T1", files=(), removed=(path,))
        found = check_delivery(world, delivery, {})
        assert all(finding.severity is Severity.CRITICAL and finding.fix for finding in found)
        return codes(found)

    def diff(path: str, world: ArchitectureContract, **more: str) -> set[str]:
        return codes(check_diff(world, [entry(path, "D", new="000000", **more)], {}, {}, frozenset()))

    for path, code in (
        ("README.md", set()), ("app/old.py", set()), ("bin/tool", {"deletion"}), ("package.json", {"deletion"}),
    ):  # fmt: skip
        assert gone(path, own) == diff(path, own) == code
    assert gone("tests/test_a.py", own) == {"test_file"}
    assert diff("tests/test_a.py", own) == {"deletion"}
    assert diff("README.md", own, old="120000") == {"deletion"}
    assert gone("README.md", WORLD) == {"deletion"}
