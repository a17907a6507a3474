"""What the base commits of real projects came to before anything was paid for, and what their tests were run with."""

from pathlib import Path

from orchestrator.app.runners import project_runner
from orchestrator.core.contract import Installed, InstalledPackages
from orchestrator.core.suite import CaseResult, ReportedCase, RunProblem, TestReport, trial_of
from orchestrator.environments.node_requirements import gather
from orchestrator.environments.python import PythonEnvironments
from orchestrator.sandbox.command_runner import LimitedCommandRunner
from orchestrator.settings import Environment, Settings
from orchestrator.settings.model import CommandSettings
from orchestrator.test_runners.report import Selection
from tests.sandboxes import plain
from tests.test_runners.test_pytest_runner import PATH, runner_in, tree
from tests.world.case import Case, table

TWO = "def test_one():\n    assert 1 == 1\n\n\ndef test_two():\n    assert 2 == 2\n"


def options(text: str, file: str = "pytest.ini", section: str = "pytest") -> dict[str, str]:
    return {file: f"[{section}]\n{text}\n", "tests/test_story.py": TWO}


@table(
    Case(name="failed first", given=options("addopts = --ff"), right=2, seen="pytest's documentation"),
    Case(name="last failed", given=options("addopts = --lf"), right=2, seen="pytest's documentation"),
    Case(name="new first", given=options("addopts = --nf"), right=2, seen="pytest's documentation"),
    Case(name="stepwise", given=options("addopts = --sw", "tox.ini"), right=2, seen="pytest's documentation"),
    Case(
        name="strict with a cache of its own",
        given=options("addopts = --strict-config --ff\ncache_dir = .cache", "setup.cfg", "tool:pytest"),
        right=2,
        seen="a settings file of a company",
    ),
    Case(
        name="strict without the cache",
        given=options("addopts = --strict-config -p no:cacheprovider"),
        right=2,
        seen="a settings file of a company",
    ),
    Case(
        name="a fixture reads the cache",
        given={
            **options(""),
            "tests/test_story.py": TWO + "\n\ndef test_cache(cache):\n    assert cache is not None\n",
        },
        right=3,
        seen="pytest's documentation",
    ),
)
async def test_options_that_need_pytests_cache_are_known(case: Case, tmp_path: Path) -> None:
    root = tree(tmp_path, case.given)
    for files in (["tests/test_story.py"], None):
        report = await runner_in(tmp_path).run(root, Selection("S", files))
        assert (report.problem, report.passed) == (None, case.right), report.output
    assert not list(root.rglob("*cache")), "nothing is left in the tree"


PLAIN = '{"dependencies": {"left": "1"}%s}'
OLD, NEW = "# yarn lockfile v1\n", "__metadata:\n  version: 8\n"


@table(
    Case(
        name="packageManager",
        given={"package.json": PLAIN % ', "packageManager": "yarn@4.5.0+sha224.x"', "yarn.lock": NEW},
        right=("npm", "yarn.lock: its versions were ignored, because yarn 4 is not run here, only yarn 1"),
        seen="a yarn 4 project on a machine with yarn 1",
    ),
    Case(
        name="its settings",
        given={"package.json": PLAIN % "", ".yarnrc.yml": "nodeLinker: node-modules\n"},
        right=("npm", "yarn 2 or newer is not run here, only yarn 1: npm installed the packages"),
        seen="yarn's documentation",
    ),
    Case(
        name="its lock file",
        given={"package.json": PLAIN % "", "yarn.lock": NEW},
        right=("npm", "yarn.lock: its versions were ignored, because yarn 2 or newer is not run here, only yarn 1"),
        seen="yarn's documentation",
    ),
    Case(
        name="packageManager with a tag",
        given={"package.json": PLAIN % ', "packageManager": "yarn@stable"', "yarn.lock": NEW},
        right=("npm", "yarn.lock: its versions were ignored, because yarn 2 or newer is not run here, only yarn 1"),
        seen="yarn's documentation",
    ),
    Case(name="yarn 1", given={"package.json": PLAIN % "", "yarn.lock": OLD}, right=("yarn", ""), seen="express"),
    Case(
        name="yarn 1 by name",
        given={"package.json": PLAIN % ', "packageManager": "yarn@1.22.22"', "yarn.lock": OLD},
        right=("yarn", ""),
        seen="yarn's documentation",
    ),
    Case(
        name="pnpm beside settings of yarn",
        given={
            "package.json": PLAIN % ', "packageManager": "pnpm@9.0.0"',
            ".yarnrc.yml": "",
            "pnpm-lock.yaml": "lockfileVersion: '9.0'\n",
        },
        right=("pnpm", ""),
        seen="none",
    ),
)
def test_yarn_1_installs_no_project_of_a_newer_yarn(case: Case, tmp_path: Path) -> None:
    found = gather(tree(tmp_path, case.given), frozenset({"npm", "pnpm", "yarn"}))
    assert (found.manager, "\n".join(found.left_out)) == case.right


