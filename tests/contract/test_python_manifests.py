"""What Python's manifests, lock files and scripts may bring, and what they may not; each way beside a sound one."""

import pytest

from orchestrator.core.finding import Finding
from tests.contract.worlds import closed_world, judged

NEW = (
    "pyproject.toml", "setup.cfg", "setup.py", "Pipfile", "requirements.txt", "requirements.in", "environment.yml",
    "pixi.toml", "uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "pylock.toml", "constraints.txt",
    "requirements/dev.txt", "pixi.lock",
)  # fmt: skip
WORLD = closed_world(NEW, ("README.md",), {}, ("flask", "rich", "pytest", "cython"))


def said(path: str, text: str, before: str | None = None) -> list[Finding]:
    return judged(WORLD, {path: text}, {} if before is None else {path: before})


REFUSED = [
    ("pyproject.toml", '[tool.uv]\nextra-index-url = ["https://h.example/simple"]', "source"),
    ("pyproject.toml", '[tool.uv]\nindex-url = "https://h.example/simple"', "source"),
    ("pyproject.toml", '[tool.uv]\nfind-links = ["https://h.example/x"]', "source"),
    ("pyproject.toml", '[[tool.uv.index]]\nname = "x"\nurl = "https://h.example/simple"', "source"),
    ("pyproject.toml", '[tool.uv.sources]\nflask = [{git = "https://h.example/x"}, {index = "x"}]', "source"),
    ("pyproject.toml", '[tool.uv.sources]\nflask = {path = "../../flask"}', "source"),
    ("pyproject.toml", '[tool.uv]\noverride-dependencies = ["evil"]', "dependency"),
    ("pyproject.toml", '[tool.uv]\nconstraint-dependencies = ["flask @ https://h.example/x.whl"]', "source"),
    ("pyproject.toml", '[tool.uv]\nbuild-constraint-dependencies = ["x @ git+https://h.example/x"]', "source"),
    ("pyproject.toml", '[tool.uv]\ndev-dependencies = ["evil"]', "dependency"),
    ("pyproject.toml", '[tool.uv.extra-build-dependencies]\nflask = ["evil"]', "dependency"),
    ("pyproject.toml", '[[tool.uv.dependency-metadata]]\nname = "flask"\nrequires-dist = ["evil"]', "dependency"),
    ("pyproject.toml", "[tool.poetry.dependencies]\nflask = [{git = 'https://h.example/x'}]", "source"),
    ("pyproject.toml", "[tool.poetry.dependencies]\nflask = {url = 'https://h.example/x.whl'}", "source"),
    ("pyproject.toml", '[tool.uv.workspace]\nmembers = ["../x"]', "source"),
    ("pyproject.toml", "[[tool.rye.sources]]\nname = 'x'\nurl = 'https://h.example/simple'", "source"),
    ("pyproject.toml", "[project]\nname = 'x'\ndependencies = ['x[all]']", "dependency"),
    ("setup.py", "setup(install_requires='flask\\nevil')", "dependency"),
    ("pyproject.toml", "[[tool.poetry.source]]\nname = 'x'\nurl = 'https://h.example/simple'", "source"),
    ("pyproject.toml", "[project]\nname = 'x'\n[project.optional-dependencies]\nall = ['evil[x]']", "dependency"),
    ("pyproject.toml", "[tool.pdm.dev-dependencies]\nx = ['evil']", "dependency"),
    ("pyproject.toml", "[tool.pdm.resolution.overrides]\nevil = '1'", "dependency"),
    ("pyproject.toml", "[tool.flit.metadata]\nrequires = ['evil']", "dependency"),
    ("pyproject.toml", "[tool.hatch.build.targets.wheel]\ndependencies = ['evil']", "dependency"),
    ("pyproject.toml", "[tool.hatch.envs.x]\nextra-dependencies = ['evil']", "dependency"),
    ("pyproject.toml", "[tool.hatch.envs.x]\npost-install-commands = ['pip install evil']", "dependency"),
    ("pyproject.toml", "[tool.hatch.envs.x.scripts]\na = ['ls', 'pip install evil']", "dependency"),
    ("pyproject.toml", "[tool.hatch.metadata.hooks.requirements_txt]\nfiles = ['x.txt']", "dependency"),
    (
        "pyproject.toml",
        "[tool.setuptools.dynamic.optional-dependencies]\nx = {file = ['x.txt']}",
        "dependency",
    ),
    ("pyproject.toml", "[tool.pixi.dependencies]\nevil = '*'", "dependency"),
    ("pyproject.toml", "[tool.pixi.workspace]\nchannels = ['https://h.example/x']", "source"),
    ("pyproject.toml", "[tool.pdm.scripts]\nx = {cmd = ['pip', 'install', 'evil']}", "dependency"),
    ("pyproject.toml", "[tool.pdm.scripts]\nx = {composite = ['ls', 'pip install evil']}", "dependency"),
    ("pyproject.toml", "[tool.poe.tasks]\nx = {sequence = [{cmd = 'pip install evil'}]}", "dependency"),
    ("pyproject.toml", "[tool.poe.tasks.x]\nshell = '''\nls\npip install evil\n'''", "dependency"),
    ("pyproject.toml", "[tool.taskipy.tasks]\nx = 'pip install evil'", "dependency"),
    ("pyproject.toml", "[tool.rye.scripts]\nx = {chain = ['pip install evil']}", "dependency"),
    ("pyproject.toml", "[tool.pixi.tasks]\nx = 'pip install evil'", "dependency"),
    ("pixi.toml", "[dependencies]\nevil = '*'", "dependency"),
    ("setup.cfg", "[options]\ninstall-requires = evil", "dependency"),
    ("setup.cfg", "[options]\ntests_require =\n    evil", "dependency"),
    ("setup.cfg", "[options.extras-require]\nx = evil\n[options.extras_require]\ny = evil", "dependency"),
    ("setup.cfg", "[options]\ndependency_links = https://h.example/x", "source"),
    ("setup.cfg", "[easy_install]\nindex-url = https://h.example/x", "source"),
    ("setup.cfg", "[options]\ninstall_requires = file: x.txt", "dependency"),
    ("setup.py", "REQ = ['evil']\nsetup(install_requires=REQ)", "dependency"),
    ("setup.py", "setup(install_requires=['flask'] + ['evil'])", "dependency"),
    ("setup.py", "EXTRA = {'x': ['evil']}\nsetup(extras_require=EXTRA)", "dependency"),
    ("setup.py", "setup(dependency_links=['https://h.example/x'])", "source"),
    ("Pipfile", "[[source]]\nurl = 'https://h.example/simple'\nverify_ssl = true", "source"),
    ("Pipfile", "[docs]\nevil = '*'", "dependency"),
    ("Pipfile", "[packages]\nflask = {git = 'https://h.example/x'}", "source"),
    ("Pipfile", "[scripts]\nx = 'pip install evil'", "dependency"),
    ("requirements.in", "evil", "dependency"),
    ("requirements/dev.txt", "--index-url https://h.example/simple\nflask", "dependency"),
    ("requirements.txt", "flask @ https://h.example/x.whl --hash=sha256:aa", "source"),
    ("requirements.txt", "-e git+https://h.example/x#egg=flask", "source"),
    ("environment.yml", "dependencies:\n  - evil=1.2", "dependency"),
    ("environment.yml", "dependencies: [python=3.12, {pip: [evil]}]", "dependency"),
    ("environment.yml", "channels: [https://h.example/x]\ndependencies: []", "source"),
    ("environment.yml", "channels: [evilcorp]\ndependencies: []", "source"),
    ("environment.yml", "dependencies:\n  - evilcorp::flask", "source"),
    ("environment.yml", "dependencies:\n  - https://h.example/x.conda", "dependency"),
    ("environment.yml", "dependencies: [", "unreadable"),
    ("uv.lock", '[[package]]\nname = "flask"\nsource = { git = "https://h.example/x" }', "source"),
    ("uv.lock", '[[package]]\nname = "flask"\nsource = { registry = "https://h.example/simple" }', "source"),
    ("uv.lock", '[[package]]\nname = "flask"\nsource = { editable = "../x" }', "source"),
    ("uv.lock", '[[package]]\nname = "flask"\nwheels = [{ url = "\\u0068ttps://h.example/x.whl" }]', "source"),
    ("uv.lock", "[[package", "unreadable"),
    ("poetry.lock", '[[package]]\nname = "x"\n[package.source]\ntype = "git"\nurl = "https://h.example/x"', "source"),
    ("poetry.lock", '[[package]]\nname = "x"\n[package.source]\ntype = "directory"\nurl = "../x"', "source"),
    ("pdm.lock", '[[package]]\nname = "x"\nurl = "https://h.example/x.whl"', "source"),
    ("Pipfile.lock", '{"_meta": {"sources": [{"url": "https://h.example/simple"}]}}', "source"),
    ("pylock.toml", '[[packages]]\nname = "x"\n[packages.vcs]\nurl = "https://h.example/x"', "source"),
    ("pixi.lock", "packages:\n- conda: https://h.example/x.conda", "source"),
    ("constraints.txt", "flask @ https://h.example/x.whl", "source"),
    ("constraints.txt", "--index-url https://h.example/simple", "source"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "text", "code"), REFUSED)
