"""What is read of a project, and what a Surface tells of it."""

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.contract import Endpoint, FileExports, Table
from orchestrator.prompts.budget import tokens
from orchestrator.prompts.context import render_surface
from orchestrator.story.project_scan import (
    MAX_SOURCE_CHARS,
    MAX_TEST_FILES,
    SCAN_LIMIT,
    build_surface,
    scan_paths,
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


def test_sources_manifests_and_some_tests_are_read_and_nothing_else() -> None:
    sources = ("package.json", "pyproject.toml", "src/app.py", "src/web/index.js")
    tests = ("tests/test_app.py", "web/index.test.js")
    assert scan_paths(FILES) == (*sources, *tests)
    many = [f"tests/test_{number}.py" for number in range(2 * MAX_TEST_FILES)]
    assert len(scan_paths(many)) == MAX_TEST_FILES


def test_many_files_are_capped_manifests_and_near_files_first() -> None:
    files = [f"deep/er/m{n}.py" for n in range(SCAN_LIMIT)] + ["top.py", "deep/er/down/package.json"]
    chosen = scan_paths(files)
    assert len(chosen) == SCAN_LIMIT
    assert {"top.py", "deep/er/down/package.json"} <= set(chosen)
    assert list(chosen) == sorted(chosen)


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


APPLICATION = {
    "app/main.py": """from fastapi import APIRouter

router = APIRouter(prefix="/loans")


@router.get("/{id}")
async def read(id: int) -> dict:
    '''One loan.'''
    return {}


def one(a: int) -> int:
    return a


def two(b):
    print(b)
""",
    "app/models.py": "class Loan(Base):\n    __tablename__ = 'loans'\n    id = Column(Integer, primary_key=True)\n",
    "schema.sql": "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT NOT NULL);",
    "web/index.js": "import x from 'x';\nconst app = express();\napp.get('/', home);\nconst y = 'b';\nlet z = 'c';\n",
    "tests/test_main.py": "import pytest\n\n\n@pytest.fixture\ndef book(): ...\n\n\ndef test_it(book): ...\n",
    "pyproject.toml": "[tool.ruff]\n",
}


def test_a_surface_tells_endpoints_tables_and_habits() -> None:
    surface = build_surface("", tuple(APPLICATION), APPLICATION)
    assert surface.endpoints == (
        Endpoint(method="GET", path="/loans/{id}", file="app/main.py", target="read"),
        Endpoint(method="GET", path="/", file="web/index.js", target="home"),
    )
    assert surface.tables == (
        Table(name="people", columns=("id INTEGER PRIMARY KEY", "name TEXT NOT NULL"), file="schema.sql"),
        Table(name="loans", columns=("id Integer, primary_key=True",), file="app/models.py"),
    )
    assert surface.patterns == (
        "Folders by number of files: app/ (2), tests/ (1), web/ (1)",
        "Python: functions (3), functions fully annotated (2), functions with a docstring (1), async functions (1), "
        "print (1)",
        "JavaScript: ES modules (1), lines with a semicolon (3), single quotes (4)",
        "Checked with ruff",
    )
    assert surface.test_style == (
        "1 test file in tests/ (1), such as tests/test_main.py",
        "Python tests: pytest functions (1), fixtures (1)",
    )
    text = render_surface(surface)
    assert "- GET /loans/{id} → read in app/main.py" in text
    assert "- people (id INTEGER PRIMARY KEY, name TEXT NOT NULL) in schema.sql" in text
    assert "How the tests are written:\n- 1 test file" in text


def test_a_typescript_project_is_told_like_any_other() -> None:
    texts = {
        "src/app.ts": "import express, { type Request } from 'express';\nconst app = express();\n"
        "app.get('/books', (q: Request): void => list(q));\nexport interface Book { title: string }\n"
        "export const list = (q: Request): Book[] => [];\n",
        "src/page.tsx": "export const Page = (p: { t: string }) => <b>{p.t as string}</b>;\n",
        "src/app.test.ts": "import { test } from 'node:test';\ntest('x', (): void => {});\n",
    }
    surface = build_surface("", tuple(texts), texts)
    assert {entry.path: entry.names for entry in surface.exports} == {
        "src/app.ts": ("Book", "list"),
        "src/page.tsx": ("Page",),
    }
    assert [(found.method, found.path) for found in surface.endpoints] == [("GET", "/books")]
    assert any("ES modules (2)" in line for line in surface.patterns)
    assert any("node:test" in line for line in surface.test_style)


def test_a_huge_project_keeps_to_the_budget() -> None:
    routes = "".join(f"@app.get('/r{n}')\ndef r{n}(): ...\n" for n in range(2000))
    tables = "".join(f"CREATE TABLE t{n} ({', '.join(f'c{m} INT' for m in range(90))});" for n in range(300))
    surface = build_surface("", ("a.py", "b.sql"), {"a.py": f"app = FastAPI()\n{routes}", "b.sql": tables})
    assert len(surface.endpoints) == 300
    assert len(surface.tables) == 120
    assert surface.tables[0].columns[-1] == "… and 30 more"
    assert tokens(render_surface(surface, 2000)) <= 2000


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


def test_a_changed_file_is_read_again() -> None:
    before, after = "def old(): pass", "def fresh(): pass"
    for text, name in ((before, "old"), (after, "fresh"), (before, "old")):
        surface = build_surface("", ("a.py", "a.js"), {"a.py": text, "a.js": f"export function {name}() {{}}"})
        assert [entry.names for entry in surface.exports] == [(name,), (name,)]
