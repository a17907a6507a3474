"""What tools install for tests, from files of the forms that real projects have."""

import pytest

from orchestrator.environments.python_manifests import Purpose, for_development, for_tests, purpose
from orchestrator.environments.python_requirements import gather

SETUPS = {
    "tox.ini": """[tox]
envlist = py{311,312}-tests,docs
[base]
deps = freezegun
[testenv]
deps =
    pytest>=7  # the runner
    {[base]deps}
    -r{toxinidir}/requirements/tests.txt
    tests: pytest-cov
    django42: Django==4.2
    pytestmain: git+https://example.org/pytest.git
    git+https://example.org/x.git
extras = testing,web
dependency_groups =
    tests: extra-tests
    mypy: typing
commands = pytest
[testenv:docs]
deps = sphinx
""",
    "noxfile.py": """import nox
PYTHONS = ["3.11"]

@nox.session(python=PYTHONS)
def lint(session):
    session.install("ruff")
    session.run("ruff", "check")

@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    session.install("-e", ".[all]", "time-machine", *session.posargs)
    session.install("-e.[web]", *nox.project.dependency_groups(PROJECT, "checks"))
    session.run("coverage", "run", "-m", "pytest", *session.posargs)

@nox.session
def slow(session):
    session.install("pytest", "pandas")
    session.run("pytest", "slow")
raise SystemExit("a noxfile is read, not run")
""",
    "hatch.toml": """[envs.default]
dependencies = ["ipython"]
[envs.test]
extra-dependencies = ["pytest-mock"]
features = ["web"]
""",
}
MANIFESTS = {
    "pyproject.toml": """[project]
name = "My-Shop"
dependencies = []
[project.optional-dependencies]
all = ["my_shop[web]", "orjson"]
web = ["httpx"]
testing = ["responses"]
docs = ["sphinx"]
[dependency-groups]
extra-tests = ["pytest-timeout"]
typing = ["mypy"]
checks = ["deepdiff"]
[tool.uv]
dev-dependencies = ["ruff>=0.4", "pytest-sugar"]
""",
    "requirements/tests.txt": """--index-url https://pypi.org/simple
hypothesis==6.100
-r ../requirements.txt
-r extras/a.txt
-e .
""",
    "requirements/extras/a.txt": "boto3\n",
    "requirements/dev.txt": "-r tests.txt\n-r docs.txt\npre-commit\n",
    "requirements.txt": "six\n",
    "requirements-docs.txt": "git+https://example.org/theme\n",
}


def lines(files: dict[str, str], setups: dict[str, str]) -> set[str]:
    found = gather([*files], files.get, setups)
    assert found.refusals == ()
    return set(found.lines)


def test_manifests_name_what_tests_need() -> None:
    assert lines(MANIFESTS, {}) == {"responses", "pytest-timeout", "pytest-sugar", "hypothesis==6.100", "six", "boto3"}
    del (files := dict(MANIFESTS))["requirements/tests.txt"]
    files["requirements/dev.txt"] = "-r docs.txt\npre-commit\nblack\npytest-env\n"
    assert lines(files, {}) == {"responses", "pytest-timeout", "pytest-sugar", "pytest-env", "six"}


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("tox.ini", {"pytest>=7", "freezegun", "pytest-cov", "httpx"}),
        ("noxfile.py", {"httpx", "orjson", "time-machine", "deepdiff"}),
        ("hatch.toml", {"pytest-mock", "httpx"}),
    ],
)
def test_tools_add_what_they_install_for_tests_and_what_is_refused_there_is_skipped(name: str, more: set[str]) -> None:
    assert lines(MANIFESTS, {name: SETUPS[name]}) == lines(MANIFESTS, {}) | more


def test_tox_in_toml_and_within_pyproject() -> None:
    base = {"pyproject.toml": '[tool.tox.env_run_base]\ndeps = ["pytest", "-r {tox_root}/requirements.txt"]\n'}
    assert lines({"requirements.txt": "six"}, base) == {"pytest", "six"}
    legacy = {"pyproject.toml": "[tool.tox]\nlegacy_tox_ini = '''\n[testenv]\ndeps = pytest\n'''"}
    assert lines({}, legacy) == {"pytest"}
    assert lines({}, {"tox.toml": '[env.py]\ndeps = ["pytest", {replace = "ref"}]\n'}) == {"pytest"}


