import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from orchestrator.core.paths import is_manifest
from orchestrator.environments.python_manifests import specifier
from orchestrator.environments.python_requirements import Chosen, Requirements, gather
from orchestrator.files.safe_files import read_text, root_files


def of(files: dict[str, str]) -> Requirements:
    return gather([name for name in files if "/" not in name], files.get)


def test_requirements_files_with_includes_constraints_hashes_and_comments() -> None:
    found = of(
        {
            "requirements.txt": "\ufeff#\nrequests[socks]>= 2 ; python_version > '3'  #\n-r x/requirements.in\n\n--pre",
            "requirements-dev.txt": "six==1.16 \\\n  --hash=sha256:00 \\\n  --hash=sha256:11\n-r requirements.txt\n",
            "x/requirements.in": "-c ../limits.txt\nattrs\n",
            "limits.txt": "attrs<99\n-r x/requirements.in\n",
            "notes.txt": "git+https://example.org/x",
        }
    )
    assert found.refusals == ()
    assert found.lines == (
        *("requests[socks]>= 2 ; python_version > '3'", "attrs", "--pre"),
        "six==1.16    --hash=sha256:00    --hash=sha256:11",
    )
    assert found.besides == found.lines[-1:]
    assert found.constraints == ("attrs<99", "attrs")


@pytest.mark.parametrize(
    "line",
    [
        *("--index-url https://evil", "-i https://evil", "--no-index", "--config-settings x", "-r ../outside.txt"),
        *("-r /etc/passwd", "-c https://evil/c.txt", "-r requirements.in", "x --g-option=y", "${TOKEN}", "x; rm -rf /"),
    ],
)
def test_everything_but_plain_requirements_is_refused(line: str) -> None:
    found = of({"requirements.txt": f"six\n{line}\n"})
    assert len(found.refusals) == 1
    assert found.refusals[0].split(":")[0] in {"requirements.txt", "requirements.in"}
    assert len(of({"setup.cfg": f"[options]\ninstall_requires =\n  six\n  {line}\n"}).refusals) == 1


@pytest.mark.parametrize(
    "line",
    [
        *("git+https://example.org/x@main", "-e https://example.org/x", "x @ https://example.org/x.whl", "-e /abs/x"),
        *("--extra-index-url=https://download.example.org/whl/cpu", "--find-links /x", "-f /x", "--no-binary lxml"),
    ],
)
def test_what_comes_from_an_address_is_left_out_and_told(line: str) -> None:
    found = of({"requirements.txt": f"six\n{line}\nattrs\n"})
    assert (found.lines, found.refusals, found.members) == (("six", "attrs"), (), ())
    assert len(found.left_out) == 1
    assert found.left_out[0].startswith(f"requirements.txt: `{line}` was left out")


SOURCES = """
[project]
dependencies = ["base[fast]", "near", "forked", "x @ https://example.org/x", "six"]
[tool.uv.sources]
base = { path = "../base", editable = true }
near = { workspace = true }
forked = [{ git = "https://example.org/forked", marker = "python_version > '3'" }]
six = { index = "mirror" }
"""


def test_folders_of_the_repository_are_members() -> None:
    found = of({"requirements.txt": "-e ./x[a,B]\n--editable=../y\n./z ; python_version > '3'\nsix\n"})
    assert [(one.folder, one.extras) for one in found.members] == [("./x", ("a", "b")), ("../y", ()), ("./z", ())]
    assert (found.lines, found.left_out, found.refusals) == (("six",), (), ())
    found = of({"pyproject.toml": SOURCES})
    assert [(one.name, one.folder, one.extras) for one in found.members] == [
        ("base", "../base", ("fast",)),
        ("near", "", ()),
    ]
    assert (found.lines, len(found.left_out), found.refusals) == (("six",), 2, ())
    found = of({"pyproject.toml": "[tool.poetry.dependencies]\nsix = '*'\nx = {path = '../x', develop = true}"})
    assert ([one.folder for one in found.members], found.lines) == (["../x"], ("six",))


