"""Generated deliveries of twelve classes against a contract: nothing outside it is ever written, nothing half."""

import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.checks.delivery import read_delivery
from orchestrator.contract.enforce import check_delivery
from orchestrator.core.errors import WorkspaceError
from orchestrator.core.finding import Severity
from orchestrator.core.paths import is_test_file
from orchestrator.files.safe_files import open_root, write_all
from tests.contract.worlds import closed_world
from tests.git.git_samples import fill, snapshot

BASE = {
    "README.md": "x\n",
    "app/__init__.py": "",
    "app/store.py": "X = 1\n",
    "package.json": "{}\n",
    "docs/é.md": "x\n",
}
OWN = ("app/cli.py", "app/store.py", "web/main.js", "package.json", "requirements.txt", "Makefile", "setup.cfg")
WORLD = closed_world(OWN, BASE, {"package.json": "{}\n"}, ("flask", "express"))
Make = Callable[[random.Random], dict[str, str]]
LINES = ("numpy\n", "flask @ https://host/x\n", "-r ../requirements.txt\n", "--index-url https://host\n")
FOREIGN = ("left-pad", "numpy", "@evil/x", "requests2", "lodash")


def path_with(bad: list[str]) -> Make:
    def make(r: random.Random) -> dict[str, str]:
        parts = r.sample(["app", "web", r.choice(bad), "x.py"], r.randint(1, 4))
        return {"/".join(parts): "x", r.choice(bad): "x"}

    return make


def spelled(r: random.Random) -> dict[str, str]:
    path = r.choice([*OWN, *BASE])
    others = {path.upper(), path.swapcase(), path.replace("é", "e\u0301"), path.capitalize()} - {path}
    return {r.choice(sorted(others)): "x = 1\n"}


def imported(r: random.Random) -> dict[str, str]:
    name = r.choice(["numpy", "requests2", "PIL", "bs4", "google.cloud"])
    form = r.choice(["import {}", "from {} import x", "import os, {}"])
    js = r.choice(["import a from '{}'", "require('{}')", "await import(`{}`)", "export * from '{}/sub'"])
    python = r.choice(["app/cli.py", "app/store.py"])
    return r.choice([{python: form.format(name)}, {"web/main.js": js.format(r.choice(FOREIGN))}])


def declared(r: random.Random) -> dict[str, str]:
    name, group = r.choice(FOREIGN), r.choice(["dependencies", "peerDependencies", "overrides", "optionalDependencies"])
    held = {
        "package.json": f'{{"{group}": {{"{name}": "1"}}}}',
        "requirements.txt": r.choice(LINES),
        "setup.cfg": "[options]\ninstall_requires = numpy\n",
    }
    path = r.choice(list(held))
    return {path: held[path]}


def right(r: random.Random) -> dict[str, str]:
    return {path: "{}" for path in r.sample(["app/cli.py", "package.json"], r.randint(1, 2))}


def mixed(r: random.Random) -> dict[str, str]:
    """A right file beside a wrong one."""
    wrong = r.choice([name for name in CLASSES if name not in {"right", "mixed"}])
    return {"app/cli.py": "X = 1\n"} | CLASSES[wrong](r)


CLASSES: dict[str, Make] = {
    "right": right,
    "climbing": path_with(["..", "../..", "a/../..", "./../x"]),
    "absolute": path_with(["/etc/passwd", "/tmp/x", "C:/x", "~/x", "C:\\x", "//host/x"]),
    "git": path_with([".git", ".GIT", ".git/config", "git~1/x", ".git./x", "app/.git/hooks/x"]),
    "unwritable": path_with(["a\0b", "a\u200bb", "con", "nul.py", " x", "x.", "a" * 300, "a//b", "a\\b", ""]),
    "outside": path_with(["other.py", "app/other.py", ".github/workflows/x.yml", ".gitattributes", "lib/x.js"]),
    "tests": path_with(["tests/test_x.py", "conftest.py", "a.spec.js", "test_x.py", "pytest.ini"]),
    "spelled": spelled,
    "placed": path_with(["README.md/x", "app", "web", "docs", "app/store.py/x", "door/x", "link.py"]),
    "imported": imported,
    "declared": declared,
    "mixed": mixed,
}  # fmt: skip
"""Name → how a delivery of this class is made; eleven of them are wrong."""


def brought(folder: Path, delivered: dict[str, str]) -> bool:
    """Whether a delivery reached the tree, by the same doors as in a run."""
    delivery, said = read_delivery({"files": delivered}, "US-1", "T1")
    if delivery is None or any(finding.severity.blocks for finding in said):
        return False
    if any(finding.severity.blocks or finding.ask for finding in check_delivery(WORLD, delivery, BASE)):
        return False
    root = open_root(folder)
    try:
        write_all(root, [(change.path, change.content.encode()) for change in delivery.files])
    except WorkspaceError:
        return False
    finally:
        os.close(root)
    return True


def run_through(place: Path, seed: int, count: int) -> Counter[str]:
    """Deliver `count` times, class after class; how many of each class were written."""
    inside, outside = place / "tree", place / "outside"
    fill(outside, {"victim": "precious"})
    fill(inside, BASE)
    (inside / "door").symlink_to(outside)
    (inside / "link.py").symlink_to(outside / "victim")
    chance, written = random.Random(seed), Counter[str]()
    untouched = {path for path in snapshot(inside)} - WORLD.allowed_files
    for number in range(count):
        kind = list(CLASSES)[number % len(CLASSES)]
        before, delivered = snapshot(inside), CLASSES[kind](chance)
        done = brought(inside, delivered)
        written[kind] += done
        after = snapshot(inside)
        expected = before | {path: text.encode() for path, text in delivered.items()} if done else before
        assert after == expected, delivered
        assert set(after) - untouched <= WORLD.allowed_files, delivered
        assert not any(is_test_file(path) for path in after)
    assert snapshot(outside) == {"victim": b"precious"}
    assert sorted(os.listdir(place)) == ["outside", "tree"]
    return written


def test_a_thousand_deliveries_never_write_outside(tmp_path: Path) -> None:
    written = run_through(tmp_path, seed=1, count=1000)
    assert set(written.elements()) == {"right"}, written
    assert written["right"] == len(range(0, 1000, len(CLASSES)))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_more_never_do_either(tmp_path: Path, seed: int) -> None:
    assert set(run_through(tmp_path, seed=seed, count=13_000).elements()) == {"right"}


PARTS = st.sampled_from(["..", ".", "", "app", "x.py", ".git", "~", "C:", "\0", "a\\b"])


@given(st.text(max_size=30) | st.lists(PARTS).map("/".join))
def test_no_path_escapes(path: str) -> None:
    delivery, _ = read_delivery({"files": {path: "x = 1\n"}}, "US-1", "T1")
    if delivery is None:
        return
    found = check_delivery(WORLD, delivery, BASE)
    refused = any(finding.severity is Severity.CRITICAL or finding.ask for finding in found)
    for change in delivery.files:
        assert os.path.normpath(change.path) == change.path
        assert not change.path.startswith(("/", "../"))
        assert refused or change.path in WORLD.allowed_files
