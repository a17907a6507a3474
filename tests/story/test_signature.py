"""When two red runs have failed in the same way."""

import random

import pytest

from orchestrator.core.suite import CaseResult, ReportedCase, RunProblem, TestReport
from orchestrator.story.suite_runs import MOST_TEXT, normalised, signature


def red(**messages: str) -> TestReport:
    cases = [
        ReportedCase(name=name, id=f"tests.t::{name}", result=CaseResult.FAILED, message=message)
        for name, message in messages.items()
    ]
    return TestReport(cases=tuple(cases), exit_code=1)


SAME = [
    ("/tmp/orchestrator-a1b2/tree/src/shop.py:12: ValueError", "/srv/x/SP-1/US-2/src/shop.py:99: ValueError"),
    ('File "/tmp/a/b/shop.py", line 3, in total', 'File "/home/ann/repo/shop.py", line 44, in total'),
    ("<Shop object at 0x7f3a12bc> is closed", "<Shop object at 0x7FFF9910ee> is closed"),
    ("started 2026-01-02T10:11:12.123Z", "started 2027-11-30 01:02:03+02:00"),
    ("at 10:11:12 it failed", "at 23:59:59.999 it failed"),
    ("took 0.12s", "took 3 s"),
    ("timeout after 1500 ms", "timeout after 3 seconds"),
    ("order 3f2504e0-4f89-41d3-9a0c-0305e82c3301 is lost", "order 11111111-2222-3333-4444-555555555555 is lost"),
    ("commit 9fceb02d0ae598e95dc970b74767f19372d61af8", "commit 3b18e512dba79e4c8300dd08aeb37f8e728b8dad"),
    ("connect ECONNREFUSED 127.0.0.1:43211", "connect ECONNREFUSED 127.0.0.1:50123"),
    ("no such file: /tmp/pytest-of-root/pytest-12/test_a0/x", "no such file: /tmp/pytest-of-ann/pytest-3/test_a1/y"),
    ("tests/app.test.mjs:4:12 failed", "tests/app.test.mjs:9:1 failed"),
    ("\x1b[31mred\x1b[0m alert", "red   alert"),
    ("pid 1234 died", "pid 99 died"),
    ("stamp 1700000000", "stamp 1800000001.5"),
    ("no test_one_3b18e512dba79e4c", "no test_one_9fceb02d0ae598e9"),
    ("cannot open tmpk3j2_9xq", "cannot open tmp8ahq22_z"),
]
OTHER = [
    ("assert 2 == 1", "assert 3 == 1"),
    ("KeyError: 'price'", "KeyError: 'prices'"),
    ("ValueError: no price", "TypeError: no price"),
    ("in shop.py: wrong", "in cart.py: wrong"),
    ("expected 'deadbeef'", "expected 'feedback'"),
    ("status 404", "status 500"),
]


@pytest.mark.parametrize(("one", "two"), SAME)
def test_what_differs_from_run_to_run_is_left_out(one: str, two: str) -> None:
    assert normalised(one) == normalised(two)
    assert signature(red(test_a=one)) == signature(red(test_a=two))


@pytest.mark.parametrize(("one", "two"), OTHER)
def test_another_failure_is_another_one(one: str, two: str) -> None:
    assert signature(red(test_a=one)).id != signature(red(test_a=two)).id


def test_order_and_surrounding_code_do_not_count_but_which_tests_fail_does() -> None:
    both = red(test_a="assert 1", test_b="assert 2")
    turned = TestReport(cases=both.cases[::-1])
    assert signature(both) == signature(turned)
    assert signature(both).id != signature(red(test_a="assert 1")).id
    said = ">  assert value() == 1\nE  assert 2 == 1\nE   +  where 2 = value()\n\n"
    before = f"def test():\n{said}tests/t.py:5: AssertionError"
    after = f"def test():\n    # a new line\n{said}tests/t.py:6: AssertionError"
    assert signature(red(test_a=before)) == signature(red(test_a=after))
    node = "AssertionError: 2 !== 1\n    at TestContext.<anonymous> (tests/a.mjs:5:20)\n    at Test.run"
    assert signature(red(test_a=node)) == signature(red(test_a=node.replace("5:20", "9:1").replace("Test.run", "x")))


def test_runs_without_results_are_told_apart_by_their_problem_and_their_end() -> None:
    hung = TestReport(problem=RunProblem.TIMEOUT, output="x" * 900 + " took 3 s")
    assert signature(hung) == signature(hung.model_copy(update={"output": "x" * 900 + " took 9 s"}))
    assert signature(hung).id != signature(hung.model_copy(update={"problem": RunProblem.NO_REPORT})).id
    faked = TestReport(problem=RunProblem.TAMPERED, output="1 passed")
    assert signature(faked) == signature(faked.model_copy(update={"output": "2 passed, with other words"}))
    gone = TestReport(problem=RunProblem.MISSING_NAMES, missing_names=("test_b", "test_a"), output="1")
    assert signature(gone) == signature(gone.model_copy(update={"missing_names": ("test_a", "test_b"), "output": "2"}))


def test_hostile_and_huge_texts_come_to_one_line() -> None:
    chars = "/a.b:0x1f -_é\n" + "9" * 9
    noise = "".join(random.Random(1).choices(chars, k=4000))
    texts = [noise, "/a" * 2000, "a." * 2000, "1" * 4000, "0:" * 2000, "f1" * 2000, "tmp_" * 1000, " at " * 1000]
    for text in texts:
        shown = signature(red(**{f"test_{n}": text for n in range(60)})).text
        assert "\n" not in shown
        assert len(shown) <= MOST_TEXT + 1
