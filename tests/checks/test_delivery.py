from typing import Any

import pytest

from orchestrator.checks.content import check_content, manifest_losses
from orchestrator.checks.delivery import PLACEHOLDER, read_delivery
from orchestrator.core.delivery import Delivery, FileChange
from orchestrator.core.finding import Finding, Severity, blocking

STORY, TASK = "US-001", "T-US-001-01"


def read(value: Any) -> tuple[Delivery | None, list[Finding]]:
    return read_delivery(value, STORY, TASK)


def content(path: str, text: str, before: str | None = None) -> list[tuple[str, str]]:
    delivery = Delivery(story_id=STORY, task_id=TASK, files=(FileChange(path=path, content=text),))
    found = check_content(delivery, {} if before is None else {path: before})
    assert all(finding.where.task == TASK and finding.where.file == path for finding in found)
    return [(str(finding.severity), finding.code.removeprefix("delivery.")) for finding in found]


@pytest.mark.parametrize(
    "value",
    [
        {"files": [{"path": "a.py", "content": "x"}, {"path": "b.py", "content": "y"}]},
        {"files": [{"filename": "a.py", "content": "x"}, {"file": "./b.py", "content": "y"}]},
        {"files": {"a.py": "x", "b.py": "y"}},
        {"files": {"a.py": {"content": "x"}, "b.py": {"content": {"content": "y"}}}},
        {"created_files": [{"path": "a.py", "content": {"content": "x"}}], "updated_files": {"b.py": "y"}},
        [{"path": "a.py", "content": "x"}, {"b.py": "y"}],
        {"files": {"a.py": "x", "b.py": "y"}, "created_files": ["a.py"], "updated_files": ["./b.py"]},
    ],
)
def test_every_accepted_shape_gives_the_same_files(value: Any) -> None:
    delivery, findings = read(value)
    assert delivery is not None
    assert findings == []
    assert [(change.path, change.content) for change in delivery.files] == [("a.py", "x"), ("b.py", "y")]


def test_wrong_ids_are_corrected_and_told() -> None:
    delivery, findings = read({"story_id": "US-9", "task_id": TASK, "files": {"a.py": "x"}})
    assert delivery is not None
    assert delivery.story_id == STORY
    assert [(f.code, f.severity) for f in findings] == [("delivery.ids", Severity.MINOR)]


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (None, "no_files"),
        ("text", "no_files"),
        ({}, "no_files"),
        ({"files": []}, "no_files"),
        ({"files": "a.py"}, "unsafe_path"),
        ({"files": [{"content": "x"}]}, "unsafe_path"),
        ({"files": [{"path": 3, "content": "x"}]}, "unsafe_path"),
        ({"files": {"../a.py": "x"}}, "unsafe_path"),
        ({"files": {"a.py": ["x"]}}, "no_content"),
        ({"files": [{"path": "a.py"}]}, "no_content"),
        ({"files": {"a.py": "\ud800"}}, "no_content"),
        ({"files": {"a.py": f" {PLACEHOLDER}\n"}}, "placeholder"),
        ({"files": [{"path": "a.py", "content": "x"}, {"path": "a.py", "content": "y"}]}, "duplicate_path"),
        ({"files": {"a.py": "x", "A.py": "x"}}, "duplicate_path"),
    ],
)
def test_what_is_no_usable_file_is_left_out_and_said(value: Any, code: str) -> None:
    delivery, findings = read(value)
    assert delivery is None
    assert [finding.code for finding in blocking(findings)] == [f"delivery.{code}"]


def test_valid_files_stay_beside_refused_ones() -> None:
    delivery, findings = read({"files": {"a.py": "x", "/etc/passwd": "y"}})
    assert delivery is not None
    assert delivery.paths == ("a.py",)
    assert blocking(findings)


def test_syntax_is_checked() -> None:
    assert content("a.py", "def f(:\n") == [("major", "syntax")]
    assert content("a.json", "{'a': 1}") == [("major", "syntax")]
    assert content("a.py", "def f() -> int:\n    return 1\n") == []


