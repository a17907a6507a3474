"""What the scripted team delivers is a working program: each story on its own branch, and all of them together."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.demo_team import build, deliveries, needs, rows, run_tests, suite, write

pytestmark = pytest.mark.docs


@pytest.mark.parametrize("story", list(rows()))
def test_suite_is_green_on_what_the_story_builds_on(story: str, tmp_path: Path) -> None:
    build(tmp_path, needs(story) | {story})
    run = run_tests(tmp_path, suite(story)["test_file"])
    assert run.returncode == 0, run.stdout


def test_first_fines_are_red_by_assertion(tmp_path: Path) -> None:
    build(tmp_path, needs("US-005") | {"US-005"})
    for files in deliveries("US-005", last=False).values():
        write(tmp_path, files)
    run = run_tests(tmp_path, suite("US-005")["test_file"], "-rf")
    assert run.returncode == 1, run.stdout
    failed = re.findall(r"^FAILED \S+::(\w+) - (?:AssertionError|assert)", run.stdout, re.MULTILINE)
    assert failed == [
        "test_every_late_day_counts_after_the_grace",
        "test_fine_has_an_end",
        "test_overdue_list_starts_with_the_latest",
        "test_late_return_says_what_to_pay",
    ]


def test_whole_suite_is_green_and_the_program_runs(tmp_path: Path) -> None:
    build(tmp_path, set(rows()))
    run = run_tests(tmp_path)
    assert run.returncode == 0, run.stdout

    def shelf(*arguments: str) -> str:
        command = [sys.executable, "-m", "shelf", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60).stdout

    readme = (tmp_path / "README.md").read_text(encoding="utf-8")
    for line in re.findall(r"^    python -m shelf (.+)$", readme, re.MULTILINE):
        assert shelf(*(quoted or plain for quoted, plain in re.findall(r'"([^"]+)"|(\S+)', line)))
    assert "1. The Left Hand of Darkness" in shelf("report")