UV = """
version = 1
[[package]]
name = "own"
version = "1.0"
source = { editable = "." }
[[package]]
name = "Flask"
version = "3.0.2"
source = { registry = "https://pypi.org/simple" }
[[package]]
name = "click"
version = "8.1.8"
resolution-markers = ["python_full_version < '3.10'"]
[[package]]
name = "click"
version = "8.3.0"
resolution-markers = ["python_full_version >= '3.10'", "sys_platform == 'win32'"]
[[package]]
name = "forked"
version = "2"
source = { git = "https://example.org/forked" }
"""
CLICK = (
    "click==8.1.8 ; (python_full_version < '3.10')",
    "click==8.3.0 ; (python_full_version >= '3.10') or (sys_platform == 'win32')",
)
POETRY = """
[[package]]
name = "click"
version = "8"
markers = {main = "python_version < '3.11'", dev = "python_version < '3.11'"}
[[package]]
name = "click"
version = "9"
markers = "python_version >= '3.11'"
"""
CONFLICTING = """
[[package]]
name = "trustme"
version = "0.9.0"
resolution-markers = ["python_full_version >= '3.13'", "python_full_version < '3.11'"]
[[package]]
name = "trustme"
version = "1.2.1"
resolution-markers = ["python_full_version >= '3.13'"]
"""
PIPENV = '{"default": {"six": {"version": "==1.16.0"}, "x": {"git": "x"}}, "develop": {"attrs": {"version": "*"}}}'


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("uv.lock", UV, (*CLICK, "flask==3.0.2")),
        (
            "poetry.lock",
            "[[package]]\nname='six'\nversion='1.16.0'\nmarkers='python_version > \"3\"'",
            ("six==1.16.0",),
        ),
        ("pylock.toml", "[[packages]]\nname='six'\nversion='1'\n[[packages]]\nname='x'\nvcs={}", ("six==1",)),
        ("poetry.lock", POETRY, ("click==8 ; (python_version < '3.11')", "click==9 ; (python_version >= '3.11')")),
        ("uv.lock", CONFLICTING, ()),
        ("Pipfile.lock", PIPENV, ("six==1.16.0",)),
        *(("pdm.lock", text, ()) for text in ("[[", "package = 3", "[[package]]\nname = 3", "")),
    ],
)
def test_versions_of_lock_files_are_constraints(name: str, text: str, wanted: tuple[str, ...]) -> None:
    found = of({"requirements.txt": "six\n", name: text})
    assert (found.lines, found.locked) == (("six",), wanted)
    assert of({"requirements.txt": "six --hash=sha256:00\n", name: text}).locked == (), "it is locked already"


def test_include_cycles_end_and_includes_are_bounded() -> None:
    there_and_back = {"requirements.txt": "-r x/requirements.txt", "x/requirements.txt": "-r ../requirements.txt\nsix"}
    assert of(there_and_back).lines == ("six",)
    chain = {f"x/requirements-{n}.txt": f"-r requirements-{n + 1}.txt" for n in range(500)}
    assert of({"requirements.txt": "-r x/requirements-0.txt", **chain}).refusals


def test_what_the_contract_does_not_read_is_not_installed() -> None:
    found = of({"requirements.txt": "-r deps.txt\n", "deps.txt": "six\n"})
    assert (found.lines, len(found.refusals)) == ((), 1)
    assert is_manifest("requirementsdev.txt")
    assert of({"requirementsdev.txt": "six\n"}).lines == ("six",)


PYPROJECT = """
[project]
name = "My.Shop"
dependencies = ["flask>=3"]
[project.optional-dependencies]
test = ["my-shop[web]", "hypothesis", "my-shop-plugin"]
web = ["httpx"]
docs = ["sphinx"]
[dependency-groups]
dev = ["ruff", "faker", {include-group = "Types"}]
types = ["mypy", {include-group = "dev"}]
lint = ["pylint"]
[tool.poetry.dependencies]
python = "^3.11"
six = "^1.16"
attrs = {version = "~23.1", extras = ["tests"], markers = "python_version > '3'"}
rich = {version = "*", optional = true}
[tool.poetry.group.test.dependencies]
pytest = "*"
[tool.poetry.group.docs.dependencies]
sphinx = "*"
"""


def test_pyproject_of_every_kind() -> None:
    found = of({"pyproject.toml": PYPROJECT})
    assert found.refusals == ()
    assert set(found.lines) == {
        *("flask>=3", "hypothesis", "my-shop-plugin", "httpx", "faker", "six>=1.16,<2", "pytest"),
        "attrs[tests]>=23.1,<23.2 ; python_version > '3'",
    }


