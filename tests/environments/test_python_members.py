from pathlib import Path

import pytest

from orchestrator.environments.python import gather_all
from orchestrator.environments.python_requirements import Chosen
from tests.environments.projects import write_tree

ROOT = """
[project]
name = "shop"
dependencies = ["shop-base[fast]", "six"]
[dependency-groups]
dev = ["shop-tools", "shop-gone"]
[build-system]
requires = ["hatchling"]
[tool.uv.sources]
shop-base = { workspace = true }
shop-tools = { path = "tools" }
shop-gone = { workspace = true }
[tool.uv.workspace]
members = ["packages/*", "../*"]
"""
BASE = """
[project]
name = "Shop.Base"
dependencies = ["attrs", "shop"]
[project.optional-dependencies]
fast = ["orjson"]
test = ["faker"]
[dependency-groups]
dev = ["hypothesis"]
[build-system]
requires = ["hatchling"]
[tool.uv.sources]
shop = { workspace = true }
"""


@pytest.mark.parametrize(("folder", "wanted"), [("", {"six", "attrs", "orjson"}), ("packages/base", {"six", "attrs"})])
def test_projects_of_one_repository_are_installed_with_each_other(
    folder: str, wanted: set[str], tmp_path: Path
) -> None:
    root = write_tree(
        tmp_path,
        {
            "pyproject.toml": ROOT,
            "uv.lock": "[[package]]\nname = 'six'\nversion = '1.16.0'\n",
            "packages/base/pyproject.toml": BASE,
            "packages/notes.txt": "",
            "tools/requirements.txt": "absent\n",
            "tools/setup.py": "",
        },
    )
    found, projects = gather_all(root, folder, {}, Chosen())
    assert wanted <= set(found.lines) <= {*wanted, "faker", "hypothesis"}
    assert ("hypothesis" in found.lines, "faker" in found.lines) == (bool(folder), bool(folder)), "its own tests' only"
    assert found.locked == ("six==1.16.0",), "the lock of the workspace"
    if folder:
        assert [(one.folder, one.system is not None) for one in projects] == [("packages/base", True), ("", True)]
        return
    assert [(one.folder, one.extras, one.system is not None) for one in projects] == [
        ("", (), True),
        ("packages/base", ("fast",), True),
        ("tools", (), True),
    ]
    assert set(found.without) == {"shop", "shop-base"}
    [gone] = found.left_out
    assert gone.startswith("pyproject.toml: `shop-gone` was left out")


@pytest.mark.parametrize("members", ["3", "[3]", "['']", "['/etc/*', '**/..']", "'packages'"])
def test_a_workspace_that_says_nonsense_has_no_members(members: str, tmp_path: Path) -> None:
    text = ROOT.replace('["packages/*", "../*"]', members)
    root = write_tree(tmp_path, {"pyproject.toml": text, "packages/base/pyproject.toml": "project = 3\n"})
    found, projects = gather_all(root, "", {}, Chosen())
    assert [one.folder for one in projects] == [""]
    assert len(found.left_out) == 3


def test_nothing_outside_the_repository_is_a_member(tmp_path: Path) -> None:
    outside = write_tree(tmp_path / "outside", {"pyproject.toml": "[project]\nname = 'x'\ndependencies = ['evil']\n"})
    root = write_tree(tmp_path / "root", {"requirements.txt": "-e ../outside\n-e ./link\n-e ./a\0b\n-e ./round\n"})
    (root / "link").symlink_to(outside)
    (root / "round").symlink_to("round")
    found, projects = gather_all(root, "", {}, Chosen())
    assert (found.lines, len(found.left_out), [one.folder for one in projects]) == ((), 4, [""])