@table(
    Case(name="newer", given=">=3.97", right=True, seen="a project for Python 3.14 on a machine with 3.11"),
    Case(name="newer than a patch", given=">3.96.99", right=True, seen="none"),
    Case(name="compatible", given="~=3.97", right=True, seen="none"),
    Case(name="exactly a newer one", given="==3.97.*", right=True, seen="none"),
    Case(name="newer, below 4", given="<4,>=3.97", right=True, seen="poetry's ^3.97"),
    Case(name="older", given="<3.11", right=False, seen="a manifest that excludes what nobody had tried"),
    Case(name="older, exactly", given="==3.8.*", right=False, seen="none"),
    Case(name="fits", given=">=3.8", right=False, seen="most"),
    Case(name="none", given="", right=False, seen="most"),
    Case(name="nonsense", given="any", right=False, seen="none"),
)
async def test_a_project_for_a_newer_python_is_refused_before_anything_is_installed(case: Case, tmp_path: Path) -> None:
    project = f'[project]\nname = "x"\nversion = "1"\ndependencies = ["six"]\nrequires-python = "{case.given}"\n'
    settings = CommandSettings()
    runner = LimitedCommandRunner(settings, PATH, sandbox=plain())
    offline = {"PIP_NO_INDEX": "1", "PATH": PATH}
    environments = PythonEnvironments(tmp_path / "environments", tmp_path / "layers", runner, settings, offline)
    found = await environments.ensure(tree(tmp_path, {"pyproject.toml": project}), "S")
    told = f"the project is for Python {case.given} (requires-python), and there are 3."
    assert (told in (found.problem or ""), "environment.python" in (found.problem or "")) == (case.right, case.right)
    assert (tmp_path / "layers").exists() is not case.right
    report = TestReport(problem=RunProblem.INSTALL_FAILED, output=found.problem or "")
    assert (told in trial_of(report, collected=0, seconds=1).refusal) is case.right


HAD = InstalledPackages(
    python={
        "werkzeug": Installed(modules=("werkzeug",), version="3.0.1"),
        "setuptools": Installed(modules=("setuptools", "_distutils_hack"), version="82.0.0"),
        "pytest-asyncio": Installed(modules=("pytest_asyncio",), version="1.2.0"),
        "pytest": Installed(modules=("pytest", "_pytest"), version="9.0.1"),
        "google-api": Installed(modules=("google.api",), version="2.0"),
    },
    node={
        "chalk": Installed(version="5.0.0"),
        "jest-cli": Installed(version="29.0.0"),
        "@scope/lib": Installed(version="2.0.0"),
    },
)
EXTRAS, DEV = "environment.extras or environment.groups", "devDependencies in package.json"


def newer(name: str, version: str) -> tuple[str, ...]:
    return f"`{name}` {version} is installed", "environment.exclude_newer: DATE", "pin an older one"


