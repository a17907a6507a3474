"""What is read of a project, and what a Surface tells of it."""

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.contract import FileExports
from orchestrator.story.project_scan import (
    MAX_SOURCE_CHARS,
    build_surface,
)

FILES = (
    "src/app.py",
    "src/web/index.js",
    "pyproject.toml",
    "package.json",
    "package-lock.json",
    "uv.lock",
    "node_modules/x/package.json",
    "node_modules/x/index.js",
    "static/jquery.min.js",
    ".venv/lib/site-packages/a.py",
    ".github/script.py",
    "tests/test_app.py",
    "web/index.test.js",
    "README.md",
    "logo.png",
)
TEXTS = {
    "src/app.py": "def run(): ...\nclass App: ...\n_hidden = 1\n",
    "src/web/index.js": "export function start() {}\nexport const port = 1;\n",
    "pyproject.toml": '[project]\nname = "x"\nversion = "1"\nrequires-python = ">=3.11"\ndependencies = ["Rich>=1"]\n',
    "package.json": '{"type": "module", "engines": {"node": ">=20"}, "dependencies": {"express": "4"}}',
}


def test_a_surface_tells_files_exports_packages_and_runtime() -> None:
    surface = build_surface("c0ffee", FILES, TEXTS)
    assert surface.commit == "c0ffee"
    assert surface.files == tuple(sorted(FILES))
    assert {entry.path: set(entry.names) for entry in surface.exports} == {
        "src/app.py": {"run", "App"},
        "src/web/index.js": {"start", "port"},
    }
    assert surface.dependencies == ("express", "rich")
    assert surface.runtime == "requires-python >=3.11; node >=20; package type module"


def test_manifests_that_tests_read_are_not_the_projects_and_poetry_says_its_python() -> None:
    """Those of tomlkit."""
    texts = {
        "pyproject.toml": '[tool.poetry.dependencies]\npython = ">=3.7"\n[tool.poetry.dev-dependencies]\nx = "1"\n',
        "tests/examples/pyproject.toml": '[tool.poetry.dependencies]\npython = "*"\ncachecontrol = "*"\n',
        "tests/requirements.txt": "pyyaml\n",
    }
    surface = build_surface("c0ffee", [*texts], texts)
    assert surface.dependencies == ("pyyaml", "x")
    assert surface.runtime == "requires-python >=3.7"


def test_unknown_stays_unknown() -> None:
    texts = {
        "broken.py": "def f(:",
        "pyproject.toml": "[project",
        "package.json": "[" * 100_000,
        "big.py": "x = 1\n" * (MAX_SOURCE_CHARS // 6 + 1),
        "nul.py": "a = '\0'",
    }
    surface = build_surface("c", tuple(texts), texts)
    assert surface.exports == ()
    assert surface.dependencies == ()
    assert surface.runtime == ""
    assert build_surface("", (), {}).files == ()


ANY_FILES = ("pyproject.toml", "package.json", "a.py", "b.js", "c.sql", "test_a.py", "b.test.js")


@given(st.dictionaries(st.sampled_from(ANY_FILES), st.text(max_size=60)))
def test_no_text_raises(texts: dict[str, str]) -> None:
    surface = build_surface("c", tuple(texts), texts)
    assert all(isinstance(entry, FileExports) and entry.names for entry in surface.exports)
