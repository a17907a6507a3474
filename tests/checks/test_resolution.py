"""What a resolution may not lose, and what is no loss: sloppy answers and good ones."""

import json

import pytest

from orchestrator.checks.delivery import check_resolution, gone_on_purpose
from orchestrator.checks.paths import Around
from orchestrator.core.delivery import Conflict, Delivery, FileChange
from orchestrator.core.finding import Finding, blocking
from orchestrator.core.paths import RepoPath

BASE = "def zero():\n    return 0\n"
ONE, TWO = (f"{BASE}\n\ndef {name}():\n    return '{name}'\n" for name in ("one", "two"))
BOTH = f"{ONE}\n\ndef two():\n    return 'two'\n"
TODO = "# ... rest of the code unchanged ...\n"


def conflict(path: str, base: str | None, result: str, story: str) -> Conflict:
    return Conflict(path=path, base=base, result=result, story=story)


def judged(one: Conflict, text: str, merged: dict[str, str] | None = None) -> tuple[Finding, ...]:
    files = (FileChange(path=RepoPath(one.path), content=text),)
    delivery = Delivery(story_id="US-2", task_id="T-US-2-01", files=files)
    return blocking(check_resolution(delivery, [one], merged or {}, Around()))


PYTHON = conflict("a.py", BASE, ONE, TWO)
PACKAGE, WITH_A, WITH_B, WITH_BOTH, WITH_SCRIPT = (
    json.dumps({"name": "x", "scripts": {"test": "node --test"} | scripts, "dependencies": dependencies})
    for scripts, dependencies in (
        ({}, {}), ({}, {"a": "1.0.0"}), ({}, {"b": "1.0.0"}), ({}, {"a": "1.0.0", "b": "1.0.0"}),
        ({"start": "node ."}, {"b": "1.0.0"}),
    )
)  # fmt: skip
ROUTES = "const app = require('express')();\n{}module.exports = app;\n"
SHELF = "class Shelf:\n    def zero(self):\n        return 0\n{}"
METHOD = "\n    def {0}(self):\n        return '{0}'\n"
M_ONE, M_TWO = (SHELF.format(METHOD.format(name)) for name in ("one", "two"))
M_BOTH = M_ONE + METHOD.format("two")
CLASS = conflict("a.py", SHELF.format(""), M_ONE, M_TWO)
JS, JS_ONE, JS_TWO = (f"export function {name}() {{ return 1; }}\n" for name in ("zero", "one", "two"))
JS_NAMES = conflict("a.ts", JS, f"{JS}{JS_ONE}", f"{JS}{JS_TWO}")
HEADING = "Title\n=======\n\n{}\n"
ABOUT_GIT = "A conflict looks so:\n\n<<<<<<< ours\n{}\n=======\nb\n>>>>>>> theirs\n"


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (PYTHON, BOTH),
        (PYTHON, BOTH.replace("\n", "\r\n")),
        (PYTHON, f'"""Both."""\n\n{BOTH}\n\ndef three():\n    return one() + two()\n'),
        (conflict("a.py", None, ONE, TWO), BOTH),
        # One side took something out of what both began with; the other had changed it.
        (conflict("a.py", BASE, "def nought():\n    return 0\n", TWO), TWO.replace("zero", "nought")),
        (conflict("a.py", BASE, "X = 1\n", BASE.replace("0", "00")), "X = 1\n"),
        (conflict("a.py", BASE, "X = 1\n", BASE.replace("0", "-0")), f"X = 1\n\n\n{BASE}"),
        # What stood there on one side is not new on the other.
        (conflict("a.py", BASE, ONE + TODO, TWO), BOTH + TODO),
        (conflict("a.py", BASE, ONE, TWO + TODO), BOTH + TODO),
        (conflict("a.py", f"ONE = 1\n{BASE}", f"ONE = 2\n{BASE}", f"ONE = 3\n{BASE}"), f"ONE = 4\n{BASE}"),
        (CLASS, M_BOTH),
        (JS_NAMES, f"{JS}{JS_TWO}{JS_ONE}"),
        (conflict("a.py", SHELF.format(""), M_ONE.replace("zero", "nought"), M_TWO), M_BOTH.replace("zero", "nought")),
        (conflict("a.py", M_ONE, M_ONE.replace("Shelf", "Rack"), M_BOTH), M_BOTH.replace("Shelf", "Rack")),
        (conflict("package.json", PACKAGE, WITH_A, WITH_B), WITH_BOTH),
        (conflict("requirements.txt", "a\n", "a\nb\n", "a\nc\n"), "a\nb\nc\n"),
        (conflict("requirements.txt", "a==1\n", "a==2\n", "a==3\n"), "a==3\n"),
        (conflict("x.md", HEADING.format("a"), HEADING.format("b"), HEADING.format("c")), HEADING.format("b and c")),
        (conflict("x.md", "a\n", HEADING.format("b"), HEADING.format("c")), HEADING.format("b") + HEADING.format("c")),
        (conflict("git.md", "a\n", ABOUT_GIT.format("x"), ABOUT_GIT.format("y")), ABOUT_GIT.format("xy")),
        (
            conflict(
                "app.js",
                ROUTES.format(""),
                ROUTES.format("app.get('/a', (q, r) => r.end());\n"),
                ROUTES.format("app.get('/b', (q, r) => r.end());\n"),
            ),
            ROUTES.format("app.get('/a', (q, r) => r.end());\napp.get('/b', (q, r) => r.end());\n"),
        ),
    ],
)  # fmt: skip
def test_what_keeps_both_sides_passes(one: Conflict, text: str) -> None:
    assert judged(one, text) == ()