@pytest.mark.parametrize(
    "text",
    [
        *("[project", "[project]\ndependencies = 'six'", "project = 3", "[project]\ndependencies = [3]"),
        *("[tool.poetry.dependencies]\nx = '^a'", "[dependency-groups]\ndev = [{include-group = 'absent'}]"),
        *("[project.optional-dependencies]\ntest = 'six'", "tool = 3"),
    ],
)
def test_a_manifest_that_cannot_be_understood_is_refused(text: str) -> None:
    found = of({"pyproject.toml": text})
    assert found.refusals
    assert found.refusals[0].startswith("pyproject.toml: ")


def test_manifests_without_dependencies_ask_for_nothing() -> None:
    found = of(
        {"pyproject.toml": "[project]\nname = 'x'\n[tool.ruff]\nline-length = 3", "setup.cfg": "[tool:pytest]\n"}
    )
    assert found == Requirements(without=("x",))


def test_setup_cfg() -> None:
    text = "[options]\ninstall_requires =\n    six>=1\n    attrs; python_version > '3'\n"
    text += "[options.extras_require]\ntest = rich\ndocs = sphinx\n"
    assert of({"setup.cfg": text}).lines == ("six>=1", "attrs; python_version > '3'", "rich")


versions = st.lists(st.integers(0, 30), min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))


@given(version=versions, sign=st.sampled_from(["^", "~", ""]))
def test_poetry_specifiers_allow_their_own_version(version: str, sign: str) -> None:
    found = SpecifierSet(specifier(sign + version))
    assert found.contains(version)
    assert not found.contains("9999")
    Requirement(f"x{found}")


def test_poetry_specifiers() -> None:
    table = {"^0.2.3": ">=0.2.3,<0.3", "^0.0.3": ">=0.0.3,<0.0.4", "^0": ">=0,<1", "~1": ">=1,<2", "*": "", "": ""}
    table |= {
        "~1.2.3": ">=1.2.3,<1.3",
        "1.2.*": "==1.2.*",
        ">=1, <2": ">=1,<2",
        "~=1.4": "~=1.4",
        "^0.0": ">=0.0,<0.1",
        "^1.21 || ^2": ">=2,<3",
    }
    assert {text: specifier(text) for text in table} == table


def test_only_regular_files_inside_the_tree_are_read(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (root / "folder" / "plain.txt").write_text("plain")
    (root / "requirements.txt").symlink_to(tmp_path / "secret")
    (root / "linked").symlink_to(tmp_path)
    (root / "big.txt").write_bytes(b"x" * 3_000_000)
    (root / "bytes.txt").write_bytes(b"\xff")
    os.mkfifo(root / "pipe.txt")
    assert read_text(root, "folder/plain.txt") == "plain"
    names = ["requirements.txt", "linked/secret", "../secret", "folder", "big.txt", "bytes.txt", "pipe.txt", "absent"]
    assert [read_text(root, name) for name in names] == [None] * len(names)
    assert root_files(root) == ("big.txt", "bytes.txt", "linked", "pipe.txt", "requirements.txt")
    assert gather(root_files(root), lambda name: read_text(root, name)).refusals
    assert root_files(root / "absent") == ()


CHOICE = """
[project]
name = "tides"
dependencies = ["six"]
optional-dependencies = {test = ["pytest"], Redis_Cache = ["redis"], dev = ["tides[test]", "rich"]}
[dependency-groups]
test = ["hypothesis"]
slow = ["numpy", {include-group = "test"}]
"""


@pytest.mark.parametrize(
    ("chosen", "lines"),
    [
        (Chosen(), "six pytest hypothesis rich"),
        (Chosen(extras=["redis-cache"]), "six redis hypothesis"),
        (Chosen(extras=[], groups=["slow"]), "six numpy hypothesis"),
        (Chosen(extras=[], groups=[]), "six"),
    ],
)
def test_people_choose_extras_and_groups(chosen: Chosen, lines: str) -> None:
    found = gather(["pyproject.toml"], {"pyproject.toml": CHOICE}.get, chosen=chosen)
    assert (set(found.lines), found.refusals) == (set(lines.split()), ())


def test_what_people_choose_must_be_there_unless_only_the_build_knows() -> None:
    chosen = Chosen(extras=["tst"], groups=["slow"])
    found = gather(["pyproject.toml"], {"pyproject.toml": CHOICE}.get, chosen=chosen)
    assert found.refusals == ("environment.extras: no manifest has tst; there are dev, redis-cache, test",)
    assert gather(["setup.py"], {}.get, chosen=Chosen(extras=["tst"])).extras == ("tst",)