WORKFLOW = """
on: push
jobs:
  lint:
    steps: [{run: pip install ruff && ruff check}]
  tests:
    steps:
      - uses: actions/checkout@v4
      - run: |
          python -m pip install --upgrade pip
          pip install -e ".[web]" pytest \\
            "pytest-asyncio<1" black
          pip install -r requirements.txt git+https://example.org/x "numpy==${{ matrix.numpy }}"
      - run: python -m pytest
"""


def test_pipelines_count_where_nothing_else_names_what_runs_tests() -> None:
    pipeline = {".github/workflows/test.yml": WORKFLOW, ".github/workflows/odd.yml": "jobs: [1]"}
    manifest = {"pyproject.toml": "[project]\nname = 'x'\n[project.optional-dependencies]\nweb = ['httpx']\n"}
    assert lines(manifest, pipeline) == {"httpx", "pytest", "pytest-asyncio<1"}
    assert lines(manifest, {**pipeline, "tox.ini": "[testenv]\ndeps = pytest"}) == {"httpx", "pytest"}


JUSTFILE = """
lint:
    uv run ruff check
install python="":
    uv sync {{ if python != '' { '-p ' + python } else { '' } }} --group checks
test *args="-x tests": install
    @uv run --all-extras --group=slow --with trustme pytest {{args}}
"""


def test_targets_of_make_and_just_count_as_pipelines_do() -> None:
    manifest = {
        "pyproject.toml": """[project]
name = "x"
optional-dependencies = {web = ["httpx"], docs = ["sphinx"]}
[dependency-groups]
checks = ["deepdiff"]
slow = ["pandas"]
"""
    }
    assert lines(manifest, {"justfile": JUSTFILE}) == {"httpx", "deepdiff", "pandas", "trustme"}
    made = "PIP = pip\nbuild: FORCE\n\tpip install build\ntest: x\n\tpip install -e .[web] \\\n\t pytest\n\tpytest\n"
    assert lines(manifest, {"Makefile": made}) == {"httpx", "pytest"}


def test_what_tox_runs_and_what_hatch_has_by_itself() -> None:
    manifest = {"pyproject.toml": "[project]\nname = 'x'\n[project.optional-dependencies]\nd = ['aiohttp']\n"}
    tox = "[testenv]\ndeps = poetry\ncommands =\n    pip install -e .[d] pytest\n    pytest {posargs}\n"
    assert lines(manifest, {"tox.ini": tox}) == {"aiohttp", "pytest"}
    found = lines(manifest, {"hatch.toml": "[envs.hatch-test]\nextra-dependencies = ['trustme']\n"})
    assert {"pytest", "pytest-mock", "trustme"} <= found
    uv = {"pyproject.toml": "[tool.uv]\ndefault-groups = ['dev', 'docs']\n"}
    held = {"pyproject.toml": f"{uv['pyproject.toml']}[dependency-groups]\ndev = ['responses']\ndocs = ['markdown']\n"}
    assert lines(held, uv) == {"responses", "markdown"}
    own = {"hatch.toml": "[envs.hatch-test]\ndependencies = ['pytest']\n"}
    assert lines(manifest, own) == {"pytest"}


@pytest.mark.parametrize("name", ["tox.ini", "tox.toml", "noxfile.py", "hatch.toml", ".github/workflows/a.yml"])
@pytest.mark.parametrize("text", ["[", "\x00", "x: 1", "[testenv]\ndeps", "def f(", "envs = 3", "jobs: {a: 1}"])
def test_what_cannot_be_understood_asks_for_nothing(name: str, text: str) -> None:
    assert lines({}, {name: text}) == set()


def test_names() -> None:
    assert for_tests(["tests", "tests-random", "test-docs", "dev"]) == ["tests"]
    assert for_tests(["tests-unit", "docs"]) == ["tests-unit"]
    assert for_development(["mypy", "dev", "dev-min-pyopenssl"]) == ["dev"]
    named = {"requirements/dev.txt": Purpose.DEVELOPMENT, "requirements-tests39.txt": Purpose.TESTS}
    named |= {"requirements-mypy.txt": Purpose.OTHER, "requirements.txt": Purpose.UNKNOWN, "contest": Purpose.UNKNOWN}
    assert {name: purpose(name) for name in named} == named
