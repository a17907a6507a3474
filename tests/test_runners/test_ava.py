"""AVA: its report names no files, and it writes it to its output."""

import subprocess
from pathlib import Path

import pytest

from orchestrator.core.suite import CaseResult, ReportedCase
from orchestrator.test_runners.ava import read_tap
from orchestrator.test_runners.tests_in_tree import Tool, command

REPORT = """TAP version 13
ok 1 - cart › counts
not ok 2 - cart › deep › adds › twice
#   logged
  ---
    name: AssertionError
    values:
      'Difference:': |-
        - 3
        + 5
    at: 'file:///tmp/tree/test/cart/deep.js:3:37'
  ...
ok 3 - cart › later # SKIP
not ok 4 - cart › todo # TODO
not ok 5 - test/broken.js exited with a non-zero exit code: 1
not ok 6 - Error: no such module
ok 7 - unknown › one

1..7
# tests 7
"""
FILES = ("test/cart/deep.js", "test/cart.test.js", "test/broken.js")


def test_results_are_told_by_file_and_title() -> None:
    cases = read_tap(REPORT, FILES, Path("/tmp/tree"))
    assert [(case.file, case.name, case.result) for case in cases] == [
        ("test/cart.test.js", "counts", CaseResult.PASSED),
        ("test/cart/deep.js", "adds › twice", CaseResult.FAILED),
        ("test/cart.test.js", "later", CaseResult.SKIPPED),
        ("test/cart.test.js", "todo", CaseResult.SKIPPED),
        ("test/broken.js", "test/broken.js", CaseResult.ERROR),
        ("", "Error: no such module", CaseResult.FAILED),
        ("", "unknown › one", CaseResult.PASSED),
    ]
    assert "+ 5" in cases[1].message
    assert "test/cart/deep.js:3" in cases[1].message


@pytest.mark.parametrize(
    ("title", "file"),
    [
        ("index › one", "test/index.js"),
        ("a › index › one", "test/a/index.js"),
        ("typed.ts › one", "test/typed.ts"),  # AVA 3
        ("typed › one", "test/typed.ts"),
    ],
)
def test_the_file_of_a_title_is_the_nearest_that_it_fits(title: str, file: str) -> None:
    files = ("test/a/index.js", "test/index.js", "test/typed.ts")
    (case,) = read_tap(f"ok 1 - {title}\n1..1\n", files, Path("/"))
    assert (case.file, case.name) == (file, "one")


def test_a_file_that_cannot_be_loaded_is_told_from_its_packages_folder() -> None:
    text = "not ok 1 - test/index.js exited with a non-zero exit code: 1\n1..0\n"
    (case,) = read_tap(text, ["packages/p/test/index.js"], Path("/"))
    assert (case.file, case.result) == ("packages/p/test/index.js", CaseResult.ERROR)


def test_one_file_has_no_prefix_and_the_worse_of_two_results_counts() -> None:
    text = "ok 1 - a › b\nok 2 - c\nnot ok 3 - c\nok 4 - c\n1..4\n"
    cases = read_tap(text, ["test.js"], Path("/"))
    assert [(case.name, case.result.value) for case in cases] == [("a › b", "passed"), ("c", "failed")]


def test_a_report_that_breaks_off_is_none() -> None:
    with pytest.raises(ValueError, match="breaks off"):
        read_tap("TAP version 13\nok 1 - a\n", ["test.js"], Path("/"))


def test_what_it_writes_to_its_output_is_the_report(tmp_path: Path) -> None:
    program = tmp_path / "ava"
    program.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    program.chmod(0o755)
    only = [ReportedCase(name="adds two", id="test.js::adds two", file="test.js", result=CaseResult.PASSED)]
    argv = command(Tool("ava", "", "", ("--serial",)), str(program), tmp_path, ["test.js"], only)
    assert subprocess.run(argv, capture_output=True, check=True).stdout == b""
    assert (tmp_path / "report.json").read_text().split("\n")[:-1] == [
        "--tap",
        "--serial",
        "--match=adds two",
        "test.js",
    ]