@table(
    Case(
        name="jest's settings in TypeScript",
        given="Error: Jest: Failed to parse the TypeScript config file jest.config.ts\n"
        "  Error: Jest: 'ts-node' is required for the TypeScript configuration files. Make sure it is installed\n"
        "    at read (/project/node_modules/jest-config/build/index.js:1:2)\n",
        right=("add `ts-node` to", DEV),
        seen="a project whose lock file lacked ts-node",
    ),
    Case(
        name="jest's environment",
        given="● Validation Error:\n  Test environment jest-environment-jsdom cannot be found. Make sure",
        right=("`jest-environment-jsdom`", DEV),
        seen="jest 28",
    ),
    Case(name="jest's preset", given="  Preset ts-jest not found.", right=("`ts-jest`", DEV), seen="jest"),
    Case(
        name="mocha's --require",
        given="✖ ERROR: Error: Cannot find module '@babel/register'\nRequire stack:\n- /p/node_modules/mocha/x.js",
        right=("`@babel/register`", DEV),
        seen="express",
    ),
    Case(
        name="vitest's environment",
        given=" MISSING DEPENDENCY  Cannot find dependency 'jsdom'",
        right=("`jsdom`", DEV),
        seen="vitest",
    ),
    Case(
        name="what a build makes",
        given="Error: Cannot find module '../dist/index.js'\nRequire stack:\n",
        right=("`../dist/index.js`", "environment.build"),
        seen="packages that test what they publish",
    ),
    Case(
        name="a module of Python",
        given="E   ModuleNotFoundError: No module named 'numpy.linalg'",
        right=("`numpy.linalg`", EXTRAS),
        seen="humanize",
    ),
    Case(
        name="a name that a newer release does not have",
        given="E   ImportError: cannot import name 'url_quote' from 'werkzeug.urls' (/site-packages/werkzeug/urls.py)",
        right=(*newer("werkzeug", "3.0.1"), "environment.python"),
        seen="flask 2.0 with werkzeug 3",
    ),
    Case(
        name="a part that a newer release does not have",
        given="E   ModuleNotFoundError: No module named 'werkzeug.contrib'",
        right=newer("werkzeug", "3.0.1"),
        seen="flask 0.12",
    ),
    Case(
        name="pkg_resources",
        given="E   ModuleNotFoundError: No module named 'pkg_resources'",
        right=newer("setuptools", "82.0.0"),
        seen="setuptools 82",
    ),
    Case(
        name="an attribute",
        given="E   AttributeError: module 'google.api' has no attribute 'old'",
        right=newer("google-api", "2.0"),
        seen="numpy.float",
    ),
    Case(
        name="a plugin of pytest",
        given='INTERNALERROR>   File "/x/site-packages/_pytest/main.py", line 1, in wrap\n'
        'INTERNALERROR>   File "/x/site-packages/pytest_asyncio/plugin.py", line 2, in collect\n'
        'INTERNALERROR>   File "/x/site-packages/pluggy/_hooks.py", line 3, in call\nINTERNALERROR> KeyError: x\n',
        right=newer("pytest-asyncio", "1.2.0"),
        seen="pytest-asyncio with pytest 9",
    ),
    Case(
        name="a module that newer Pythons do not have",
        given="E   ModuleNotFoundError: No module named 'distutils'",
        right=("newer Pythons do not have `distutils`", 'environment.python: "3.11"'),
        seen="Python 3.12",
    ),
    Case(
        name="a newer release for import alone",
        given="Error [ERR_REQUIRE_ESM]: require() of ES Module /p/node_modules/chalk/source/index.js from /p/test/a.js",
        right=newer("chalk", "5.0.0"),
        seen="chalk 5",
    ),
    Case(
        name="an export that is gone",
        given="SyntaxError: The requested module '@scope/lib/sub' does not provide an export named 'old'",
        right=newer("@scope/lib", "2.0.0"),
        seen="none",
    ),
    Case(
        name="a path that is not exported any more",
        given="Error [ERR_PACKAGE_PATH_NOT_EXPORTED]: Package subpath './lib/x' is not defined by \"exports\" in "
        "/p/node_modules/@scope/lib/package.json",
        right=newer("@scope/lib", "2.0.0"),
        seen="postcss 8",
    ),
    Case(name="nothing known", given="it broke", right=("run from its root folder",), seen="none"),
)
def test_a_refusal_advises_in_the_words_of_the_language_and_names_a_newer_release(case: Case) -> None:
    unloaded = ReportedCase(name="", id="::tests.test_a", file="a", result=CaseResult.ERROR, message=case.given)
    for report in (TestReport(cases=(unloaded,)), TestReport(problem=RunProblem.NO_REPORT, output=case.given)):
        trial = trial_of(report, collected=0, seconds=1, installed=HAD)
        assert not trial.usable
        assert all(word in trial.todo for word in case.right), trial.todo
        others = {EXTRAS, DEV, "environment.build", "exclude_newer"} - {*case.right, "exclude_newer"}
        assert not any(word in trial.todo for word in others), trial.todo
        assert case.given.splitlines()[0] in trial.refusal


