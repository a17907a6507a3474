import pytest

from orchestrator.code.manifests.manifest import read_manifest
from orchestrator.code.packages import dependencies_of
from orchestrator.core.paths import is_manifest


def test_package_json_has_four_groups_and_scripts() -> None:
    text = """{"dependencies": {"Express": "^4"}, "devDependencies": {"@types/node": "1"},
    "peerDependencies": {"a": "*"},
    "optionalDependencies": {"b": "*"}, "scripts": {"start": "node index.js"}}"""
    found = read_manifest("web/package.json", text)
    assert found.dependencies == {"express", "@types/node", "a", "b"}
    assert (found.scripts, found.commands, found.problems) == ({"start"}, ("node index.js",), ())


def test_requirements_name_what_they_add_even_without_a_name() -> None:
    text = """# tools
Flask_Login >= 2 ; python_version > "3.8"   # web
uvicorn[standard]==0.30 \\
    --hash=sha256:aa
-r requirements-base.txt
-r hidden.txt
-c constraints.txt
-e .
./local
-e git+https://host/x.git#egg=Named_One
thing @ https://host/thing.zip
https://host/bare.whl
--extra-index-url https://evil.example/simple
"""
    found = read_manifest("requirements-dev.txt", text)
    assert found.dependencies == {
        "flask-login",
        "uvicorn",
        "named-one",
        "thing",
        "https://host/bare.whl",
        "-r hidden.txt",
        "--extra-index-url https://evil.example/simple",
    }
    assert found.problems == ()


def test_pyproject_groups_of_every_tool() -> None:
    text = """
[build-system]
requires = ["setuptools>=61", "Cython"]
[project]
dependencies = ["Requests>=2"]
scripts = {tool = "a:main"}
[project.optional-dependencies]
web = ["flask"]
[dependency-groups]
dev = ["pytest", {include-group = "web"}]
[tool.poetry.dependencies]
python = "^3.11"
PyYAML = "*"
[tool.poetry.group.docs.dependencies]
mkdocs = "*"
[tool.uv]
dev-dependencies = ["ruff"]
"""
    found = read_manifest("pyproject.toml", text)
    assert found.dependencies == {"requests", "flask", "pytest", "pyyaml", "mkdocs", "ruff", "cython"}
    assert found.scripts == {"tool"}


def test_setup_cfg() -> None:
    text = "[options]\ninstall_requires =\n    Flask>=2\n    file: x\n[options.extras_require]\ndev = pytest; mypy\n"
    assert dependencies_of("setup.cfg", text) >= {"flask"}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("package.json", "{"),
        ("package.json", "[]"),
        ("package.json", '{"dependencies": ["express"]}'),
        ("package.json", "[" * 100_000),
        ("pyproject.toml", "[project"),
        ("pyproject.toml", "[project]\ndependencies = 'flask'"),
        ("requirements.txt", "two words"),
        ("setup.cfg", "no section"),
    ],
)
def test_an_unreadable_manifest_says_so(path: str, text: str) -> None:
    assert read_manifest(path, text).problems
    assert dependencies_of(path, text) == frozenset()


def test_which_files_are_manifests() -> None:
    for path in (
        "package.json",
        "a/requirements.txt",
        "requirements/dev.txt",
        "dev-requirements.txt",
        "pyproject.toml",
    ):
        assert is_manifest(path)
    for path in ("package-lock.json", "docs/requirements.md", "my.toml", "notes.txt"):
        assert not is_manifest(path)