@pytest.mark.parametrize(
    ("path", "text", "severity"),
    [
        ("a.py", "x = 1\n# rest of the code unchanged\n", "major"),
        ("a.py", "x = 1\n# ... existing code ...\n", "major"),
        ("a.js", "f();\n// ... other methods remain the same\n", "major"),
        ("a.js", "/* rest of the file */\n", "major"),
        ("a.html", "<p>\n<!-- your code here -->\n", "minor"),
        ("a.py", "def f():\n    # TODO: implement\n    pass\n", "minor"),
        ("a.py", "def f():\n    # TODO: add a cache\n    return g()\n", None),
        ("a.js", "<div>{/* you can add other components here */}</div>;\n", None),
        ("a.js", "// [previous code]\nf();\n", "major"),
        ("a.jsx", "const a = <p>\n  {/* ... existing markup ... */}\n</p>;\n", "major"),
        ("a.html", "<!-- rest of the page -->\n", "major"),
        ("a.css", "/* ... other styles ... */\n", "major"),
        ("a.yaml", "# the rest stays the same\n", "major"),
        ("a.sh", "# (code continues)\n", "major"),
        ("a.js", "// Same implementation as before\n", "major"),
        ("a.js", "// No changes to the rest of the file\n", "major"),
        ("a.js", "// truncated for brevity\n", "major"),
        ("a.js", "// Logic to fetch users goes here\n", "minor"),
        ("a.py", "# 其余代码保持不变\n", "major"),
        ("a.js", "// Rest des Codes unverändert\n", "major"),
        ("a.js", "// le reste du code reste inchangé\n", "major"),
        ("a.js", "// ... resto del código sin cambios ...\n", "major"),
        ("a.py", "def f():\n    pass  # implement later\n", "minor"),
        ("a.js", "function f() {\n  // implementation here\n}\n", "minor"),
        ("a.js", "// In a real application this would ask the database\nf();\n", "minor"),
        ("a.js", "const { id,\n  ...rest\n} = f();\ng({\n  ...rest,\n  ...previous,\n});\n", None),
        ("a.py", "class A:\n    def f(self):\n        raise NotImplementedError\n", None),
        ("a.py", "x = 1  # Same as above.\n", None),
        ("a.py", "# the rest of the logic is just re-creating the type\nx = 1\n", None),
        ("a.ts", "/**\n * - `[...rest]` → `{ name: 'rest' }`\n */\nf();\n", None),  # qwik
        ("a.ts", "// ...rest\nf();\n", "major"),
        ("a.ts", "f();\n// [...existing code...]\n", "major"),
        ("a.py", "x = 1\n# ignore ... other was no timedelta that fits\n", None),  # isodate
        ("a.js", "f();\n// keep these ... rest omitted\n", "major"),
        ("a.py", "def f(lines):\n    # skip the rest of the file once the header is read\n    return g()\n", None),
        ("a.py", "x = '# rest of the code unchanged'\n", None),
        ("a.py", "# the existing code paths call this\nx = 1\n", None),
        ("README.md", "# rest of the code unchanged\n", None),
        ("a.py", "todo = add('implement')  # the TODO list\n", None),
    ],
)
def test_text_in_place_of_code(path: str, text: str, severity: str | None) -> None:
    assert content(path, text) == ([(severity, "placeholder")] if severity else [])


def test_an_old_comment_is_not_held_against_a_delivery() -> None:
    old = "def f():\n    # TODO: implement\n    pass\n"
    assert content("a.py", old + "x = 1\n", before=old) == []


def test_lost_text() -> None:
    long = "x = 1\n" * 200
    assert content("a.py", "\n", before="x = 1\n") == [("major", "shrunk")]
    assert content("a.py", "x = 2\n", before=long) == [("minor", "shrunk")]
    assert content("a.py", "x = 2\n", before="x = 1\n" * 20) == []
    assert content("pkg/__init__.py", "") == []
    assert content("a.py", "") == [("minor", "empty")]


def test_a_manifest_keeps_its_dependencies_and_scripts() -> None:
    before = '{"dependencies": {"express": "4"}, "scripts": {"start": "node ."}}'
    assert content("package.json", '{"dependencies": {"express": "5", "a": "1"}}', before) == [
        ("minor", "manifest_loss")
    ]
    assert content("package.json", '{"scripts": {"start": "x"}}', before) == [("minor", "manifest_loss")]
    assert content("requirements.txt", "flask\n", "Flask>=2\nrich\n") == [("minor", "manifest_loss")]
    assert content("requirements.txt", "rich\nFLASK>=3\n", "flask>=2\nrich\n") == []
    assert content("pyproject.toml", "[project\n", "[project]\nname = 'a'\n") == [("major", "syntax")]


def test_what_the_task_names_may_leave_a_manifest() -> None:
    before = '{"dependencies": {"left-pad": "1", "left": "1"}, "scripts": {"start": "node ."}}'
    change = FileChange(path="package.json", content='{"dependencies": {"left": "1"}}')
    assert [finding.where.field for finding in manifest_losses(change, before)] == ["dependency", "script"]
    assert list(manifest_losses(change, before, "Drop `left-pad`, and the start script")) == []
    assert len(list(manifest_losses(change, before, "Drop left"))) == 2


@pytest.mark.parametrize(
    ("path", "before", "after", "severity"),
    [
        ("package.json", '{"type": "module", "main": "a.js"}', '{"main": "b.js"}', None),
        ("package.json", '{"dependencies": {"a": "^2.1.0"}}', '{"devDependencies": {"a": "2.2.0"}}', None),
        ("package.json", '{"dependencies": {"a": "1", "b": "1"}}', '{"dependencies": {"b": "1"}}', "minor"),
        ("pyproject.toml", "[project]\nname = 'a'\n[project.scripts]\nx = 'a:b'\n", "[project]\nname = 'a'\n", "minor"),
        ("requirements.txt", "flask==3.0\nrich\n", "# flask==3.0\nrich\n", "minor"),
        ("requirements.txt", "flask[async]>=2.0,<3\n", "flask>=1.0,<3  # older is fine\n", None),
    ],
)
def test_what_a_manifest_loses(path: str, before: str, after: str, severity: str | None) -> None:
    assert content(path, after, before) == ([(severity, "manifest_loss")] if severity else [])