CRASHES = """
def pytest_runtest_logfinish(nodeid):
    if nodeid.endswith("test_two"):
        raise RuntimeError("the plugin broke")
"""


async def test_a_base_that_pytest_left_by_an_internal_error_is_refused(tmp_path: Path) -> None:
    """As of a library of 2,587 tests, of which 950 were run before a plugin broke."""
    root = tree(tmp_path, {"conftest.py": CRASHES, "tests/test_story.py": TWO + "\n\ndef test_three():\n    pass\n"})
    report = await runner_in(tmp_path).run(root, Selection("S", None))
    assert report.problem is RunProblem.INTERNAL_ERROR
    assert [case.name for case in report.failing] == []
    trial = trial_of(report, collected=0, seconds=1)
    assert not trial.usable
    assert "INTERNALERROR> RuntimeError: the plugin broke" in trial.refusal
    assert trial.told.startswith("base: not all of it can be run: pytest ended by an INTERNALERROR")


async def test_files_that_cannot_be_loaded_are_counted_with_what_they_lack(tmp_path: Path) -> None:
    """As of a library of which six modules lacked two packages, and 717 tests were absent."""
    lacking = {f"tests/test_{n}.py": f"import nosuch_{n % 2}\n\n\ndef test_it():\n    pass\n" for n in range(4)}
    root = tree(tmp_path, {"tests/test_story.py": TWO, **lacking})
    trial = trial_of(await runner_in(tmp_path).run(root, Selection("S", None)), collected=0, seconds=1)
    assert (trial.usable, trial.passed) == (True, 2)
    assert "4 test files cannot be loaded: `nosuch_0`, `nosuch_1` cannot be found" in trial.told
    assert "name what provides `nosuch_0`, `nosuch_1`" in trial.todo


async def test_a_day_after_which_nothing_counts_is_handed_to_uv_and_npm(tmp_path: Path) -> None:
    """As of flask 2.0, whose tests pass with what there was in June 2023."""
    settings = Settings.model_validate({"environment": {"exclude_newer": "2023-06-01"}})
    environment = Environment(base_dir=tmp_path, config_file=None, home=tmp_path / "state", variables={"PATH": PATH})
    runner = project_runner(settings, environment, tmp_path / "environments", plain())
    python, node = runner._pytest.environments, runner._packages
    assert python._installer.environment()["UV_EXCLUDE_NEWER"] == "2023-06-01"
    assert "2023-06-01" in python._installer.sources(), "another day is another set of packages"
    assert python._installer.older(["a"], 30) == ["--exclude-newer-package", "a=2023-06-01"]
    assert node._environment()["NPM_CONFIG_BEFORE"] == "2023-06-01T23:59:59Z"


@table(
    *(
        Case(name=name, given=given, right=right, seen="projects whose test tools stand in tox.ini or a workflow")
        for name, given, right in (
            ("coverage", "--cov=src --cov-report=xml", "add `pytest-cov`, whose"),
            ("report alone", "--cov-report=term-missing", "add `pytest-cov`, whose"),
            ("processes", "-n auto", "add `pytest-xdist`, whose"),
            ("two", "--timeout=30 -n 4 --dist=loadfile", "add `pytest-timeout`, `pytest-xdist`, whose"),
            ("mode", "--asyncio-mode=auto", "add `pytest-asyncio`, whose"),
            ("settings", "--ds=app.settings", "add `pytest-django`, whose"),
        )
    ),
    Case(
        name="own",
        given="--integration --coverage",
        right="see that the project's tests",
        seen="an option of a conftest that was not found",
    ),
)
def test_an_option_of_pytest_that_nobody_knows_names_its_plugin(case: Case) -> None:
    said = f"ERROR: usage: pytest [options]\npytest: error: unrecognized arguments: {case.given}\n  inifile: tox.ini\n"
    trial = trial_of(TestReport(problem=RunProblem.NO_REPORT, output=said), collected=0, seconds=1)
    assert trial.todo.startswith(case.right)