def test_what_comes_from_outside_is_refused(path: str, text: str, code: str) -> None:
    found = said(path, text)
    assert {f.code.removeprefix("contract.") for f in found} == {code}, found
    assert said(path, text, before=text) == []


USUAL = "https://pypi.org/simple"
ACCEPTED = [
    ("pyproject.toml", f"[[tool.uv.index]]\nname = 'usual'\nurl = '{USUAL}'\ndefault = true"),
    ("pyproject.toml", "[tool.uv.sources]\nflask = {workspace = true}\nrich = [{path = 'libs/rich', editable = true}]"),
    ("pyproject.toml", "[tool.uv.workspace]\nmembers = ['packages/*']\nexclude = ['packages/old']"),
    ("pyproject.toml", "[tool.uv]\nconstraint-dependencies = ['anything<2']\npackage = true"),
    ("pyproject.toml", "[tool.uv]\noverride-dependencies = ['flask==3']\nindex-strategy = 'first-index'"),
    ("pyproject.toml", "[build-system]\nrequires = ['setuptools>=61', 'wheel', 'setuptools-scm[toml]']\n"
     "build-backend = 'backend'\nbackend-path = ['tools']"),
    ("pyproject.toml", "[project]\nname = 'x'\ndependencies = [\"flask[async]>=2 ; python_version > '3.8'\"]\n"
     "dynamic = ['version']\n[project.optional-dependencies]\ntest = ['pytest']"),
    ("pyproject.toml", "[project]\nname = 'my'\n[project.optional-dependencies]\nx = ['flask']\nall = ['my[x]']"),
    ("pyproject.toml", "[dependency-groups]\ntest = ['pytest', {include-group = 'lint'}]\nlint = ['rich']"),
    ("pyproject.toml", "[tool.poetry.dependencies]\npython = '^3.11'\nflask = [{version = '1', python = '<3.12'},"
     " {version = '2', python = '>=3.12'}]\nrich = {path = './rich', develop = true}"),
    ("pyproject.toml", "[[tool.poetry.source]]\nname = 'PyPI'\npriority = 'primary'"),
    ("pyproject.toml", "[tool.pdm.scripts]\nstart = 'flask run'\nall = {composite = ['lint', 'test']}\n"
     "lint.cmd = ['ruff', 'check']\n_.env_file = '.env'"),
    ("pyproject.toml", "[tool.poe.tasks]\ntest = 'pytest'\nsetup = 'pip install -r requirements.txt'"),
    ("pyproject.toml", "[tool.hatch.envs.default]\ndependencies = ['pytest']\n[tool.hatch.envs.default.scripts]\n"
     "test = 'pytest {args:tests}'\n[tool.hatch.build.targets.wheel]\npackages = ['src/x']"),
    ("pyproject.toml", "[tool.setuptools.dynamic]\nversion = {attr = 'x.__version__'}\n"
     "dependencies = {file = ['requirements.txt']}\noptional-dependencies.dev = {file = 'requirements/dev.txt'}"),
    ("pyproject.toml", "[tool.pixi.workspace]\nchannels = ['conda-forge']\nplatforms = ['linux-64']\n"
     "[tool.pixi.dependencies]\npython = '>=3.11'\nflask = '*'\n[tool.pixi.tasks]\nstart = 'flask run'"),
    ("pyproject.toml", "[tool.ruff]\nline-length = 100\n[tool.mypy]\nstrict = true\n[tool.black]\ntarget-version = []"),
    ("setup.cfg", "[metadata]\nname = x\nurl = https://h.example/x\n[options]\npackages = find:\n"
     "install-requires =\n    flask>=2; python_version > '3'\n    rich  # pretty\n[easy_install]\nzip_ok = false"),
    ("setup.cfg", "[options]\nsetup_requires = setuptools-scm\ninstall_requires = file: requirements.txt"),
    ("setup.py", "from setuptools import setup\nsetup(name='x', install_requires=['flask'], setup_requires=['wheel'],"
     " extras_require={'dev': ['pytest'], 'none': []})"),
    ("setup.py", "from setuptools import setup\nREQUIRES = [\n    'flask',\n    'rich>=13',\n]\nTEST = ['pytest']\n"
     "setup(install_requires=REQUIRES, extras_require={'test': TEST, 'all': REQUIRES + TEST})"),
    ("Pipfile", f"[[source]]\nurl = '{USUAL}'\nverify_ssl = true\nname = 'usual'\n[packages]\nflask = '*'\n"
     "[dev-packages]\npytest = {version = '*', extras = ['x']}\n[requires]\npython_version = '3.12'\n"
     "[scripts]\nstart = 'flask run'"),
    ("requirements.txt", f"--index-url {USUAL}\nflask[async]==3.0 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n"
     "rich>=13 ; sys_platform != 'win32'  # colours\n-c constraints.txt\n-e .\n./libs/own\n"),
    ("requirements.in", "-c constraints.txt\nflask\n"),
    ("environment.yml", "name: x\nchannels:\n  - conda-forge\n  - defaults\ndependencies:\n  - python=3.12\n  - pip\n"
     "  - flask>=2\n  - conda-forge::rich\n  - pip:\n    - pytest==8\n    - -r requirements.txt\n"),
    ("environment.yml", "variables:\n  A: b\n"),
    ("uv.lock", f'version = 1\n[[package]]\nname = "anything"\nversion = "1"\nsource = {{ registry = "{USUAL}" }}\n'
     'wheels = [{ url = "https://files.pythonhosted.org/packages/a.whl", hash = "sha256:aa" }]\n'
     '[[package]]\nname = "own"\nsource = { editable = "." }\n[[package]]\nsource = { virtual = "libs/two" }'),
    ("poetry.lock", '[[package]]\nname = "anything"\nversion = "1"\nfiles = [{file = "a.whl", hash = "sha256:aa"}]\n'
     '[metadata]\nlock-version = "2.0"'),
    ("pdm.lock", '[metadata]\nlock_version = "4.5"\n[[package]]\nname = "anything"\nfiles = [{file = "a.whl"}]'),
    ("Pipfile.lock", f'{{"_meta": {{"sources": [{{"name": "usual", "url": "{USUAL}"}}]}}, "default": '
     '{"anything": {"index": "usual", "version": "==1", "hashes": []}}}'),
    ("constraints.txt", "anything==1.2\nmore==3 ; python_version > '3'\n# a note\n"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "text"), ACCEPTED)
def test_what_stays_inside_is_accepted(path: str, text: str) -> None:
    assert said(path, text) == []


@pytest.mark.parametrize("path", NEW)
def test_no_text_makes_the_readers_raise(path: str) -> None:
    for text in (
        "",
        "\0",
        "[" * 5000,
        "x = [" * 900,
        "{" * 3000,
        "- " * 3000,
        "a: &a [*a]",
        "[tool]\nuv = 1",
        "[[]]",
        "&a",
    ):
        assert all(finding.code != "contract.crashed" for finding in said(path, text)), (path, text[:20])