@pytest.mark.parametrize(
    ("one", "text", "code"),
    [
        (PYTHON, ONE, "delivery.lost_export"),
        (PYTHON, TWO, "delivery.lost_export"),
        (PYTHON, BOTH.replace("def two", "def second"), "delivery.lost_export"),
        (JS_NAMES, f"{JS}{JS_ONE}", "delivery.lost_export"),
        (PYTHON, BOTH + TODO, "delivery.placeholder"),
        (PYTHON, f"<<<<<<< merged meanwhile\n{ONE}=======\n{TWO}>>>>>>> your story\n", "merge.marker"),
        (PYTHON, f"{BOTH}>>>>>>> your story\n", "merge.marker"),
        (PYTHON, f"{BOTH}=======\n", "merge.marker"),
        (PYTHON, f"||||||| base\n{BOTH}", "merge.marker"),
        (PYTHON, f"<<<<<<<\r\n{BOTH}", "merge.marker"),
        (conflict("x.txt", "a\n", "b\n", "c\n"), "b\n=======\nc\n", "merge.marker"),
        (conflict("x.txt", "a\n", "b\n", "c\n"), "", "delivery.shrunk"),
        (conflict("git.md", ABOUT_GIT, ABOUT_GIT, ABOUT_GIT), ABOUT_GIT * 3, "merge.marker"),
        (conflict("package.json", PACKAGE, WITH_A, WITH_B), WITH_A, "delivery.manifest_loss"),
        (conflict("package.json", PACKAGE, WITH_A, WITH_SCRIPT), WITH_BOTH, "delivery.manifest_loss"),
        (conflict("requirements.txt", "a\n", "a\nb\n", "a\nc\n"), "a\nc\n", "delivery.manifest_loss"),
    ],
)  # fmt: skip
def test_what_loses_a_side_is_refused(one: Conflict, text: str, code: str) -> None:
    assert code in {finding.code for finding in judged(one, text)}, judged(one, text)


def test_both_losses_are_told_once_each() -> None:
    assert sorted(finding.message.split("`")[3] for finding in judged(PYTHON, BASE)) == ["one", "two"]


def test_only_what_a_side_took_from_the_base_went_on_purpose() -> None:
    assert gone_on_purpose([PYTHON]) == ()
    assert gone_on_purpose([conflict("a.py", None, ONE, TWO)]) == ()
    assert gone_on_purpose([conflict("a.py", ONE, BASE, TWO)]) == ("one",)


def test_every_file_in_conflict_must_come_and_others_are_held_against_the_merged_tree() -> None:
    other = FileChange(path=RepoPath("b.py"), content="X = 1\n")
    delivery = Delivery(story_id="US-2", task_id="T", files=(other,), removed=(RepoPath("c.py"),))
    found = check_resolution(delivery, [PYTHON], {"b.py": "X = 1\n\n\ndef kept():\n    return 2\n"}, Around())
    assert [finding.code for finding in blocking(found)] == ["delivery.missing_file", "merge.removed"]
